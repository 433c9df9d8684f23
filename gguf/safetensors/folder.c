#include "gguf/safetensors/folder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/file/folder.h"
#include "base/file/name.h"
#include "base/text/printable.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "gguf/safetensors/index.h"

enum { PATH_BYTES = 4096 };

static const char index_name[] = "model.safetensors.index.json";

static bool join(char out[PATH_BYTES], const char *folder, const char *name)
{
    size_t n = strlen(folder);
    const char *slash = n > 0 && folder[n - 1] == '/' ? "" : "/";
    return snprintf(out, PATH_BYTES, "%s%s%s", folder, slash, name) < PATH_BYTES;
}

static bool is_there(const char *folder, const char *name)
{
    char path[PATH_BYTES];
    struct stat about;
    return join(path, folder, name) && stat(path, &about) == 0;
}

static bool begins_with(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

enum status safetensors_map_json(struct gguf_map *map, const char *folder, const char *name,
                                 bool *found, struct status_why *why)
{
    char path[PATH_BYTES];
    *map = (struct gguf_map){0};
    if (found) {
        *found = is_there(folder, name);
        if (!*found)
            return STATUS_OK;
    }
    if (!join(path, folder, name))
        return status_fail(why, STATUS_IO, "%s: the path is too long", folder);
    return gguf_map_open_as(map, path, "a JSON file", why);
}

bool safetensors_is_folder(const char *path)
{
    return base_is_folder(path) && (is_there(path, "config.json") || is_there(path, index_name) ||
                                    is_there(path, "model.safetensors"));
}

/** Names of files to be read, sorted. */
struct chosen {
    char **names;
    size_t n, capacity;
};

static enum status choose(struct chosen *chosen, struct base_string name, struct status_why *why)
{
    enum status status =
        base_array_reserve(chosen->names, chosen->capacity, chosen->n + 1, "files", why);
    if (status)
        return status;
    chosen->names[chosen->n] = strndup(name.data, name.n_bytes);
    if (!chosen->names[chosen->n])
        return status_fail(why, STATUS_MEMORY, "no memory for a name");
    chosen->n++;
    return STATUS_OK;
}

static void free_chosen(struct chosen *chosen)
{
    for (size_t i = 0; i < chosen->n; i++)
        free(chosen->names[i]);
    free(chosen->names);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/** What else is in a folder without such files. */
static enum status fail_nothing(const char *path, const struct base_folder *list,
                                struct status_why *why)
{
    for (size_t i = 0; i < list->n; i++) {
        const char *name = base_file_name(list->paths[i]);
        if (base_ends_with(name, ".gguf"))
            return status_fail(why, STATUS_IO,
                               "%s: is a directory, expected a GGUF file; name the one in it: %s",
                               path, list->paths[i]);
        if (begins_with(name, "consolidated") && base_ends_with(name, ".safetensors"))
            return status_fail(why, STATUS_UNSUPPORTED,
                               "%s: has %s, a checkpoint in Mistral's own format, expected "
                               "model*.safetensors; take the folder in the format of transformers",
                               path, name);
        if (begins_with(name, "pytorch_model") && base_ends_with(name, ".bin"))
            return status_fail(why, STATUS_UNSUPPORTED,
                               "%s: has %s, a pickle of PyTorch, expected model*.safetensors; load "
                               "it with transformers and save it again",
                               path, name);
    }
    return status_fail(why, STATUS_IO,
                       "%s: has no file model*.safetensors, expected a folder with a published "
                       "checkpoint",
                       path);
}

/** "model-00002-of-00005.safetensors": the 5, and whether a name has this form. */
static bool read_count(const char *name, unsigned *number, unsigned *count)
{
    int end = 0;
    return sscanf(name, "model-%5u-of-%5u.safetensors%n", number, count, &end) == 2 && end > 0 &&
           name[end] == '\0';
}

/** Files that say how many there are must all be there. */
static enum status check_complete(const char *path, const struct chosen *chosen,
                                  struct status_why *why)
{
    for (size_t i = 0; i < chosen->n; i++) {
        unsigned number, count;
        if (!read_count(chosen->names[i], &number, &count))
            continue;
        for (unsigned k = 1; k <= count; k++) {
            char name[64];
            snprintf(name, sizeof name, "model-%05u-of-%05u.safetensors", k, count);
            if (!is_there(path, name))
                return status_fail(why, STATUS_FORMAT,
                                   "%s: has %s, but not %s: an incomplete download?", path,
                                   chosen->names[i], name);
        }
        return STATUS_OK;
    }
    return STATUS_OK;
}

static enum status choose_by_name(struct chosen *chosen, const char *path, struct status_why *why)
{
    struct base_folder list = {0};
    enum status status = base_folder_list(&list, path, why);
    for (size_t i = 0; !status && i < list.n; i++) {
        const char *name = base_file_name(list.paths[i]);
        if (begins_with(name, "model") && base_ends_with(name, ".safetensors"))
            status = choose(chosen, (struct base_string){name, strlen(name)}, why);
    }
    if (!status && chosen->n == 0)
        status = fail_nothing(path, &list, why);
    base_folder_free(&list);
    return status ? status : check_complete(path, chosen, why);
}

static enum status choose_by_index(struct chosen *chosen, const char *path,
                                   const struct safetensors_index *index, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < index->files.n; i++)
        status = choose(chosen, index->files.strings[i], why);
    if (!status)
        qsort(chosen->names, chosen->n, sizeof *chosen->names, by_name);
    size_t n_missing = 0;
    const char *first = NULL;
    for (size_t i = 0; !status && i < chosen->n; i++)
        if (!is_there(path, chosen->names[i])) {
            first = first ? first : chosen->names[i];
            n_missing++;
        }
    if (first) {
        struct base_quoted shown;
        return status_fail(why, STATUS_FORMAT,
                           "%s: lacks %zu of the %zu files that its index names, the first of them "
                           "%s: an incomplete download?",
                           path, n_missing, chosen->n,
                           base_quote(&shown, (struct base_string){first, strlen(first)}));
    }
    return status;
}

static enum status read_file(struct safetensors_folder *folder, size_t i, const char *path,
                             struct status_why *why)
{
    struct safetensors_file *file = &folder->files[i];
    file->path = strdup(path);
    if (!file->path)
        return status_fail(why, STATUS_MEMORY, "%s: out of memory", path);
    enum status status = gguf_map_open_as(&file->map, path, "a safetensors file", why);
    if (status)
        return status;
    status = safetensors_header_read(&file->header, file->map.data, file->map.n_bytes, why);
    for (size_t t = 0; !status && t < file->header.names.n; t++) {
        size_t n = folder->names.n;
        int32_t number;
        struct safetensors_tensor *tensor = &file->header.tensors[t];
        struct base_quoted shown;
        tensor->file = i;
        status = base_array_reserve(folder->tensors, folder->capacity, n + 1, "tensors", why);
        if (!status)
            status = base_strtab_add(&folder->names, file->header.names.strings[t], &number, why);
        if (!status && (size_t)number != n)
            status = status_fail(why, STATUS_FORMAT, "tensor %s: is in %s, too, expected it once",
                                 base_quote(&shown, file->header.names.strings[t]),
                                 folder->files[folder->tensors[number]->file].path);
        if (!status)
            folder->tensors[n] = tensor;
    }
    if (status)
        status_context(why, "%s", path);
    return status;
}

static enum status read_files(struct safetensors_folder *folder, const char *path,
                              const struct chosen *chosen, struct status_why *why)
{
    char whole[PATH_BYTES];
    enum status status = base_array_new(folder->files, chosen->n, "files", why);
    for (size_t i = 0; !status && i < chosen->n; i++) {
        if (!join(whole, path, chosen->names[i]))
            return status_fail(why, STATUS_IO, "%s: the path is too long", path);
        folder->n_files = i + 1;
        status = read_file(folder, i, whole, why);
    }
    return status;
}

/** Index and files tell of the same tensors, in the same files. */
static enum status check_index(const struct safetensors_folder *folder, const char *path,
                               const struct safetensors_index *index, struct status_why *why)
{
    struct base_quoted name, shown;
    for (size_t i = 0; i < index->names.n; i++) {
        struct base_string said = index->files.strings[index->file_of[i]];
        int32_t at = base_strtab_find(&folder->names, index->names.strings[i]);
        const char *file =
            at < 0 ? NULL : base_file_name(folder->files[folder->tensors[at]->file].path);
        if (!file || strlen(file) != said.n_bytes || memcmp(file, said.data, said.n_bytes) != 0)
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor %s: is in %s, expected it in %s, where %s has it", path,
                               base_quote(&name, index->names.strings[i]), file ? file : "no file",
                               base_quote(&shown, said), index_name);
    }
    for (size_t i = 0; i < folder->names.n; i++)
        if (base_strtab_find(&index->names, folder->names.strings[i]) < 0)
            return status_fail(why, STATUS_FORMAT, "%s: tensor %s is not in %s, expected it there",
                               folder->files[folder->tensors[i]->file].path,
                               base_quote(&name, folder->names.strings[i]), index_name);
    return STATUS_OK;
}

