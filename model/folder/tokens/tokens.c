#include "model/folder/tokens/tokens.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "gguf/assembly/assembly.h"
#include "model/folder/tokens/state.h"

/** The kind of model, and members that change what its merging does. */
static enum status check_model(struct model_folder_tokens *f, struct status_why *why)
{
    static const char *const absent[] = {"dropout", "continuing_subword_prefix",
                                         "end_of_word_suffix"};
    struct base_quoted shown;
    f->model = base_field_find(f->json[MODEL_JSON_TOKENIZER], "model");
    struct base_field type = base_field_find(f->model, "type");
    const char *name = cJSON_IsString(type.json) ? type.json->valuestring : "";
    if (strcmp(name, "BPE") != 0 && (type.json || !base_field_find(f->model, "merges").json))
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                 "model.type %s, expected BPE, or --tokenizer FILE.gguf, any GGUF "
                                 "file of the same model",
                                 base_quote(&shown, (struct base_string){name, strlen(name)}));
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        const cJSON *item = base_field_find(f->model, absent[i]).json;
        bool nothing = !item || (cJSON_IsString(item) && !*item->valuestring) ||
                       (cJSON_IsNumber(item) && item->valuedouble == 0);
        if (!nothing)
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                     "model.%s is not null, expected null", absent[i]);
    }
    return STATUS_OK;
}

static enum status read_steps(struct model_folder_tokens *f, struct status_why *why)
{
    model_steps_read(&f->steps, f->json[MODEL_JSON_TOKENIZER]);
    enum status status = base_json_status(&f->readers[MODEL_JSON_TOKENIZER], why);
    if (status)
        status_context(why, "%s", f->path);
    return status;
}

/** A member of tokenizer.json as a text. */
static enum status write_member(struct model_folder_tokens *f, const char *member, const char *key,
                                struct status_why *why)
{
    const cJSON *item = base_field_find(f->json[MODEL_JSON_TOKENIZER], member).json;
    char *text = item ? cJSON_PrintUnformatted(item) : NULL;
    if (item && !text)
        return status_fail(why, STATUS_MEMORY, "%s: no memory for tokenizer.json", f->path);
    if (text)
        gguf_layout_string(f->layout, key, text);
    free(text);
    return STATUS_OK;
}

static enum status write_pieces(struct model_folder_tokens *f, struct status_why *why)
{
    gguf_layout_string(f->layout, "tokenizer.ggml.model", "llama");
    enum status status = model_tokens_sentencepiece(f, why);
    return status ? status : model_tokens_ends(f, why);
}

static enum status write_declared(struct model_folder_tokens *f, struct status_why *why)
{
    gguf_layout_string(f->layout, "tokenizer.ggml.model", f->steps.of_bytes ? "gpt2" : "gemma4");
    enum status status = model_tokens_vocabulary(f, why);
    if (!status)
        status = model_tokens_merges(f, why);
    if (!status)
        status = model_tokens_ends(f, why);
    if (!status)
        status = write_member(f, "normalizer", "tokenizer.declared.normalizer", why);
    if (!status)
        status = write_member(f, "pre_tokenizer", "tokenizer.declared.pre_tokenizer", why);
    model_tokens_bool(f, "tokenizer.declared.ignore_merges",
                      model_tokens_flag(f->model, "ignore_merges", false));
    return status;
}

static enum status write_all(struct model_folder_tokens *f, struct status_why *why)
{
    enum status status = f->pieces.is_used ? write_pieces(f, why) : write_declared(f, why);
    if (f->remarks.n > 0 && !f->remarks.failed)
        gguf_layout_string(f->layout, "tokenizer.declared.remarks", f->remarks.data);
    return status;
}

static enum status assemble(struct model_folder_tokens *f, struct gguf_file **out,
                            struct status_why *why)
{
    struct gguf_directory directory;
    enum status status = gguf_layout_finish(f->layout, &directory, why);
    void *bytes = status ? NULL : malloc((size_t)directory.n_bytes_whole);
    if (!status && !bytes)
        status = status_fail(why, STATUS_MEMORY, "%s: no memory for %" PRIu64 " bytes of tokens",
                             f->path, directory.n_bytes_whole);
    if (status)
        return status;
    memcpy(bytes, directory.bytes, (size_t)directory.n_bytes);
    status = gguf_assemble(out, f->path, bytes, directory.n_bytes_whole, 0, why);
    return status ? status : gguf_assemble_finish(*out, why);
}

enum status model_folder_tokens(struct gguf_file **out, const char *folder, uint64_t n_rows,
                                struct status_why *why)
{
    struct model_folder_tokens f = {.path = folder, .n_rows = n_rows};
    *out = NULL;
    enum status status = model_tokens_read(&f, why);
    if (!status && !f.pieces.is_used)
        status = check_model(&f, why);
    if (!status && !f.pieces.is_used)
        status = read_steps(&f, why);
    if (!status)
        status = gguf_layout_new(&f.layout, why);
    if (!status)
        status = write_all(&f, why);
    if (!status)
        status = assemble(&f, out, why);
    if (status) {
        gguf_close(*out);
        *out = NULL;
    }
    for (int i = 0; i < MODEL_N_JSON; i++)
        base_json_close(&f.readers[i]);
    model_steps_free(&f.steps);
    base_strtab_free(&f.index);
    base_buffer_free(&f.names);
    base_buffer_free(&f.remarks);
    gguf_layout_free(f.layout);
    free(f.pieces.text);
    free(f.pieces.score);
    free(f.text);
    free(f.type);
    free(f.flags);
    free(f.id);
    return status;
}
