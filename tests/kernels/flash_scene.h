/** Attention of the CUDA backend in `high` and `fast`: inputs, what the device makes of them. */
#ifndef TESTS_KERNELS_FLASH_SCENE_H
#define TESTS_KERNELS_FLASH_SCENE_H

#include "tests/kernels/attention_truth.h"
#include "tests/kernels/cuda_pair.h"

enum {
    FLASH_SCENE_SHARED_BYTES = 160 << 10, /* heads of 256 in three parts take 145 KiB */
    FLASH_SCENE_LITTLE = 99 << 10         /* a card on which `high` has heads of 128 one by one */
};

/** An operation on the host: q, k, v, and out as the device left it. */
struct flash_scene {
    struct kern_attention op;
    struct attention_sinks sinks;
    float *q, *k, *v, *out;
    size_t n_tokens;
};

/** Floats of a row of q, k, v and out. */
void flash_scene_widths(const struct kern_attention *op, size_t widths[4]);
/** Random arrays of n_tokens rows; op's ranges are the caller's to set. */
void flash_scene_open(struct flash_scene *s, struct rng *r, struct attention_shape shape,
                      size_t n_tokens);
void flash_scene_close(struct flash_scene *s);

/** A pair whose device has the shared memory. way: see cuda_pair_way(). */
void flash_scene_pair(struct cuda_pair *p, enum kern_precision precision, size_t way);
/** A pair whose device has that many bytes of it. */
void flash_scene_pair_of(struct cuda_pair *p, enum kern_precision precision, size_t way,
                         size_t shared_bytes);
/** The operation on the device. */
void flash_scene_run(struct cuda_pair *p, struct flash_scene *s);
/** Run it with arrays that begin `skew` floats after an aligned address. */
void flash_scene_run_skewed(struct cuda_pair *p, struct flash_scene *s, size_t skew);
/** Fail unless outputs are within the derived bound. */
struct attention_error flash_scene_check(const struct flash_scene *s,
                                         enum kern_precision precision);
/** Some queries one at a time, then all, shifted by one within their blocks: the same bits. */
void flash_scene_check_grouping(struct cuda_pair *p, struct flash_scene *s);

#endif