static enum status open_with(struct safetensors_folder *out, const char *path,
                             struct safetensors_index *index, struct chosen *chosen,
                             struct status_why *why)
{
    struct gguf_map map;
    bool found;
    enum status status = safetensors_map_json(&map, path, index_name, &found, why);
    if (!status && found) {
        status = safetensors_index_read(index, map.data, map.n_bytes, why);
        if (status)
            status_context(why, "%s: %s", path, index_name);
        else
            status = choose_by_index(chosen, path, index, why);
        gguf_map_close(&map);
    } else if (!status) {
        status = choose_by_name(chosen, path, why);
    }
    if (!status)
        status = read_files(out, path, chosen, why);
    return status || !found ? status : check_index(out, path, index, why);
}

enum status safetensors_folder_open(struct safetensors_folder *out, const char *path,
                                    struct status_why *why)
{
    *out = (struct safetensors_folder){0};
    struct safetensors_index index = {0};
    struct chosen chosen = {0};
    enum status status = open_with(out, path, &index, &chosen, why);
    safetensors_index_free(&index);
    free_chosen(&chosen);
    return status;
}

void safetensors_folder_close(struct safetensors_folder *folder)
{
    for (size_t i = 0; i < folder->n_files; i++) {
        free(folder->files[i].path);
        gguf_map_close(&folder->files[i].map);
        safetensors_header_free(&folder->files[i].header);
    }
    free(folder->files);
    free(folder->tensors);
    base_strtab_free(&folder->names);
    *folder = (struct safetensors_folder){0};
}

const struct safetensors_tensor *safetensors_find(const struct safetensors_folder *folder,
                                                  const char *name)
{
    int32_t i = base_strtab_find(&folder->names, (struct base_string){name, strlen(name)});
    return i < 0 ? NULL : folder->tensors[i];
}
