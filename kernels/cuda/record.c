/*
 * Recording rows of log-probabilities in 16 bits. A row's scale and floor need all its logits, so
 * some rows meet the whole vocabulary before the first code; only codes reach the host.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/fmath.h"
#include "kernels/cpu/record_scale.h"
#include "kernels/cuda/k_record.h"
#include "kernels/cuda/k_score.h"
#include "kernels/cuda/walk.h"

enum { LOGITS_BYTES = 1 << 30 /* of the rows at hand, if that holds a group of lanes */ };

struct recording {
    struct kern_cuda *cuda;
    const struct kern_record *op;
    struct kern_cuda_walk walk;
    struct kern_cuda_walk_head head;
    size_t n_tiles, slab;          /* rows of a slab */
    struct kern_score_lanes *sums; /* [groups] */
    size_t *no_slots;              /* [groups + 1], zeros: there are no targets */
    float *lowest;                 /* [groups * KERN_LANES] */
    struct kern_score_lanes *host_sums;
    float *host_lowest;
    struct kern_code_scale *scales;
    uint16_t *codes; /* [slab, stride]: records without their headers */
};

static size_t divide(struct recording *r, void *memory)
{
    struct kern_cuda_arena arena = {.base = memory};
    size_t n_groups = kern_cuda_divide_up(r->slab, KERN_LANES);
    kern_cuda_walk_divide(&r->walk, &r->head, r->n_tiles, &arena);
    r->sums = kern_cuda_take(&arena, n_groups * sizeof *r->sums);
    r->no_slots = kern_cuda_take(&arena, (n_groups + 1) * sizeof *r->no_slots);
    r->lowest = kern_cuda_take(&arena, n_groups * KERN_LANES * sizeof *r->lowest);
    r->scales = kern_cuda_take(&arena, r->slab * sizeof *r->scales);
    r->codes = kern_cuda_take(&arena, r->slab * r->op->stride * sizeof *r->codes);
    return arena.used;
}

static struct recording recording_of(struct kern_cuda *cuda, const struct kern_record *op)
{
    struct recording r = {.cuda = cuda, .op = op, .head = {.head = &op->head}};
    size_t n_vocab = op->head.matrix->n_rows;
    size_t n_rows = LOGITS_BYTES / sizeof(float) / n_vocab / KERN_LANES * KERN_LANES;
    n_rows = kern_cuda_min(n_rows ? n_rows : KERN_LANES, op->n_rows);
    size_t tile_vocab =
        kern_cuda_min(KERN_CUDA_WALK_VOCAB, kern_cuda_panel_rows(cuda, op->head.matrix));
    r.walk = kern_cuda_walk_of(cuda, n_rows, n_vocab, tile_vocab);
    r.slab = r.walk.max_rows;
    r.n_tiles = kern_cuda_divide_up(n_vocab, r.walk.tile_vocab);
    return r;
}

size_t kern_cuda_record_bytes(struct kern_backend *b, const struct kern_record *op)
{
    struct recording r = recording_of(kern_cuda_of(b), op);
    return divide(&r, NULL);
}

/** All logits of the rows at hand, then their sums and smallest logits. */
static enum status reduce(struct recording *r, size_t first_row, size_t n_rows,
                          struct status_why *why)
{
    size_t n_groups = kern_cuda_divide_up(n_rows, KERN_LANES), n_vocab = r->walk.n_vocab;
    for (size_t i = 0; i < n_groups; i++)
        kern_score_lanes_init(&r->host_sums[i]);
    enum status status = kern_cuda_walk_begin(&r->walk, &r->head, first_row, n_rows, why);
    for (size_t v = 0; status == STATUS_OK && v < n_vocab; v += r->walk.tile_vocab)
        status = kern_cuda_walk_multiply(&r->walk, &r->head, v,
                                         kern_cuda_min(n_vocab - v, r->walk.tile_vocab),
                                         r->head.logits + v * r->walk.stride, why);
    if (status == STATUS_OK)
        status =
            kern_cuda_put(r->cuda, r->sums, r->host_sums, n_groups * sizeof *r->host_sums, why);
    if (status == STATUS_OK)
        status = r->cuda->device->ops->clear(r->cuda->device, r->no_slots, 0,
                                             (n_groups + 1) * sizeof *r->no_slots, why);
    struct kern_fold_args fold = {
        .tile = {.logits = r->head.logits, .stride = r->walk.stride, .n_vocab = n_vocab},
        .sums = r->sums,
        .slot_begin = r->no_slots,
    };
    struct kern_lowest_args lowest = {.logits = r->head.logits,
                                      .stride = r->walk.stride,
                                      .n_vocab = n_vocab,
                                      .lowest = r->lowest};
    if (status == STATUS_OK)
        status = kern_cuda_run(r->cuda, KERN_CUDA_FOLD, n_groups, sizeof(struct kern_fold_shared),
                               &fold, why);
    if (status == STATUS_OK)
        status = kern_cuda_run(r->cuda, KERN_CUDA_LOWEST, n_groups,
                               sizeof(struct kern_lowest_shared), &lowest, why);
    return status;
}

