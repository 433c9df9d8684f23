/* Integers of 4 or 8 bits, several to a word: GPTQ's, AWQ's, compressed-tensors'. Words, scales,
 * zero points and the groups of columns are tensors of one module. They stay where they are; this
 * says where (struct gguf_packed). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"
#include "gguf/assembly/assembly.h"
#include "kernels/quant/packed.h"
#include "model/folder/state.h"

/** What the tensors of a module are called after its name; NULL: the packer has no such one. */
enum part { CODES, SCALES, ZEROS, GROUPS, SHAPE, N_PARTS };
static const char *const endings[][N_PARTS] = {
    [MODEL_NO_PACKER] = {NULL},
    [MODEL_COMPRESSED] = {".weight_packed", ".weight_scale", ".weight_zero_point", ".weight_g_idx",
                          ".weight_shape"},
    [MODEL_GPTQ] = {".qweight", ".scales", ".qzeros", ".g_idx", NULL},
    [MODEL_AWQ] = {".qweight", ".scales", ".qzeros", NULL, NULL}};

/** A module, and what its tensors say. */
struct module {
    const struct safetensors_tensor *parts[N_PARTS]; /* NULL: not there */
    char name[MODEL_STORED_BYTES];
    uint64_t n_rows, n_cols, n_groups; /* groups: of a row's columns */
    struct model_scheme scheme;        /* `group` is the number of columns */
    bool ordered;                      /* columns of a group are no neighbours */
    bool may[2];                       /* by config.json: be in order, and be `ordered` */
};

/** The module's tensor of a kind. */
static const struct safetensors_tensor *find_part(const struct model_folder *f, const char *module,
                                                  enum part part)
{
    const char *ending = endings[f->packing.packer][part];
    char name[2 * MODEL_STORED_BYTES];
    if (!ending)
        return NULL;
    snprintf(name, sizeof name, "%s%s", module, ending);
    return safetensors_find(&f->files, name);
}

/** The module's name where a tensor's ends as one of its parts; the part, or N_PARTS. */
static enum part part_of(const struct model_folder *f, const char *name, char *module)
{
    unsigned part = 0;
    const char *const *all = endings[f->packing.packer];
    while (part < N_PARTS && !(all[part] && base_ends_with(name, all[part])))
        part++;
    size_t n = strlen(name) - (part < N_PARTS ? strlen(all[part]) : 0);
    if (part == N_PARTS || n >= MODEL_STORED_BYTES)
        return N_PARTS;
    memcpy(module, name, n);
    module[n] = '\0';
    return (enum part)part;
}

bool model_packed_is(const struct model_folder *f, const struct safetensors_tensor *tensor)
{
    char module[MODEL_STORED_BYTES];
    return part_of(f, tensor->name, module) == CODES && tensor->type != SAFETENSORS_U8;
}

/** Programs write a bias of zeros where the layer may have none. */
static bool is_no_bias(const struct model_folder *f, const struct safetensors_tensor *tensor)
{
    char module[MODEL_STORED_BYTES];
    const uint8_t *bytes = tensor->data;
    size_t n = strlen(tensor->name), i = 0;
    if (!base_ends_with(tensor->name, ".bias") || n >= sizeof module)
        return false;
    snprintf(module, sizeof module, "%.*s", (int)(n - strlen(".bias")), tensor->name);
    if (!find_part(f, module, CODES))
        return false;
    while (i < tensor->n_bytes && bytes[i] == 0)
        i++;
    return i == tensor->n_bytes;
}

