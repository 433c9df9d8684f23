#include "kernels/quant/registry.h"

#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/* Elements of a type's block, for those whose bundles become blocks of it. */
#define ELEMS(TYPE, name, id, elems, ...) ELEMS_##TYPE = (elems),
enum { GGUF_EACH_TYPE(ELEMS) };

#define ROW(TYPE, name, of, unweave)                                                               \
    [GGUF_TYPE_##TYPE] = {.type = GGUF_TYPE_##TYPE,                                                \
                          .block_elems = ELEMS_##of,                                               \
                          .block_bytes = sizeof(struct kern_block_##name),                         \
                          .decode = kern_##name##_row,                                             \
                          .plain = GGUF_TYPE_##of,                                                 \
                          unweave},
#define PLAIN(TYPE, name, ...) ROW(TYPE, name, TYPE, .unweave = NULL)
#define WOVEN(TYPE, name, id, elems, bytes, prefix, rows, of, decoder)                             \
    ROW(TYPE, decoder, of, .unweave = kern_unweave_##name)
#define WOVEN_SCALED(TYPE, name, ...) ROW(TYPE, name, TYPE, .unweave = kern_unweave_##name)
#define PACKED(TYPE, name, id, elems, bytes, prefix, rows, of, decoder)                            \
    ROW(TYPE, decoder, of, .unweave = NULL)

/* By id; those without a decoder are no formats. */
/* clang-format off */
static const struct kern_quant formats[GGUF_TYPE_LIMIT] = {
    GGUF_TYPES(PLAIN, PLAIN, PLAIN, PLAIN, WOVEN, WOVEN_SCALED, PACKED)
    [GGUF_TYPE_NVFP4].find_invalid = kern_nvfp4_find_invalid,
};
/* clang-format on */

const struct kern_quant *kern_quant_at(size_t i)
{
    for (size_t id = 0; id < GGUF_TYPE_LIMIT; id++)
        if (formats[id].decode && i-- == 0)
            return &formats[id];
    return NULL;
}

const struct kern_quant *kern_quant_find(enum gguf_type type)
{
    size_t id = (size_t)type;
    return id < GGUF_TYPE_LIMIT && formats[id].decode ? &formats[id] : NULL;
}
