/** model.safetensors.index.json: which tensor is in which file of a folder. */
#ifndef SAFETENSORS_INDEX_H
#define SAFETENSORS_INDEX_H

#include "base/status.h"
#include "base/text/strtab.h"

typedef struct cJSON cJSON;

/** Zero-initialised is a valid, empty object. */
struct safetensors_index {
    cJSON *root; /* owns the texts */
    struct base_strtab names;
    struct base_strtab files; /* plain names, each once */
    int32_t *file_of;         /* [names.n]: number of the file */
    size_t capacity;
};

/**
 * Read the JSON text of an index. A file's name is a plain one that ends in .safetensors: an index
 * leads nowhere else. Sentences do not begin with a path.   out: released by the caller, also on
 * failure.
 * Fails: STATUS_FORMAT (no JSON, no weight_map, a name that occurs twice, a file's name that leads
 *        out of the folder), STATUS_UNSUPPORTED (too many values), STATUS_MEMORY.
 */
enum status safetensors_index_read(struct safetensors_index *out, const char *text, size_t n_bytes,
                                   struct status_why *why);
void safetensors_index_free(struct safetensors_index *index);

#endif