enum status model_packed_role(const struct model_folder *f, const struct safetensors_tensor *tensor,
                              struct model_role *role, bool *is, struct status_why *why)
{
    char module[MODEL_STORED_BYTES];
    enum part part = part_of(f, tensor->name, module);
    *is = false;
    role->no_bias = part == N_PARTS && is_no_bias(f, tensor);
    if (part == N_PARTS)
        return STATUS_OK;
    const struct safetensors_tensor *codes = find_part(f, module, CODES);
    bool packed = codes && model_packed_is(f, codes);
    if (!packed && (part == CODES || (part == SCALES && f->packing.packer == MODEL_COMPRESSED)))
        return STATUS_OK; /* codes of another format */
    if (!packed)
        return status_fail(why, STATUS_FORMAT,
                           "lies beside packed integers that are not there, expected '%s%s'",
                           module, endings[f->packing.packer][CODES]);
    *is = true;
    role->aside = part != CODES;
    if (snprintf(role->name, sizeof role->name, "%s.weight", module) >= (int)sizeof role->name)
        return status_fail(why, STATUS_FORMAT, "has a name of %zu characters, expected fewer",
                           strlen(tensor->name));
    return STATUS_OK;
}

/** Refuse a tensor that has another shape than it should. */
static enum status check_shape(const struct model_folder *f, const struct safetensors_tensor *t,
                               uint64_t n_rows, uint64_t n_cols, const struct module *m,
                               struct status_why *why)
{
    if (t->n_dims == 2 && t->shape[0] == n_rows && t->shape[1] == n_cols)
        return STATUS_OK;
    char shape[96] = "";
    for (uint32_t i = 0; i < t->n_dims && i < 4; i++)
        snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%" PRIu64, i ? ", " : "",
                 t->shape[i]);
    return status_fail(
        why, STATUS_FORMAT,
        "%s: tensor '%s' has shape [%s], expected [%" PRIu64 ", %" PRIu64 "] of %" PRIu64
        " rows of %" PRIu64 " numbers of %u bits in %" PRIu64 " groups",
        f->path, t->name, shape, n_rows, n_cols, m->n_rows, m->n_cols, m->scheme.bits, m->n_groups);
}

/** A part must be there, with this type and number of dimensions. */
static enum status check_part(const struct model_folder *f, const struct module *m, enum part part,
                              uint32_t n_dims, struct status_why *why)
{
    const struct safetensors_tensor *t = m->parts[part];
    if (!t)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has no '%s%s' beside it, expected one", f->path,
                           m->parts[CODES]->name, m->name, endings[f->packing.packer][part]);
    bool scale =
        t->type == SAFETENSORS_F16 || t->type == SAFETENSORS_BF16 || t->type == SAFETENSORS_F32;
    bool whole = t->type == SAFETENSORS_I32 || (part == SHAPE && t->type == SAFETENSORS_I64);
    if ((part == SCALES ? scale : whole) && t->n_dims == n_dims && t->n_elements > 0)
        return STATUS_OK;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: tensor '%s' has dtype %s, %" PRIu32 " dimensions and %" PRIu64
                       " elements, expected %s, %" PRIu32 ", and elements",
                       f->path, t->name, safetensors_type_name(t->type), t->n_dims, t->n_elements,
                       part == SCALES  ? "F16, BF16 or F32"
                       : part == SHAPE ? "I64 or I32"
                                       : "I32",
                       n_dims);
}

/** Words that hold so many numbers. */
static uint64_t words_of(uint64_t n, unsigned bits)
{
    uint64_t each = 32 / bits;
    return n / each + (n % each != 0);
}

