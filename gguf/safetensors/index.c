#include "gguf/safetensors/index.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "base/text/quote.h"
#include "gguf/safetensors/header.h"

static struct base_string string_of(const char *text)
{
    return (struct base_string){text, strlen(text)};
}

/** A name in the folder itself, of a kind that is read. */
static enum status check_file(const cJSON *item, struct status_why *why)
{
    static const char suffix[] = ".safetensors";
    const size_t n_suffix = sizeof suffix - 1;
    struct base_quoted shown;
    if (!cJSON_IsString(item))
        return status_fail(why, STATUS_FORMAT, "is no text, expected the name of a file");
    struct base_string name = string_of(item->valuestring);
    if (name.n_bytes <= n_suffix || name.n_bytes > 255 || name.data[0] == '.' ||
        strcmp(name.data + name.n_bytes - n_suffix, suffix) != 0 || strpbrk(name.data, "/\\"))
        return status_fail(why, STATUS_FORMAT,
                           "is in %s, expected a file of this folder whose name ends in %s",
                           base_quote(&shown, name), suffix);
    return STATUS_OK;
}

static enum status add(struct safetensors_index *index, const cJSON *item, struct status_why *why)
{
    int32_t number, file;
    size_t n = index->names.n;
    struct base_string name = string_of(item->string);
    if (name.n_bytes == 0)
        return status_fail(why, STATUS_FORMAT, "has an empty name");
    enum status status = check_file(item, why);
    if (!status)
        status = base_array_reserve(index->file_of, index->capacity, n + 1, "names", why);
    if (!status)
        status = base_strtab_add(&index->names, name, &number, why);
    if (!status && (size_t)number != n)
        status = status_fail(why, STATUS_FORMAT, "occurs twice, expected every tensor once");
    if (!status)
        status = base_strtab_add(&index->files, string_of(item->valuestring), &file, why);
    if (!status)
        index->file_of[n] = file;
    return status;
}

static enum status read_map(struct safetensors_index *index, struct status_why *why)
{
    const cJSON *map = base_json_member(index->root, "weight_map");
    if (!cJSON_IsObject(index->root) || !cJSON_IsObject(map))
        return status_fail(why, STATUS_FORMAT,
                           "has no member weight_map, expected an object of tensors and files");
    for (const cJSON *item = map->child; item; item = item->next) {
        enum status status = add(index, item, why);
        if (status) {
            struct base_quoted shown;
            status_context(why, "tensor %s", base_quote(&shown, string_of(item->string)));
            return status;
        }
    }
    if (index->names.n == 0)
        return status_fail(why, STATUS_FORMAT, "weight_map is empty, expected tensors");
    return STATUS_OK;
}

enum status safetensors_index_read(struct safetensors_index *out, const char *text, size_t n_bytes,
                                   struct status_why *why)
{
    *out = (struct safetensors_index){0};
    size_t n_read;
    if (n_bytes > SAFETENSORS_MAX_HEADER)
        return status_fail(why, STATUS_UNSUPPORTED, "has %zu bytes, expected at most %d", n_bytes,
                           SAFETENSORS_MAX_HEADER);
    if (base_json_find_nul(text, n_bytes))
        return status_fail(why, STATUS_FORMAT, "has the character U+0000");
    enum status status = base_json_parse(&out->root, text, n_bytes, &n_read, why);
    if (status == STATUS_FORMAT)
        return status_fail(why, STATUS_FORMAT, "is no JSON from byte %zu on", n_read);
    while (!status && n_read < n_bytes && base_json_is_blank(text[n_read]))
        n_read++;
    if (!status && n_read < n_bytes)
        status =
            status_fail(why, STATUS_FORMAT, "goes on after its JSON, from byte %zu on", n_read);
    return status ? status : read_map(out, why);
}

void safetensors_index_free(struct safetensors_index *index)
{
    cJSON_Delete(index->root);
    base_strtab_free(&index->names);
    base_strtab_free(&index->files);
    free(index->file_of);
    *index = (struct safetensors_index){0};
}
