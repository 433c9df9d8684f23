#include "model/arch/bind.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/quote.h"
#include "kernels/quant/registry.h"
#include "model/rope.h"
#include "model/state.h"

enum { NAME_BYTES = 96 };

/** A shape as text, "[32, 64]": the dimension that is contiguous first, as GGUF has it. */
struct shape_text {
    char text[96];
};

static const char *write_shape(struct shape_text *to, const uint64_t *ne, size_t n_dims)
{
    size_t used = 0;
    for (size_t i = 0; i < n_dims; i++)
        used += (size_t)snprintf(to->text + used, sizeof to->text - used, "%s%" PRIu64,
                                 i == 0 ? "[" : ", ", ne[i]);
    snprintf(to->text + used, sizeof to->text - used, "]");
    return to->text;
}

static const char *write_expected(struct shape_text *to, struct model_shape shape)
{
    const uint64_t ne[] = {shape.n_cols, shape.n_rows, shape.n_matrices};
    return write_shape(to, ne, shape.n_matrices ? 3 : shape.n_rows > 1 ? 2 : 1);
}

static enum status check_shape(const struct model *m, const struct gguf_tensor *tensor,
                               struct model_shape shape, struct status_why *why)
{
    const uint64_t expected[4] = {shape.n_cols, shape.n_rows,
                                  shape.n_matrices ? shape.n_matrices : 1, 1};
    if (memcmp(tensor->ne, expected, sizeof expected) == 0)
        return STATUS_OK;
    struct shape_text found_text;
    struct shape_text expected_text;
    return status_fail(why, STATUS_FORMAT, "%s: tensor '%s' has shape %s, expected %s",
                       gguf_path(m->file), tensor->name,
                       write_shape(&found_text, tensor->ne, tensor->n_dims),
                       write_expected(&expected_text, shape));
}

static struct model_tensor *find(struct model *m, const char *name)
{
    const struct gguf_tensor *source = gguf_tensor_find(m->file, name);
    return source ? &m->tensors[source - gguf_tensor_at(m->file, 0)] : NULL;
}

enum status model_bind_tensor(struct model *m, struct model_tensor **out, const char *name,
                              struct model_shape shape, bool optional, struct status_why *why)
{
    *out = NULL;
    struct shape_text expected;
    struct model_tensor *tensor = find(m, name);
    if (!tensor) {
        if (optional)
            return STATUS_OK;
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' is missing, expected one of shape %s",
                           gguf_path(m->file), name, write_expected(&expected, shape));
    }
    enum status status = check_shape(m, tensor->source, shape, why);
    if (status)
        return status;
    tensor->understood = true;
    *out = tensor;
    return STATUS_OK;
}

struct kern_weight model_tensor_rows(const struct model_tensor *tensor, size_t first_row,
                                     size_t n_rows)
{
    return (struct kern_weight){.type = tensor->type->type,
                                .n_rows = n_rows,
                                .n_cols = tensor->source->ne[0],
                                .row_bytes = tensor->row_bytes,
                                .data = tensor->data + first_row * tensor->row_bytes,
                                .scale = 1,
                                .generation = tensor->generation};
}

enum status model_bind_vector(struct model *m, struct kern_weight *out, const char *name,
                              size_t n_cols, struct status_why *why)
{
    struct model_tensor *tensor;
    struct model_shape shape = {.n_rows = 1, .n_cols = n_cols};
    enum status status = model_bind_tensor(m, &tensor, name, shape, false, why);
    if (!status)
        *out = model_tensor_rows(tensor, 0, 1);
    return status;
}

/** Columns [first, first + n) of the one row of a vector: the bias of a part. */
static struct kern_weight vector_part(const struct model_tensor *tensor, size_t first, size_t n)
{
    struct kern_weight part = model_tensor_rows(tensor, 0, 1);
    const struct gguf_type_info *type = tensor->type;
    part.data = tensor->data + first / type->block_elems * type->block_bytes;
    part.n_cols = n;
    part.row_bytes = n / type->block_elems * type->block_bytes;
    return part;
}

