#include "model/bind/bind.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/text/quote.h"
#include "kernels/quant/apart.h"
#include "kernels/quant/rows.h"
#include "model/state.h"

enum { NAME_BYTES = 96 };

const char *model_shape_text(struct model_shape_text *to, const uint64_t *ne, size_t n_dims)
{
    size_t used = 0;
    for (size_t i = 0; i < n_dims; i++)
        used += (size_t)snprintf(to->text + used, sizeof to->text - used, "%s%" PRIu64,
                                 i == 0 ? "[" : ", ", ne[i]);
    snprintf(to->text + used, sizeof to->text - used, "]");
    return to->text;
}

static const char *write_expected(struct model_shape_text *to, struct model_shape shape)
{
    const uint64_t ne[] = {shape.n_cols, shape.n_rows, shape.n_matrices};
    return model_shape_text(to, ne, shape.n_matrices ? 3 : shape.n_rows > 1 ? 2 : 1);
}

static void check_shape(struct model *m, const struct gguf_tensor *tensor, struct model_shape shape)
{
    const uint64_t expected[4] = {shape.n_cols, shape.n_rows,
                                  shape.n_matrices ? shape.n_matrices : 1, 1};
    struct model_shape_text found_text;
    struct model_shape_text expected_text;
    if (memcmp(tensor->ne, expected, sizeof expected) != 0)
        model_bind_fail(m, STATUS_FORMAT, "tensor '%s' has shape %s, expected %s", tensor->name,
                        model_shape_text(&found_text, tensor->ne, tensor->n_dims),
                        write_expected(&expected_text, shape));
}

static struct model_tensor *find(struct model *m, const char *name)
{
    const struct gguf_tensor *source = gguf_tensor_find(m->file, name);
    return source ? &m->tensors[source - gguf_tensor_at(m->file, 0)] : NULL;
}

/** Remark that no layer has what models mostly have; one that others have is missed there. */
static void remark_on_missing(struct model *m, const char *name)
{
    bool of_layers = model_block_of(name) != SIZE_MAX;
    const char *within = of_layers ? strchr(name + strlen("blk."), '.') + 1 : name;
    char other[NAME_BYTES];
    for (size_t i = 0; of_layers && i < m->hparams.n_layers; i++) {
        snprintf(other, sizeof other, "blk.%zu.%s", i, within);
        if (gguf_tensor_find(m->file, other))
            return;
    }
    model_remark(&m->remarks, "no %s'%s', which models of architecture %s mostly have",
                 of_layers ? "layer has a tensor " : "tensor ", within, m->arch->name);
}

/** What it means that there is no such tensor. */
static void miss(struct model *m, const char *name, struct model_shape shape,
                 enum model_presence presence)
{
    struct model_shape_text expected;
    if (presence == MODEL_ALWAYS)
        model_bind_fail(m, STATUS_FORMAT, "tensor '%s' is missing, expected one of shape %s", name,
                        write_expected(&expected, shape));
    if (presence == MODEL_MOSTLY)
        remark_on_missing(m, name);
}

static struct model_tensor *bind_shape(struct model *m, const char *name, struct model_shape shape,
                                       enum model_presence usual)
{
    enum model_presence presence = model_presence_of(m, name, usual);
    struct model_tensor *tensor = find(m, name);
    if (m->kept.status)
        return NULL;
    if (!tensor)
        miss(m, name, shape, presence);
    if (!tensor || presence == MODEL_NEVER)
        return NULL;
    check_shape(m, tensor->source, shape);
    if (m->kept.status)
        return NULL;
    tensor->understood = true;
    tensor->may_lack = presence != MODEL_ALWAYS;
    return tensor;
}

/** The tensor, if it has the type that it should have. */
static struct model_tensor *if_fits(struct model *m, struct model_tensor *tensor, bool fits,
                                    enum status code, const char *expected)
{
    if (tensor && !fits)
        model_bind_fail(m, code, "tensor '%s' has type %s, expected %s", tensor->source->name,
                        tensor->source->type->name, expected);
    return fits ? tensor : NULL;
}

struct model_tensor *model_bind_tensor(struct model *m, const char *name, struct model_shape shape,
                                       enum model_presence usual)
{
    struct model_tensor *t = bind_shape(m, name, shape, usual);
    return if_fits(m, t, t && gguf_type_info(t->source->type_id), STATUS_UNSUPPORTED,
                   "a type that can be decoded");
}

struct model_tensor *model_bind_table(struct model *m, const char *name, struct model_shape shape)
{
    struct model_tensor *t = bind_shape(m, name, shape, MODEL_ALWAYS);
    return if_fits(m, t, t && t->source->type_id == GGUF_WHOLE_NUMBERS, STATUS_FORMAT, "I32");
}

