/**
 * The safetensors files of a folder as one directory.
 *
 * With an index its files are read, and no others. Without one, every file model*.safetensors is.
 * A file may be a symbolic link, as in the caches of downloaders; the index cannot lead out of the
 * folder.
 */
#ifndef SAFETENSORS_FOLDER_H
#define SAFETENSORS_FOLDER_H

#include <stdbool.h>

#include "gguf/map.h"
#include "gguf/safetensors/header.h"

/** One file of it. */
struct safetensors_file {
    char *path;
    struct gguf_map map; /* who takes it empties it here */
    struct safetensors_header header;
};

/** Zero-initialised is a valid, empty object. */
struct safetensors_folder {
    struct safetensors_file *files; /* [n_files], in the order of their names */
    size_t n_files;
    struct base_strtab names;                  /* of all files' tensors */
    const struct safetensors_tensor **tensors; /* [names.n], file by file */
    size_t capacity;
};

/**
 * Map and check all files.   out: released by the caller, also on failure.
 * Fails: STATUS_IO (no such folder; nothing in it that can be read: the sentence says what is there
 *        instead), STATUS_FORMAT (a header; a tensor in two files; index and files that disagree; a
 *        file that is missing), STATUS_UNSUPPORTED, STATUS_MEMORY.
 */
enum status safetensors_folder_open(struct safetensors_folder *out, const char *path,
                                    struct status_why *why);
void safetensors_folder_close(struct safetensors_folder *folder);

/** By name; NULL where there is none. */
const struct safetensors_tensor *safetensors_find(const struct safetensors_folder *folder,
                                                  const char *name);

/**
 * A JSON file of the folder, mapped: config.json. *found tells whether it is there; NULL: it must
 * be. map: closed by the caller.   Fails: STATUS_IO.
 */
enum status safetensors_map_json(struct gguf_map *map, const char *folder, const char *name,
                                 bool *found, struct status_why *why);

/** Whether a path is a folder with config.json, an index or model.safetensors: a checkpoint. */
bool safetensors_is_folder(const char *path);

#endif
