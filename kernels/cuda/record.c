/*
 * Recording rows of log-probabilities in 16 bits. A row's scale and floor need all of its logits,
 * so a slab of rows meets the whole vocabulary before the first code. Only codes reach the host,
 * those of one slab while the next one is computed.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/cuda/kernels/score/codes.h"
#include "kernels/cuda/kernels/score/score.h"
#include "kernels/cuda/operations.h"
#include "kernels/cuda/walk.h"
#include "kernels/numerics/fmath.h"
#include "kernels/numerics/record_scale.h"

enum {
    LOGITS_BYTES = 512 << 20, /* of a slab, if that holds a group of lanes */
    SLAB_ROWS = 1024,         /* at most, so that there are two in a call of many rows */
    SLAB_STEP = 128,          /* products are not padded then */
    CALL_SLABS = 2
};

/** A slab's codes, until they are copied to the host. */
struct codes {
    uint16_t *codes; /* device: [slab, stride], rows without their headers */
    size_t first_row, n_rows;
    struct kern_record_scale *scales; /* host: [slab] */
};

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
    struct kern_code_scale *scales; /* [slab] */
    struct codes codes[CALL_SLABS]; /* one being computed, one being copied */
};

static size_t divide(struct recording *r, void *memory)
{
    struct kern_cuda_arena arena = {.base = memory};
    size_t n_groups = base_div_up(r->slab, KERN_LANES);
    kern_cuda_walk_divide(&r->walk, &r->head, r->n_tiles, &arena);
    r->sums = kern_cuda_take(&arena, n_groups * sizeof *r->sums);
    r->no_slots = kern_cuda_take(&arena, (n_groups + 1) * sizeof *r->no_slots);
    r->lowest = kern_cuda_take(&arena, n_groups * KERN_LANES * sizeof *r->lowest);
    r->scales = kern_cuda_take(&arena, r->slab * sizeof *r->scales);
    for (size_t i = 0; i < CALL_SLABS; i++)
        r->codes[i].codes = kern_cuda_take(&arena, r->slab * r->op->stride * sizeof(uint16_t));
    return arena.used;
}

/** Rows of a slab for this vocabulary. */
static size_t slab_rows(size_t n_vocab)
{
    size_t n_rows = LOGITS_BYTES / sizeof(float) / n_vocab;
    size_t unit = n_rows > SLAB_STEP ? SLAB_STEP : KERN_LANES;
    n_rows = n_rows / unit * unit;
    return base_min(n_rows ? n_rows : KERN_LANES, SLAB_ROWS);
}

static struct recording recording_of(struct kern_cuda *cuda, const struct kern_record *op)
{
    struct recording r = {.cuda = cuda, .op = op, .head = {.head = &op->head}};
    size_t n_vocab = op->head.matrix->n_rows;
    r.walk = kern_cuda_walk_of(cuda, base_min(slab_rows(n_vocab), op->n_rows), &op->head, 1);
    r.slab = r.walk.max_rows;
    r.n_tiles = base_div_up(n_vocab, r.walk.tile_vocab);
    return r;
}

size_t kern_cuda_record_rows(struct kern_backend *b, const struct kern_weight *matrix)
{
    (void)b;
    return CALL_SLABS * slab_rows(matrix->n_rows);
}

size_t kern_cuda_record_bytes(struct kern_backend *b, const struct kern_record *op)
{
    struct recording r = recording_of(kern_cuda_of(b), op);
    return divide(&r, NULL);
}

/** Sums and smallest logits before the first tile, to the device. */
static enum status begin_sums(struct recording *r, size_t n_groups, struct status_why *why)
{
    for (size_t i = 0; i < n_groups; i++)
        kern_score_lanes_init(&r->host_sums[i]);
    for (size_t i = 0; i < n_groups * KERN_LANES; i++)
        r->host_lowest[i] = INFINITY;
    enum status status =
        kern_cuda_put(r->cuda, r->sums, r->host_sums, n_groups * sizeof *r->host_sums, why);
    if (!status)
        status = kern_cuda_put(r->cuda, r->lowest, r->host_lowest,
                               n_groups * KERN_LANES * sizeof *r->host_lowest, why);
    return status ? status
                  : r->cuda->device->ops->clear(r->cuda->device, r->no_slots, 0,
                                                (n_groups + 1) * sizeof *r->no_slots, why);
}

/** The logits of a tile, added to sums and smallest logits. */
static enum status reduce_tile(struct recording *r, size_t vocab_row, size_t n_groups,
                               struct status_why *why)
{
    float *logits = r->head.logits + vocab_row * r->walk.stride;
    size_t n = base_min(r->walk.n_vocab - vocab_row, r->walk.tile_vocab);
    enum status status = kern_cuda_walk_multiply(&r->walk, &r->head, vocab_row, n, logits, why);
    struct kern_fold_args fold = {
        .tile = kern_cuda_walk_tile(&r->walk, &r->head, vocab_row, logits),
        .sums = r->sums,
        .slot_begin = r->no_slots,
    };
    struct kern_lowest_args lowest = {
        .logits = logits, .stride = r->walk.stride, .n_vocab = n, .lowest = r->lowest};
    if (!status)
        status = kern_cuda_run(r->cuda, KERN_CUDA_FOLD, n_groups, &fold, why);
    return status ? status : kern_cuda_run(r->cuda, KERN_CUDA_LOWEST, n_groups, &lowest, why);
}

/** Queue a slab's logits, their sums and smallest logits. */
static enum status reduce(struct recording *r, const struct codes *slab, struct status_why *why)
{
    size_t n_groups = base_div_up(slab->n_rows, KERN_LANES);
    enum status status =
        kern_cuda_walk_begin(&r->walk, &r->head, slab->first_row, slab->n_rows, why);
    if (!status)
        status = begin_sums(r, n_groups, why);
    for (size_t v = 0; !status && v < r->walk.n_vocab; v += r->walk.tile_vocab)
        status = reduce_tile(r, v, n_groups, why);
    return status;
}

