#include "model/tokenizer/vocab.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/quote.h"
#include "model/tokenizer/tokenizer.h"

bool model_string_is(struct base_string s, const char *literal)
{
    return s.n_bytes == strlen(literal) && memcmp(s.data, literal, s.n_bytes) == 0;
}

/**
 * Names that make a token a control token, whatever type the file gives it: ends of a turn or
 * of the text, and the marks of fill-in-the-middle. Files are often wrong about these, and
 * evaluations elsewhere follow this rule of names.
 */
static const char *const control_names[] = {
    "</s>",
    "<eos>",
    "<EOT>",
    "_<EOT>",
    "[EOT]",
    "[EOS]",
    "<|endoftext|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|im_end|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<end_of_turn>",
    "<end_of_utterance>",
    "<turn|>",
    "<|return|>",
    "<|call|>",
    "<|calls|>",
    "<|flush|>",
    "<|tool_response>",
    "<\357\275\234end\342\226\201of\342\226\201sentence\357\275\234>",
    /* fill in the middle: prefix, suffix, middle, padding, repository, file */
    "<|fim_prefix|>",
    "<fim-prefix>",
    "<fim_prefix>",
    "<PRE>",
    "\342\226\201<PRE>",
    "<|code_prefix|>",
    "<|prefix|>",
    "<\357\275\234fim\342\226\201begin\357\275\234>",
    "<|fim_suffix|>",
    "<fim-suffix>",
    "<fim_suffix>",
    "<SUF>",
    "\342\226\201<SUF>",
    "<|code_suffix|>",
    "<|suffix|>",
    "<\357\275\234fim\342\226\201hole\357\275\234>",
    "<|fim_middle|>",
    "<fim-middle>",
    "<fim_middle>",
    "<MID>",
    "\342\226\201<MID>",
    "<|code_middle|>",
    "<|middle|>",
    "<\357\275\234fim\342\226\201end\357\275\234>",
    "<|fim_pad|>",
    "<fim-pad>",
    "<fim_pad>",
    "<PAD>",
    "[PAD]",
    "<|fim_repo|>",
    "<|repo_name|>",
    "<fim-repo>",
    "<REPO>",
    "<reponame>",
    "<|file_sep|>",
};

/** Names that are recognised always, whatever type the file gives them. */
static const char *const always_names[] = {"<|channel|>", "<|message|>", "<|start|>",
                                           "<|constrain|>"};

const char *model_vocab_kind_name(enum model_vocab_kind kind)
{
    static const char *const names[] = {
        [MODEL_VOCAB_SPM] = "llama", [MODEL_VOCAB_GEMMA4] = "gemma4", [MODEL_VOCAB_BPE] = "gpt2"};
    return names[kind];
}

static int32_t find_name(const struct model_vocab *v, const char *name)
{
    return base_strtab_find(&v->index, (struct base_string){name, strlen(name)});
}

int32_t model_vocab_find(const struct model_vocab *v, const char *bytes, size_t n_bytes)
{
    return n_bytes > v->max_bytes
               ? -1
               : base_strtab_find(&v->index, (struct base_string){bytes, n_bytes});
}

enum status model_vocab_fail_byte(const struct model_vocab *v, uint8_t byte, struct status_why *why)
{
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: key tokenizer.ggml.tokens has no token for the byte 0x%02X of the "
                       "text, and there is no unknown token (key tokenizer.ggml.unknown_token_id)",
                       gguf_path(v->file), byte);
}

enum status model_vocab_array(const struct gguf_kv **out, const struct gguf_file *file,
                              const char *key, bool required, size_t count, struct status_why *why)
{
    *out = NULL;
    const struct gguf_kv *kv = gguf_kv_find(file, key);
    if (!kv && !required)
        return STATUS_OK;
    if (!kv)
        return status_fail(why, STATUS_FORMAT, "%s: key %s is missing", gguf_path(file), key);
    if (kv->type != GGUF_VALUE_ARRAY)
        return status_fail(why, STATUS_FORMAT, "%s: key %s is of type %s; expected an array",
                           gguf_path(file), key, gguf_value_type_name(kv->type));
    if (count > 0 && kv->count != count)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key %s has %" PRIu64 " %s; expected %zu, as many as "
                           "tokenizer.ggml.tokens",
                           gguf_path(file), key, kv->count, kv->count == 1 ? "entry" : "entries",
                           count);
    *out = kv;
    return STATUS_OK;
}

