/* Quantised tensors of a folder: codes, and beside them tensors with their scales. What lies beside
 * a tensor says whether it is quantised, not what config.json counts as left out. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/quote.h"
#include "base/text/words.h"
#include "gguf/assembly/assembly.h"
#include "model/folder/state.h"

/** What a tensor beside a weight is. */
enum beside {
    SCALES,    /* of blocks, rows or the whole; codes of 4 bits are NVFP4's */
    SCALES_32, /* likewise; codes of 4 bits are MXFP4's */
    FACTOR,    /* of the whole beyond that: multiplied */
    DIVISOR    /* likewise, divided by */
};

/** How a weight's name goes on, and that of what lies beside it. */
static const struct pattern {
    const char *weight, *other;
    enum beside kind;
} patterns[] = {
    {"", "_scale_inv", SCALES},
    {"", "_weight_scale_inv", SCALES},
    {"", "_scale", SCALES},
    {"", "_weight_scale", SCALES},
    {"", "_scale_2", FACTOR},
    {"", "_weight_scale_2", FACTOR},
    {"_packed", "_scale", SCALES}, /* of bytes without a factor beside them: MXFP4's */
    {"_packed", "_global_scale", DIVISOR},
    {"_blocks", "_scales", SCALES_32},
    {".weight", ".scale", SCALES_32},
};
enum { N_PATTERNS = sizeof patterns / sizeof *patterns };

/** Endings of what concerns activations, and caches of keys and values. */
static const char *const activations[] = {
    ".input_scale",      "_input_scale",      ".input_global_scale",
    ".activation_scale", "_activation_scale", ".k_scale",
    ".v_scale",          ".q_scale",          ".output_scale"};

/** Endings that only scales of weights have. */
static const char *const of_weights[] = {"_scale_inv", ".weight_scale", "_weight_scale", "_scale_2",
                                         "_global_scale"};

/** A stored weight and what lies beside it. */
struct codes {
    const struct safetensors_tensor *weight, *scales, *factor;
    bool divides; /* the factor is a divisor */
    bool by_32;   /* codes of 4 bits are MXFP4's */
};

/** A tensor named as another one, with another ending; NULL: there is none. */
static const struct safetensors_tensor *find_beside(const struct model_folder *f, const char *name,
                                                    const char *ending, const char *other)
{
    char whole[MODEL_STORED_BYTES];
    if (!base_ends_with(name, ending) ||
        (size_t)snprintf(whole, sizeof whole, "%.*s%s", (int)(strlen(name) - strlen(ending)), name,
                         other) >= sizeof whole)
        return NULL;
    return safetensors_find(&f->files, whole);
}

/** Two codes of 4 bits a byte. */
static bool has_pairs(const struct safetensors_tensor *tensor)
{
    return tensor->type == SAFETENSORS_U8 || tensor->type == SAFETENSORS_I8;
}

/** Types that weights have only when they are quantised. */
static bool has_codes(const struct safetensors_tensor *tensor)
{
    return tensor->type == SAFETENSORS_F8_E4M3 || tensor->type == SAFETENSORS_F8_E5M2 ||
           has_pairs(tensor);
}

enum status model_quantised_role(const struct model_folder *f,
                                 const struct safetensors_tensor *tensor, struct model_role *role,
                                 struct status_why *why)
{
    const struct safetensors_tensor *weight = NULL;
    bool packed;
    *role = (struct model_role){.aside = false};
    enum status status = model_packed_role(f, tensor, role, &packed, why);
    if (status || packed)
        return status;
    for (size_t i = 0; i < sizeof activations / sizeof *activations; i++)
        role->aside |= base_ends_with(tensor->name, activations[i]);
    for (size_t i = 0; i < N_PATTERNS && !weight && !role->aside; i++)
        weight = find_beside(f, tensor->name, patterns[i].other, patterns[i].weight);
    if (weight && !has_codes(weight))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "holds scales of '%s', which has dtype %s, expected F8_E4M3, F8_E5M2, "
                           "U8 or I8",
                           weight->name, safetensors_type_name(weight->type));
    bool lost = false;
    for (size_t i = 0; i < sizeof of_weights / sizeof *of_weights; i++)
        lost |= !role->aside && !weight && base_ends_with(tensor->name, of_weights[i]);
    if (lost)
        return status_fail(why, STATUS_FORMAT, "holds scales of a weight that is not there");
    role->aside |= weight != NULL;
    size_t n = strlen(tensor->name) - (base_ends_with(tensor->name, ".weight_packed") ? 7 : 0);
    if (n >= sizeof role->name)
        return status_fail(why, STATUS_FORMAT, "has a name of %zu characters, expected fewer", n);
    memcpy(role->name, tensor->name, n);
    return STATUS_OK;
}

