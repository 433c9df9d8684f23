#include "eval/llama_compat.h"

#include <math.h>
#include <string.h>

#include "base/arithmetic.h"

enum { CONTEXT_UNIT = 256 }; /* its context sizes are multiples of this */

size_t eval_compat_strided_window(size_t n_ctx, size_t stride)
{
    return base_round_up(n_ctx + stride / 2, CONTEXT_UNIT);
}

size_t eval_compat_offset_window(size_t w, size_t n_ctx, size_t batch)
{
    size_t n_together = batch / n_ctx;
    return n_together > 1 ? w - w % n_together : w;
}

double eval_compat_strided_log_prob(double log_prob, double log_sum)
{
    /* exp(l - max) in float32, divided by a sum in double, rounded to float32 again. */
    float numerator = expf((float)(log_prob + log_sum));
    float probability = (float)((double)numerator / exp(log_sum));
    return (double)logf(probability);
}

size_t eval_compat_first_scored(size_t n_beginning, size_t n_tokens)
{
    return base_min(n_beginning, n_tokens);
}

bool eval_compat_misreads(bool after_choice, size_t n_common)
{
    return !after_choice && n_common > 0;
}

struct eval_compat_rows eval_compat_winogrande_rows(char *bytes, size_t n_bytes)
{
    char *end = bytes + n_bytes;
    return (struct eval_compat_rows){bytes, n_bytes && end[-1] == '\n' ? end - 1 : end, 0};
}

/** The five fields of a line between the first four commas outside quotes; false: fewer. */
static bool split(char *line, size_t n_bytes, struct base_string fields[EVAL_COMPAT_ROW_FIELDS])
{
    bool quoted = false;
    size_t n = 0, from = 0;
    for (size_t i = 0; i < n_bytes && n < EVAL_COMPAT_ROW_FIELDS - 1; i++) {
        if (line[i] == '"') {
            quoted = !quoted;
        } else if (line[i] == ',' && !quoted) {
            fields[n++] = (struct base_string){line + from, i - from};
            from = i + 1;
        }
    }
    fields[EVAL_COMPAT_ROW_FIELDS - 1] = (struct base_string){line + from, n_bytes - from};
    struct base_string *sentence = &fields[1];
    if (n == EVAL_COMPAT_ROW_FIELDS - 1 && sentence->n_bytes >= 2 && *sentence->data == '"') {
        sentence->data++;
        sentence->n_bytes -= 2;
    }
    return n == EVAL_COMPAT_ROW_FIELDS - 1;
}

bool eval_compat_winogrande_next(struct eval_compat_rows *rows,
                                 struct base_string fields[EVAL_COMPAT_ROW_FIELDS])
{
    char *newline;
    while (rows->at < rows->end &&
           (newline = memchr(rows->at, '\n', (size_t)(rows->end - rows->at)))) {
        char *line = rows->at;
        rows->at = newline + 1;
        rows->line++;
        if (split(line, (size_t)(newline - line), fields))
            return true;
    }
    return false;
}
