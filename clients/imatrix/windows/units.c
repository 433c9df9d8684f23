#include "clients/imatrix/windows/units.h"

#include <math.h>
#include <string.h>

#include "base/arithmetic.h"
#include "clients/imatrix/windows/documents.h"
#include "model/model.h"

static const struct imat_units *of(const struct eval_units *units)
{
    const char *kind = (const char *)units->kind;
    return (const struct imat_units *)(const void *)(kind - offsetof(struct imat_units, kind));
}

static const struct eval_windows *windows_of(const struct eval_units *units)
{
    return (const struct eval_windows *)units;
}

void imat_units_widen(struct eval_plan *plan)
{
    plan->n_inputs = plan->window;
}

/* Memory is taken for them; no indexer chooses nearly as many keys. */
enum { MOST_POSITIONS = 1 << 16 };

size_t imat_least_positions(const struct model *model)
{
    const struct model_hparams *h = model_hparams(model);
    size_t least = 0;
    for (size_t i = 0; i < h->n_layers + h->n_bound; i++) {
        const struct model_layer_shape *l = &h->layers[i];
        if (l->sparse)
            least = base_max(least, model_index_limit(h, i) + 1);
        if (l->runs_overlap)
            least = base_max(least, ((size_t)h->index.n_best + 1) * l->run);
    }
    return base_min(least, MOST_POSITIONS);
}

/** A head of no rows is no head: there is one at least. */
static struct eval_size scored_size(const struct imat_units *u, struct eval_size n)
{
    if (u->scored == IMAT_SCORED_NONE || n.n_targets == 0)
        n.n_rows = n.n_targets = 1;
    if (u->scored == IMAT_SCORED_ALL && !u->masked)
        n.n_rows = n.n_tokens;
    return n;
}

static struct eval_size size(const struct eval_units *units, size_t item)
{
    struct eval_size n = scored_size(of(units), of(units)->windows->size(units, item));
    n.longest = base_max(n.longest, of(units)->least_positions);
    return n;
}

static struct eval_size longest(const struct eval_units *units, size_t *n_sequences)
{
    return scored_size(of(units), of(units)->windows->longest(units, n_sequences));
}

static double n_bytes(const struct eval_units *units)
{
    return of(units)->windows->n_bytes(units) +
           imat_collector_bytes(of(units)->collector, of(units)->n_packed);
}

/** A window without scores: its first row enters the head, because one has to. */
static void lay_bare(const struct eval_units *units, size_t w, struct eval_batch *batch)
{
    const struct eval_windows *windows = windows_of(units);
    size_t n = eval_plan_n_inputs(windows->plan, w);
    size_t start = eval_batch_add_segment(batch, n, 0, -1);
    for (size_t p = 0; p < n; p++)
        batch->tokens[start + p] = eval_plan_input(windows->plan, windows->stream, w, p);
    eval_batch_add_row(batch, start, 0);
    eval_batch_add_target(batch, batch->tokens[start]);
}

/** Positions of the last segment, whose rows begin with row `from`, that are not in the head yet.
 */
static void lay_others(struct eval_batch *batch, size_t from)
{
    const struct model_segment *segment = &batch->segments[batch->n.n_segments - 1];
    size_t n_laid = batch->n.n_rows, i = from;
    for (size_t p = segment->start; p < batch->n.n_tokens; p++)
        if (i < n_laid && batch->rows[i] == p)
            i++;
        else
            eval_batch_add_row(batch, p, 0);
}

/**
 * Whether llama-imatrix forgets position p of window w. Windows that fit into a batch share it, n
 * at a time; else pieces of a window have batches of their own. A batch is computed in steps of as
 * many tokens of each of its windows. A dense product of fewer than 16 rows does not count.
 */
static bool is_forgotten(const struct imat_llama *l, const struct eval_plan *plan, size_t w,
                         size_t p)
{
    enum { FEWEST = 16 };
    size_t most = l->batch > plan->window ? l->batch / plan->window : 1;
    size_t n = base_min(most, plan->n_windows - w / most * most);
    size_t piece = base_min(l->batch, plan->window), start = p / piece * piece;
    size_t length = base_min(piece, plan->window - start);
    size_t step = base_min(base_min(l->ubatch, l->batch) / n, length), rest = length % step;
    return n * (p - start < length - rest ? step : rest) < FEWEST;
}

/** The mark of a window's rows that count. */
static uint8_t mark_of(const struct imat_units *u, const struct eval_plan *plan, size_t w)
{
    return u->categories
               ? (uint8_t)(1 + imat_category_of(u->categories, eval_plan_document(plan, w)))
               : 1;
}

/** Which rows of the window count. */
static void mark(const struct eval_units *units, size_t w, struct eval_batch *batch)
{
    const struct eval_plan *plan = windows_of(units)->plan;
    uint8_t *marks = batch->marks + batch->segments[batch->n.n_segments - 1].start;
    uint8_t counts = mark_of(of(units), plan, w);
    memset(marks, of(units)->masked ? 0 : counts, eval_plan_n_inputs(plan, w));
    for (size_t p = 0; of(units)->llama.batch && p < plan->window; p++)
        marks[p] = !is_forgotten(&of(units)->llama, plan, w, p);
    for (size_t i = 0; of(units)->masked && i < eval_plan_n_scored(plan, w); i++)
        marks[eval_plan_position(plan, w, i)] = counts;
}

