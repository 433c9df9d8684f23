/* Block formats and products, without a model. */
#include <inttypes.h>

#include "clients/library/library.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"

/** Types of files; those of folders have scales that lie apart. */
static const struct gguf_type_info *type_of(uint32_t id)
{
    const struct gguf_type_info *info = id < GGUF_FIRST_FOLDER ? gguf_type_info(id) : NULL;
    return info && kern_quant_find(info->type) ? info : NULL;
}

static void put_type(struct assay_type *out, const struct gguf_type_info *info)
{
    *out = (struct assay_type){.name = info->name,
                               .id = (uint32_t)info->type,
                               .block_elems = info->block_elems,
                               .block_bytes = info->block_bytes,
                               .row_prefix = info->row_prefix,
                               .bundle_rows = info->bundle_rows,
                               .tail_bytes = info->tail_bytes};
}

static enum status type_at(size_t i, struct assay_type *out, struct status_why *why)
{
    enum status status = assay_own_given(out, "the place of the type", why);
    size_t n = 0;
    for (uint32_t id = 0; id < GGUF_FIRST_FOLDER && !status; id++)
        if (type_of(id) && n++ == i) {
            put_type(out, type_of(id));
            return STATUS_OK;
        }
    return status ? status
                  : status_fail(why, STATUS_USAGE, "there is no type %zu, expected 0 to %zu", i,
                                n - 1);
}

enum assay_status assay_type_at(size_t i, struct assay_type *out, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(type_at(i, out, &own), &own, why);
}

static enum status type_find(const char *name, struct assay_type *out, struct status_why *why)
{
    enum status status = assay_own_given(name, "the name", why);
    if (!status)
        status = assay_own_given(out, "the place of the type", why);
    if (status)
        return status;
    const struct gguf_type_info *info = gguf_type_named(name);
    if (!info)
        return status_fail(why, STATUS_USAGE, "there is no type '%s'", name);
    put_type(out, info);
    return STATUS_OK;
}

enum assay_status assay_type_find(const char *name, struct assay_type *out, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(type_find(name, out, &own), &own, why);
}

/** Check a matrix, and make a weight of it. */
static enum status take_matrix(struct kern_weight *out, const struct assay_matrix *matrix,
                               struct status_why *why)
{
    enum status status = assay_own_given(matrix, "the matrix", why);
    if (!status)
        status = assay_own_given(matrix->bytes, "what is in the matrix", why);
    if (status)
        return status;
    const struct gguf_type_info *type = type_of(matrix->type);
    if (!type)
        return status_fail(why, STATUS_USAGE, "there is no type %" PRIu32 " that can be decoded",
                           matrix->type);
    if (matrix->n_rows == 0 || matrix->n_cols == 0 || matrix->n_cols % type->block_elems ||
        matrix->n_rows % type->bundle_rows)
        return status_fail(why, STATUS_USAGE,
                           "a matrix of %zu rows of %zu elements, expected multiples of %" PRIu32
                           " and %" PRIu32 " in type %s",
                           matrix->n_rows, matrix->n_cols, type->bundle_rows, type->block_elems,
                           type->name);
    uint64_t row_bytes, n_bytes = 0;
    bool fits = gguf_row_bytes(type, matrix->n_cols, &row_bytes) &&
                !__builtin_mul_overflow(row_bytes, matrix->n_rows, &n_bytes) &&
                !__builtin_add_overflow(n_bytes, type->tail_bytes, &n_bytes);
    if (!fits || n_bytes != matrix->n_bytes)
        return status_fail(why, STATUS_USAGE,
                           "a matrix of %zu rows of %zu elements in %zu bytes, expected %" PRIu64
                           " in type %s",
                           matrix->n_rows, matrix->n_cols, matrix->n_bytes, n_bytes, type->name);
    *out = (struct kern_weight){.type = type->type,
                                .n_rows = matrix->n_rows,
                                .n_cols = matrix->n_cols,
                                .row_bytes = (size_t)row_bytes,
                                .data = matrix->bytes,
                                .scale = 1.0f,
                                .generation = kern_next_generation()};
    if (type->tail_bytes)
        out->scales =
            (struct gguf_scales){.data = (const char *)matrix->bytes + n_bytes - type->tail_bytes,
                                 .type = GGUF_SCALE_F32,
                                 .block_rows = GGUF_SCALES_ALL,
                                 .block_cols = GGUF_SCALES_ALL,
                                 .n_cols = 1};
    return STATUS_OK;
}

