/* The memory of a call of score: its sizes, and the copies of its sums to the device and back. */
#include <stdlib.h>

#include "kernels/cuda/operations.h"
#include "kernels/cuda/score.h"

/** The chunk's arrays; slots: as chunk has them. */
static void divide_state(struct kern_cuda_scoring *s, struct kern_cuda_arena *arena,
                         size_t n_groups, size_t n_slots, size_t n_targets)
{
    size_t n_heads = s->op->n_heads, n = n_heads * n_groups;
    struct kern_cuda_score_state *state = &s->state;
    state->sums = kern_cuda_take(arena, n * sizeof *state->sums);
    state->ranks = kern_cuda_take(arena, n_heads * n_slots * sizeof *state->ranks);
    state->slot_begin = kern_cuda_take(arena, (n_groups + 1) * sizeof *state->slot_begin);
    state->targets = kern_cuda_take(arena, n_targets * sizeof *state->targets);
    if (kern_cuda_uses_halves(s->cuda))
        state->taken = kern_cuda_take(arena, n_heads * n_slots * KERN_LANES * sizeof(float));
    if (kern_score_chunk_has_tops(s->op))
        state->tops = kern_cuda_take(arena, n * sizeof *state->tops);
    if (s->op->pairs)
        state->pairs = kern_cuda_take(arena, n * sizeof *state->pairs);
    if (s->op->want_js)
        state->js = kern_cuda_take(arena, n * sizeof *state->js);
}

/** All of scratch memory. n_slots, n_targets: of a chunk, at most. */
static size_t divide(struct kern_cuda_scoring *s, void *memory, size_t n_slots, size_t n_targets)
{
    struct kern_cuda_arena arena = {.base = memory};
    size_t n_rows = s->walk.max_rows, target_bytes = 0, n_cols = 0;
    for (size_t h = s->first_live; h < s->op->n_heads; h++) {
        const struct kern_weight *matrix = s->op->heads[h].matrix;
        size_t n_bytes = kern_cuda_rows_bytes(matrix, KERN_CUDA_TARGET_ROWS);
        kern_cuda_walk_divide(&s->walk, &s->heads[h], 1, &arena);
        target_bytes = n_bytes > target_bytes ? n_bytes : target_bytes;
        n_cols = matrix->n_cols > n_cols ? matrix->n_cols : n_cols;
    }
    s->target_packed = kern_cuda_take(&arena, target_bytes);
    s->target_weights = kern_cuda_take(&arena, KERN_CUDA_TARGET_ROWS * n_cols * sizeof(float));
    s->target_largest = kern_cuda_take(&arena, KERN_CUDA_TARGET_ROWS * sizeof(uint32_t));
    if (s->first_live > 0) {
        s->heads[0].logits = kern_cuda_take(
            &arena, s->walk.tile_vocab * kern_cuda_walk_room(&s->walk) * sizeof(float));
        s->scales = kern_cuda_take(&arena, n_rows * sizeof *s->scales);
        for (size_t i = 0; i < KERN_CUDA_CODE_BUFFERS; i++)
            s->codes[i] = kern_cuda_take(&arena, n_rows * s->walk.tile_vocab * sizeof(uint16_t));
    }
    divide_state(s, &arena, base_div_up(n_rows, KERN_LANES), n_slots, n_targets);
    return arena.used;
}

enum status kern_cuda_scoring_open(struct kern_cuda_scoring *s, struct kern_cuda *cuda,
                                   const struct kern_score *op, struct status_why *why)
{
    *s = (struct kern_cuda_scoring){
        .cuda = cuda, .op = op, .first_live = op->heads[0].recorded ? 1 : 0};
    s->walk =
        kern_cuda_walk_of(cuda, op->n_rows, op->heads + s->first_live, op->n_heads - s->first_live);
    s->heads = calloc(op->n_heads, sizeof *s->heads);
    if (!s->heads)
        return status_fail(why, STATUS_MEMORY, "no memory to score under %zu heads", op->n_heads);
    for (size_t h = 0; h < op->n_heads; h++)
        s->heads[h].head = &op->heads[h];
    return STATUS_OK;
}

void kern_cuda_scoring_close(struct kern_cuda_scoring *s)
{
    kern_score_chunk_close(&s->chunk);
    free(s->heads);
}

size_t kern_cuda_score_bytes(struct kern_backend *b, const struct kern_score *op)
{
    struct kern_cuda_scoring s;
    if (kern_cuda_scoring_open(&s, kern_cuda_of(b), op, NULL)) {
        kern_cuda_scoring_close(&s);
        return 0;
    }
    size_t n_slots =
        (op->n_targets + KERN_LANES - 1) / KERN_LANES + s.walk.max_rows / KERN_LANES + 1;
    size_t n_bytes = divide(&s, NULL, n_slots, op->n_targets);
    kern_cuda_scoring_close(&s);
    return n_bytes + s.walk.max_rows * sizeof(struct kern_row_score);
}