static void lay(const struct eval_units *units, size_t item, struct eval_batch *batch)
{
    const struct imat_units *u = of(units);
    size_t w = windows_of(units)->left[item], from = batch->n.n_rows;
    imat_collector_begin(u->collector);
    if (u->scored == IMAT_SCORED_NONE || eval_plan_n_scored(windows_of(units)->plan, w) == 0)
        lay_bare(units, w, batch);
    else
        u->windows->lay(units, item, batch);
    if (u->scored == IMAT_SCORED_ALL && !u->masked)
        lay_others(batch, from);
    batch->segments[batch->n.n_segments - 1].n_unwanted = 0;
    mark(units, w, batch);
}

static void take(struct eval_units *units, size_t item, const struct eval_scores *scores)
{
    if (of(units)->scored != IMAT_SCORED_NONE)
        of(units)->windows->take(units, item, scores);
}

/* What batches leave in the sums. */

static struct imat_units *changing(struct eval_units *units)
{
    return (struct imat_units *)(uintptr_t)of(units);
}

/** Whether the run may end after n windows. */
static bool is_border(const struct imat_units *u, size_t n)
{
    size_t times = n / IMAT_STOP_EVERY;
    if (n == 0 || n % IMAT_STOP_EVERY != 0)
        return false;
    return isnan(u->stop.change) ? u->stop.rows > 0 : (times & (times - 1)) == 0;
}

static bool ends_batch(const struct eval_units *units, size_t item)
{
    return is_border(of(units), windows_of(units)->left[item] + 1);
}

/** The next sums begin: keep those of now, if a change is to be looked at from here. */
static enum status keep_half(struct imat_units *u, struct status_why *why)
{
    struct imat_stop *stop = &u->stop;
    if (isnan(stop->change) || !is_border(u, u->n_merged) || stop->n_half == u->n_merged)
        return STATUS_OK;
    base_buffer_free(&stop->half);
    stop->n_half = u->n_merged;
    return imat_collector_pack(u->collector, &stop->half, why);
}

/** What was evaluated beyond the end of the run is not in the sums. */
static enum status merge(struct eval_units *units, size_t backend, size_t end,
                         struct status_why *why)
{
    struct imat_units *u = changing(units);
    enum status status = units->n_enough ? STATUS_OK : keep_half(u, why);
    if (status || units->n_enough)
        return status;
    u->n_merged = windows_of(units)->left[end - 1] + 1;
    return imat_collector_merge(u->collector, backend, why);
}

static enum status pack(struct eval_units *units, struct base_buffer *out, struct status_why *why)
{
    struct imat_collector *c = of(units)->collector;
    enum status status = imat_collector_pack(c, out, why);
    imat_collector_clear(c);
    return status;
}

static enum status unpack(struct eval_units *units, struct base_string bytes, size_t end,
                          struct status_why *why)
{
    struct imat_units *u = changing(units);
    enum status status = units->n_enough ? STATUS_OK : keep_half(u, why);
    if (status || units->n_enough)
        return status;
    u->n_merged = windows_of(units)->left[end - 1] + 1;
    return imat_collector_unpack(u->collector, bytes, why);
}

/** The sums of all windows up to this one, and of no other, are there where a batch ended. */
static bool enough(struct eval_units *units, size_t w)
{
    struct imat_units *u = changing(units);
    struct imat_stop *stop = &u->stop;
    if (w + 1 != u->n_merged || !is_border(u, w + 1))
        return false;
    bool is_enough = true;
    stop->least_rows = imat_collector_least_rows(u->collector);
    if (stop->rows)
        is_enough = stop->least_rows >= stop->rows;
    if (isnan(stop->change))
        return is_enough;
    struct base_string half = {stop->half.data, stop->half.n};
    if (2 * stop->n_half != w + 1 ||
        imat_collector_change(u->collector, half, &stop->last_change, NULL))
        return false;
    return is_enough && stop->last_change <= stop->change;
}

static enum status restore(struct eval_units *units, size_t w, const double *values, bool *restored,
                           struct status_why *why)
{
    *restored = w < of(units)->n_restorable;
    return *restored ? of(units)->windows->restore(units, w, values, restored, why) : STATUS_OK;
}

void imat_units_begin(struct imat_units *u, struct eval_windows *windows)
{
    u->windows = windows->units.kind;
    u->kind = *u->windows;
    u->kind.longest = longest;
    u->kind.n_bytes = n_bytes;
    u->kind.size = size;
    u->kind.lay = lay;
    u->kind.take = take;
    u->kind.restore = restore;
    u->kind.enough = enough;
    u->kind.merge = merge;
    u->kind.pack = pack;
    u->kind.unpack = unpack;
    u->kind.ends_batch = ends_batch;
    u->n_merged = 0;
    u->n_restorable = SIZE_MAX;
    u->stop.last_change = (double)NAN;
    windows->units.kind = &u->kind;
    windows->units.wants_marks = true;
}

void imat_units_free(struct imat_units *u)
{
    base_buffer_free(&u->stop.half);
}