static enum status read_tokens(struct model_vocab *v, const struct gguf_file *file,
                               struct status_why *why)
{
    static const char key[] = "tokenizer.ggml.tokens";
    const struct gguf_kv *kv;
    enum status status = model_vocab_array(&kv, file, key, true, 0, why);
    if (status)
        return status;
    if (kv->element_type != GGUF_VALUE_STRING || kv->count == 0 || kv->count > INT32_MAX)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key %s is an array of %" PRIu64 " entries of type %s; expected 1 "
                           "to 2147483647 strings",
                           gguf_path(file), key, kv->count, gguf_value_type_name(kv->element_type));
    struct base_string *texts = NULL;
    status = base_strtab_reserve(&v->index, kv->count, why);
    if (!status)
        status = gguf_kv_strings(kv, &texts, why);
    for (size_t i = 0; !status && i < kv->count; i++) {
        int32_t id;
        status = base_strtab_add(&v->index, texts[i], &id, why);
        if (!status && (size_t)id < i)
            status =
                status_fail(why, STATUS_FORMAT,
                            "%s: key %s: entries %d and %zu are equal; expected distinct strings",
                            gguf_path(file), key, id, i);
        v->max_bytes = base_max(v->max_bytes, texts[i].n_bytes);
    }
    free(texts);
    v->text = v->index.strings;
    v->n = v->index.n;
    return status;
}

static enum status read_types(struct model_vocab *v, const struct gguf_file *file,
                              struct status_why *why)
{
    static const char key[] = "tokenizer.ggml.token_type";
    const struct gguf_kv *kv;
    enum status status = model_vocab_array(&kv, file, key, false, v->n, why);
    if (status)
        return status;
    v->type = malloc(v->n);
    v->recognition = malloc(v->n);
    if (!v->type || !v->recognition)
        return status_fail(why, STATUS_MEMORY, "cannot allocate the types of %zu tokens", v->n);
    memset(v->type, MODEL_TOKEN_NORMAL, v->n);
    if (!kv)
        return STATUS_OK;
    if (!gguf_value_is_int(kv->element_type))
        return status_fail(why, STATUS_FORMAT, "%s: key %s is an array of %s; expected integers",
                           gguf_path(file), key, gguf_value_type_name(kv->element_type));
    for (size_t i = 0; i < v->n; i++) {
        int64_t type = gguf_kv_int(kv, i);
        if (type < MODEL_TOKEN_NORMAL || type > MODEL_TOKEN_BYTE)
            return status_fail(why, STATUS_FORMAT,
                               "%s: key %s: entry %zu is %" PRId64 "; expected 1 to 6",
                               gguf_path(file), key, i, type);
        v->type[i] = (uint8_t)type;
    }
    return STATUS_OK;
}

/** Gemma's tags of HTML are user-defined; </s> is one of them there, and no end of a text. */
static bool is_tag(const struct model_vocab *v, int32_t id)
{
    return v->type[id] == MODEL_TOKEN_USER_DEFINED && id != v->eos &&
           model_string_is(v->text[id], "</s>");
}

static void decide_recognition(struct model_vocab *v, bool as_llama_cpp)
{
    for (size_t i = 0; i < v->n; i++)
        v->recognition[i] = v->type[i] == MODEL_TOKEN_USER_DEFINED ? MODEL_RECOGNISED_ALWAYS
                            : v->type[i] == MODEL_TOKEN_CONTROL || v->type[i] == MODEL_TOKEN_UNKNOWN
                                ? MODEL_RECOGNISED_ON_REQUEST
                                : MODEL_RECOGNISED_NEVER;
    for (size_t k = 0; k < sizeof control_names / sizeof *control_names; k++) {
        int32_t id = find_name(v, control_names[k]);
        if (id >= 0 && (as_llama_cpp || !is_tag(v, id)))
            v->recognition[id] = MODEL_RECOGNISED_ON_REQUEST;
    }
    for (size_t k = 0; k < sizeof always_names / sizeof *always_names; k++) {
        int32_t id = find_name(v, always_names[k]);
        if (id >= 0)
            v->recognition[id] = MODEL_RECOGNISED_ALWAYS;
    }
}

static bool contains_ignoring_case(struct base_string s, const char *word)
{
    size_t n = strlen(word);
    for (size_t i = 0; i + n <= s.n_bytes; i++)
        if (strncasecmp(s.data + i, word, n) == 0)
            return true;
    return false;
}

