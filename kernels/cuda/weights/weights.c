#include "kernels/cuda/weights/weights.h"

#include "kernels/cuda/integers/integers.h"
#include "kernels/cuda/kernels/decode.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/cuda/kernels/rows.h"

/** An operand whose arrays lie in `memory`; NULL: only its size counts. */
static struct kern_cuda_operand lay_out(const struct kern_cuda *cuda, size_t n_rows, size_t n_cols,
                                        void *memory)
{
    struct kern_cuda_arena arena = {.base = memory};
    struct kern_cuda_operand l = {0};
    size_t n_elems = n_rows * n_cols;
    if (!kern_cuda_uses_halves(cuda)) {
        l.floats = kern_cuda_take(&arena, n_elems * sizeof(float));
    } else {
        l.halves = kern_cuda_take(&arena, kern_cuda_depth(cuda, n_elems) * sizeof(uint16_t));
        l.largest = kern_cuda_take(&arena, n_rows * sizeof(uint32_t));
    }
    l.n_bytes = arena.used;
    return l;
}

/** Where the parts of rows of n_cols columns belong. */
static struct kern_half_rows rows_of(const struct kern_cuda *cuda,
                                     const struct kern_cuda_operand *l, size_t n_cols,
                                     bool are_tokens)
{
    struct kern_half_rows rows = {.hi = l->halves, .stride = kern_cuda_depth(cuda, n_cols)};
    if (rows.stride == n_cols)
        return rows;
    rows.hi += are_tokens ? 0 : n_cols;
    rows.lo = l->halves + (are_tokens ? n_cols : 0);
    rows.again = l->halves + 2 * n_cols;
    return rows;
}

size_t kern_cuda_operand_bytes(const struct kern_cuda *cuda, size_t n_rows, size_t n_cols)
{
    return lay_out(cuda, n_rows, n_cols, NULL).n_bytes;
}

/** The operand of rows of a weight. */
static struct kern_cuda_operand lay_out_weight(const struct kern_cuda *cuda, enum gguf_type type,
                                               size_t n_rows, size_t n_cols, void *memory)
{
    if (!kern_cuda_uses_integers(cuda, type))
        return lay_out(cuda, n_rows, n_cols, memory);
    return (struct kern_cuda_operand){.records = memory,
                                      .n_bytes = kern_cuda_integer_bytes(type, n_rows, n_cols)};
}

size_t kern_cuda_weight_bytes(const struct kern_cuda *cuda, const struct kern_weight *weight,
                              size_t n_rows)
{
    return lay_out_weight(cuda, weight->type, n_rows, weight->n_cols, NULL).n_bytes;
}

static size_t packed_row(const struct kern_weight *weight)
{
    return kern_quant_bytes(kern_quant_find(weight->type), weight->n_cols);
}

size_t kern_cuda_panel_rows(const struct kern_cuda *cuda, const struct kern_weight *weight)
{
    size_t n_rows = cuda->options.panel_size / base_max(weight->n_cols, packed_row(weight));
    n_rows = n_rows > 128 ? n_rows / 128 * 128 : base_max(n_rows, 1);
    return base_min(n_rows, weight->n_rows);
}

struct kern_cuda_product kern_cuda_linear_shape(const struct kern_cuda *cuda,
                                                const struct kern_weight *weight)
{
    return (struct kern_cuda_product){
        .side = KERN_CUDA_TOKENS_B,
        .n_weights = kern_cuda_panel_rows(cuda, weight),
        .n_k = weight->n_cols,
        .n_tokens = cuda->options.product_tokens,
    };
}

static enum status decode(struct kern_cuda *cuda, enum gguf_type type,
                          const struct kern_decode_args *args, struct status_why *why)
{
    const struct kern_cuda_launch launch = {
        .kernel = KERN_CUDA_DECODE,
        .type = kern_quant_find(type)->plain,
        .n_blocks = base_div_up(args->n_elems, KERN_DECODE_ELEMS),
        .shared_bytes = kern_cuda_decode_shared(type),
        .args = args,
    };
    return kern_cuda_run_launch(cuda, &launch, why);
}

static struct kern_decode_args decode_args(enum gguf_type type, const uint8_t *packed,
                                           size_t n_rows, size_t n_cols)
{
    const struct kern_quant *quant = kern_quant_find(type);
    return (struct kern_decode_args){
        .blocks = packed,
        .n_elems = n_rows * n_cols,
        .n_cols = n_cols,
        .block_elems = (uint32_t)quant->block_elems,
        .block_bytes = (uint32_t)quant->block_bytes,
        .form = KERN_DECODE_TO_FLOAT,
    };
}