/** Rows and columns as compressed-tensors tells them; bits: as many as the words have room for. */
static enum status read_compressed(const struct model_folder *f, struct module *m,
                                   struct status_why *why)
{
    const struct safetensors_tensor *w = m->parts[CODES], *shape = m->parts[SHAPE];
    enum status status = check_part(f, m, SHAPE, 1, why);
    if (status)
        return status;
    int64_t n_rows = shape->n_elements == 2 ? model_whole_number(shape, 0) : 0;
    int64_t n_cols = shape->n_elements == 2 ? model_whole_number(shape, 1) : 0;
    bool four = n_cols > 0 && w->shape[1] == words_of((uint64_t)n_cols, 4);
    if (n_rows < 1 || n_cols < 1 || (uint64_t)n_rows != w->shape[0] ||
        (!four && w->shape[1] != words_of((uint64_t)n_cols, 8)))
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has shape [%" PRIu64 ", %" PRIu64 "], and '%s' says "
                           "%" PRId64 " rows of %" PRId64 " (of %" PRIu64 " numbers); expected "
                           "words of 4 or 8 bits for them",
                           f->path, w->name, w->shape[0], w->shape[1], shape->name, n_rows, n_cols,
                           shape->n_elements);
    m->n_rows = (uint64_t)n_rows;
    m->n_cols = (uint64_t)n_cols;
    m->n_groups = m->parts[SCALES]->shape[1];
    m->scheme.bits = four ? 4 : 8;
    status = check_shape(f, m->parts[SCALES], m->n_rows, m->n_groups, m, why);
    if (!status && m->parts[ZEROS])
        status = check_part(f, m, ZEROS, 2, why);
    if (!status && m->parts[ZEROS])
        status = check_shape(f, m->parts[ZEROS], words_of(m->n_rows, m->scheme.bits), m->n_groups,
                             m, why);
    return status;
}

/** GPTQ's and AWQ's: a row of scales for each group, with a number for each row of the weight. */
static enum status read_transposed(const struct model_folder *f, struct module *m,
                                   struct status_why *why)
{
    const struct safetensors_tensor *w = m->parts[CODES], *scales = m->parts[SCALES];
    enum status status = check_part(f, m, ZEROS, 2, why);
    if (status)
        return status;
    bool awq = f->packing.packer == MODEL_AWQ;
    uint64_t n_words = m->parts[ZEROS]->shape[1];
    m->n_rows = scales->shape[1];
    m->n_groups = scales->shape[0];
    m->scheme.bits = awq || n_words == words_of(m->n_rows, 4) ? 4 : 8;
    m->n_cols = awq ? w->shape[0] : w->shape[0] * (32 / m->scheme.bits);
    if (m->n_rows % (32 / m->scheme.bits) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64
                           " columns, expected a multiple of %u, the "
                           "zero points of a word",
                           f->path, scales->name, m->n_rows, 32 / m->scheme.bits);
    status = check_shape(f, w, w->shape[0], awq ? words_of(m->n_rows, m->scheme.bits) : m->n_rows,
                         m, why);
    if (!status)
        status = check_shape(f, m->parts[ZEROS], m->n_groups, words_of(m->n_rows, m->scheme.bits),
                             m, why);
    return status;
}

/** The scheme that a module's tensors have must be one of config.json's. */
static enum status find_scheme(const struct model_folder *f, struct module *m,
                               struct status_why *why)
{
    const struct model_packing *p = &f->packing;
    struct model_scheme *found = &m->scheme;
    bool tells = p->packer == MODEL_COMPRESSED; /* the tensors do whether numbers are symmetric */
    char expected[MODEL_SCHEMES_BYTES] = "";
    found->group = m->n_groups && m->n_cols % m->n_groups == 0 ? m->n_cols / m->n_groups : 0;
    found->symmetric = tells ? !m->parts[ZEROS] : p->schemes[0].symmetric && !p->any;
    for (size_t i = 0; found->group && i < p->n_schemes; i++) {
        const struct model_scheme *s = &p->schemes[i];
        bool same =
            p->any || (s->bits == found->bits && (s->group ? s->group : m->n_cols) == found->group);
        m->may[s->ordered] |= same && (!tells || s->symmetric == found->symmetric);
    }
    if (m->may[false] || m->may[true])
        return STATUS_OK;
    model_schemes_describe(p, expected);
    return status_fail(why, STATUS_FORMAT,
                       "%s: tensor '%s' has %u bits, %" PRIu64 " scales for each %" PRIu64
                       " columns%s, but config.json's quantization_config says %s",
                       f->path, m->parts[CODES]->name, found->bits, m->n_groups, m->n_cols,
                       !tells            ? ""
                       : m->parts[ZEROS] ? ", zero points"
                                         : ", no zero points",
                       expected);
}

