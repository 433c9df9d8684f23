/* What JSON files of a folder say of special tokens. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/content/text.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "base/text/printable.h"
#include "clients/conversion/keys.h"

enum { MAX_BYTES = 100 << 20 };

struct texts {
    struct conv_result *out;
    const struct gguf_file *file, *folder;
    bool listed; /* the folder's tokens were compared, so added ones are not looked at again */
    cJSON *config, *generation, *tokenizer; /* NULL: there is no such file */
    struct base_string *tokens;             /* of the file */
    const struct gguf_kv *token_kv, *types;
};

struct base_text conv_read_file(struct conv_result *out, const struct gguf_file *folder,
                                const char *name)
{
    struct base_text text = {0};
    struct status_why why;
    char path[BASE_PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s", gguf_path(folder), name);
    enum status status =
        access(path, F_OK) == 0 ? base_text_read_whole(&text, path, MAX_BYTES, &why) : STATUS_OK;
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    return text;
}

cJSON *conv_read_json(struct conv_result *out, const struct gguf_file *folder, const char *name)
{
    struct base_text text = conv_read_file(out, folder, name);
    struct base_json_reader json = {.file = name};
    if (text.n_bytes > 0)
        base_json_open(&json, text.data, text.n_bytes);
    if (json.status)
        status_keep(&out->kept, json.status, "%s: %s", gguf_path(folder), json.why.text);
    base_text_free(&text);
    return json.root;
}

/** A text, or the member `content` of an object. */
static const char *text_of(const cJSON *item)
{
    return cJSON_GetStringValue(cJSON_IsObject(item) ? base_json_member(item, "content") : item);
}

/** The token of an id; NULL data: there is none. */
static struct base_string token_of(const struct texts *t, uint64_t id)
{
    return id < t->token_kv->count ? t->tokens[id] : (struct base_string){NULL, 0};
}

/** Whether a token has a text; files may have U+2581 for blanks, as SentencePiece has. */
static bool is_token(struct base_string token, const char *text)
{
    static const char blank[] = "\xe2\x96\x81";
    size_t at = 0, n = sizeof blank - 1;
    while (*text && at < token.n_bytes) {
        bool is_blank = token.n_bytes - at >= n && memcmp(token.data + at, blank, n) == 0;
        bool wanted = strncmp(text, blank, n) == 0;
        if (is_blank && (wanted || *text == ' ')) {
            at += n;
            text += wanted ? n : 1;
        } else if (wanted && token.data[at] == ' ') {
            at++;
            text += n;
        } else if (token.data[at++] != *text++)
            return false;
    }
    return !*text && at == token.n_bytes;
}

/** Whether a member has this number, alone or in a list. */
static bool has_id(const cJSON *item, uint64_t id)
{
    if (!cJSON_IsArray(item))
        return cJSON_IsNumber(item) && item->valuedouble == (double)id;
    bool has = false;
    for (const cJSON *one = item->child; one; one = one->next)
        has |= cJSON_IsNumber(one) && one->valuedouble == (double)id;
    return has;
}

/** The id of a special token, where config.json and generation_config.json alone know it. */
static void compare_id(const struct texts *t, const char *key, const char *name, uint64_t id)
{
    const cJSON *said[] = {base_json_member(t->config, name),
                           base_json_member(base_json_member(t->config, "text_config"), name),
                           base_json_member(t->generation, name)};
    bool known = false, right = false;
    double expected = 0;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        const cJSON *first = said[i] && cJSON_IsArray(said[i]) ? said[i]->child : said[i];
        if (!first || !cJSON_IsNumber(first))
            continue;
        expected = known ? expected : first->valuedouble;
        known = true;
        right |= has_id(said[i], id);
    }
    char texts[2][CONV_VALUE_BYTES];
    snprintf(texts[0], sizeof *texts, "%.0f", expected);
    snprintf(texts[1], sizeof *texts, "%" PRIu64, id);
    t->out->n_tokens += known;
    if (known && !right)
        conv_differ_text(t->out, CONV_TOKEN, key, texts[0], texts[1]);
}

/** The beginning, end or padding token: "bos", "eos", "padding". */
static void compare_special(const struct texts *t, const char *key, const char *member_name,
                            const char *id_name)
{
    const char *expected = text_of(base_json_member(t->tokenizer, member_name));
    uint32_t id = 0;
    bool found = false;
    if (gguf_get_u32(t->file, key, &id, &found, NULL)) {
        conv_differ_text(t->out, CONV_TOKEN, key, "a token", "no number");
        return;
    }
    if (!expected && found)
        compare_id(t, key, id_name, id);
    if (!expected)
        return;
    t->out->n_tokens++;
    struct base_string token = found ? token_of(t, id) : (struct base_string){NULL, 0};
    if (!found && strcmp(id_name, "pad_token_id") != 0)
        conv_differ_text(t->out, CONV_TOKEN, key, expected, "absent");
    else if (found && !(token.data && is_token(token, expected)))
        conv_differ(t->out, CONV_TOKEN, key, (struct base_string){expected, strlen(expected)},
                    token);
}