/** What lies beside a weight. */
static enum status find_codes(const struct model_folder *f, const struct safetensors_tensor *weight,
                              struct codes *out, struct status_why *why)
{
    *out = (struct codes){.weight = weight};
    for (size_t i = 0; i < N_PATTERNS; i++) {
        const struct pattern *p = &patterns[i];
        const struct safetensors_tensor *found = find_beside(f, weight->name, p->weight, p->other);
        const struct safetensors_tensor **slot = p->kind <= SCALES_32 ? &out->scales : &out->factor;
        if (!found)
            continue;
        if (*slot)
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensors '%s' and '%s' are both scales of '%s', expected one of "
                               "them",
                               f->path, (*slot)->name, found->name, weight->name);
        *slot = found;
        out->divides |= p->kind == DIVISOR;
        out->by_32 |= p->kind == SCALES_32;
    }
    out->by_32 |= out->scales && !out->factor && base_ends_with(weight->name, "_packed") &&
                  (out->scales->type == SAFETENSORS_U8 || out->scales->type == SAFETENSORS_F8_E8M0);
    if (out->scales)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: tensor '%s' has dtype %s, and no tensor with scales lies beside it; "
                       "expected '%s_scale' or '%s_scale_inv'",
                       f->path, weight->name, safetensors_type_name(weight->type), weight->name,
                       weight->name);
}

/** The type of the codes, by that of their scales. */
static bool type_of(const struct codes *codes, enum gguf_type *type)
{
    enum safetensors_type scales = codes->scales->type;
    *type = codes->weight->type == SAFETENSORS_F8_E4M3   ? GGUF_TYPE_F8_E4M3
            : codes->weight->type == SAFETENSORS_F8_E5M2 ? GGUF_TYPE_F8_E5M2
            : codes->by_32                               ? GGUF_TYPE_MXFP4_APART
                                                         : GGUF_TYPE_NVFP4_APART;
    if (!has_pairs(codes->weight))
        return scales == SAFETENSORS_F32 || scales == SAFETENSORS_F16 ||
               scales == SAFETENSORS_BF16 || scales == SAFETENSORS_F8_E8M0;
    return codes->by_32 ? scales == SAFETENSORS_U8 || scales == SAFETENSORS_F8_E8M0
                        : scales == SAFETENSORS_F8_E4M3;
}

static enum status check_types(const struct model_folder *f, const struct codes *codes,
                               struct status_why *why)
{
    enum gguf_type type;
    const struct safetensors_tensor *s = codes->scales, *factor = codes->factor;
    if (codes->weight->type == SAFETENSORS_I8 && !codes->by_32)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor '%s' has dtype I8, and '%s' lies beside it; expected U8, "
                           "F8_E4M3 or F8_E5M2, or scales of MXFP4 named X.scale",
                           f->path, codes->weight->name, s->name);
    if (!type_of(codes, &type))
        return status_fail(why, STATUS_UNSUPPORTED, "%s: tensor '%s' has dtype %s, expected %s",
                           f->path, s->name, safetensors_type_name(s->type),
                           type == GGUF_TYPE_MXFP4_APART   ? "U8 or F8_E8M0"
                           : type == GGUF_TYPE_NVFP4_APART ? "F8_E4M3"
                                                           : "F32, F16, BF16 or F8_E8M0");
    if (type == GGUF_TYPE_NVFP4_APART && !factor)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has no second scale beside it, expected "
                           "weight_scale_2 or weight_global_scale",
                           f->path, codes->weight->name);
    if (type != GGUF_TYPE_NVFP4_APART && factor)
        return status_fail(
            why, STATUS_FORMAT,
            "%s: tensor '%s' is a second scale of '%s', which has dtype %s, expected "
            "U8",
            f->path, factor->name, codes->weight->name, safetensors_type_name(codes->weight->type));
    if (factor && factor->type != SAFETENSORS_F32)
        return status_fail(why, STATUS_UNSUPPORTED, "%s: tensor '%s' has dtype %s, expected F32",
                           f->path, factor->name, safetensors_type_name(factor->type));
    return STATUS_OK;
}

