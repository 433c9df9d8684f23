#include "kernels/numerics/score_chunk.h"
#include "base/arithmetic.h"
#include "kernels/scoring.h"

#include <math.h>
#include <stdlib.h>

bool kern_score_chunk_has_tops(const struct kern_score *op)
{
    return op->pairs || op->tops;
}

static bool holds_row(const struct kern_score_chunk *chunk, size_t row)
{
    return row >= chunk->first_row && row - chunk->first_row < chunk->n_rows;
}

/** Collect the chunk's targets; slot is the target's number within its row for now. */
static void collect_targets(struct kern_score_chunk *chunk, size_t *n_of_row)
{
    for (size_t i = 0; i < chunk->op->n_targets; i++) {
        size_t row = chunk->op->targets[i].row;
        if (!holds_row(chunk, row))
            continue;
        struct kern_chunk_target *target = &chunk->targets[chunk->n_targets++];
        target->index = i;
        target->row = row - chunk->first_row;
        target->slot = n_of_row[target->row]++;
    }
}

/** Give each group as many slots as it needs, then each target its own. */
static void assign_slots(struct kern_score_chunk *chunk, const size_t *n_of_row)
{
    for (size_t group = 0; group < chunk->n_groups; group++) {
        size_t n_slots = 0;
        size_t begin = group * KERN_LANES;
        for (size_t row = begin; row < begin + KERN_LANES && row < chunk->n_rows; row++)
            n_slots = base_max(n_slots, n_of_row[row]);
        chunk->slot_begin[group] = chunk->n_slots;
        chunk->n_slots += n_slots;
    }
    chunk->slot_begin[chunk->n_groups] = chunk->n_slots;
    for (size_t i = 0; i < chunk->n_targets; i++) {
        struct kern_chunk_target *target = &chunk->targets[i];
        target->slot += chunk->slot_begin[target->row / KERN_LANES];
    }
}

static size_t count_targets(const struct kern_score_chunk *chunk)
{
    size_t n = 0;
    for (size_t i = 0; i < chunk->op->n_targets; i++)
        n += holds_row(chunk, chunk->op->targets[i].row);
    return n;
}

static enum status no_memory(const struct kern_score_chunk *chunk, struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "no memory to score %zu rows under %zu heads",
                       chunk->n_rows, chunk->op->n_heads);
}

static enum status place_targets(struct kern_score_chunk *chunk, struct status_why *why)
{
    size_t *n_of_row = calloc(chunk->n_rows, sizeof *n_of_row);
    chunk->slot_begin = calloc(chunk->n_groups + 1, sizeof *chunk->slot_begin);
    chunk->targets = calloc(count_targets(chunk) + 1, sizeof *chunk->targets);
    bool ok = n_of_row && chunk->slot_begin && chunk->targets;
    if (ok) {
        collect_targets(chunk, n_of_row);
        assign_slots(chunk, n_of_row);
    }
    free(n_of_row);
    return ok ? STATUS_OK : no_memory(chunk, why);
}

static void begin_sums(struct kern_score_chunk *chunk)
{
    size_t n = chunk->op->n_heads * chunk->n_groups;
    for (size_t i = 0; i < n; i++)
        kern_score_lanes_init(&chunk->sums[i]);
    for (size_t i = 0; i < chunk->op->n_heads * chunk->n_slots; i++)
        kern_rank_lanes_init(&chunk->ranks[i]);
    for (size_t i = 0; chunk->tops && i < n; i++)
        kern_top_lanes_init(&chunk->tops[i]);
    for (size_t i = 0; chunk->pairs && i < n; i++)
        kern_pair_lanes_init(&chunk->pairs[i]);
}

enum status kern_score_chunk_open(struct kern_score_chunk *chunk, const struct kern_score *op,
                                  size_t first_row, size_t n_rows, struct status_why *why)
{
    *chunk = (struct kern_score_chunk){.op = op, .first_row = first_row, .n_rows = n_rows};
    chunk->n_groups = base_div_up(n_rows, KERN_LANES);
    enum status status = place_targets(chunk, why);
    if (status)
        return status;
    size_t n = op->n_heads * chunk->n_groups;
    chunk->sums = calloc(n, sizeof *chunk->sums);
    chunk->ranks = calloc(op->n_heads * chunk->n_slots + 1, sizeof *chunk->ranks);
    bool ok = chunk->sums && chunk->ranks;
    if (kern_score_chunk_has_tops(op)) {
        chunk->tops = calloc(n, sizeof *chunk->tops);
        ok = ok && chunk->tops;
    }
    if (op->pairs) {
        chunk->pairs = calloc(n, sizeof *chunk->pairs);
        ok = ok && chunk->pairs;
    }
    if (op->want_js) {
        chunk->js = calloc(n, sizeof *chunk->js);
        ok = ok && chunk->js;
    }
    if (!ok)
        return no_memory(chunk, why);
    begin_sums(chunk);
    return STATUS_OK;
}

size_t kern_score_chunk_bytes(const struct kern_score *op, size_t n_rows)
{
    size_t n_groups = base_div_up(n_rows, KERN_LANES);
    size_t n_slots = base_div_up(op->n_targets, KERN_LANES) + n_groups;
    size_t per_group = sizeof(struct kern_score_lanes);
    if (kern_score_chunk_has_tops(op))
        per_group += sizeof(struct kern_top_lanes);
    if (op->pairs)
        per_group += sizeof(struct kern_pair_lanes);
    if (op->want_js)
        per_group += sizeof(struct kern_js_lanes);
    return op->n_heads * n_groups * per_group +
           op->n_heads * n_slots * sizeof(struct kern_rank_lanes) +
           op->n_targets * sizeof(struct kern_chunk_target);
}