struct kern_weight model_tensor_rows(const struct model_tensor *tensor, size_t first_row,
                                     size_t n_rows)
{
    struct kern_weight weight = {.type = tensor->type->type,
                                 .n_rows = n_rows,
                                 .n_cols = tensor->source->ne[0],
                                 .row_bytes = tensor->row_bytes,
                                 .scale = 1,
                                 .generation = tensor->generation};
    const struct gguf_view *view = tensor->view;
    size_t n = (size_t)tensor->source->ne[1], matrix = first_row / n;
    const uint8_t *data = tensor->data + matrix * n * tensor->row_bytes;
    if (view && view->matrices)
        data = view->matrices[matrix];
    first_row %= n;
    assert((!view && !tensor->scales) || first_row + n_rows <= n);
    if (view && view->row_step)
        weight.row_bytes = (size_t)view->row_step;
    weight.col_step = view ? (size_t)view->col_step : 0;
    weight.data = data;
    weight.rows = view ? view->rows : NULL;
    if (tensor->scales)
        weight.scales = tensor->scales[matrix];
    return kern_weight_rows(&weight, first_row, n_rows);
}

void model_bind_vector(struct model *m, struct kern_weight *out, const char *name, size_t n_cols,
                       enum model_presence usual)
{
    struct model_shape shape = {.n_rows = 1, .n_cols = n_cols};
    const struct model_tensor *tensor = model_bind_tensor(m, name, shape, usual);
    *out = tensor ? model_tensor_rows(tensor, 0, 1) : (struct kern_weight){0};
}

void model_bind_layer_vector(struct model *m, size_t layer, const char *name, size_t n_cols,
                             enum model_presence usual, struct kern_weight *out)
{
    char whole[NAME_BYTES];
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    model_bind_vector(m, out, whole, n_cols, usual);
}

void model_bind_layer_matrix(struct model *m, size_t layer, const char *name,
                             struct model_shape shape, struct kern_weight *out)
{
    char whole[NAME_BYTES];
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    const struct model_tensor *tensor = model_bind_tensor(m, whole, shape, MODEL_ALWAYS);
    if (tensor)
        *out =
            model_tensor_rows(tensor, 0, shape.n_rows * (shape.n_matrices ? shape.n_matrices : 1));
}

void model_bind_gains(struct model *m, size_t layer, const char *name, size_t n_groups,
                      size_t width, struct kern_weight *out)
{
    char whole[NAME_BYTES];
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    struct model_shape shape = {.n_rows = n_groups, .n_cols = width};
    const struct model_tensor *tensor = find(m, whole);
    if (tensor && tensor->source->n_dims == 1) /* as one vector */
        shape = (struct model_shape){.n_rows = 1, .n_cols = n_groups * width};
    tensor = model_bind_tensor(m, whole, shape, MODEL_ALWAYS);
    *out = (struct kern_weight){0};
    if (tensor && kern_rows_are_copied(tensor->type->type)) { /* its rows are no one row */
        model_tensor_fail(m, tensor, STATUS_FORMAT, "has type %s, expected F32, F16 or BF16",
                          tensor->type->name);
    } else if (tensor) {
        *out = model_tensor_rows(tensor, 0, 1);
        out->row_bytes *= shape.n_rows;
        out->n_cols *= shape.n_rows;
    }
}

struct kern_weight model_weight_columns(const struct kern_weight *weight, size_t first, size_t n)
{
    const struct gguf_type_info *type = gguf_type_info((uint32_t)weight->type);
    struct kern_weight part = *weight;
    part.data = (const uint8_t *)weight->data + first / type->block_elems * type->block_bytes;
    part.n_cols = n;
    return part;
}

/** Names of a projection's tensors: "blk.3.attn_q.weight", "blk.3.attn_q.bias", ... */
static void tensor_name(char name[NAME_BYTES], size_t layer, const char *base, const char *what)
{
    if (layer == MODEL_NO_LAYER)
        snprintf(name, NAME_BYTES, "%s.%s", base, what);
    else
        snprintf(name, NAME_BYTES, "blk.%zu.%s.%s", layer, base, what);
}