/** Scale and floor of every row, to the device. */
static enum status put_scales(struct recording *r, size_t n_rows, struct kern_record_scale *scales,
                              struct status_why *why)
{
    struct kern_code_scale *pairs = malloc(n_rows * sizeof *pairs);
    if (!pairs)
        return status_fail(why, STATUS_MEMORY, "no memory to record %zu rows", n_rows);
    for (size_t i = 0; i < n_rows; i++) {
        const struct kern_score_lanes *lanes = &r->host_sums[i / KERN_LANES];
        scales[i] = kern_record_scale_of(r->host_lowest[i], lanes->max[i % KERN_LANES],
                                         lanes->sum[i % KERN_LANES]);
        pairs[i] = (struct kern_code_scale){scales[i].scale, scales[i].lowest};
    }
    enum status status = kern_cuda_put(r->cuda, r->scales, pairs, n_rows * sizeof *pairs, why);
    free(pairs);
    return status;
}

static enum status encode(struct recording *r, size_t n_rows, struct status_why *why)
{
    struct kern_codes_args args = {
        .codes = r->codes + KERN_CODE_HEADER,
        .code_stride = r->op->stride,
        .scales = r->scales,
        .logits = r->head.logits,
        .stride = r->walk.stride,
        .n_rows = n_rows,
        .n_vocab = r->walk.n_vocab,
        .encode = true,
    };
    size_t n_blocks = kern_cuda_divide_up(n_rows, KERN_CODES_SIDE) *
                      kern_cuda_divide_up(args.n_vocab, KERN_CODES_SIDE);
    return kern_cuda_run(r->cuda, KERN_CUDA_CODES, n_blocks, sizeof(struct kern_codes_shared),
                         &args, why);
}

/** The records of the rows at hand, once their scales are known. */
static enum status get_records(struct recording *r, size_t first_row, size_t n_rows,
                               struct status_why *why)
{
    const struct kern_record *op = r->op;
    uint16_t *records = op->records + first_row * op->stride;
    struct kern_record_scale *scales = malloc(n_rows * sizeof *scales);
    if (!scales)
        return status_fail(why, STATUS_MEMORY, "no memory to record %zu rows", n_rows);
    enum status status = put_scales(r, n_rows, scales, why);
    if (status == STATUS_OK)
        status = encode(r, n_rows, why);
    if (status == STATUS_OK)
        status = r->cuda->device->ops->copy_out(r->cuda->device, records, r->codes,
                                                n_rows * op->stride * sizeof *records, why);
    for (size_t i = 0; status == STATUS_OK && i < n_rows; i++)
        kern_record_write(records + i * op->stride, r->walk.n_vocab, &scales[i]);
    free(scales);
    return status;
}

static enum status record_slab(struct recording *r, size_t first_row, size_t n_rows,
                               struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = r->cuda->device->ops;
    size_t n_groups = kern_cuda_divide_up(n_rows, KERN_LANES);
    enum status status = reduce(r, first_row, n_rows, why);
    if (status == STATUS_OK)
        status = ops->copy_out(r->cuda->device, r->host_sums, r->sums,
                               n_groups * sizeof *r->host_sums, why);
    if (status == STATUS_OK)
        status = ops->copy_out(r->cuda->device, r->host_lowest, r->lowest,
                               n_groups * KERN_LANES * sizeof *r->host_lowest, why);
    return status == STATUS_OK ? get_records(r, first_row, n_rows, why) : status;
}

enum status kern_cuda_record(struct kern_backend *b, const struct kern_record *op,
                             struct status_why *why)
{
    struct recording r = recording_of(kern_cuda_of(b), op);
    size_t n_groups = kern_cuda_divide_up(r.slab, KERN_LANES);
    r.host_sums = malloc(n_groups * sizeof *r.host_sums);
    r.host_lowest = malloc(n_groups * KERN_LANES * sizeof *r.host_lowest);
    void *memory = NULL;
    enum status status = STATUS_OK;
    if (!r.host_sums || !r.host_lowest)
        status = status_fail(why, STATUS_MEMORY, "no memory to record %zu rows", r.slab);
    if (status == STATUS_OK)
        status = kern_cuda_walk_prepare(&r.walk, &r.head, why);
    if (status == STATUS_OK)
        status = kern_cuda_scratch(r.cuda, &memory, divide(&r, NULL), why);
    (void)divide(&r, memory);
    for (size_t row = 0; status == STATUS_OK && row < op->n_rows; row += r.slab)
        status = record_slab(&r, row, kern_cuda_min(op->n_rows - row, r.slab), why);
    free(r.host_sums);
    free(r.host_lowest);
    return status;
}