void kern_score_chunk_close(struct kern_score_chunk *chunk)
{
    free(chunk->slot_begin);
    free(chunk->targets);
    free(chunk->sums);
    free(chunk->ranks);
    free(chunk->tops);
    free(chunk->pairs);
    free(chunk->js);
    *chunk = (struct kern_score_chunk){0};
}

struct kern_rank_lanes *kern_score_chunk_rank(const struct kern_score_chunk *chunk, size_t head,
                                              const struct kern_chunk_target *target)
{
    return &chunk->ranks[head * chunk->n_slots + target->slot];
}

static void finish_rows(const struct kern_score_chunk *chunk, size_t head)
{
    const struct kern_score_lanes *sums = chunk->sums + head * chunk->n_groups;
    struct kern_row_score *out = chunk->op->rows + head * chunk->op->n_rows + chunk->first_row;
    for (size_t row = 0; row < chunk->n_rows; row++)
        kern_score_finish(&out[row], &sums[row / KERN_LANES], row % KERN_LANES);
}

static void finish_targets(const struct kern_score_chunk *chunk, size_t head)
{
    const struct kern_score *op = chunk->op;
    const struct kern_row_score *rows = op->rows + head * op->n_rows + chunk->first_row;
    for (size_t i = 0; i < chunk->n_targets; i++) {
        const struct kern_chunk_target *target = &chunk->targets[i];
        const struct kern_rank_lanes *rank = kern_score_chunk_rank(chunk, head, target);
        size_t lane = target->row % KERN_LANES;
        const struct kern_row_score *row = &rows[target->row];
        double log_prob = (double)rank->logit[lane];
        if (!op->heads[head].recorded)
            log_prob = log_prob - row->max_logit - row->log_sum;
        op->target_scores[head * op->n_targets + target->index] = (struct kern_target_score){
            .log_prob = log_prob,
            .rank = rank->above[lane] + 1,
        };
    }
}

/** The last head's; after finish_rows. */
static void finish_tops(const struct kern_score_chunk *chunk)
{
    const struct kern_score *op = chunk->op;
    size_t head = op->n_heads - 1;
    for (size_t row = 0; row < chunk->n_rows; row++) {
        size_t lane = row % KERN_LANES, at = chunk->first_row + row;
        const struct kern_top_lanes *top = &chunk->tops[head * chunk->n_groups + row / KERN_LANES];
        const struct kern_row_score *score = &op->rows[head * op->n_rows + at];
        for (size_t i = 0; i < KERN_TOP_MAX; i++)
            op->tops[at * KERN_TOP_MAX + i] = (struct kern_top){
                .token = top->token[i][lane],
                .log_prob = (double)top->logit[i][lane] - score->max_logit - score->log_sum,
            };
    }
}

/** The chunk's part of op->pairs of a head. */
static struct kern_pair_score *pairs_out(const struct kern_score_chunk *chunk, size_t head)
{
    return chunk->op->pairs + head * chunk->op->n_rows + chunk->first_row;
}

static void finish_pairs(const struct kern_score_chunk *chunk, size_t head)
{
    struct kern_pair_score *out = pairs_out(chunk, head);
    for (size_t row = 0; row < chunk->n_rows; row++) {
        size_t group = row / KERN_LANES, at = head * chunk->n_groups + group;
        struct kern_pair_sums sums = {
            .pair = &chunk->pairs[at],
            .base = &chunk->sums[group],
            .other = &chunk->sums[at],
            .base_top = &chunk->tops[group],
            .other_top = &chunk->tops[at],
            .stored = chunk->op->heads[0].recorded != NULL,
        };
        if (head == 0)
            out[row] = (struct kern_pair_score){0};
        else
            kern_pair_finish(&out[row], &sums, row % KERN_LANES);
    }
}

void kern_score_chunk_finish(const struct kern_score_chunk *chunk)
{
    for (size_t head = 0; head < chunk->op->n_heads; head++) {
        finish_rows(chunk, head);
        finish_targets(chunk, head);
        if (chunk->op->pairs)
            finish_pairs(chunk, head);
    }
    if (chunk->op->tops)
        finish_tops(chunk);
}

/** What turns a logit into a log-probability; NaN if there is no distribution. */
static double shift_of(const struct kern_score_chunk *chunk, size_t head, size_t row)
{
    const struct kern_row_score *score =
        &chunk->op->rows[head * chunk->op->n_rows + chunk->first_row + row];
    if (chunk->op->heads[head].recorded)
        return isnan(score->log_sum) ? (double)NAN : 0.0;
    return score->max_logit + score->log_sum;
}

void kern_score_chunk_begin_js(struct kern_score_chunk *chunk)
{
    for (size_t head = 1; head < chunk->op->n_heads; head++) {
        for (size_t row = 0; row < chunk->n_rows; row++) {
            struct kern_js_lanes *js = &chunk->js[head * chunk->n_groups + row / KERN_LANES];
            js->base_shift[row % KERN_LANES] = shift_of(chunk, 0, row);
            js->other_shift[row % KERN_LANES] = shift_of(chunk, head, row);
        }
    }
}

void kern_score_chunk_finish_js(const struct kern_score_chunk *chunk)
{
    for (size_t head = 1; head < chunk->op->n_heads; head++) {
        struct kern_pair_score *out = pairs_out(chunk, head);
        for (size_t row = 0; row < chunk->n_rows; row++)
            kern_js_finish(&out[row], &chunk->js[head * chunk->n_groups + row / KERN_LANES],
                           row % KERN_LANES);
    }
}
