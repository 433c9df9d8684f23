#include "tests/model/replace.h"

#include <inttypes.h>

#include "model/bind/bind.h"
#include "model/state.h"

/** The bytes that replace a tensor's must be such as the file itself could have held. */
static enum status check_replacement(const struct model *m, const char *name,
                                     const struct gguf_tensor *source, enum gguf_type type,
                                     struct status_why *why)
{
    if (!source)
        return status_fail(why, STATUS_USAGE, "%s: there is no tensor '%s' to replace",
                           gguf_path(m->file), name);
    const struct gguf_type_info *info = gguf_type_info((uint32_t)type);
    if (!info)
        return status_fail(why, STATUS_UNSUPPORTED, "type %d for tensor '%s' cannot be decoded",
                           (int)type, name);
    if (source->ne[0] % info->block_elems != 0)
        return status_fail(why, STATUS_USAGE,
                           "tensor '%s' has rows of %" PRIu64 ", type %s needs a multiple of "
                           "%" PRIu32,
                           name, source->ne[0], info->name, info->block_elems);
    return STATUS_OK;
}

enum status replace_weight(struct model *m, const char *name, enum gguf_type type, const void *data,
                           struct status_why *why)
{
    const struct gguf_tensor *source = gguf_tensor_find(m->file, name);
    enum status status = check_replacement(m, name, source, type, why);
    if (status != STATUS_OK)
        return status;
    struct model_tensor *tensor = &m->tensors[source - gguf_tensor_at(m->file, 0)];
    struct model_tensor before = *tensor;
    tensor->type = gguf_type_info((uint32_t)type);
    uint64_t row_bytes = 0;
    (void)gguf_row_bytes(tensor->type, source->ne[0], &row_bytes);
    tensor->row_bytes = (size_t)row_bytes;
    tensor->data = data;
    tensor->generation = kern_next_generation();
    status = model_tensor_check(m, tensor, why);
    if (status == STATUS_OK)
        status = model_bind(m, why);
    if (status != STATUS_OK) {
        *tensor = before;
        (void)model_bind(m, NULL); /* as it was when it succeeded before */
    }
    return status;
}
