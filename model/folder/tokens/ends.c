/* What texts begin and end with, and the chat templates. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/folder/tokens/state.h"

/* More than any published template puts in front of a text. */
enum { MAX_BEFORE = 64 };

/** What the post-processor puts around a text. */
struct around {
    size_t n_before, n_after;
    int32_t before[MAX_BEFORE], after; /* ids; of the last after it, or -1 */
};

static enum status refuse_type(const struct model_folder_tokens *f, const char *name,
                               struct status_why *why)
{
    struct base_quoted shown;
    return model_tokens_fail(
        f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
        "post_processor.type %s, expected one of Sequence, TemplateProcessing, ByteLevel",
        base_quote(&shown, (struct base_string){name, strlen(name)}));
}

/**
 * Append the ids of a template's special token: those that the template gives it, which are what
 * the library puts there.
 */
static enum status read_special(const struct model_folder_tokens *f, struct base_field processor,
                                const char *name, struct around *around, struct status_why *why)
{
    /* A name may have dots, which part a path. */
    const cJSON *tokens = base_field_get(processor, "special_tokens").json;
    const cJSON *given = cJSON_GetObjectItemCaseSensitive(tokens, name);
    const cJSON *ids = base_field_get((struct base_field){processor.reader, given, 0}, "ids").json;
    struct base_quoted shown;
    base_quote(&shown, (struct base_string){name, strlen(name)});
    if (!cJSON_IsArray(ids))
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "post_processor.special_tokens has no ids of %s, which single "
                                 "names; expected them",
                                 shown.text);
    for (const cJSON *id = ids->child; id; id = id->next) {
        double value = cJSON_IsNumber(id) ? id->valuedouble : -1;
        if (!(value >= 0 && value < (double)f->n && value == floor(value)))
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                     "post_processor.special_tokens: %s has the id %.17g, expected "
                                     "a whole number below %zu, the tokens",
                                     shown.text, value, f->n);
        if (around->n_before == MAX_BEFORE)
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                     "post_processor puts more than %d tokens in front of a text, "
                                     "expected at most that",
                                     (int)MAX_BEFORE);
        around->before[around->n_before++] = (int32_t)value;
    }
    return STATUS_OK;
}

/** What a template puts before and after; before what an earlier one has put before. */
static enum status read_template(const struct model_folder_tokens *f, struct base_field processor,
                                 struct around *around, struct status_why *why)
{
    struct base_field single = base_field_find(processor, "single"), item = {0};
    struct around inner = *around;
    enum status status = STATUS_OK;
    bool after = false;
    around->n_before = 0;
    while (!status && base_field_next(single, &item)) {
        const char *id = base_field_string(item, "SpecialToken.id");
        if (!id) {
            after = true;
        } else if (after) {
            around->n_after++;
            around->after = model_tokens_id(f, id);
        } else {
            status = read_special(f, processor, id, around, why);
        }
    }
    for (size_t i = 0; i < inner.n_before && around->n_before < MAX_BEFORE; i++)
        around->before[around->n_before++] = inner.before[i];
    return status;
}

static enum status read_processor(const struct model_folder_tokens *f, struct base_field processor,
                                  bool in_sequence, struct around *around, struct status_why *why)
{
    struct base_field type = base_field_get(processor, "type");
    enum status status = STATUS_OK;
    if (!processor.json || base_field_is(type, "ByteLevel"))
        return STATUS_OK;
    if (base_field_is(type, "TemplateProcessing"))
        return read_template(f, processor, around, why);
    if (in_sequence || !base_field_is(type, "Sequence"))
        return refuse_type(f, cJSON_IsString(type.json) ? type.json->valuestring : "", why);
    struct base_field list = base_field_find(processor, "processors"), item = {0};
    while (!status && base_field_next(list, &item))
        status = read_processor(f, item, true, around, why);
    return status;
}

/** The id that config.json or generation_config.json names; the first of a list. -1: none. */
static int32_t id_in_config(const struct model_folder_tokens *f, const char *member)
{
    const struct base_field objects[] = {f->json[MODEL_JSON_CONFIG],
                                         base_field_get(f->json[MODEL_JSON_CONFIG], "text_config"),
                                         f->json[MODEL_JSON_GENERATION]};
    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++) {
        const cJSON *item = base_field_get(objects[i], member).json;
        item = cJSON_IsArray(item) ? item->child : item;
        double value = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (value >= 0 && value < (double)f->n && value == floor(value))
            return (int32_t)value;
    }
    return -1;
}

