/* The files that tell of a folder's tokens. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "gguf/safetensors/folder.h"
#include "gguf/safetensors/header.h"
#include "model/folder/tokens/state.h"

static const char *const names[MODEL_N_JSON] = {
    [MODEL_JSON_TOKENIZER] = "tokenizer.json",
    [MODEL_JSON_TOKENIZER_CONFIG] = "tokenizer_config.json",
    [MODEL_JSON_CONFIG] = "config.json",
    [MODEL_JSON_GENERATION] = "generation_config.json",
    [MODEL_JSON_ADDED] = "added_tokens.json",
};

enum status model_tokens_fail(const struct model_folder_tokens *f, enum model_folder_json file,
                              enum status status, struct status_why *why, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    bool pieces = file == MODEL_JSON_TOKENIZER && f->pieces.is_used;
    return status_fail(why, status, "%s: %s: %s", f->path,
                       pieces ? MODEL_SENTENCEPIECE : names[file], text);
}

bool model_tokens_flag(struct base_field object, const char *name, bool fallback)
{
    const cJSON *found = base_field_get(object, name).json;
    return cJSON_IsBool(found) ? cJSON_IsTrue(found) : fallback;
}

void model_tokens_bool(struct model_folder_tokens *f, const char *key, bool value)
{
    uint8_t byte = value;
    const struct gguf_kv pair = {.key = {key, strlen(key)},
                                 .type = GGUF_VALUE_BOOL,
                                 .element_type = GGUF_VALUE_BOOL,
                                 .count = 1,
                                 .data = &byte};
    gguf_layout_pair(f->layout, &pair);
}

static enum status parse(struct model_folder_tokens *f, enum model_folder_json file,
                         const struct gguf_map *map, struct status_why *why)
{
    size_t bad = base_utf8_first_bad(map->data, map->n_bytes);
    if (map->n_bytes > SAFETENSORS_MAX_HEADER)
        return model_tokens_fail(f, file, STATUS_UNSUPPORTED, why,
                                 "has %zu bytes, expected at most 100 MB", (size_t)map->n_bytes);
    if (bad < map->n_bytes)
        return model_tokens_fail(f, file, STATUS_FORMAT, why, "is no UTF-8 from byte %zu on", bad);
    f->readers[file].file = names[file];
    f->json[file] = base_json_open(&f->readers[file], map->data, map->n_bytes);
    enum status status = base_json_status(&f->readers[file], why);
    if (status)
        status_context(why, "%s", f->path);
    return status;
}

static bool has(const struct model_folder_tokens *f, const char *name)
{
    struct gguf_map map;
    bool found = false;
    (void)safetensors_map_json(&map, f->path, name, &found, NULL);
    gguf_map_close(&map);
    return found;
}

/** What the folder has instead of tokenizer.json, and what to do. */
static enum status refuse_without(const struct model_folder_tokens *f, struct status_why *why)
{
    static const char *const others[] = {"tekken.json", "tiktoken.model", "vocab.json", "vocab.txt",
                                         "spiece.model"};
    const char *found = NULL;
    for (size_t i = 0; !found && i < sizeof others / sizeof *others; i++)
        found = has(f, others[i]) ? others[i] : NULL;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: has %s%sno tokenizer.json or " MODEL_SENTENCEPIECE
                       ", the forms of tokens that are read; expected one, or --tokenizer "
                       "FILE.gguf, any GGUF file of the same model",
                       f->path, found ? found : "", found ? " and " : "");
}

enum status model_tokens_read(struct model_folder_tokens *f, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (int i = 0; i < MODEL_N_JSON && !status; i++) {
        struct gguf_map map;
        bool found = false;
        if (i == MODEL_JSON_ADDED && !f->pieces.is_used)
            continue;
        status = safetensors_map_json(&map, f->path, names[i], &found, why);
        if (!status && found)
            status = parse(f, (enum model_folder_json)i, &map, why);
        else if (!status && i == MODEL_JSON_TOKENIZER) {
            f->pieces.is_used = has(f, MODEL_SENTENCEPIECE);
            status = f->pieces.is_used ? STATUS_OK : refuse_without(f, why);
        }
        gguf_map_close(&map);
    }
    return status;
}

enum status model_tokens_text(const struct model_folder_tokens *f, const char *name, char **out,
                              struct status_why *why)
{
    struct gguf_map map;
    bool found = false;
    *out = NULL;
    enum status status = safetensors_map_json(&map, f->path, name, &found, why);
    if (!status && found && memchr(map.data, '\0', map.n_bytes))
        status = status_fail(why, STATUS_FORMAT, "%s: %s: has the character U+0000", f->path, name);
    else if (!status && found && !(*out = strndup(map.data, map.n_bytes)))
        status = status_fail(why, STATUS_MEMORY, "%s: %s: no memory", f->path, name);
    gguf_map_close(&map);
    return status;
}
