#include "model/folder/folder.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "gguf/assembly/assembly.h"
#include "model/folder/state.h"
#include "model/folder/tokens/tokens.h"
#include "model/model.h"

static void close_folder(struct model_folder *f)
{
    for (size_t i = 0; i < f->target_names.n; i++) {
        free(f->targets[i]->sources);
        free(f->targets[i]);
    }
    free(f->targets);
    base_strtab_free(&f->target_names);
    for (size_t i = 0; i < f->n_given; i++)
        free(f->given[i].values);
    free(f->given);
    gguf_layout_free(f->layout);
    base_json_close(&f->json);
    cJSON_Delete(f->defaults);
    safetensors_folder_close(&f->files);
}

/** Everything that is known before anything is laid out. */
static enum status describe(struct model_folder *f, struct status_why *why)
{
    enum status status = model_config_open(f, why);
    if (!status)
        status = safetensors_folder_open(&f->files, f->path, why);
    if (!status)
        status = gguf_layout_new(&f->layout, why);
    if (!status)
        status = model_folder_keys(f, why);
    if (!status)
        status = model_folder_names(f, why);
    if (!status)
        status = model_folder_agree(f, why);
    return status ? status : model_targets_shape(f, why);
}

/** The size of the vocabulary is that of the embedding, whatever config.json says. 0: unknown. */
static uint32_t n_rows(const struct model_folder *f)
{
    static const char name[] = "token_embd.weight";
    int32_t i = base_strtab_find(&f->target_names, (struct base_string){name, sizeof name - 1});
    return i >= 0 && f->targets[i]->ne[1] <= UINT32_MAX ? (uint32_t)f->targets[i]->ne[1] : 0;
}

/** The bytes of a GGUF file with the keys and the tensors that are made. */
static enum status make_directory(struct model_folder *f, void **out, uint64_t *n_bytes,
                                  struct status_why *why)
{
    struct gguf_directory directory;
    if (n_rows(f))
        model_write_u32(f, "vocab_size", n_rows(f));
    for (size_t i = 0; i < f->n_given; i++)
        gguf_layout_tensor(f->layout, f->given[i].name, GGUF_TYPE_F32, &f->given[i].n, 1);
    for (size_t i = 0; i < f->target_names.n; i++) {
        const struct model_target *t = f->targets[i];
        if (t->made)
            gguf_layout_tensor(f->layout, t->name, (uint32_t)t->type, t->ne, t->n_dims);
    }
    enum status status = gguf_layout_finish(f->layout, &directory, why);
    if (status) {
        status_context(why, "%s", f->path);
        return status;
    }
    *n_bytes = directory.n_bytes_whole;
    char *bytes = *out = calloc(1, (size_t)directory.n_bytes_whole);
    if (!bytes)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for tensors of %" PRIu64 " bytes",
                           f->path, directory.n_bytes_whole);
    memcpy(bytes, directory.bytes, (size_t)directory.n_bytes);
    size_t n = 0;
    for (size_t i = 0; i < f->n_given; i++, n++)
        memcpy(bytes + gguf_layout_tensor_at(f->layout, n)->offset, f->given[i].values,
               (size_t)f->given[i].n * sizeof(float));
    for (size_t i = 0; i < f->target_names.n; i++)
        if (f->targets[i]->made) {
            struct model_target *t = f->targets[i];
            t->values = (float *)(void *)(bytes + gguf_layout_tensor_at(f->layout, n++)->offset);
            if (!t->quantised)
                model_target_make(f, t, t->values);
        }
    return STATUS_OK;
}

static enum status assemble(struct model_folder *f, struct gguf_file **out, struct status_why *why)
{
    void *directory = NULL;
    uint64_t n_bytes = 0;
    enum status status = make_directory(f, &directory, &n_bytes, why);
    if (status) {
        free(directory);
        return status;
    }
    status = gguf_assemble(out, f->path, directory, n_bytes, f->files.n_files, why);
    for (size_t i = 0; i < f->target_names.n && !status; i++)
        if (!f->targets[i]->made)
            status = model_target_append(f, f->targets[i], *out, why);
        else if (f->targets[i]->quantised)
            status = model_target_decode(f, f->targets[i], *out, why);
    for (size_t i = 0; i < f->files.n_files && !status; i++) {
        struct safetensors_file *file = &f->files.files[i];
        struct gguf_assembled part = {file->path, &file->map, file->header.data_offset};
        status = gguf_assemble_file(*out, i, &part, why);
    }
    return status;
}

/** The pairs tokenizer.* of a GGUF file or of a folder, and its chat templates among them. */
static enum status take_tokens(struct gguf_file *file, const struct model_folder *f,
                               const char *path, struct status_why *why)
{
    struct gguf_file *from;
    enum status status = model_tokens_open(&from, path, n_rows(f), why);
    if (!status && !gguf_kv_find(from, "tokenizer.ggml.tokens")) {
        gguf_close(from);
        return status_fail(
            why, STATUS_FORMAT,
            "%s: has no key 'tokenizer.ggml.tokens', expected a GGUF file of the same "
            "model",
            path);
    }
    return status ? status : gguf_assemble_pairs(file, from, "tokenizer.", why);
}

enum status model_tokens_open(struct gguf_file **out, const char *path, uint64_t n_ids,
                              struct status_why *why)
{
    struct stat about;
    bool folder = stat(path, &about) == 0 && S_ISDIR(about.st_mode);
    return folder ? model_folder_tokens(out, path, n_ids, why) : gguf_list(out, path, why);
}

enum status model_folder_open(struct gguf_file **out, const char *path, const char *tokens,
                              const struct model_arch *const *archs, struct status_why *why)
{
    struct model_folder f = {.path = path, .archs = archs};
    *out = NULL;
    enum status status = describe(&f, why);
    if (!status)
        status = assemble(&f, out, why);
    if (!status && tokens)
        status = take_tokens(*out, &f, tokens, why);
    if (!status)
        status = gguf_assemble_finish(*out, why);
    if (status) {
        gguf_close(*out);
        *out = NULL;
    }
    close_folder(&f);
    return status;
}
