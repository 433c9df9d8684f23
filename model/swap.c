#include "model/swap.h"

#include <stdio.h>
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
    if (!gguf_type_info(from->type_id) || from->row_bytes == 0)
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
        status = model_bind(m, why);
    if (status) {
        *tensor = before;
        (void)model_bind(m, NULL); /* as it was when it succeeded before */
    }
    return status == STATUS_UNSUPPORTED ? STATUS_FORMAT : status;
}

/** The first layer that rotates by the angles of full attention, which alone have factors. */
static size_t first_rotated(const struct model *m)
{
    size_t i = 0;
    while (i < m->hparams.n_layers && m->hparams.layers[i].rope != MODEL_ROPE_FULL)
        i++;
    return i;
}

size_t model_swap_stage(const struct model *m, const char *name)
{
    size_t n_layers = m->hparams.n_layers;
    unsigned block = 0;
    size_t stage = 0; /* embeddings */
    if (sscanf(name, "blk.%u.", &block) == 1)
        stage = block < n_layers ? block : n_layers;
    else if (strncmp(name, "output", 6) == 0)
        stage = n_layers;
    else if (strncmp(name, "rope_f", 6) == 0)
        stage = first_rotated(m);
    /* Keys are kept in the layer that makes them, for layers at or behind the stage. */
    for (size_t i = n_layers; i > stage; i--)
        if (m->hparams.layers[i - 1].kv_layer < stage)
            stage = m->hparams.layers[i - 1].kv_layer;
    return stage;
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