/** Raise `largest` from 0. */
static enum status find_largest(struct kern_cuda *cuda, enum gguf_type type,
                                struct kern_decode_args args, uint32_t *largest,
                                struct status_why *why)
{
    args.form = KERN_DECODE_TO_MAX;
    args.largest = largest;
    size_t n_rows = args.n_elems / args.n_cols;
    enum status status =
        cuda->device->ops->clear(cuda->device, largest, 0, n_rows * sizeof(uint32_t), why);
    return status ? status : decode(cuda, type, &args, why);
}

/** Packed rows to records. Of those that are not full the rest is zeros. */
static enum status decode_integers(struct kern_cuda *cuda, enum gguf_type type,
                                   struct kern_decode_args args, const struct kern_cuda_operand *l,
                                   struct status_why *why)
{
    size_t n_rows = args.n_elems / args.n_cols, n_whole = n_rows / KERN_RECORD_ROWS;
    if (args.n_cols % KERN_RECORD_COLUMNS > 0)
        n_whole = 0;
    size_t n_full = kern_cuda_integer_bytes(type, n_whole * KERN_RECORD_ROWS, args.n_cols);
    enum status status = STATUS_OK;
    if (n_full < l->n_bytes)
        status = cuda->device->ops->clear(cuda->device, (char *)l->records + n_full, 0,
                                          l->n_bytes - n_full, why);
    args.form = KERN_DECODE_TO_INTEGERS;
    args.integers =
        (struct kern_records){.words = l->records, .n_blocks = kern_record_blocks(args.n_cols)};
    return status ? status : decode(cuda, type, &args, why);
}

/** Packed rows to an operand. */
static enum status decode_operand(struct kern_cuda *cuda, enum gguf_type type,
                                  struct kern_decode_args args, const struct kern_cuda_operand *l,
                                  struct status_why *why)
{
    if (l->records)
        return decode_integers(cuda, type, args, l, why);
    args.y = l->floats;
    args.halves = rows_of(cuda, l, args.n_cols, false);
    args.largest = l->largest;
    if (l->floats)
        return decode(cuda, type, &args, why);
    enum status status = find_largest(cuda, type, args, l->largest, why);
    args.form = KERN_DECODE_TO_HALVES;
    return status ? status : decode(cuda, type, &args, why);
}

/** A panel to where it is kept, else to `memory`; that may be NULL: then it is not decoded. */
static enum status decode_panel(struct kern_cuda *cuda, size_t index, void *memory,
                                struct kern_cuda_operand *out, struct status_why *why)
{
    const struct kern_cuda_panel panel = cuda->cache.panels[index];
    const uint8_t *packed = NULL;
    enum status status = kern_cuda_cache_packed(cuda, index, &packed, why);
    if (status)
        return status;
    *out = lay_out_weight(cuda, panel.type, panel.n_rows, panel.n_cols, memory);
    void *kept = kern_cuda_cache_keep(cuda, index, out->n_bytes);
    if (kept)
        *out = lay_out_weight(cuda, panel.type, panel.n_rows, panel.n_cols, kept);
    if (kept || memory)
        status =
            decode_operand(cuda, panel.type,
                           decode_args(panel.type, packed, panel.n_rows, panel.n_cols), out, why);
    if (!status)
        status = kern_cuda_cache_done(cuda, index, why);
    else
        kern_cuda_cache_forget(cuda, index);
    return status;
}

enum status kern_cuda_operands_keep(struct kern_cuda *cuda, struct status_why *why)
{
    const struct kern_cuda_cache *cache = &cuda->cache;
    const void *last = NULL;
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < cache->n_panels; i++) {
        const struct kern_cuda_panel *panel = &cache->panels[i];
        struct kern_cuda_operand operand;
        if (!panel->preloaded || !panel->packed || panel->slot >= 0 || panel->decoded)
            continue;
        status = kern_cuda_cancelled(cuda);
        if (!status)
            status = decode_panel(cuda, i, NULL, &operand, why);
        if (!panel->decoded)
            break;
        last = panel->decoded;
    }
    uint8_t byte; /* it comes after all that decodes */
    return status || !last ? status : kern_cuda_get(cuda, &byte, last, sizeof byte, why);
}

