#include "cli/trace/worst.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"

/* One tensor for each layer: a window of any model fits in the memory. */
static bool is_wanted(void *user, enum model_place place, int layer, const char *name)
{
    (void)user;
    (void)layer;
    (void)name;
    return place == MODEL_AT_EMBEDDING || place == MODEL_AT_LAYER_OUT ||
           place == MODEL_AT_OUTPUT_NORM || place == MODEL_AT_LOGITS;
}

static enum status keep_rows(struct cli_worst *out, const struct trace *trace,
                             struct status_why *why)
{
    if (base_array_new(out->rows, trace->n, "rows", why))
        return STATUS_MEMORY;
    for (out->n = 0; out->n < trace->n; out->n++) {
        const struct trace_tensor *t = &trace->items[out->n];
        out->rows[out->n] = (struct cli_worst_row){t->place, t->layer, trace_tensor_figures(t, 1)};
    }
    return STATUS_OK;
}

enum status cli_worst_make(struct cli_worst *out, const struct model *model,
                           struct kern_backend *backend, const struct cli_windows *windows,
                           struct status_why *why)
{
    size_t n_tokens = out->position + 1;
    int32_t *tokens = calloc(n_tokens, sizeof *tokens);
    if (!tokens)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu tokens", n_tokens);
    for (size_t i = 0; i < n_tokens; i++)
        tokens[i] = eval_plan_input(&windows->plan, &windows->stream, out->window, i);
    struct trace_task task = {.model = model,
                              .backend = backend,
                              .tokens = tokens,
                              .n_tokens = n_tokens,
                              .n_logits = 1,
                              .want = is_wanted};
    struct trace trace;
    enum status status = trace_run(&trace, &task, why);
    if (!status)
        status = keep_rows(out, &trace, why);
    trace_free(&trace);
    free(tokens);
    return status;
}

void cli_worst_print(const struct cli_worst *worst, const struct cli_windows *windows)
{
    printf("\nWindow %zu, position %zu: assay trace --ids ", worst->window, worst->position);
    for (size_t i = 0; i <= worst->position; i++)
        printf("%s%" PRId32, i ? "," : "",
               eval_plan_input(&windows->plan, &windows->stream, worst->window, i));
    puts("\ntensor\tnorm\tlargest\tnot finite");
    for (size_t i = 0; i < worst->n; i++) {
        const struct cli_worst_row *row = &worst->rows[i];
        char name[TRACE_NAME_BYTES];
        printf("%s\t%g\t%g\t%zu\n", trace_tensor_name(name, row->place, row->layer),
               row->figures.norm, row->figures.largest, row->figures.n_nonfinite);
    }
}

void cli_worst_free(struct cli_worst *worst)
{
    free(worst->rows);
    *worst = (struct cli_worst){.rows = NULL};
}