/** Names of a projection's tensors: "blk.3.attn_q.weight", "blk.3.attn_q.bias", ... */
static void tensor_name(char name[NAME_BYTES], size_t layer, const char *base, const char *what)
{
    snprintf(name, NAME_BYTES, "blk.%zu.%s.%s", layer, base, what);
}

enum status model_tensor_check(const struct model *m, const struct model_tensor *tensor,
                               struct status_why *why)
{
    const struct kern_quant *quant = kern_quant_find(tensor->type->type);
    if (!quant || !quant->find_invalid)
        return STATUS_OK;
    size_t n_blocks =
        (size_t)tensor->source->n_rows * tensor->row_bytes / tensor->type->block_bytes;
    size_t i = quant->find_invalid(tensor->data, n_blocks);
    if (i == n_blocks)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: block %zu of tensor '%s' holds a bit pattern that type %s does not "
                       "have, expected none",
                       gguf_path(m->file), i, tensor->source->name, tensor->type->name);
}

bool model_has_projection(const struct model *m, size_t layer, const char *name)
{
    char whole[NAME_BYTES];
    tensor_name(whole, layer, name, "weight");
    return gguf_tensor_find(m->file, whole) != NULL;
}

/** Element i of a tensor that must be F32, and finite. */
static enum status read_element(const struct model *m, const struct model_tensor *tensor, size_t i,
                                float *value, struct status_why *why)
{
    if (tensor->type->type != GGUF_TYPE_F32)
        return status_fail(why, STATUS_FORMAT, "%s: tensor '%s' has type %s, expected F32",
                           gguf_path(m->file), tensor->source->name, tensor->type->name);
    memcpy(value, tensor->data + i * sizeof *value, sizeof *value);
    if (!isfinite(*value))
        return status_fail(why, STATUS_FORMAT,
                           "%s: element %zu of tensor '%s' is %g, expected a finite number",
                           gguf_path(m->file), i, tensor->source->name, (double)*value);
    return STATUS_OK;
}

/** The part's ".scale"; ".input_scale" is for engines that round activations, not for this one. */
static enum status bind_scale(struct model *m, const struct model_projection *p,
                              const struct model_part *part, struct status_why *why)
{
    size_t n = p->shape.n_matrices ? p->shape.n_matrices : 1;
    char name[NAME_BYTES];
    struct model_shape shape = {.n_rows = 1, .n_cols = n};
    struct model_tensor *tensor;
    tensor_name(name, p->layer, p->name, "scale");
    enum status status = model_bind_tensor(m, &tensor, name, shape, true, why);
    if (!status && tensor)
        status = read_element(m, tensor, part->matrix, &part->weight->scale, why);
    if (status)
        return status;
    tensor_name(name, p->layer, p->name, "input_scale");
    return model_bind_tensor(m, &tensor, name, shape, true, why);
}

static enum status bind_bias(struct model *m, const struct model_projection *p,
                             const struct model_part *part, struct status_why *why)
{
    *part->bias = (struct kern_weight){0};
    char name[NAME_BYTES];
    tensor_name(name, p->layer, p->name, "bias");
    struct model_tensor *tensor;
    struct model_shape shape = {.n_rows = 1, .n_cols = p->shape.n_rows};
    enum status status = model_bind_tensor(m, &tensor, name, shape, true, why);
    if (status || !tensor)
        return status;
    uint32_t block = tensor->type->block_elems;
    if (part->first_row % block != 0 || part->n_rows % block != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has type %s, whose blocks of %u do not end where its "
                           "parts do, expected F32, F16 or BF16",
                           gguf_path(m->file), name, tensor->type->name, block);
    *part->bias = vector_part(tensor, part->first_row, part->n_rows);
    return STATUS_OK;
}