/** The shape of the values that codes stand for. */
static enum status shape_of(const struct model_folder *f, const struct codes *codes,
                            struct safetensors_tensor *meant, struct status_why *why)
{
    const struct safetensors_tensor *w = codes->weight;
    uint32_t last = w->n_dims - 1;
    bool blocks = base_ends_with(w->name, "_blocks");
    *meant = *w;
    if (w->n_dims < 2u + blocks || w->n_dims > 3u + blocks || (blocks && w->shape[last] != 16))
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu32 " dimensions, the last one of %" PRIu64
                           " elements; expected 2 or 3, or blocks of 16 bytes after these",
                           f->path, w->name, w->n_dims, w->shape[w->n_dims ? last : 0]);
    if (blocks) { /* of 32 codes, of which a byte has two */
        meant->shape[last] = 1;
        meant->shape[last - 1] *= 32;
        meant->n_dims--;
    } else if (has_pairs(w)) {
        meant->shape[last] *= 2;
    }
    if (has_pairs(w))
        meant->n_elements *= 2;
    return STATUS_OK;
}

/** The value by which a matrix of this weight is multiplied, beside its scales. */
static enum status read_factor(const struct model_folder *f, const struct codes *codes, size_t i,
                               float *value, struct status_why *why)
{
    const struct safetensors_tensor *factor = codes->factor;
    float stored;
    memcpy(&stored, (const char *)factor->data + (factor->n_elements > 1 ? i : 0) * sizeof stored,
           sizeof stored);
    *value = codes->divides ? 1 / stored : stored;
    if (stored > 0 && isfinite(stored) && isfinite(*value))
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: element %zu of tensor '%s' is %g, expected a finite number above 0%s",
                       f->path, i, factor->name, (double)stored,
                       codes->divides ? ", with a finite reciprocal" : "");
}

/** The factors of all matrices as a tensor X.scale, which a product is multiplied by. */
static enum status give_factors(struct model_folder *f, const struct model_target *t,
                                const struct safetensors_tensor *meant, struct status_why *why)
{
    char name[MODEL_TARGET_BYTES];
    uint64_t n = t->experts ? f->n_experts : meant->n_dims > 2 ? meant->shape[0] : 1;
    int length = (int)(strlen(t->name) - strlen("weight"));
    if (!base_ends_with(t->name, ".weight") ||
        snprintf(name, sizeof name, "%.*sscale", length, t->name) >= (int)sizeof name)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor '%s' becomes %s, which has no scale in GGUF", f->path,
                           meant->name, t->name);
    float *values = model_folder_give(f, name, n);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for %s", f->path, name);
    enum status status = STATUS_OK;
    for (uint64_t i = 0; i < n && !status; i++) {
        struct codes codes;
        status = find_codes(f, t->sources[t->experts ? i : 0], &codes, why);
        uint64_t n_stored = status ? 1 : codes.factor->n_elements;
        if (!status && n_stored != 1 && (t->experts || n_stored != n))
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: tensor '%s' has %" PRIu64 " elements, expected 1", f->path,
                                 codes.factor->name, n_stored);
        if (!status)
            status = read_factor(f, &codes, (size_t)i, &values[i], why);
    }
    return status;
}