static void compare_flag(const struct texts *t, const char *key, const char *name)
{
    static const char *const words[] = {"false", "true"};
    const cJSON *expected = base_json_member(t->tokenizer, name);
    bool found = false, value = false;
    if (!cJSON_IsBool(expected) || gguf_get_bool(t->file, key, &value, &found, NULL) || !found)
        return;
    t->out->n_tokens++;
    if (value != cJSON_IsTrue(expected))
        conv_differ_text(t->out, CONV_TOKEN, key, words[!value], words[value]);
}

/** Special tokens that are listed: each must be there, and be no ordinary token. */
static void compare_added(const struct texts *t)
{
    enum { NORMAL = 1, UNUSED = 5, BYTE = 6 };
    const struct gguf_tensor *embedding = gguf_tensor_find(t->folder, "token_embd.weight");
    const cJSON *added = base_json_member(t->tokenizer, "added_tokens_decoder");
    for (const cJSON *item = cJSON_IsObject(added) ? added->child : NULL; item; item = item->next) {
        char key[CONV_KEY_BYTES], *end;
        uint64_t id = strtoull(item->string, &end, 10);
        const char *text = text_of(item);
        if (*end || !text || (embedding && id >= embedding->ne[1]))
            continue;
        struct base_string token = token_of(t, id), expected = {text, strlen(text)};
        bool typed = t->types && id < t->types->count && gguf_value_is_int(t->types->element_type);
        int64_t type = typed ? gguf_kv_int(t->types, id) : 0;
        t->out->n_tokens++;
        snprintf(key, sizeof key, "tokenizer.ggml.tokens[%" PRIu64 "]", id);
        if (!token.data || !is_token(token, text))
            conv_differ(t->out, CONV_TOKEN, key, expected, token);
        else if (cJSON_IsTrue(base_json_member(item, "special")) &&
                 (type == NORMAL || type >= UNUSED)) {
            char found[CONV_VALUE_BYTES];
            snprintf(found, sizeof found, "an ordinary token (type %" PRId64 ")", type);
            snprintf(key, sizeof key, "tokenizer.ggml.token_type[%" PRIu64 "]", id);
            conv_differ_text(t->out, CONV_TOKEN, key, "a special token", found);
        }
    }
}

/** A token for each row of the embedding. */
static void compare_size(const struct texts *t)
{
    const struct gguf_tensor *embedding = gguf_tensor_find(t->folder, "token_embd.weight");
    char texts[2][CONV_VALUE_BYTES];
    if (!embedding || embedding->ne[1] == t->token_kv->count)
        return;
    snprintf(texts[0], sizeof *texts, "%" PRIu64 " entries", embedding->ne[1]);
    snprintf(texts[1], sizeof *texts, "%" PRIu64 " entries", t->token_kv->count);
    conv_differ_text(t->out, CONV_TOKEN, "tokenizer.ggml.tokens", texts[0], texts[1]);
}

static void compare_all(const struct texts *t)
{
    static const struct {
        const char *key, *name, *id;
    } specials[] = {{"tokenizer.ggml.bos_token_id", "bos_token", "bos_token_id"},
                    {"tokenizer.ggml.eos_token_id", "eos_token", "eos_token_id"},
                    {"tokenizer.ggml.padding_token_id", "pad_token", "pad_token_id"}};
    compare_size(t);
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
        compare_special(t, specials[i].key, specials[i].name, specials[i].id);
    compare_flag(t, "tokenizer.ggml.add_bos_token", "add_bos_token");
    compare_flag(t, "tokenizer.ggml.add_eos_token", "add_eos_token");
    if (!t->listed)
        compare_added(t);
}

void conv_compare_texts(struct conv_result *out, const struct conv_options *options)
{
    struct status_why why;
    struct texts t = {
        .out = out, .file = options->file, .folder = options->folder, .listed = options->tokens};
    t.token_kv = gguf_kv_find(t.file, "tokenizer.ggml.tokens");
    t.types = gguf_kv_find(t.file, "tokenizer.ggml.token_type");
    if (!gguf_is_folder(t.folder))
        return;
    if (!t.token_kv || t.token_kv->element_type != GGUF_VALUE_STRING) {
        conv_differ_text(out, CONV_TOKEN, "tokenizer.ggml.tokens", "present", "absent");
        return;
    }
    enum status status = gguf_kv_strings(t.token_kv, &t.tokens, &why);
    if (status)
        status_keep(&out->kept, status, "%s", why.text);
    t.config = conv_read_json(out, t.folder, "config.json");
    t.generation = conv_read_json(out, t.folder, "generation_config.json");
    t.tokenizer = conv_read_json(out, t.folder, "tokenizer_config.json");
    if (!out->kept.status)
        compare_all(&t);
    free(t.tokens);
    cJSON_Delete(t.config);
    cJSON_Delete(t.generation);
    cJSON_Delete(t.tokenizer);
}