/** The scales of a matrix that lie apart. */
static enum status check_scales(const struct model_tensor *tensor, size_t matrix,
                                struct status_why *why)
{
    const struct gguf_scales *scales = &tensor->scales[matrix];
    size_t last = (size_t)tensor->source->ne[1] - 1;
    for (size_t i = 0; tensor->view && tensor->view->rows && i < tensor->source->ne[1]; i++)
        last = base_max(last, (size_t)tensor->view->rows[i]);
    size_t first = scales->first_row / scales->block_rows;
    size_t n = ((scales->first_row + last) / scales->block_rows + 1 - first) * scales->n_cols;
    if (!scales->data)
        return STATUS_OK;
    size_t i =
        kern_scales_find_invalid(tensor->type->type, scales->type, gguf_scales_row(scales, 0), n);
    if (i == n)
        return STATUS_OK;
    return status_fail(
        why, STATUS_FORMAT,
        "%s: scale %zu of matrix %zu of tensor '%s' is not finite, or negative where "
        "type %s has no sign; expected a finite number",
        gguf_path(tensor->file), first * scales->n_cols + i, matrix, tensor->source->name,
        tensor->type->name);
}

/** The blocks of n_rows rows. */
static enum status check_blocks(const struct model_tensor *tensor, size_t first_row, size_t n_rows,
                                struct status_why *why)
{
    const struct kern_quant *quant = kern_quant_find(tensor->type->type);
    if (!quant || !quant->find_invalid)
        return STATUS_OK;
    size_t per_row = tensor->row_bytes / tensor->type->block_bytes, n = n_rows * per_row;
    size_t i = quant->find_invalid(tensor->data + first_row * tensor->row_bytes, n);
    if (i == n)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: block %zu of tensor '%s' holds a bit pattern that type %s does not "
                       "have, expected none",
                       gguf_path(tensor->file), first_row * per_row + i, tensor->source->name,
                       tensor->type->name);
}

enum status model_tensor_check(const struct model_tensor *tensor, struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t n_matrices = (size_t)(tensor->source->ne[2] * tensor->source->ne[3]);
    for (size_t i = 0; tensor->scales && i < n_matrices && !status; i++)
        status = check_scales(tensor, i, why);
    if (!status && tensor->rows_of_token == 0)
        status = check_blocks(tensor, 0, (size_t)tensor->source->n_rows, why);
    return status;
}

enum status model_tensor_check_rows(const struct model_tensor *tensor, const int32_t *rows,
                                    size_t n, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++)
        status = check_blocks(tensor, (size_t)rows[i], 1, why);
    return status;
}

bool model_has_projection(const struct model *m, size_t layer, const char *name)
{
    char whole[NAME_BYTES];
    tensor_name(whole, layer, name, "weight");
    return gguf_tensor_find(m->file, whole) != NULL;
}

float model_tensor_element(struct model *m, const struct model_tensor *tensor, size_t i)
{
    float value;
    if (tensor->type->type != GGUF_TYPE_F32) {
        model_tensor_fail(m, tensor, STATUS_FORMAT, "has type %s, expected F32",
                          tensor->type->name);
        return 1;
    }
    memcpy(&value, tensor->data + i * sizeof value, sizeof value);
    if (!isfinite(value))
        status_keep(&m->kept, STATUS_FORMAT,
                    "%s: element %zu of tensor '%s' is %g, expected a finite number",
                    gguf_path(tensor->file), i, tensor->source->name, (double)value);
    return value;
}

/**
 * The part's ".scale", which some programs write as ".weight.scale"; ".input_scale" is for engines
 * that round activations, not for this one.
 */
static void bind_scale(struct model *m, const struct model_projection *p, size_t matrix,
                       float *scale)
{
    size_t n = p->shape.n_matrices ? p->shape.n_matrices : 1;
    char name[NAME_BYTES];
    struct model_shape shape = {.n_rows = 1, .n_cols = n};
    tensor_name(name, p->layer, p->name, "scale");
    struct model_tensor *tensor = model_bind_tensor(m, name, shape, MODEL_SOMETIMES);
    if (!tensor) {
        tensor_name(name, p->layer, p->name, "weight.scale");
        tensor = model_bind_tensor(m, name, shape, MODEL_SOMETIMES);
    }
    if (tensor) {
        tensor->may_lack = false; /* if its matrix is there: see presence.c */
        *scale = model_tensor_element(m, tensor, matrix);
    }
    tensor_name(name, p->layer, p->name, "input_scale");
    tensor = model_bind_tensor(m, name, shape, MODEL_SOMETIMES);
    if (tensor) {
        tensor->unused = true;
        tensor->may_lack = false;
    }
}