/** The id of an end: tokenizer_config.json's, else that of the model's configuration, else that of
 *  tokenizer.model. */
static int32_t find_end(const struct model_folder_tokens *f, const char *token, const char *id,
                        enum model_sentencepiece_member member)
{
    struct base_field item = base_field_get(f->json[MODEL_JSON_TOKENIZER_CONFIG], token);
    const char *text = base_field_string(item, cJSON_IsObject(item.json) ? "content" : "");
    int32_t found = text ? model_tokens_id(f, text) : -1;
    if (found < 0)
        found = id_in_config(f, id);
    return found < 0 && f->pieces.is_used ? (int32_t)f->pieces.said[member] : found;
}

static void write_id(struct model_folder_tokens *f, const char *key, int32_t id)
{
    if (id >= 0)
        gguf_layout_u32(f->layout, key, (uint32_t)id);
}

/** Several tokens in front of a text: what evaluates has one place for BOS. */
static void write_front(struct model_folder_tokens *f, const struct around *around, bool adds_bos)
{
    const struct gguf_kv pair = {.key = {MODEL_DECLARED_FRONT, strlen(MODEL_DECLARED_FRONT)},
                                 .type = GGUF_VALUE_ARRAY,
                                 .element_type = GGUF_VALUE_I32,
                                 .count = around->n_before,
                                 .data = (const uint8_t *)around->before};
    gguf_layout_pair(f->layout, &pair);
    base_buffer_format(
        &f->remarks,
        "tokenizer.json: post_processor puts %zu tokens in front of a text; a window "
        "or a document that is evaluated begins %s, as with a GGUF file\n",
        around->n_before, adds_bos ? "with BOS alone" : "without them");
}

static enum status write_ends(struct model_folder_tokens *f, struct status_why *why)
{
    struct base_field config = f->json[MODEL_JSON_TOKENIZER_CONFIG];
    struct base_field processor = base_field_find(f->json[MODEL_JSON_TOKENIZER], "post_processor");
    struct around around = {.after = -1};
    enum status status = read_processor(f, processor, false, &around, why);
    if (status)
        return status;
    int32_t bos = find_end(f, "bos_token", "bos_token_id", MODEL_PIECES_BOS);
    int32_t eos = find_end(f, "eos_token", "eos_token_id", MODEL_PIECES_EOS);
    bool one = around.n_before == 1;
    bool adds = model_tokens_flag(config, "add_bos_token", one || (f->pieces.is_used && bos >= 0));
    if (one && adds)
        bos = around.before[0];
    if (around.n_before > 1)
        write_front(f, &around, adds);
    write_id(f, "tokenizer.ggml.bos_token_id", bos);
    write_id(f, "tokenizer.ggml.eos_token_id", eos);
    model_tokens_bool(f, "tokenizer.ggml.add_bos_token", adds);
    model_tokens_bool(f, "tokenizer.ggml.add_eos_token",
                      model_tokens_flag(config, "add_eos_token", around.n_after == 1) && eos >= 0);
    const char *unknown = base_field_string(f->model, "unk_token");
    write_id(f, "tokenizer.ggml.unknown_token_id",
             f->pieces.is_used ? (int32_t)f->pieces.said[MODEL_PIECES_UNKNOWN]
             : unknown         ? model_tokens_id(f, unknown)
                               : -1);
    return STATUS_OK;
}

enum status model_tokens_ends(struct model_folder_tokens *f, struct status_why *why)
{
    static const char key[] = "tokenizer.chat_template";
    struct base_field own = base_field_find(f->json[MODEL_JSON_TOKENIZER_CONFIG], "chat_template");
    const char *chosen = base_field_string(own, "");
    char *text;
    enum status status = write_ends(f, why);
    if (!status)
        status = model_tokens_text(f, "chat_template.jinja", &text, why);
    if (status)
        return status;
    for (struct base_field item = {0}; base_field_next(own, &item);)
        if (base_field_is(base_field_get(item, "name"), "default"))
            chosen = base_field_string(item, "template");
    if (text)
        gguf_layout_string(f->layout, key, text);
    else if (chosen)
        gguf_layout_string(f->layout, key, chosen);
    free(text);
    return STATUS_OK;
}
