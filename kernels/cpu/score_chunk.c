#include "kernels/cpu/score_chunk.h"

#include <math.h>
#include <stdlib.h>

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
        for (size_t row = begin; row < begin + KERN_LANES && row < chunk->n_rows; row++) {
            if (n_of_row[row] > n_slots)
                n_slots = n_of_row[row];
        }
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
    for (size_t i = 0; i < chunk->op->n_heads * chunk->n_groups; i++) {
        kern_score_lanes_init(&chunk->sums[i]);
        kern_pair_lanes_init(&chunk->pairs[i]);
    }
    for (size_t i = 0; i < chunk->op->n_heads * chunk->n_slots; i++)
        kern_rank_lanes_init(&chunk->ranks[i]);
}

enum status kern_score_chunk_open(struct kern_score_chunk *chunk, const struct kern_score *op,
                                  size_t first_row, size_t n_rows, struct status_why *why)
{
    *chunk = (struct kern_score_chunk){.op = op, .first_row = first_row, .n_rows = n_rows};
    chunk->n_groups = (n_rows + KERN_LANES - 1) / KERN_LANES;
    enum status status = place_targets(chunk, why);
    if (status != STATUS_OK)
        return status;
    chunk->sums = calloc(op->n_heads * chunk->n_groups, sizeof *chunk->sums);
    chunk->pairs = calloc(op->n_heads * chunk->n_groups, sizeof *chunk->pairs);
    chunk->ranks = calloc(op->n_heads * chunk->n_slots + 1, sizeof *chunk->ranks);
    if (!chunk->sums || !chunk->pairs || !chunk->ranks)
        return no_memory(chunk, why);
    begin_sums(chunk);
    return STATUS_OK;
}

size_t kern_score_chunk_bytes(size_t n_heads, size_t n_rows, size_t n_targets)
{
    size_t n_groups = (n_rows + KERN_LANES - 1) / KERN_LANES;
    size_t n_slots = (n_targets + KERN_LANES - 1) / KERN_LANES + n_groups;
    return n_heads * n_groups * (sizeof(struct kern_score_lanes) + sizeof(struct kern_pair_lanes)) +
           n_heads * n_slots * sizeof(struct kern_rank_lanes) +
           n_targets * sizeof(struct kern_chunk_target);
}

void kern_score_chunk_close(struct kern_score_chunk *chunk)
{
    free(chunk->slot_begin);
    free(chunk->targets);
    free(chunk->sums);
    free(chunk->pairs);
    free(chunk->ranks);
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
    for (size_t row = 0; row < chunk->n_rows; row++) {
        size_t group = row / KERN_LANES, lane = row % KERN_LANES;
        kern_score_finish(&out[row], &sums[group], lane);
    }
}

static void finish_pairs(const struct kern_score_chunk *chunk, size_t head)
{
    const struct kern_score_lanes *sums = chunk->sums + head * chunk->n_groups;
    const struct kern_pair_lanes *pairs = chunk->pairs + head * chunk->n_groups;
    struct kern_pair_score *out = chunk->op->pairs + head * chunk->op->n_rows + chunk->first_row;
    for (size_t row = 0; row < chunk->n_rows; row++) {
        size_t group = row / KERN_LANES, lane = row % KERN_LANES;
        out[row] = (struct kern_pair_score){0};
        if (head == 0)
            continue;
        out[row].kl = kern_pair_finish(&pairs[group], &chunk->sums[group], &sums[group], lane);
        out[row].reverse_kl = (double)NAN; /* not available yet */
    }
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
        op->target_scores[head * op->n_targets + target->index] = (struct kern_target_score){
            .log_prob = (double)rank->logit[lane] - row->max_logit - row->log_sum,
            .rank = rank->above[lane] + 1,
        };
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
}