/** Which group each column is of: a number for each, as many of one as of another. groups: out,
 * [n_cols]. */
static enum status read_groups(const struct model_folder *f, struct module *m, uint32_t *groups,
                               struct status_why *why)
{
    const struct safetensors_tensor *t = m->parts[GROUPS];
    uint64_t *n = calloc(m->n_groups, sizeof *n);
    enum status status = n ? STATUS_OK : status_fail(why, STATUS_MEMORY, "%s: no memory", f->path);
    for (uint64_t i = 0; i < m->n_cols && !status; i++) {
        int64_t group = model_whole_number(t, i);
        if (group < 0 || (uint64_t)group >= m->n_groups)
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: element %" PRIu64 " of tensor '%s' is %" PRId64
                                 ", expected a group from 0 to %" PRIu64,
                                 f->path, i, t->name, group, m->n_groups - 1);
        else if (++n[group] > m->scheme.group)
            status = status_fail(why, STATUS_FORMAT,
                                 "%s: tensor '%s' has group %" PRId64 " more than %" PRIu64
                                 " times, expected so many columns of each",
                                 f->path, t->name, group, m->scheme.group);
        else {
            m->ordered |= (uint64_t)group != i / m->scheme.group;
            groups[i] = (uint32_t)group;
        }
    }
    free(n);
    return status;
}

/** All numbers are -1 where compressed-tensors does not use them. */
static bool is_unused(const struct safetensors_tensor *t)
{
    uint64_t i = 0;
    while (i < t->n_elements && model_whole_number(t, i) == -1)
        i++;
    return i == t->n_elements;
}

/** Whether columns are in order. groups: out, [n_cols]: theirs. */
static enum status check_groups(const struct model_folder *f, struct module *m, uint32_t *groups,
                                struct status_why *why)
{
    const struct safetensors_tensor *t = m->parts[GROUPS];
    bool gptq = f->packing.packer == MODEL_GPTQ;
    bool needed = !m->may[false] && m->n_groups > 1;
    enum status status = t || needed ? check_part(f, m, GROUPS, 1, why) : STATUS_OK;
    if (status || !t || (!gptq && !needed && is_unused(t)))
        return status;
    if (t->n_elements != m->n_cols)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: tensor '%s' has %" PRIu64 " elements, expected %" PRIu64
                             ", one for each column",
                             f->path, t->name, t->n_elements, m->n_cols);
    if (!status)
        status = read_groups(f, m, groups, why);
    if (!status && m->ordered && !m->may[true])
        status = status_fail(why, STATUS_FORMAT,
                             "%s: tensor '%s' has columns in another order than their groups, but "
                             "config.json's %s; programs differ in which they follow, expected %s",
                             f->path, t->name, gptq ? "desc_act is false" : "actorder is not group",
                             gptq ? "true" : "group");
    return status;
}

/** The module's weights must not be among those that config.json says are no integers. */
static enum status check_kept(const struct model_folder *f, const struct module *m,
                              struct status_why *why)
{
    for (struct base_field item = {0}; base_field_next(f->packing.kept, &item);) {
        const char *text = cJSON_IsString(item.json) ? item.json->valuestring : "";
        size_t n = strlen(text), n_name = strlen(m->name);
        bool begins = strncmp(m->name, text, n) == 0 && (m->name[n] == '.' || !m->name[n]);
        bool ends =
            n_name > n && strcmp(m->name + n_name - n, text) == 0 && m->name[n_name - n - 1] == '.';
        if (n > 0 && (begins || ends))
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor '%s' holds integers, but config.json's "
                               "quantization_config says of '%.100s' that it is left out (member "
                               "'%s'); expected a weight as it was",
                               f->path, m->parts[CODES]->name, text, f->packing.kept.json->string);
    }
    return STATUS_OK;
}

