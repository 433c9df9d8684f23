#include "eval/metrics/per_token.h"

#include <math.h>

#include "eval/input/spelling.h"

void eval_per_token_number(struct base_file *file, double value)
{
    if (isnan(value))
        base_file_printf(file, "\tnan");
    else
        base_file_printf(file, "\t%.12g", value);
}

enum status eval_per_token_write(struct base_file *file, const struct eval_plan *plan,
                                 const struct eval_stream *stream, const struct eval_table *table,
                                 const struct model_tokenizer *tokenizer, struct status_why *why)
{
    enum status status = STATUS_OK;
    struct eval_spelling spelling = {0};
    base_file_printf(file, "window\tposition\ttoken_id\ttoken\tlogprob\trank\tentropy\n");
    for (size_t w = 0; w < table->n_windows && !status; w++) {
        if (!table->done[w])
            continue;
        const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
        const double *rank = eval_table_row(table, EVAL_RANK, w);
        const double *entropy = eval_table_row(table, EVAL_ENTROPY, w);
        for (size_t i = 0; i < table->n_scored; i++) {
            size_t position = plan->first_scored + i;
            int32_t id = stream->ids[eval_plan_target(plan, w, position)];
            status = eval_spell(&spelling, tokenizer, id, why);
            if (status)
                break;
            base_file_printf(file, "%zu\t%zu\t%d\t", w, position, id);
            base_file_write(file, spelling.escaped, spelling.n_escaped);
            eval_per_token_number(file, log_prob[i]);
            eval_per_token_number(file, rank[i]);
            eval_per_token_number(file, entropy[i]);
            base_file_write(file, "\n", 1);
        }
    }
    eval_spelling_free(&spelling);
    return status;
}
