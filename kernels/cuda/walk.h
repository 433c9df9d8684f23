/**
 * The walk over the vocabulary with some hidden rows, which scoring and recording share. A head's
 * logits are computed a tile of vocabulary rows at a time, [vocabulary][rows], with scale, bias
 * and soft cap.
 */
#ifndef KERNELS_CUDA_WALK_H
#define KERNELS_CUDA_WALK_H

#include "kernels/cuda/kernels/score/score.h"
#include "kernels/cuda/weights/weights.h"

enum {
    KERN_CUDA_WALK_ROWS = 2048, /* hidden rows that share a walk */
    KERN_CUDA_WALK_VOCAB = 4096 /* vocabulary rows of a tile: with 2048 rows 32 MB of logits */
};

/** One live head of the walk. */
struct kern_cuda_walk_head {
    const struct kern_head *head;
    const float *bias; /* device, or NULL */
    void *hidden_memory;
    struct kern_cuda_operand hidden;      /* of the current rows, from split */
    const float *rows;                    /* device: the current rows as floats */
    void *weights;                        /* memory for an operand of a tile */
    float *logits;                        /* [tile_vocab, stride], in room for more */
    struct kern_powers of_rows, of_vocab; /* with halves: of the current rows and the last tile */
    struct kern_raw_logits raw;           /* what is to make logits of that */
};

struct kern_cuda_walk {
    struct kern_cuda *cuda;
    size_t max_rows; /* of a walk */
    size_t planned;  /* rows that products of halves are planned for */
    size_t step;     /* walks are padded to a multiple; 0: to `planned`, nothing is known yet */
    size_t n_vocab, tile_vocab;
    size_t n_rows; /* current ones */
    size_t stride; /* of the current logits: n_rows, padded */
};

/**
 * Sizes for n_rows hidden rows of heads that are walked together: a tile is within a panel of each.
 * Heads without a matrix do not count; one must have it.
 */
struct kern_cuda_walk kern_cuda_walk_of(struct kern_cuda *cuda, size_t n_rows,
                                        const struct kern_head *heads, size_t n_heads);

/** Rows that arrays of a walk have room for: what `max_rows` are padded to. */
size_t kern_cuda_walk_room(const struct kern_cuda_walk *walk);

/** Take the head's arrays from the arena; tiles: as many tiles of logits as are held at once. */
void kern_cuda_walk_divide(const struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                           size_t n_tiles, struct kern_cuda_arena *arena);

/**
 * What may use scratch memory: bias, trials of products. Call it for every head before the arena
 * is made. It also decides how far walks are padded.
 */
enum status kern_cuda_walk_prepare(struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                                   struct status_why *why);

/** Rows first .. first + n_rows - 1 of the head's hidden rows become the current ones. */
enum status kern_cuda_walk_begin(struct kern_cuda_walk *walk, struct kern_cuda_walk_head *head,
                                 size_t first, size_t n_rows, struct status_why *why);

/**
 * Logits of the vocabulary rows `row` .. row + n - 1 to `logits`, or sums, of which head->raw makes
 * logits. n is a tile or the last one.
 */
enum status kern_cuda_walk_multiply(const struct kern_cuda_walk *walk,
                                    struct kern_cuda_walk_head *head, size_t row, size_t n,
                                    float *logits, struct status_why *why);

/** Make logits of them at once. */
enum status kern_cuda_walk_finish(const struct kern_cuda_walk *walk,
                                  struct kern_cuda_walk_head *head, size_t n, float *logits,
                                  struct status_why *why);

/** The tile for a kernel that makes logits of what is not logits yet. */
struct kern_logits kern_cuda_walk_tile(const struct kern_cuda_walk *walk,
                                       struct kern_cuda_walk_head *head, size_t row, float *logits);

#endif