/**
 * Phi-3 was trained with white space dropped after its special tokens. No key says so: the
 * model's name is the only sign.
 */
static enum status decide_eaten_space(struct model_vocab *v, const struct gguf_file *file,
                                      struct status_why *why)
{
    struct base_string name = {0};
    bool found = false;
    enum status status = gguf_get_string(file, "general.name", &name, &found, why);
    if (status)
        return status;
    if (!found || !(contains_ignoring_case(name, "phi-3") || contains_ignoring_case(name, "phi3")))
        return STATUS_OK;
    if (base_array_new(v->eats_space, v->n, "tokens", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < v->n; i++)
        v->eats_space[i] = v->recognition[i] != MODEL_RECOGNISED_NEVER;
    static const char *const exceptions[] = {"<unk>", "<s>", "<|endoftext|>"};
    for (size_t k = 0; k < sizeof exceptions / sizeof *exceptions; k++) {
        int32_t id = find_name(v, exceptions[k]);
        if (id >= 0)
            v->eats_space[id] = false;
    }
    return STATUS_OK;
}

/** An optional id; *id holds the default, or -1. A default beyond the vocabulary does not count. */
static enum status read_id(int32_t *id, const struct model_vocab *v, const struct gguf_file *file,
                           const char *key, struct status_why *why)
{
    uint32_t value = 0;
    bool found = false;
    enum status status = gguf_get_u32(file, key, &value, &found, why);
    if (status)
        return status;
    if (found && value >= v->n)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key %s is %u; expected an id below %zu, the number of tokens",
                           gguf_path(file), key, value, v->n);
    if (found)
        *id = (int32_t)value;
    else if (*id >= 0 && (size_t)*id >= v->n)
        *id = -1;
    return STATUS_OK;
}

static enum status read_special(struct model_vocab *v, const struct gguf_file *file,
                                struct status_why *why)
{
    bool spm = v->kind == MODEL_VOCAB_SPM;
    v->bos = spm ? 1 : -1;
    v->eos = spm ? 2 : -1;
    v->unknown = spm ? 0 : -1;
    v->add_bos = v->kind != MODEL_VOCAB_BPE;
    v->add_space_prefix = spm;
    enum status status = read_id(&v->bos, v, file, "tokenizer.ggml.bos_token_id", why);
    if (!status)
        status = read_id(&v->eos, v, file, "tokenizer.ggml.eos_token_id", why);
    if (!status)
        status = read_id(&v->unknown, v, file, "tokenizer.ggml.unknown_token_id", why);
    if (!status)
        status = gguf_get_bool(file, "tokenizer.ggml.add_bos_token", &v->add_bos,
                               &v->add_bos_stated, why);
    bool stated;
    if (!status)
        status = gguf_get_bool(file, "tokenizer.ggml.add_eos_token", &v->add_eos, &stated, why);
    if (!status && spm)
        status = gguf_get_bool(file, "tokenizer.ggml.add_space_prefix", &v->add_space_prefix,
                               &stated, why);
    return status;
}

enum status model_vocab_init(struct model_vocab *v, const struct gguf_file *file, bool as_llama_cpp,
                             struct status_why *why)
{
    *v = (struct model_vocab){.file = file};
    struct base_string kind;
    struct base_quoted quoted;
    enum status status = gguf_get_string(file, "tokenizer.ggml.model", &kind, NULL, why);
    if (status)
        return status;
    while (v->kind <= MODEL_VOCAB_BPE && !model_string_is(kind, model_vocab_kind_name(v->kind)))
        v->kind++;
    if (v->kind > MODEL_VOCAB_BPE)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: key tokenizer.ggml.model is %s; supported are llama "
                           "(SentencePiece), gpt2 (byte-level BPE) and gemma4 (BPE of characters)",
                           gguf_path(file), base_quote(&quoted, kind));
    status = read_tokens(v, file, why);
    if (!status)
        status = read_types(v, file, why);
    if (!status)
        status = read_special(v, file, why);
    if (status)
        return status;
    decide_recognition(v, as_llama_cpp);
    return decide_eaten_space(v, file, why);
}

void model_vocab_free(struct model_vocab *v)
{
    free(v->type);
    free(v->recognition);
    free(v->eats_space);
    base_strtab_free(&v->index);
    *v = (struct model_vocab){0};
}