enum status model_quantised_shape(struct model_folder *f, struct model_target *t,
                                  struct safetensors_tensor *meant, struct status_why *why)
{
    struct codes first = {.weight = t->sources[0]}, codes;
    enum status status = STATUS_OK;
    if (model_packed_is(f, t->sources[0]))
        return model_packed_shape(f, t, meant, why);
    t->quantised = has_codes(t->sources[0]);
    *meant = *t->sources[0];
    for (size_t i = 0; i < (t->quantised ? t->n_sources : 0) && !status; i++) {
        status = find_codes(f, t->sources[i], &codes, why);
        if (!status)
            status = check_types(f, &codes, why);
        if (i == 0)
            first = codes;
        if (!status &&
            (codes.scales->type != first.scales->type ||
             memcmp(codes.scales->shape, first.scales->shape, sizeof first.scales->shape) != 0))
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: tensor '%s' has another type or shape than '%s', expected "
                                 "the same of all experts",
                                 f->path, codes.scales->name, first.scales->name);
    }
    if (status || !t->quantised)
        return status;
    (void)type_of(&first, &t->type);
    status = shape_of(f, &first, meant, why);
    return status || !first.factor ? status : give_factors(f, t, meant, why);
}

static uint64_t blocks_of(uint64_t n, uint64_t size)
{
    return n / size + (n % size != 0);
}

/**
 * How scales of these axes lie on a matrix as GGUF has it; the outermost of three axes is cut off
 * before.
 */
static bool lay_out(const struct model_folder *f, const struct model_target *t,
                    const uint64_t *axes, uint32_t n_axes, uint64_t n_rows, struct gguf_scales *out)
{
    uint64_t n = 1, n_cols = t->ne[0];
    for (uint32_t i = 0; i < n_axes; i++)
        n *= axes[i];
    uint32_t of = gguf_type_info((uint32_t)t->type)->scale_elems;
    bool eight = t->type == GGUF_TYPE_F8_E4M3 || t->type == GGUF_TYPE_F8_E5M2;
    out->n_cols = 1;
    out->block_rows = 1;
    out->block_cols = GGUF_SCALES_ALL;
    if (!eight) { /* a scale for so many codes of a row */
        out->block_cols = of;
        out->n_cols = (size_t)(n_cols / of);
        return n_axes == 2 && axes[0] == n_rows && n_cols % of == 0 && axes[1] == n_cols / of;
    }
    if (n == 1) {
        out->block_rows = GGUF_SCALES_ALL;
        return true;
    }
    if (n == n_rows && n_axes > 0 && axes[0] == n_rows)
        return true;
    for (size_t i = 0; i < f->n_blocks && n_axes == 2; i++) {
        bool over = t->change & MODEL_TURN_OVER;
        uint64_t rows = over ? f->blocks[i].columns : f->blocks[i].rows;
        uint64_t columns = over ? f->blocks[i].rows : f->blocks[i].columns;
        if (axes[0] != blocks_of(n_rows, rows) || axes[1] != blocks_of(n_cols, columns) ||
            (columns < n_cols && columns % of != 0))
            continue;
        out->block_rows = (size_t)rows;
        out->block_cols = (size_t)columns;
        out->n_cols = (size_t)axes[1];
        return true;
    }
    return false;
}

static enum status refuse_shape(const struct model_folder *f, const struct model_target *t,
                                const struct codes *codes, struct status_why *why)
{
    char shape[128] = "[";
    const struct safetensors_tensor *s = codes->scales;
    for (uint32_t i = 0; i < s->n_dims; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%" PRIu64, i ? ", " : "",
                 s->shape[i]);
    char blocks[128] = "";
    for (size_t i = 0; i < f->n_blocks; i++)
        snprintf(blocks + strlen(blocks), sizeof blocks - strlen(blocks),
                 " or each block of %" PRIu64 " x %" PRIu64, f->blocks[i].rows,
                 f->blocks[i].columns);
    bool nvfp4 = t->type == GGUF_TYPE_NVFP4_APART, mxfp4 = t->type == GGUF_TYPE_MXFP4_APART;
    return status_fail(why, STATUS_FORMAT,
                       "%s: tensor '%s' has shape %s], expected a scale for %s%s of '%s'", f->path,
                       s->name, shape,
                       nvfp4                         ? "16 codes of each row"
                       : mxfp4                       ? "32 codes of each row"
                       : t->change & MODEL_TURN_OVER ? "the whole, each column (it is transposed)"
                                                     : "the whole, each row",
                       nvfp4 || mxfp4 ? "" : blocks, codes->weight->name);
}