static void bind_bias(struct model *m, const struct model_projection *p, struct model_part part,
                      struct kern_weight *bias)
{
    *bias = (struct kern_weight){0};
    char name[NAME_BYTES];
    tensor_name(name, p->layer, p->name, "bias");
    struct model_shape shape = {.n_rows = p->shape.n_matrices ? p->shape.n_matrices : 1,
                                .n_cols = p->shape.n_rows};
    const struct model_tensor *tensor = model_bind_tensor(m, name, shape, MODEL_SOMETIMES);
    if (!tensor)
        return;
    uint32_t block = tensor->type->block_elems;
    if (part.first_row % block == 0 && part.n_rows % block == 0 &&
        !kern_rows_are_copied(tensor->type->type)) {
        *bias = model_tensor_rows(tensor, part.matrix, 1);
        *bias = model_weight_columns(bias, part.first_row, part.n_rows);
    } else {
        model_tensor_fail(m, tensor, STATUS_FORMAT,
                          "has type %s, whose blocks of %u cannot be cut where its parts end, "
                          "expected F32, F16 or BF16",
                          tensor->type->name, block);
    }
}

void model_bind_part(struct model *m, const struct model_projection *projection,
                     struct model_part part, struct model_product *out)
{
    char name[NAME_BYTES];
    tensor_name(name, projection->layer, projection->name, "weight");
    struct model_tensor *tensor = model_bind_tensor(m, name, projection->shape, MODEL_ALWAYS);
    *out = (struct model_product){0};
    if (!tensor)
        return;
    tensor_name(name, projection->layer, projection->name, "scale");
    tensor->may_scale =
        !part.unscaled && model_presence_of(m, name, MODEL_SOMETIMES) == MODEL_SOMETIMES;
    if (part.n_rows == 0)
        part.n_rows = projection->shape.n_rows;
    uint32_t bundle = tensor->type->bundle_rows;
    if (part.first_row % bundle != 0 || part.n_rows % bundle != 0) {
        model_tensor_fail(m, tensor, STATUS_UNSUPPORTED,
                          "has type %s, which stores %u rows together, and a part of it is rows "
                          "%zu to %zu, expected multiples of these",
                          tensor->type->name, bundle, part.first_row, part.first_row + part.n_rows);
        return;
    }
    size_t row = part.matrix * projection->shape.n_rows + part.first_row;
    out->weight = model_tensor_rows(tensor, row, part.n_rows);
    if (!part.unscaled)
        bind_scale(m, projection, part.matrix, &out->weight.scale);
    bind_bias(m, projection, part, &out->bias);
}

void model_bind_product(struct model *m, size_t layer, const char *name, size_t n_rows,
                        size_t n_cols, struct model_product *out)
{
    struct model_projection stored = {
        .layer = layer, .name = name, .shape = {.n_rows = n_rows, .n_cols = n_cols}};
    model_bind_part(m, &stored, (struct model_part){0}, out);
}

void model_bind_norm(struct model *m, size_t layer, const char *name, size_t n_cols,
                     struct model_norm *out)
{
    *out = (struct model_norm){0};
    if (!*name)
        return;
    char whole[NAME_BYTES]; /* without the suffix in some files */
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    if (!gguf_tensor_find(m->file, whole))
        tensor_name(whole, layer, name, "weight");
    model_bind_vector(m, &out->gain, whole, n_cols, MODEL_ALWAYS);
    tensor_name(whole, layer, name, "bias");
    if (m->hparams.norm_bias)
        model_bind_vector(m, &out->bias, whole, n_cols, MODEL_ALWAYS);
}

void model_bind_number(struct model *m, size_t layer, const char *name, float *value)
{
    char whole[NAME_BYTES];
    snprintf(whole, sizeof whole, "blk.%zu.%s", layer, name);
    struct model_shape shape = {.n_rows = 1, .n_cols = 1};
    const struct model_tensor *tensor = model_bind_tensor(m, whole, shape, MODEL_ALWAYS);
    if (tensor)
        *value = model_tensor_element(m, tensor, 0);
}

void model_bind_unused(struct model *m, size_t layer, const char *name)
{
    static const char *const what[] = {"weight", "bias", "scale", "weight.scale", "input_scale"};
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        char whole[NAME_BYTES];
        tensor_name(whole, layer, name, what[i]);
        struct model_tensor *tensor = find(m, whole);
        if (tensor)
            tensor->understood = tensor->unused = true;
    }
}

void model_bind_check_rest(struct model *m, bool allow_unknown)
{
    struct model_unknown unknown = {"tensor", "not used", allow_unknown, 0};
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++) {
        const char *name = m->tensors[i].source->name;
        if (!m->tensors[i].understood)
            model_unknown_add(m, &unknown, (struct base_string){name, strlen(name)});
    }
    model_unknown_end(m, &unknown);
}