enum status model_bind_part(struct model *m, const struct model_projection *projection,
                            const struct model_part *part, struct status_why *why)
{
    char name[NAME_BYTES];
    tensor_name(name, projection->layer, projection->name, "weight");
    struct model_tensor *tensor;
    enum status status = model_bind_tensor(m, &tensor, name, projection->shape, false, why);
    if (status)
        return status;
    size_t row = part->matrix * projection->shape.n_rows + part->first_row;
    *part->weight = model_tensor_rows(tensor, row, part->n_rows);
    status = bind_scale(m, projection, part, why);
    if (!status && part->bias)
        status = bind_bias(m, projection, part, why);
    return status;
}

enum status model_bind_check_rest(struct model *m, bool allow_unknown, struct status_why *why)
{
    enum { LISTED = 10 };
    size_t n_unknown = 0;
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++) {
        if (m->tensors[i].understood)
            continue;
        const char *name = m->tensors[i].source->name;
        struct base_quoted shown;
        base_quote(&shown, (struct base_string){name, strlen(name)});
        if (!allow_unknown)
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor %s is not understood by architecture %s, and results "
                               "without it may be wrong",
                               gguf_path(m->file), shown.text, m->arch->name);
        enum status status = STATUS_OK;
        if (n_unknown++ < LISTED)
            status = model_remark(&m->remarks, why, "tensor %s is not understood and not used",
                                  shown.text);
        if (status)
            return status;
    }
    if (n_unknown > LISTED)
        return model_remark(&m->remarks, why, "and %zu more such tensors", n_unknown - LISTED);
    return STATUS_OK;
}

enum status model_bind_norm(struct model *m, size_t layer, const char *name,
                            struct kern_weight *out, struct status_why *why)
{
    char whole[NAME_BYTES];
    tensor_name(whole, layer, name, "weight");
    return model_bind_vector(m, out, whole, m->hparams.n_embd, why);
}

enum status model_bind_ends(struct model *m, struct status_why *why)
{
    const struct model_hparams *h = &m->hparams;
    struct model_shape shape = {.n_rows = h->n_vocab, .n_cols = h->n_embd};
    struct model_tensor *tensor;
    enum status status = model_bind_tensor(m, &tensor, "token_embd.weight", shape, false, why);
    if (status)
        return status;
    m->embedding = model_tensor_rows(tensor, 0, h->n_vocab);
    status = model_bind_vector(m, &m->output_norm, "output_norm.weight", h->n_embd, why);
    if (!status)
        status = model_bind_tensor(m, &tensor, "output.weight", shape, true, why);
    if (!status)
        m->head = tensor ? model_tensor_rows(tensor, 0, h->n_vocab) : m->embedding;
    return status;
}

enum status model_bind_rope_factors(struct model *m, struct status_why *why)
{
    static const char name[] = "rope_freqs.weight";
    size_t n = m->hparams.n_rot / 2;
    struct model_tensor *tensor;
    struct model_shape shape = {.n_rows = 1, .n_cols = n};
    enum status status = model_bind_tensor(m, &tensor, name, shape, true, why);
    if (status)
        return status;
    m->rope_generation = tensor ? tensor->generation : 1;
    for (size_t i = 0; i < n; i++)
        m->rope_factors[i] = 1;
    for (size_t i = 0; tensor && i < n; i++) {
        struct base_number shown;
        status = read_element(m, tensor, i, &m->rope_factors[i], why);
        if (!status && m->rope_factors[i] <= 0)
            status = status_fail(
                why, STATUS_FORMAT, "%s: element %zu of tensor '%s' is %s, expected more than 0",
                gguf_path(m->file), i, name, base_float_text(&shown, m->rope_factors[i]));
        if (status)
            return status;
    }
    model_rope_frequencies(&m->hparams, m->rope_factors, m->rope_frequency);
    return STATUS_OK;
}