enum status kern_cuda_operand_get(struct kern_cuda *cuda, struct kern_cuda_weight_rows rows,
                                  void *memory, struct kern_cuda_operand *out,
                                  struct status_why *why)
{
    size_t index;
    enum status status =
        kern_cuda_cache_find(cuda, rows.weight, rows.row, rows.n_rows, &index, why);
    if (status)
        return status;
    void *kept = cuda->cache.panels[index].decoded;
    if (!kept)
        return decode_panel(cuda, index, memory, out, why);
    kern_cuda_cache_touch(cuda, index);
    *out = lay_out_weight(cuda, rows.weight->type, rows.n_rows, rows.weight->n_cols, kept);
    return STATUS_OK;
}

enum status kern_cuda_scale(struct kern_cuda *cuda, const struct kern_scale_args *args,
                            struct status_why *why)
{
    size_t n_blocks = base_div_up(args->width * args->n_rows, KERN_ROWS_ELEMS);
    return kern_cuda_run(cuda, KERN_CUDA_SCALE, n_blocks, args, why);
}

/** Decode a vector to memory on the device, with its scale. */
static enum status decode_vector(struct kern_cuda *cuda, const struct kern_weight *weight, float *y,
                                 struct status_why *why)
{
    void *packed = NULL;
    const int32_t first = 0;
    enum status status = kern_cuda_scratch(cuda, &packed, kern_cuda_rows_bytes(weight, 1), why);
    const struct kern_cuda_single_rows row = {weight, &first, 1, packed, y, NULL};
    if (!status)
        status = kern_cuda_rows_decode(cuda, &row, why);
    const struct kern_scale_args args = {
        .x = y, .width = weight->n_cols, .n_rows = 1, .factor = weight->scale};
    if (!status && weight->scale != 1.0f)
        status = kern_cuda_scale(cuda, &args, why);
    return status;
}

enum status kern_cuda_vector(struct kern_cuda *cuda, const struct kern_weight *weight,
                             const float **out, struct status_why *why)
{
    *out = NULL;
    if (!weight)
        return STATUS_OK;
    size_t index;
    enum status status = kern_cuda_cache_find(cuda, weight, 0, 1, &index, why);
    if (status)
        return status;
    struct kern_cuda_panel *panel = &cuda->cache.panels[index];
    if (!panel->vector || panel->vector_scale != weight->scale) {
        void *y = panel->vector;
        if (!y)
            status = kern_cuda_memory(cuda, &y, weight->n_cols * sizeof(float), why);
        if (!status)
            status = decode_vector(cuda, weight, y, why);
        if (status) {
            cuda->device->ops->free(cuda->device, y);
            panel->vector = NULL;
            return status;
        }
        panel->vector = y;
        panel->vector_scale = weight->scale;
    }
    *out = panel->vector;
    return STATUS_OK;
}

size_t kern_cuda_rows_bytes(const struct kern_weight *weight, size_t n_rows)
{
    return n_rows * packed_row(weight);
}

enum status kern_cuda_rows_decode(struct kern_cuda *cuda, const struct kern_cuda_single_rows *rows,
                                  struct status_why *why)
{
    const struct kern_weight *weight = rows->weight;
    const struct kern_cuda_rows packed = {
        .first = weight->data,
        .n_rows = rows->n_rows,
        .row_bytes = packed_row(weight),
        .stride = weight->row_bytes,
        .which = rows->rows,
        .n_cols = kern_cuda_copied_cols(weight->type, weight->col_step, weight->n_cols),
        .col_step = weight->col_step,
        .type = weight->type,
        .scales = weight->scales};
    struct kern_decode_args args =
        decode_args(weight->type, rows->packed, rows->n_rows, weight->n_cols);
    args.y = rows->y;
    enum status status =
        cuda->device->ops->copy_in(cuda->device, KERN_CUDA_COMPUTE, rows->packed, &packed, why);
    if (!status)
        status = decode(cuda, weight->type, &args, why);
    if (!status && rows->largest)
        status = find_largest(cuda, weight->type, args, rows->largest, why);
    return status;
}

enum status kern_cuda_split(struct kern_cuda *cuda, struct kern_cuda_split_tokens *tokens,
                            bool from_waiting, void *memory, struct status_why *why)
{
    struct kern_cuda_operand l = lay_out(cuda, tokens->n_padded, tokens->n_cols, memory);
    const struct kern_half_out out = {.to = rows_of(cuda, &l, tokens->n_cols, true),
                                      .largest = l.largest,
                                      .n_rows = tokens->n_tokens,
                                      .n_cols = tokens->n_cols};
    tokens->operand = l;
    if (from_waiting)
        return kern_cuda_split_waiting(cuda, &out, tokens->n_padded, why);
    const struct kern_split_args args = {.x = tokens->x, .out = out};
    return kern_cuda_run(cuda, KERN_CUDA_SPLIT, tokens->n_padded, &args, why);
}
