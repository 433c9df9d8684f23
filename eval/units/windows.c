#include "eval/units/windows.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "eval/llama_compat.h"

static const struct eval_windows *of(const struct eval_units *units)
{
    return (const struct eval_windows *)units;
}

static struct eval_size size(const struct eval_units *units, size_t item)
{
    const struct eval_plan *plan = of(units)->plan;
    size_t w = of(units)->left[item], n = eval_plan_n_inputs(plan, w);
    size_t n_scored = eval_plan_n_scored(plan, w);
    return (struct eval_size){
        .n_tokens = n, .n_segments = 1, .n_rows = n_scored, .n_targets = n_scored, .longest = n};
}

static struct eval_size longest(const struct eval_units *units, size_t *n_sequences)
{
    const struct eval_plan *plan = of(units)->plan;
    *n_sequences = units->n - units->n_finished;
    return (struct eval_size){.n_tokens = plan->n_inputs,
                              .n_segments = 1,
                              .n_rows = plan->n_scored,
                              .n_targets = plan->n_scored,
                              .longest = plan->n_inputs};
}

/** Finished are the windows before the first that is not done. */
static void count_finished(struct eval_units *units)
{
    const struct eval_windows *w = of(units);
    while (units->n_finished < units->n && w->tables[0].done[units->n_finished])
        units->n_finished++;
}

static enum status make_items(struct eval_units *units, struct status_why *why)
{
    struct eval_windows *w = (struct eval_windows *)units;
    free(w->left);
    if (base_array_new(w->left, units->n + 1, "windows", why))
        return STATUS_MEMORY;
    units->n_items = 0;
    for (size_t i = 0; i < units->n; i++)
        if (!w->tables[0].done[i])
            w->left[units->n_items++] = i;
    return STATUS_OK;
}

enum status eval_window_check_ids(const struct eval_plan *plan, const struct eval_stream *stream,
                                  const struct model *model, struct status_why *why)
{
    size_t n_vocab = model_hparams(model)->n_vocab;
    if (plan->bos_use != EVAL_BOS_NONE && (size_t)plan->options.bos >= n_vocab)
        return status_fail(why, STATUS_FORMAT, "%s: BOS has the id %d; expected less than %zu",
                           gguf_path(model_file(model)), plan->options.bos, n_vocab);
    return eval_check_ids(model, stream->ids, stream->n, why);
}

static enum status check_ids(const struct eval_units *units, const struct model *model,
                             struct status_why *why)
{
    return eval_window_check_ids(of(units)->plan, of(units)->stream, model, why);
}

static double n_bytes(const struct eval_units *units)
{
    double sum = (double)of(units)->plan->n_windows * sizeof(size_t);
    for (size_t h = 0; h < of(units)->n_tables; h++)
        sum += eval_table_bytes(&of(units)->tables[h]);
    return sum;
}

void eval_window_lay(const struct eval_plan *plan, const struct eval_stream *stream, size_t w,
                     struct eval_batch *batch)
{
    size_t n = eval_plan_n_inputs(plan, w), n_scored = eval_plan_n_scored(plan, w);
    size_t start = eval_batch_add_segment(batch, n, 0, -1), row = eval_plan_row(plan, w);
    for (size_t p = 0; p < n; p++)
        batch->tokens[start + p] = eval_plan_input(plan, stream, w, p);
    for (size_t i = 0; i < n_scored; i++) {
        size_t p = eval_plan_position(plan, w, i);
        eval_batch_add_row(batch, start + p, row + i);
        eval_batch_add_target(batch, stream->ids[eval_plan_target(plan, w, p)]);
    }
}

static void lay(const struct eval_units *units, size_t item, struct eval_batch *batch)
{
    eval_window_lay(of(units)->plan, of(units)->stream, of(units)->left[item], batch);
}

/** The scores of head h into its table. */
static void take_head(const struct eval_windows *windows, size_t h, size_t w,
                      const struct eval_scores *scores)
{
    const struct eval_plan *plan = windows->plan;
    const struct eval_table *table = &windows->tables[h];
    const struct kern_row_score *rows = scores->rows + h * scores->row_stride;
    const struct kern_target_score *targets = scores->targets + h * scores->target_stride;
    bool compat = plan->options.protocol == EVAL_PROTOCOL_STRIDED && plan->options.llama_compat;
    double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
    double *rank = eval_table_row(table, EVAL_RANK, w);
    double *entropy = eval_table_row(table, EVAL_ENTROPY, w);
    size_t n_scored = eval_table_n(table, w);
    for (size_t i = 0; i < n_scored; i++) {
        log_prob[i] = targets[i].log_prob;
        if (compat)
            log_prob[i] = eval_compat_strided_log_prob(log_prob[i], rows[i].log_sum);
        rank[i] = targets[i].rank;
        entropy[i] = rows[i].entropy;
    }
}

