/*
 * Recording rows of log-probabilities in 16 bits. A row's scale and floor follow from its
 * largest and smallest logit and its sum, so all its logits are needed before the first code.
 * A slab of hidden rows is multiplied with the whole vocabulary. Then each group of rows is
 * reduced and encoded.
 */
#include "kernels/cpu/operations.h"
#include "kernels/cpu/score/walk.h"
#include "kernels/numerics/record_scale.h"

enum {
    SLAB_FLOATS = 16 << 20, /* 64 MiB of logits, if that holds one panel of rows */
    SLAB_ROWS = 2048,       /* more would not be faster */
    GROUPS = KERN_PANEL / KERN_LANES
};

size_t kern_cpu_record_rows(struct kern_backend *b, const struct kern_weight *matrix)
{
    (void)b;
    size_t n_panels = base_max(SLAB_FLOATS / KERN_PANEL / matrix->n_rows, 1);
    return base_min(n_panels * KERN_PANEL, SLAB_ROWS);
}

static struct kern_walk_limits choose_limits(const struct kern_record *op)
{
    size_t n_rows = kern_cpu_record_rows(NULL, op->head.matrix);
    return (struct kern_walk_limits){.n_rows = base_min(n_rows, op->n_rows),
                                     .tile_rows = op->head.matrix->n_rows};
}

/** The smallest logit of each lane; NaN is passed over. */
static void lanes_min(float *min, const struct kern_logit_tile *tile)
{
    for (size_t lane = 0; lane < KERN_LANES; lane++)
        min[lane] = INFINITY;
    for (size_t row = 0; row < tile->n_rows; row++) {
        const float *logits = tile->logits + row * tile->stride;
        for (size_t lane = 0; lane < KERN_LANES; lane++)
            min[lane] = logits[lane] < min[lane] ? logits[lane] : min[lane];
    }
}

/** Scale and floor of a row into its record and the encoder's lane. */
static void begin_record(uint16_t *record, size_t n_vocab, struct kern_encoded_rows *rows,
                         size_t lane, const struct kern_record_scale *scale)
{
    kern_record_write(record, n_vocab, scale);
    rows->codes[lane] = record + KERN_CODE_HEADER;
    rows->scale[lane] = scale->scale;
    rows->floor[lane] = scale->lowest;
}

struct recording {
    struct kern_walk walk;
    const struct kern_record *op;
    size_t first_row, n_rows; /* of the slab */
};

static void encode_group(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct recording *r = context;
    const struct kern_walk *walk = &r->walk;
    uint64_t begun = kern_clock_now();
    const struct kern_ops *ops = &walk->cpu->kernels.ops;
    struct kern_logit_tile tile = {
        .logits = kern_walk_logits(walk, 0, index / GROUPS) + index % GROUPS * KERN_LANES,
        .stride = walk->row_stride,
        .n_rows = walk->n_vocab,
    };
    float min[KERN_LANES];
    lanes_min(min, &tile);
    struct kern_score_lanes sums;
    kern_score_lanes_init(&sums);
    ops->score_update(&sums, &tile, NULL);
    struct kern_encoded_rows rows = {.n_lanes =
                                         base_min(r->n_rows - index * KERN_LANES, KERN_LANES)};
    for (size_t lane = 0; lane < rows.n_lanes; lane++) {
        size_t row = r->first_row + index * KERN_LANES + lane;
        uint16_t *record = r->op->records + row * r->op->stride;
        struct kern_record_scale scale =
            kern_record_scale_of(min[lane], sums.max[lane], sums.sum[lane], r->op->reach);
        begin_record(record, walk->n_vocab, &rows, lane, &scale);
    }
    ops->encode_codes(&rows, &tile);
    kern_clock_count(walk->cpu->base.clock, KERN_PHASE_FOLD, kern_clock_now() - begun);
}

static enum status record_slab(struct recording *r, size_t first_row, size_t n_rows)
{
    r->first_row = first_row;
    r->n_rows = n_rows;
    r->walk.chunk = (struct kern_score_chunk){.first_row = first_row, .n_rows = n_rows};
    enum status status = kern_walk_pack(&r->walk, first_row, n_rows);
    if (!status)
        status = kern_walk_multiply(&r->walk);
    if (!status)
        status = kern_cpu_run(r->walk.cpu, base_div_up(n_rows, KERN_LANES), encode_group, r);
    return status;
}

/** What the walk needs of the operation. */
static struct kern_score scored(const struct kern_record *op)
{
    return (struct kern_score){.n_heads = 1, .heads = &op->head, .n_rows = op->n_rows};
}

size_t kern_cpu_record_bytes(struct kern_backend *b, const struct kern_record *op)
{
    struct kern_score score = scored(op);
    struct kern_walk_limits limits = choose_limits(op);
    return kern_walk_bytes(kern_cpu_of(b), &score, &limits);
}

enum status kern_cpu_record(struct kern_backend *b, const struct kern_record *op,
                            struct status_why *why)
{
    struct kern_score score = scored(op);
    struct kern_walk_limits limits = choose_limits(op);
    struct recording r = {.op = op};
    enum status status = kern_walk_open(&r.walk, kern_cpu_of(b), &score, &limits, why);
    r.walk.n_vocab_rows = r.walk.n_vocab;
    for (size_t row = 0; !status && row < op->n_rows; row += limits.n_rows)
        status = record_slab(&r, row, base_min(op->n_rows - row, limits.n_rows));
    kern_walk_close(&r.walk);
    return status;
}