/** Compute scale and floor of every row from its sums, and upload them. */
static enum status put_scales(struct recording *r, struct codes *slab, struct status_why *why)
{
    size_t n_groups = base_div_up(slab->n_rows, KERN_LANES);
    struct kern_code_scale *pairs = malloc(slab->n_rows * sizeof *pairs);
    if (!pairs)
        return status_fail(why, STATUS_MEMORY, "no memory to record %zu rows", slab->n_rows);
    enum status status =
        kern_cuda_get(r->cuda, r->host_sums, r->sums, n_groups * sizeof *r->host_sums, why);
    if (!status)
        status = kern_cuda_get(r->cuda, r->host_lowest, r->lowest,
                               n_groups * KERN_LANES * sizeof *r->host_lowest, why);
    for (size_t i = 0; !status && i < slab->n_rows; i++) {
        const struct kern_score_lanes *lanes = &r->host_sums[i / KERN_LANES];
        slab->scales[i] = kern_record_scale_of(r->host_lowest[i], lanes->max[i % KERN_LANES],
                                               lanes->sum[i % KERN_LANES], r->op->reach);
        pairs[i] = (struct kern_code_scale){slab->scales[i].scale, slab->scales[i].lowest};
    }
    if (!status)
        status = kern_cuda_put(r->cuda, r->scales, pairs, slab->n_rows * sizeof *pairs, why);
    free(pairs);
    return status;
}

/** Queue the encoding of a slab; what is copied next waits for it. */
static enum status encode(struct recording *r, const struct codes *slab, struct status_why *why)
{
    const struct kern_cuda_device_ops *ops = r->cuda->device->ops;
    struct kern_codes_args args = {
        .codes = slab->codes + KERN_CODE_HEADER,
        .code_stride = r->op->stride,
        .scales = r->scales,
        .logits = r->head.logits,
        .stride = r->walk.stride,
        .n_rows = slab->n_rows,
        .n_vocab = r->walk.n_vocab,
        .encode = true,
    };
    size_t n_blocks =
        base_div_up(slab->n_rows, KERN_CODES_SIDE) * base_div_up(args.n_vocab, KERN_CODES_SIDE);
    enum status status = kern_cuda_run(r->cuda, KERN_CUDA_CODES, n_blocks, &args, why);
    if (!status)
        status = ops->signal(r->cuda->device, KERN_CUDA_COMPUTE, KERN_CUDA_EVENT_ENCODED, why);
    return status ? status
                  : ops->wait(r->cuda->device, KERN_CUDA_COPY, KERN_CUDA_EVENT_ENCODED, why);
}

/** Copy a slab's codes to the host, if it has rows, and write their headers. */
static enum status get_rows(struct recording *r, const struct codes *slab, struct status_why *why)
{
    const struct kern_record *op = r->op;
    uint16_t *records = op->records + slab->first_row * op->stride;
    enum status status = STATUS_OK;
    if (slab->n_rows > 0)
        status =
            r->cuda->device->ops->copy_out(r->cuda->device, KERN_CUDA_COPY, records, slab->codes,
                                           slab->n_rows * op->stride * sizeof *records, why);
    for (size_t i = 0; !status && i < slab->n_rows; i++)
        kern_record_write(records + i * op->stride, r->walk.n_vocab, &slab->scales[i]);
    return status;
}

/** Every slab. The codes of one are copied to the host while the next one is computed. */
static enum status record_slabs(struct recording *r, struct status_why *why)
{
    const struct codes none = {0}, *before = &none;
    enum status status = STATUS_OK;
    for (size_t row = 0, i = 0; !status && row < r->op->n_rows; row += r->slab, i++) {
        struct codes *slab = &r->codes[i % CALL_SLABS];
        slab->first_row = row;
        slab->n_rows = base_min(r->op->n_rows - row, r->slab);
        status = reduce(r, slab, why);
        if (!status)
            status = get_rows(r, before, why);
        if (!status)
            status = put_scales(r, slab, why);
        if (!status)
            status = encode(r, slab, why);
        before = slab;
    }
    return status ? status : get_rows(r, before, why);
}

static enum status allocate(struct recording *r, struct status_why *why)
{
    size_t n_groups = base_div_up(r->slab, KERN_LANES);
    r->host_sums = malloc(n_groups * sizeof *r->host_sums);
    r->host_lowest = malloc(n_groups * KERN_LANES * sizeof *r->host_lowest);
    bool enough = r->host_sums && r->host_lowest;
    for (size_t i = 0; i < CALL_SLABS; i++) {
        r->codes[i].scales = malloc(r->slab * sizeof *r->codes[i].scales);
        enough = enough && r->codes[i].scales;
    }
    return enough ? STATUS_OK
                  : status_fail(why, STATUS_MEMORY, "no memory to record %zu rows", r->slab);
}

enum status kern_cuda_record(struct kern_backend *b, const struct kern_record *op,
                             struct status_why *why)
{
    struct recording r = recording_of(kern_cuda_of(b), op);
    void *memory = NULL;
    enum status status = allocate(&r, why);
    if (!status)
        status = kern_cuda_walk_prepare(&r.walk, &r.head, why);
    if (!status)
        status = kern_cuda_scratch(r.cuda, &memory, divide(&r, NULL), why);
    (void)divide(&r, memory);
    if (!status)
        status = record_slabs(&r, why);
    free(r.host_sums);
    free(r.host_lowest);
    for (size_t i = 0; i < CALL_SLABS; i++)
        free(r.codes[i].scales);
    return status;
}