/** Take what compares head h with the base. */
static void take_pairs(const struct eval_windows *windows, size_t h, size_t w,
                       const struct eval_scores *scores)
{
    const struct eval_table *table = &windows->tables[h];
    const struct kern_row_score *base = scores->rows, *rows = base + h * scores->row_stride;
    const struct kern_pair_score *pairs = scores->pairs + h * scores->row_stride;
    size_t n_scored = eval_table_n(table, w);
    for (size_t i = 0; i < n_scored; i++) {
        eval_table_row(table, EVAL_KL, w)[i] = pairs[i].kl;
        eval_table_row(table, EVAL_REVERSE_KL, w)[i] = pairs[i].reverse_kl;
        eval_table_row(table, EVAL_JS, w)[i] = pairs[i].js;
        eval_table_row(table, EVAL_TV, w)[i] = pairs[i].tv;
        eval_table_row(table, EVAL_SAME_TOP, w)[i] = rows[i].argmax == base[i].argmax;
        eval_table_row(table, EVAL_COMMON_5, w)[i] = pairs[i].common_top[1];
        eval_table_row(table, EVAL_COMMON_10, w)[i] = pairs[i].common_top[2];
        eval_table_row(table, EVAL_BASE_TOP, w)[i] = -base[i].log_sum;
    }
    for (size_t i = 0; table->n_columns > EVAL_BEYOND && i < n_scored; i++) {
        eval_table_row(table, EVAL_BASE_BEYOND, w)[i] = base[i].beyond;
        eval_table_row(table, EVAL_BEYOND, w)[i] = rows[i].beyond;
    }
}

static void take(struct eval_units *units, size_t item, const struct eval_scores *scores)
{
    const struct eval_windows *windows = of(units);
    for (size_t h = 0; h < scores->n_heads; h++) {
        take_head(windows, h, windows->left[item], scores);
        if (h)
            take_pairs(windows, h, windows->left[item], scores);
    }
}

static void set_done(const struct eval_windows *windows, size_t w)
{
    for (size_t h = 0; h < windows->n_tables; h++)
        windows->tables[h].done[w] = true;
}

static void finish(struct eval_units *units, size_t item)
{
    set_done(of(units), of(units)->left[item]);
    count_finished(units);
}

static bool enough(struct eval_units *units, size_t w)
{
    const struct eval_windows *windows = of(units);
    return windows->stop && eval_stop_add(windows->stop, windows->tables, w);
}

/** Numbers that the tables have of window w; they hold them, so the sum does not overflow. */
static size_t n_cells(const struct eval_windows *windows, size_t w)
{
    size_t n = 0;
    for (size_t h = 0; h < windows->n_tables; h++)
        n += windows->tables[h].n_columns * eval_table_n(&windows->tables[h], w);
    return n;
}

static size_t n_values(const struct eval_units *units, size_t unit)
{
    return n_cells(of(units), unit) + (of(units)->sink ? of(units)->sink->n_state : 0);
}

static enum status save(const struct eval_units *units, size_t w, double *values,
                        struct status_why *why)
{
    const struct eval_windows *windows = of(units);
    for (size_t h = 0; h < windows->n_tables; h++) {
        const struct eval_table *table = &windows->tables[h];
        size_t n = eval_table_n(table, w);
        for (size_t c = 0; c < table->n_columns; c++, values += n)
            memcpy(values, eval_table_row(table, (enum eval_column)c, w), n * sizeof *values);
    }
    return windows->sink ? windows->sink->save(windows->sink->user, w, values, why) : STATUS_OK;
}

static enum status restore(struct eval_units *units, size_t w, const double *values, bool *restored,
                           struct status_why *why)
{
    const struct eval_windows *windows = of(units);
    *restored = true;
    enum status status = STATUS_OK;
    if (windows->sink)
        status = windows->sink->restore(windows->sink->user, w, values + n_cells(windows, w),
                                        restored, why);
    if (status || !*restored)
        return status;
    for (size_t h = 0; h < windows->n_tables; h++) {
        const struct eval_table *table = &windows->tables[h];
        size_t n = eval_table_n(table, w);
        for (size_t c = 0; c < table->n_columns; c++, values += n)
            memcpy(eval_table_row(table, (enum eval_column)c, w), values, n * sizeof *values);
    }
    set_done(windows, w);
    return STATUS_OK;
}

static enum status sync_rows(const struct eval_units *units, struct status_why *why)
{
    const struct eval_row_sink *sink = of(units)->sink;
    return sink && sink->sync ? sink->sync(sink->user, why) : STATUS_OK;
}

static const struct eval_unit_kind kind = {
    .name = "window",
    .longest = longest,
    .make_items = make_items,
    .check_ids = check_ids,
    .n_bytes = n_bytes,
    .size = size,
    .lay = lay,
    .take = take,
    .finish = finish,
    .enough = enough,
    .n_values = n_values,
    .save = save,
    .restore = restore,
    .sync = sync_rows,
};

void eval_windows_open(struct eval_windows *windows)
{
    windows->units = (struct eval_units){.kind = &kind, .n = windows->plan->n_windows};
    count_finished(&windows->units);
    windows->units.n_reported = windows->units.n_finished;
}

void eval_windows_close(struct eval_windows *windows)
{
    free(windows->left);
    windows->left = NULL;
}
