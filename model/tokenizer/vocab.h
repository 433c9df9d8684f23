/**
 * The vocabulary of a GGUF file: its tokenizer.ggml.* keys, read and checked.
 * What both tokenizers share; the public interface is model/tokenizer/tokenizer.h.
 */
#ifndef MODEL_TOKENIZER_VOCAB_H
#define MODEL_TOKENIZER_VOCAB_H

#include "base/text/strtab.h"
#include "gguf/meta.h"

enum model_vocab_kind {
    MODEL_VOCAB_SPM,    /* tokenizer.ggml.model = llama */
    MODEL_VOCAB_GEMMA4, /* gemma4: the characters of SPM, joined by merges instead of scores */
    MODEL_VOCAB_BPE     /* gpt2 */
};

/** When a token is recognised in the raw text, before anything is split or merged. */
enum model_recognition {
    MODEL_RECOGNISED_NEVER,
    MODEL_RECOGNISED_ON_REQUEST, /* control tokens: with parse_special */
    MODEL_RECOGNISED_ALWAYS      /* user-defined tokens */
};

/** Token strings and types lie in the file's mapping or are owned by the vocabulary. */
struct model_vocab {
    const struct gguf_file *file; /* for sentences */
    enum model_vocab_kind kind;
    size_t n;                       /* tokens */
    const struct base_string *text; /* [n] as stored: the index's */
    uint8_t *type;             /* [n] enum model_token_type as stored; 1 where the file has none */
    uint8_t *recognition;      /* [n] enum model_recognition, after the rule of names */
    bool *eats_space;          /* [n] white space after the recognised token is dropped; or NULL */
    size_t max_bytes;          /* the longest token */
    struct base_strtab index;  /* text -> id */
    int32_t bos, eos, unknown; /* -1: none */
    bool add_bos, add_bos_stated; /* stated: by the file; else the caller puts the default */
    bool add_eos;
    bool add_space_prefix;
};

/**
 * Read everything but scores and merges. The file must outlive the vocabulary.
 * as_llama_cpp: names decide even over a type that is the authors' own.
 * Fails: STATUS_FORMAT (missing key, wrong type, arrays of unequal length, equal tokens, a
 *        type or id out of range), STATUS_UNSUPPORTED (tokenizer.ggml.model), STATUS_MEMORY.
 *        Half-built on failure: release with model_vocab_free in any case.
 */
enum status model_vocab_init(struct model_vocab *v, const struct gguf_file *file, bool as_llama_cpp,
                             struct status_why *why);
void model_vocab_free(struct model_vocab *v);

/** What tokenizer.ggml.model calls a kind. */
const char *model_vocab_kind_name(enum model_vocab_kind kind);

/** Id of the token with exactly these bytes, or -1. */
int32_t model_vocab_find(const struct model_vocab *v, const char *bytes, size_t n_bytes);

/** Say that the text has a byte that no token stands for.   Returns STATUS_UNSUPPORTED. */
enum status model_vocab_fail_byte(const struct model_vocab *v, uint8_t byte,
                                  struct status_why *why);

/**
 * A required or optional array of the vocabulary's length, or NULL in *out where it is absent
 * and optional.   Fails: STATUS_FORMAT.
 */
enum status model_vocab_array(const struct gguf_kv **out, const struct gguf_file *file,
                              const char *key, bool required, size_t count, struct status_why *why);

/** Compare with a C string. */
bool model_string_is(struct base_string s, const char *literal);

#endif