/** Everything about a module. groups: out, of its columns, if it has such a tensor; may be NULL. */
static enum status open_module(const struct model_folder *f, const struct safetensors_tensor *codes,
                               struct module *m, uint32_t **groups, struct status_why *why)
{
    *m = (struct module){.n_rows = 0};
    (void)part_of(f, codes->name, m->name);
    for (unsigned part = 0; part < N_PARTS; part++)
        m->parts[part] = find_part(f, m->name, (enum part)part);
    enum status status = check_part(f, m, CODES, 2, why);
    if (!status)
        status = check_part(f, m, SCALES, 2, why);
    if (!status)
        status = f->packing.packer == MODEL_COMPRESSED ? read_compressed(f, m, why)
                                                       : read_transposed(f, m, why);
    if (!status)
        status = find_scheme(f, m, why);
    if (!status && (m->n_cols % 32 != 0 || m->scheme.group % 32 != 0))
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: tensor '%s' has rows of %" PRIu64 " columns in groups of %" PRIu64
                             ", expected multiples of 32",
                             f->path, codes->name, m->n_cols, m->scheme.group);
    if (!status)
        status = check_kept(f, m, why);
    *groups = status || !m->parts[GROUPS] ? NULL : malloc(m->n_cols * sizeof **groups);
    if (!status && m->parts[GROUPS] && !*groups)
        status = status_fail(why, STATUS_MEMORY, "%s: no memory", f->path);
    return status ? status : check_groups(f, m, *groups, why);
}

/** Columns in any order, and differences of 9 bits, become floats. */
static enum gguf_type type_of(const struct module *m)
{
    bool values = m->ordered || (m->scheme.bits == 8 && !m->scheme.symmetric);
    if (m->scheme.bits == 4)
        return values ? GGUF_TYPE_INT4_VALUES : GGUF_TYPE_INT4_APART;
    return values ? GGUF_TYPE_INT8_VALUES : GGUF_TYPE_INT8_APART;
}

enum status model_packed_shape(const struct model_folder *f, struct model_target *t,
                               struct safetensors_tensor *meant, struct status_why *why)
{
    struct module first = {.n_rows = 0}, m;
    enum status status = STATUS_OK;
    if (t->change & (MODEL_TURN_OVER | MODEL_OF_COLUMNS | MODEL_OF_KEYS | MODEL_OF_VALUES))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor '%s' is one of packed integers, of which %s is only a part, "
                           "or transposed; expected F32, F16 or BF16",
                           f->path, t->sources[0]->name, t->name);
    for (size_t i = 0; i < t->n_sources && !status; i++) {
        uint32_t *groups = NULL;
        status = open_module(f, t->sources[i], &m, &groups, why);
        free(groups);
        if (i == 0 && !status) {
            first = m;
            t->type = type_of(&m);
        }
        if (!status && (m.n_rows != first.n_rows || m.n_cols != first.n_cols ||
                        m.scheme.bits != first.scheme.bits))
            status =
                status_fail(why, STATUS_FORMAT,
                            "%s: tensor '%s' has another shape than '%s', expected the same of "
                            "all experts",
                            f->path, t->sources[i]->name, first.parts[CODES]->name);
        if (!status &&
            (type_of(&m) == GGUF_TYPE_INT4_VALUES || type_of(&m) == GGUF_TYPE_INT8_VALUES))
            t->type = type_of(&m);
    }
    if (status)
        return status;
    t->quantised = true;
    *meant = *t->sources[0];
    meant->shape[0] = first.n_rows;
    meant->shape[1] = first.n_cols;
    meant->n_elements = first.n_rows * first.n_cols;
    return STATUS_OK;
}