static enum status decode(const struct assay_matrix *matrix, float *out, struct status_why *why)
{
    struct kern_weight w;
    enum status status = assay_own_given(out, "the place of the numbers", why);
    if (!status)
        status = take_matrix(&w, matrix, why);
    if (status)
        return status;
    const struct kern_rows rows = {
        .type = w.type, .data = w.data, .row_bytes = w.row_bytes, .scales = w.scales};
    kern_decode_fn *of_type = kern_quant_find(w.type)->decode;
    for (size_t row = 0; row < w.n_rows; row++)
        kern_rows_decode(&rows, of_type, row, 0, w.n_cols, out + row * w.n_cols);
    return STATUS_OK;
}

enum assay_status assay_decode(const struct assay_matrix *matrix, float *out, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(decode(matrix, out, &own), &own, why);
}

/** What a product reads and writes, of the caller. */
struct product {
    const float *x;
    size_t n_tokens;
    float *y;
};

/** Through memory of the backend. */
static enum status multiply_on(struct kern_backend *b, const struct kern_weight *w,
                               const struct product *p, struct status_why *why)
{
    void *x = NULL, *y = NULL;
    size_t x_bytes, y_bytes;
    if (__builtin_mul_overflow(p->n_tokens, w->n_cols * sizeof(float), &x_bytes) ||
        __builtin_mul_overflow(p->n_tokens, w->n_rows * sizeof(float), &y_bytes))
        return status_fail(why, STATUS_USAGE, "%zu tokens are too many", p->n_tokens);
    enum status status = kern_alloc(b, &x, x_bytes, why);
    if (!status)
        status = kern_alloc(b, &y, y_bytes, why);
    if (!status)
        status = kern_upload(b, x, p->x, x_bytes, why);
    const struct kern_linear op = {
        .weight = w, .x = x, .y = y, .y_stride = w->n_rows, .n_tokens = p->n_tokens};
    if (!status)
        status = kern_linear(b, &op, why);
    if (!status)
        status = kern_download(b, p->y, y, y_bytes, why);
    kern_free(b, x);
    kern_free(b, y);
    return status;
}

static enum status multiply(const struct assay_options *given, const struct assay_matrix *matrix,
                            const struct product *p, struct status_why *why)
{
    struct assay_options options;
    struct kern_weight w;
    enum status status = assay_own_given(p->x, "what is multiplied", why);
    if (!status)
        status = assay_own_given(p->y, "the place of the product", why);
    if (!status)
        status = assay_own_options(&options, given, why);
    if (!status)
        status = take_matrix(&w, matrix, why);
    if (status)
        return status;
    const struct kern_quant *quant = kern_quant_find(w.type);
    size_t n_blocks = w.n_rows * (w.n_cols / quant->block_elems);
    if (quant->find_invalid && quant->find_invalid(w.data, n_blocks) < n_blocks)
        return status_fail(why, STATUS_FORMAT,
                           "block %zu of the matrix holds a bit pattern that type %s does not have",
                           quant->find_invalid(w.data, n_blocks), gguf_type_name(matrix->type));
    struct kern_backend *backend;
    status = assay_own_backend(&backend, &options, why);
    if (!status)
        status = multiply_on(backend, &w, p, why);
    if (backend)
        kern_close(backend);
    return status;
}

enum assay_status assay_multiply(const struct assay_options *options, const struct assay_matrix *w,
                                 const float *x, size_t n_tokens, float *y, struct assay_why *why)
{
    struct status_why own = {""};
    const struct product p = {x, n_tokens, y};
    return assay_own_end(multiply(options, w, &p, &own), &own, why);
}
