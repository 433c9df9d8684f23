/**
 * One call of score: its memory (score_memory.c), and the uploads of recorded rows
 * (score_codes.c). Running sums have the CPU backend's layout (kernels/numerics/score_chunk.h) and
 * are finished by its code.
 */
#ifndef KERNELS_CUDA_SCORE_H
#define KERNELS_CUDA_SCORE_H

#include "kernels/cuda/kernels/score/codes.h"
#include "kernels/cuda/kernels/score/score.h"
#include "kernels/cuda/kernels/score/targets.h"
#include "kernels/cuda/walk.h"
#include "kernels/numerics/score_chunk.h"

enum {
    KERN_CUDA_CODE_BUFFERS = 2,  /* of recorded rows: one is uploaded while the other is used */
    KERN_CUDA_TARGET_ROWS = 2048 /* targets whose weights are decoded at a time */
};

/** The arrays of struct kern_score_chunk on the device. */
struct kern_cuda_score_state {
    struct kern_score_lanes *sums;
    struct kern_rank_lanes *ranks;
    size_t *slot_begin;
    struct kern_top_lanes *tops;
    struct kern_pair_lanes *pairs;
    struct kern_js_lanes *js;
    struct kern_cuda_target *targets;
    float *taken; /* [n_heads][slots][KERN_LANES], with halves: the targets' logits */
};

struct kern_cuda_scoring {
    struct kern_cuda *cuda;
    const struct kern_score *op;
    struct kern_cuda_walk walk;
    struct kern_cuda_walk_head *heads; /* [n_heads]; a recorded one has only logits */
    size_t first_live;
    struct kern_score_chunk chunk;
    struct kern_cuda_score_state state;
    void *target_packed;
    float *target_weights;
    uint32_t *target_largest;
    struct kern_code_scale *scales;
    uint16_t *codes[KERN_CUDA_CODE_BUFFERS];
};

/** Vocabulary rows of the tile that begins at vocab_row. */
static inline size_t kern_cuda_scoring_rows(const struct kern_cuda_scoring *s, size_t vocab_row)
{
    return base_min(s->walk.n_vocab - vocab_row, s->walk.tile_vocab);
}

/** The counters of a head. */
static inline struct kern_rank_lanes *kern_cuda_scoring_ranks(const struct kern_cuda_scoring *s,
                                                              size_t h)
{
    return s->state.ranks + h * s->chunk.n_slots;
}

/** Heads and sizes. Fails: STATUS_MEMORY. Close it in any case. */
enum status kern_cuda_scoring_open(struct kern_cuda_scoring *s, struct kern_cuda *cuda,
                                   const struct kern_score *op, struct status_why *why);
void kern_cuda_scoring_close(struct kern_cuda_scoring *s);

/** Open a chunk of hidden rows; its arrays go to scratch memory on the device. */
enum status kern_cuda_scoring_begin(struct kern_cuda_scoring *s, size_t first_row, size_t n_rows,
                                    struct status_why *why);
/** Copy the sums of the walk to the chunk. */
enum status kern_cuda_scoring_get(struct kern_cuda_scoring *s, struct status_why *why);

/** Upload scale and floor of the chunk's recorded rows. */
enum status kern_cuda_scoring_put_scales(struct kern_cuda_scoring *s, struct status_why *why);
/** Begin a walk: the buffers of codes are free once all that is queued now is done. */
enum status kern_cuda_scoring_begin_codes(struct kern_cuda_scoring *s, struct status_why *why);
/** Decode the recorded head's logits of a tile. */
enum status kern_cuda_scoring_decode(struct kern_cuda_scoring *s, size_t vocab_row,
                                     struct status_why *why);
/** Upload the codes of the tile after this one, while the device works on this one. */
enum status kern_cuda_scoring_upload_next(struct kern_cuda_scoring *s, size_t vocab_row,
                                          struct status_why *why);

#endif
