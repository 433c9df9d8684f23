/** Where the weights of files lie in memory: which a product is of. */
#ifndef ACTIVATIONS_PLACES_H
#define ACTIVATIONS_PLACES_H

#include "gguf/gguf.h"

/** Bytes of a tensor's matrix. */
struct act_place {
    const uint8_t *begin, *end;
    float scale; /* of its inputs; 1: the file has none */
    bool scaled; /* it has one */
};

/** Ascending, apart from one another. Zero-initialise; free(items). */
struct act_places {
    struct act_place *items;
    size_t n, capacity;
};

/** Add the matrices of a file. Fails: STATUS_MEMORY, STATUS_FORMAT (an input_scale). */
enum status act_places_add(struct act_places *places, const struct gguf_file *file,
                           struct status_why *why);
/** The one in which an address is; NULL: there is none. */
const struct act_place *act_places_find(const struct act_places *places, const void *address);

#endif
