#include "model/swap.h"

#include <string.h>

#include "model/bind/bind.h"
#include "model/state.h"

/** What bytes of other dimensions or of an unknown type could do, binding would not see. */
static enum status check(const struct gguf_tensor *own, const struct gguf_tensor *from,
                         struct status_why *why)
{
    struct model_shape_text found, expected;
    if (memcmp(own->ne, from->ne, sizeof own->ne) != 0)
        return status_fail(why, STATUS_FORMAT, "it has shape %s, expected %s",
                           model_shape_text(&found, from->ne, from->n_dims),
                           model_shape_text(&expected, own->ne, own->n_dims));
    bool both_tables = own->type_id == GGUF_WHOLE_NUMBERS && from->type_id == own->type_id;
    if ((!gguf_type_info(from->type_id) && !both_tables) || from->row_bytes == 0)
        return status_fail(why, STATUS_FORMAT, "it has type %s, which cannot be evaluated",
                           gguf_type_name(from->type_id));
    return STATUS_OK;
}

enum status model_swap(struct model *m, const char *name, const struct gguf_file *file,
                       const struct gguf_tensor *from, struct status_why *why)
{
    const struct gguf_tensor *own = gguf_tensor_find(m->file, name);
    if (!own)
        return status_fail(why, STATUS_USAGE, "%s has no such tensor", gguf_path(m->file));
    enum status status = from ? check(own, from, why) : STATUS_OK;
    if (status)
        return status;
    struct model_tensor *tensor = &m->tensors[own - gguf_tensor_at(m->file, 0)];
    struct model_tensor before = *tensor;
    model_tensor_use(tensor, from ? file : m->file, from ? from : own,
                     from ? kern_next_generation() : m->generation);
    status = model_tensor_check(tensor, why);
    if (!status)
        status = model_bind_again(m, name, why);
    if (status) {
        *tensor = before;
        (void)model_bind_again(m, name, NULL); /* as it was when it succeeded before */
    }
    return status == STATUS_UNSUPPORTED ? STATUS_FORMAT : status;
}

void model_swap_is_own(struct model *m, const char *name)
{
    const struct gguf_tensor *own = gguf_tensor_find(m->file, name);
    m->tensors[own - gguf_tensor_at(m->file, 0)].generation = m->generation;
    (void)model_bind_again(m, name, NULL); /* as it just did */
}

/** The first layer that rotates by the angles of full attention, which alone have factors. */
static size_t first_rotated(const struct model *m)
{
    size_t i = 0;
    while (i < m->hparams.n_layers && m->hparams.layers[i].rope != MODEL_ROPE_FULL)
        i++;
    return i;
}

/** The first layer that uses a table of last tokens; 0 where layers use it in other ways. */
static size_t first_with_ngrams(const struct model *m)
{
    size_t i = 0;
    while (i < m->hparams.n_layers && !m->hparams.layers[i].ngrams)
        i++;
    return i < m->hparams.n_layers ? i : 0;
}

size_t model_swap_stage(const struct model *m, const char *name)
{
    size_t n_layers = m->hparams.n_layers;
    size_t stage = 0; /* embeddings */
    size_t block = model_block_of(name);
    if (block != SIZE_MAX)
        stage = block < n_layers ? block : n_layers;
    else if (strncmp(name, "output", 6) == 0 || strncmp(name, "altup_unembd", 12) == 0)
        stage = n_layers;
    else if (strncmp(name, "rope_f", 6) == 0)
        stage = first_rotated(m);
    else if (strncmp(name, "per_layer_token_embd", 20) == 0)
        stage = first_with_ngrams(m);
    /* Keys and choices are kept by the layer that makes them, for layers from the stage on. */
    for (size_t i = n_layers; i > stage; i--)
        if (model_layer_needs(&m->hparams.layers[i - 1]) < stage)
            stage = model_layer_needs(&m->hparams.layers[i - 1]);
    return stage;
}

void model_swap_mark(const struct model *m, uint64_t *generations)
{
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++)
        generations[i] = m->tensors[i].generation;
}

size_t model_swap_stage_since(const struct model *m, const uint64_t *generations)
{
    size_t first = m->hparams.n_layers;
    for (size_t i = 0; i < gguf_n_tensors(m->file); i++)
        if (m->tensors[i].generation != generations[i]) {
            size_t stage = model_swap_stage(m, m->tensors[i].source->name);
            first = stage < first ? stage : first;
        }
    return first;
}

struct model_in_force model_in_force(const struct model *m, size_t i)
{
    const struct model_tensor *t = &m->tensors[i];
    const uint64_t *ne = t->source->ne;
    uint64_t n_scale_bytes = 0;
    for (uint64_t k = 0; t->scales && k < ne[2] * ne[3]; k++)
        n_scale_bytes += gguf_scales_bytes(&t->scales[k], ne[1]);
    return (struct model_in_force){.type = t->type,
                                   .data = t->data,
                                   .n_bytes = t->source->n_rows * t->row_bytes,
                                   .n_scale_bytes = n_scale_bytes,
                                   .swapped = t->file != m->file,
                                   .unused = t->unused || !t->understood,
                                   .rows_of_token = t->rows_of_token};
}

bool model_in_force_any(const struct model *m, size_t i, bool (*test)(const void *data, size_t n))
{
    const struct model_tensor *t = &m->tensors[i];
    struct gguf_tensor now = *t->source;
    now.type = t->type;
    now.data = t->data;
    now.view = t->view;
    now.scales = t->scales;
    now.row_bytes = t->row_bytes;
    now.n_bytes = now.n_rows * t->row_bytes + t->type->tail_bytes;
    return gguf_tensor_any(&now, test);
}

enum status model_check_unchanged(const struct model *m, struct status_why *why)
{
    enum status status = gguf_check_unchanged(m->file, why);
    const struct gguf_file *checked = m->file;
    for (size_t i = 0; !status && i < gguf_n_tensors(m->file); i++)
        if (m->tensors[i].file != m->file && m->tensors[i].file != checked) {
            checked = m->tensors[i].file;
            status = gguf_check_unchanged(checked, why);
        }
    return status;
}