/** Where a module's numbers lie. */
static struct gguf_packed lay_out(const struct model_folder *f, const struct module *m, size_t size)
{
    enum model_packer packer = f->packing.packer;
    const struct safetensors_tensor *w = m->parts[CODES], *z = m->parts[ZEROS];
    bool rows = packer == MODEL_COMPRESSED, awq = packer == MODEL_AWQ;
    size_t n_groups = (size_t)m->n_groups, n_rows = (size_t)m->n_rows;
    uint8_t bits = (uint8_t)m->scheme.bits;
    struct gguf_packed p = {.codes = {.data = w->data,
                                      .row_step = rows ? 4 * (size_t)w->shape[1] : 4,
                                      .col_step = rows ? 4 : 4 * (size_t)w->shape[1],
                                      .bits = bits,
                                      .of_rows = awq,
                                      .turned = awq},
                            .zero_more = f->packing.less_one,
                            .symmetric = m->scheme.symmetric,
                            .scale_row_step = rows ? n_groups * size : size,
                            .scale_col_step = rows ? size : n_rows * size};
    if (z)
        p.zeros = (struct gguf_words){.data = z->data,
                                      .row_step = rows ? 4 * n_groups : 4,
                                      .col_step = rows ? 4 : 4 * (size_t)z->shape[1],
                                      .bits = bits,
                                      .of_rows = true,
                                      .turned = awq};
    return p;
}

/** Zero points must be those that all programs take them for. */
static enum status check_zeros(const struct model_folder *f, const struct module *m,
                               struct gguf_scales scales, struct status_why *why)
{
    struct kern_packed_zero wrong;
    scales.first_row = 0;
    if (!kern_packed_find_wrong(&scales, (size_t)m->n_rows, &wrong))
        return STATUS_OK;
    int middle = 1 << (m->scheme.bits - 1);
    char expected[96];
    if (m->scheme.symmetric)
        snprintf(expected, sizeof expected, "%d, as config.json calls the numbers symmetric",
                 middle - scales.packed->zero_more);
    else
        snprintf(expected, sizeof expected,
                 "at most %d: 1 is added, and programs take the sum for 0 or for %d",
                 2 * middle - 2, 2 * middle);
    return status_fail(why, STATUS_FORMAT,
                       "%s: the zero point of row %zu and group %zu of tensor '%s' is stored as "
                       "%d, expected %s",
                       f->path, wrong.row, wrong.group, m->parts[ZEROS]->name, wrong.value,
                       expected);
}

/** The scales of one module. */
static enum status scales_of(const struct model_folder *f, const struct model_target *t,
                             const struct safetensors_tensor *codes, struct gguf_file *file,
                             struct gguf_scales *out, struct status_why *why)
{
    struct module m;
    uint32_t *groups = NULL;
    enum status status = open_module(f, codes, &m, &groups, why);
    struct gguf_packed *packed = status ? NULL : gguf_file_memory(file, sizeof *packed);
    uint32_t *kept = packed && m.ordered ? gguf_file_memory(file, m.n_cols * sizeof *kept) : NULL;
    if (!status && (!packed || (m.ordered && !kept)))
        status =
            status_fail(why, STATUS_MEMORY, "%s: no memory for the scales of %s", f->path, t->name);
    if (!status) {
        const struct safetensors_tensor *s = m.parts[SCALES];
        *out = (struct gguf_scales){.data = s->data,
                                    .type = s->type == SAFETENSORS_F32   ? GGUF_SCALE_F32
                                            : s->type == SAFETENSORS_F16 ? GGUF_SCALE_F16
                                                                         : GGUF_SCALE_BF16,
                                    .block_rows = 1,
                                    .block_cols = (size_t)m.scheme.group,
                                    .n_cols = (size_t)m.n_groups,
                                    .first_row = (size_t)t->first_row,
                                    .packed = packed};
        *packed = lay_out(f, &m, gguf_scale_bytes(out->type));
        packed->groups = kept;
        status = check_zeros(f, &m, *out, why);
    }
    if (kept)
        memcpy(kept, groups, m.n_cols * sizeof *kept);
    free(groups);
    return status;
}

enum status model_packed_scales(const struct model_folder *f, const struct model_target *t,
                                struct gguf_file *file, struct gguf_scales *scales,
                                struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < t->n_sources && !status; i++)
        status = scales_of(f, t, t->sources[i], file, &scales[i], why);
    return status;
}