/** The chunk's arrays to the device, recorded targets entered. */
static enum status put_state(struct kern_cuda_scoring *s, struct status_why *why)
{
    const struct kern_score_chunk *c = &s->chunk;
    size_t n_heads = s->op->n_heads, n = n_heads * c->n_groups;
    const struct kern_recorded *recorded = s->op->heads[0].recorded;
    for (size_t i = 0; recorded && i < c->n_targets; i++) {
        const struct kern_chunk_target *target = &c->targets[i];
        size_t row = c->first_row + target->row;
        struct kern_rank_lanes *rank = kern_score_chunk_rank(c, 0, target);
        rank->logit[target->row % KERN_LANES] =
            kern_code_log_prob(recorded->records + row * recorded->stride,
                               (size_t)s->op->targets[target->index].token);
    }
    for (size_t h = 0; h < n_heads; h++) {
        for (size_t i = 0; i < c->n_targets; i++)
            kern_score_chunk_rank(c, h, &c->targets[i])->token[c->targets[i].row % KERN_LANES] =
                s->op->targets[c->targets[i].index].token;
    }
    const struct {
        void *to;
        const void *from;
        size_t n_bytes;
    } arrays[] = {
        {s->state.sums, c->sums, n * sizeof *c->sums},
        {s->state.ranks, c->ranks, n_heads * c->n_slots * sizeof *c->ranks},
        {s->state.slot_begin, c->slot_begin, (c->n_groups + 1) * sizeof *c->slot_begin},
        {s->state.tops, c->tops, c->tops ? n * sizeof *c->tops : 0},
        {s->state.pairs, c->pairs, s->op->pairs ? n * sizeof *c->pairs : 0},
    };
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < sizeof arrays / sizeof *arrays; i++)
        status = kern_cuda_put(s->cuda, arrays[i].to, arrays[i].from, arrays[i].n_bytes, why);
    return status;
}

static enum status put_targets(struct kern_cuda_scoring *s, struct status_why *why)
{
    const struct kern_score_chunk *c = &s->chunk;
    struct kern_cuda_target *targets = malloc((c->n_targets + 1) * sizeof *targets);
    if (!targets)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu targets", c->n_targets);
    for (size_t i = 0; i < c->n_targets; i++)
        targets[i] = (struct kern_cuda_target){
            .row = (uint32_t)c->targets[i].row,
            .token = s->op->targets[c->targets[i].index].token,
            .slot = c->targets[i].slot,
        };
    enum status status =
        kern_cuda_put(s->cuda, s->state.targets, targets, c->n_targets * sizeof *targets, why);
    free(targets);
    return status;
}

/** Replace the targets' logits for ranks by those that the sums of live heads hold. */
static enum status get_taken(struct kern_cuda_scoring *s, struct status_why *why)
{
    const struct kern_score_chunk *c = &s->chunk;
    size_t n = s->op->n_heads * c->n_slots * KERN_LANES;
    float *taken = malloc((n + 1) * sizeof *taken);
    if (!taken)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu targets", c->n_targets);
    enum status status = kern_cuda_get(s->cuda, taken, s->state.taken, n * sizeof *taken, why);
    for (size_t h = s->first_live; !status && h < s->op->n_heads; h++) {
        for (size_t i = 0; i < c->n_targets; i++) {
            size_t lane = c->targets[i].row % KERN_LANES;
            size_t at = (h * c->n_slots + c->targets[i].slot) * KERN_LANES + lane;
            kern_score_chunk_rank(c, h, &c->targets[i])->logit[lane] = taken[at];
        }
    }
    free(taken);
    return status;
}

enum status kern_cuda_scoring_get(struct kern_cuda_scoring *s, struct status_why *why)
{
    struct kern_score_chunk *c = &s->chunk;
    size_t n_heads = s->op->n_heads, n = n_heads * c->n_groups;
    enum status status = kern_cuda_get(s->cuda, c->sums, s->state.sums, n * sizeof *c->sums, why);
    if (!status && c->n_slots > 0)
        status = kern_cuda_get(s->cuda, c->ranks, s->state.ranks,
                               n_heads * c->n_slots * sizeof *c->ranks, why);
    if (!status && c->n_slots > 0 && kern_cuda_uses_halves(s->cuda))
        status = get_taken(s, why);
    if (!status && c->tops)
        status = kern_cuda_get(s->cuda, c->tops, s->state.tops, n * sizeof *c->tops, why);
    if (!status && s->op->pairs)
        status = kern_cuda_get(s->cuda, c->pairs, s->state.pairs, n * sizeof *c->pairs, why);
    return status;
}

enum status kern_cuda_scoring_begin(struct kern_cuda_scoring *s, size_t first_row, size_t n_rows,
                                    struct status_why *why)
{
    enum status status = kern_score_chunk_open(&s->chunk, s->op, first_row, n_rows, why);
    void *memory = NULL;
    if (!status)
        status = kern_cuda_scratch(s->cuda, &memory,
                                   divide(s, NULL, s->chunk.n_slots, s->chunk.n_targets), why);
    if (status)
        return status;
    (void)divide(s, memory, s->chunk.n_slots, s->chunk.n_targets);
    status = put_state(s, why);
    return status ? status : put_targets(s, why);
}
