/* Tensors of an open model: what they are, and rows of them decoded. */
#include <inttypes.h>
#include <string.h>

#include "base/text/words.h"
#include "clients/library/library.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"

static enum status find(const struct gguf_tensor **out, const struct assay_model *m, size_t i,
                        struct status_why *why)
{
    enum status status = assay_own_given(m, "the model", why);
    if (status)
        return status;
    const struct gguf_file *file = model_file(m->model);
    if (i >= gguf_n_tensors(file))
        return status_fail(why, STATUS_USAGE, "%s: there is no tensor %zu, expected 0 to %zu",
                           gguf_path(file), i, gguf_n_tensors(file) - 1);
    *out = gguf_tensor_at(file, i);
    return STATUS_OK;
}

static enum status tensor_at(const struct assay_model *m, size_t i, struct assay_tensor *out,
                             struct status_why *why)
{
    const struct gguf_tensor *t;
    enum status status = assay_own_given(out, "the place of the tensor", why);
    if (!status)
        status = find(&t, m, i, why);
    if (status)
        return status;
    bool apart = t->view || (t->scales && !t->type->tail_bytes);
    *out = (struct assay_tensor){.name = t->name,
                                 .type = t->type->name,
                                 .n_dims = t->n_dims,
                                 .type_id = t->type_id,
                                 .n_rows = t->n_rows,
                                 .n_bytes = gguf_tensor_stored_bytes(t),
                                 .data = apart ? NULL : t->data};
    memcpy(out->ne, t->ne, sizeof out->ne);
    return STATUS_OK;
}

enum assay_status assay_tensor_at(const struct assay_model *model, size_t i,
                                  struct assay_tensor *out, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(tensor_at(model, i, out, &own), &own, why);
}

static enum status tensor_find(const struct assay_model *m, const char *name, size_t *out,
                               struct status_why *why)
{
    enum status status = assay_own_given(m, "the model", why);
    if (!status)
        status = assay_own_given(name, "the name", why);
    if (!status)
        status = assay_own_given(out, "the place of the number", why);
    if (status)
        return status;
    const struct gguf_file *file = model_file(m->model);
    const struct gguf_tensor *t = gguf_tensor_find(file, name);
    if (t) {
        *out = (size_t)(t - gguf_tensor_at(file, 0));
        return STATUS_OK;
    }
    char nearest[64] = "";
    size_t distance = strlen(name) / 3 + 2;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        base_nearest_name(name, gguf_tensor_at(file, i)->name, nearest, sizeof nearest, &distance);
    return status_fail(why, STATUS_USAGE, "%s: there is no tensor '%s'%s%s%s", gguf_path(file),
                       name, *nearest ? "; did you mean '" : " among its ",
                       *nearest ? nearest : "tensors", *nearest ? "'?" : "");
}

enum assay_status assay_tensor_find(const struct assay_model *model, const char *name, size_t *out,
                                    struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(tensor_find(model, name, out, &own), &own, why);
}

/** Rows first .. first + n - 1. */
struct row_range {
    uint64_t first, n;
};

static enum status tensor_rows(const struct assay_model *m, size_t i, struct row_range rows,
                               float *out, struct status_why *why)
{
    const struct gguf_tensor *t;
    enum status status = find(&t, m, i, why);
    if (!status)
        status = assay_own_given(out, "the place of the rows", why);
    if (status)
        return status;
    if (rows.first > t->n_rows || rows.n > t->n_rows - rows.first)
        return status_fail(why, STATUS_USAGE,
                           "tensor '%s' has %" PRIu64 " rows, not %" PRIu64 " from %" PRIu64 " on",
                           t->name, t->n_rows, rows.n, rows.first);
    if (!kern_quant_find(t->type->type))
        return status_fail(why, STATUS_UNSUPPORTED, "tensor '%s': type %s cannot be decoded",
                           t->name, t->type->name);
    for (uint64_t row = 0; row < rows.n; row++)
        kern_tensor_decode(t, rows.first + row, 0, (size_t)t->ne[0], out + row * t->ne[0]);
    return STATUS_OK;
}

enum assay_status assay_tensor_rows(const struct assay_model *model, size_t i, uint64_t first,
                                    uint64_t n_rows, float *out, struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(tensor_rows(model, i, (struct row_range){first, n_rows}, out, &own), &own,
                         why);
}
