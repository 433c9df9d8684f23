/* From counts and a pace to times. */
#include <math.h>
#include <stdio.h>

#include "base/arithmetic.h"
#include "cli/plan/plan.h"
#include "model/forward/forward.h"

static const double disturbed_share = 0.85; /* of the processors: with less, others compute */
static const double telling = 0.5;          /* seconds after which that can be said */

const char *const cli_plan_limits[] = {
    [CLI_PLAN_ARITHMETIC] = "arithmetic",
    [CLI_PLAN_MEMORY] = "memory bandwidth",
    [CLI_PLAN_DISK] = "disk",
    [CLI_PLAN_DEVICE] = "device",
};

/** Operations of all models. */
struct costs {
    struct eval_cost forward;
    double head; /* of a row, through all heads */
};

static struct costs costs_of(const struct eval_models *models)
{
    struct costs p = {0};
    for (size_t i = 0; i <= models->n_candidates; i++) {
        const struct model *model = i ? models->candidates[i - 1] : models->model;
        eval_cost_add(&p.forward, model);
        p.head += eval_cost_head(model, 1);
    }
    if (models->base && models->base->kind == EVAL_ROWS_HIDDEN)
        p.head += eval_cost_head(models->model, 1);
    return p;
}

static void count_item(struct cli_plan_work *out, const struct eval_units *units, size_t item,
                       const struct costs *costs)
{
    struct eval_size size = units->kind->size(units, item);
    double head = (double)size.n_rows * costs->head;
    size_t n_segments = base_max(size.n_segments, 1), n_longer = size.n_tokens % n_segments;
    size_t length = size.n_tokens / n_segments; /* as if they were all alike */
    double forward = (double)(n_segments - n_longer) * eval_cost_segment(&costs->forward, length) +
                     (double)n_longer * eval_cost_segment(&costs->forward, length + 1);
    if (units->kind->cost) /* it knows which layers are left out */
        forward = fmax(units->kind->cost(units, item) - head, 0);
    out->forward += forward;
    out->head += head;
    out->n_rows += size.n_rows;
}

void cli_plan_count(struct cli_plan_work *out, const struct eval_units *units,
                    const struct eval_models *models, size_t n_batches)
{
    const struct costs costs = costs_of(models);
    size_t tile = kern_describe(models->backends[0]).tile_tokens;
    *out = (struct cli_plan_work){.n_left = units->n - units->n_finished};
    tile = tile ? tile : MODEL_TILE_TOKENS;
    for (size_t i = 0; i < units->n_items && out->n_batches < n_batches; out->n_batches++) {
        struct eval_size size;
        size_t end = eval_batch_end(units, i, &size);
        for (; i < end; i++)
            count_item(out, units, i, &costs);
        out->n_tokens += size.n_tokens;
        out->batch_tokens = base_max(out->batch_tokens, size.n_tokens);
        out->moved += (double)base_div_up(size.n_tokens, tile);
    }
}

struct cli_plan_times cli_plan_scale(const struct cli_plan_work *work,
                                     const struct cli_plan_pace *pace,
                                     const struct cli_plan_machine *machine,
                                     const struct cli_outlook *outlook)
{
    double n_threads = fmin(machine->n_threads, machine->n_processors);
    struct cli_plan_times t = {.loading = pace->loading,
                               .making = outlook->made / n_threads,
                               .processor = pace->processor_loading + outlook->made};
    if (!work->n_batches) {
        t.loading_alone = t.loading;
        t.total = t.alone = t.loading + t.making;
        return t;
    }
    bool fits = work->memory <= machine->available;
    t.loading += pace->opening;
    t.layers = work->forward / pace->forward;
    t.head = work->head / pace->head;
    t.rest = pace->rest * (double)work->n_tokens;
    t.n_read = fits ? machine->absent : work->weights * (double)work->n_batches;
    t.disk = t.n_read > 0 ? t.n_read / machine->disk : 0;
    double computing = t.layers + t.head + t.rest;
    double share = pace->n_busy / n_threads;
    bool disturbed = share < disturbed_share && pace->seconds >= telling && !machine->on_device;
    /* The layer that follows is read while one is computed. */
    t.total = t.making + t.loading + fmax(computing, t.disk);
    t.loading_alone = disturbed ? pace->processor_loading : t.loading;
    t.alone = t.making + t.loading_alone + fmax(disturbed ? computing * share : computing, t.disk);
    t.processor += computing * pace->n_busy;
    if (machine->on_device)
        t.limit = CLI_PLAN_DEVICE;
    else if (t.disk > computing)
        t.limit = CLI_PLAN_DISK;
    else if (work->moved / machine->bandwidth > t.layers / 2)
        t.limit = CLI_PLAN_MEMORY;
    return t;
}

/** The largest power of two that is no larger. */
static size_t power_below(size_t n)
{
    size_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

size_t cli_plan_ways(struct cli_plan_way out[CLI_PLAN_MAX_WAYS], const struct cli_plan_times *times,
                     const struct cli_plan_work *work, const struct cli_outlook *outlook)
{
    double loading = times->making + times->loading_alone, computing = times->alone - loading;
    size_t n = 0;
    for (size_t i = 0; i < outlook->n_ways; i++) {
        const struct cli_outlook_way *way = &outlook->ways[i];
        double share =
            (times->layers * way->forward / work->forward + times->head * way->head / work->head) /
            (times->layers + times->head);
        if (share >= 1)
            continue;
        snprintf(out[n].option, sizeof out[n].option, "%s", way->option);
        out[n].wider = 1;
        out[n++].seconds = loading + share * computing;
    }
    for (size_t part = 4; outlook->fewer && part <= 64 && n < CLI_PLAN_MAX_WAYS; part *= 4) {
        size_t fewer = power_below(outlook->n_fewer / part);
        if (outlook->n_fewer / part < 2)
            break;
        snprintf(out[n].option, sizeof out[n].option, "%s %zu", outlook->fewer, fewer);
        out[n].wider = sqrt((double)outlook->n_fewer / (double)fewer);
        out[n++].seconds = loading + computing * (double)fewer / (double)outlook->n_fewer;
    }
    return n;
}