/** The scales of all matrices of one stored tensor. */
static enum status scales_of(const struct model_folder *f, const struct model_target *t,
                             const struct safetensors_tensor *weight, struct gguf_scales *out,
                             size_t n, struct status_why *why)
{
    struct codes codes;
    enum status status = find_codes(f, weight, &codes, why);
    if (status)
        return status;
    const struct safetensors_tensor *s = codes.scales;
    uint32_t n_axes = weight->n_dims - (base_ends_with(weight->name, "_blocks") ? 1 : 0);
    bool over = t->change & MODEL_TURN_OVER;
    uint64_t n_rows = weight->shape[n_axes - (over ? 1 : 2)];
    uint32_t cut = n_axes > 2 && s->n_elements > 1; /* an axis for the matrices */
    const uint64_t *axes = s->shape + cut, swapped[] = {axes[1], axes[0]};
    bool by_row = axes[0] == n_rows && axes[1] == 1 && n_rows != t->ne[0];
    if (over && s->n_dims - cut == 2 && !by_row) /* else a column for each row as GGUF has it */
        axes = swapped;
    struct gguf_scales one = {.type = s->type == SAFETENSORS_F32       ? GGUF_SCALE_F32
                                      : s->type == SAFETENSORS_F16     ? GGUF_SCALE_F16
                                      : s->type == SAFETENSORS_BF16    ? GGUF_SCALE_BF16
                                      : s->type == SAFETENSORS_F8_E4M3 ? GGUF_SCALE_E4M3
                                                                       : GGUF_SCALE_E8M0};
    if ((cut && s->shape[0] != n) || s->n_dims > n_axes ||
        !lay_out(f, t, axes, s->n_dims - cut, n_rows, &one))
        return refuse_shape(f, t, &codes, why);
    one.first_row = (size_t)t->first_row;
    for (size_t i = 0; i < n; i++) {
        out[i] = one;
        out[i].data = (const char *)s->data + (cut ? i * (s->n_bytes / n) : 0);
    }
    return STATUS_OK;
}

/** Scales of blocks of a transposed matrix, transposed in memory. */
static enum status turn_over(const struct model_target *t, struct gguf_file *file,
                             struct gguf_scales *scales, struct status_why *why)
{
    bool parted = t->change & (MODEL_FIRST_HALF | MODEL_SECOND_HALF | MODEL_EVEN | MODEL_ODD);
    size_t n_rows = (size_t)blocks_of(t->ne[1] * (parted ? 2 : 1), scales->block_rows);
    size_t n_cols = scales->n_cols, size = gguf_scale_bytes(scales->type);
    const char *from = scales->data;
    char *to = gguf_file_memory(file, n_rows * n_cols * size);
    if (!to)
        return status_fail(why, STATUS_MEMORY, "no memory for the scales of %s", t->name);
    for (size_t i = 0; i < n_rows * n_cols; i++)
        memcpy(to + i * size, from + (i % n_cols * n_rows + i / n_cols) * size, size);
    scales->data = to;
    return STATUS_OK;
}

enum status model_quantised_scales(const struct model_folder *f, const struct model_target *t,
                                   struct gguf_file *file, const struct gguf_scales **out,
                                   struct status_why *why)
{
    size_t n = t->n_dims > 2 ? (size_t)t->ne[2] : 1;
    struct gguf_scales *scales = gguf_file_memory(file, n * sizeof *scales);
    enum status status = STATUS_OK;
    if (!scales)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for the scales of %s", f->path,
                           t->name);
    if (model_packed_is(f, t->sources[0]))
        status = model_packed_scales(f, t, file, scales, why);
    else if (t->experts)
        for (size_t i = 0; i < n && !status; i++)
            status = scales_of(f, t, t->sources[i], &scales[i], 1, why);
    else
        status = scales_of(f, t, t->sources[0], scales, n, why);
    for (size_t i = 0; i < n && t->change & MODEL_TURN_OVER && !status; i++)
        status = scales[i].n_cols > 1 ? turn_over(t, file, &scales[i], why) : STATUS_OK;
    *out = scales;
    return status;
}
