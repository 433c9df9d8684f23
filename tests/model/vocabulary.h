/** Small vocabularies in memory, and tokenizers opened on them. */
#ifndef TESTS_MODEL_VOCABULARY_H
#define TESTS_MODEL_VOCABULARY_H

#include "model/tokenizer/tokenizer.h"
#include "tests/harness/gguf_writer.h"

enum { VOCABULARY_LIMIT = 1024, VOCABULARY_ABSENT = -1, VOCABULARY_BYTES = 1 << 16 };

/** What will become the tokenizer.ggml.* keys; change the fields freely before opening. */
struct vocabulary {
    const char *model, *pre, *name; /* NULL: no such key */
    struct base_string tokens[VOCABULARY_LIMIT];
    float scores[VOCABULARY_LIMIT];
    int32_t types[VOCABULARY_LIMIT];
    size_t n_tokens;
    size_t n_scores, n_types; /* as written; follow n_tokens unless changed */
    struct base_string merges[VOCABULARY_LIMIT];
    size_t n_merges;
    bool has_merges;                        /* the key exists, be it empty */
    bool whole_scores;                      /* they are written as integers */
    bool llama_compat;                      /* open it as llama.cpp reads it */
    int bos, eos, unknown;                  /* VOCABULARY_ABSENT: no such key */
    int add_bos, add_eos, add_space_prefix; /* likewise */
    char bytes[VOCABULARY_BYTES];           /* of the strings */
    size_t n_bytes;
};

/** tokenizer.ggml.model = "llama": <unk>, <s>, </s> and the 256 byte tokens. */
void vocabulary_spm(struct vocabulary *v);
/** tokenizer.ggml.model = "gpt2", pre = "gpt-2": the 256 stand-ins, id = byte. No BOS. */
void vocabulary_bpe(struct vocabulary *v);

/** Add a token; returns its id. */
int32_t vocabulary_add(struct vocabulary *v, const char *text, float score,
                       enum model_token_type type);
int32_t vocabulary_add_bytes(struct vocabulary *v, const char *bytes, size_t n_bytes, float score,
                             enum model_token_type type);
/** Add the merge "left right" and, unless it is there, the token that it makes; returns its id. */
int32_t vocabulary_merge(struct vocabulary *v, const char *left, const char *right);
/** Id of a token, -1 if there is none. */
int32_t vocabulary_find(const struct vocabulary *v, const char *bytes, size_t n_bytes);

/** The stand-in of a byte in GPT-2's table, UTF-8 with a NUL. */
void vocabulary_stand_in(uint8_t byte, char out[3]);

/** A tokenizer and what it stands on; release with opened_close, also after a failure. */
struct opened {
    void *data;
    struct gguf_file *file;
    struct model_tokenizer *tokenizer;
};

/** Write the vocabulary, read it back, open it. Only the last step may fail without an abort. */
enum status vocabulary_open(struct opened *o, const struct vocabulary *v, const char *pre,
                            struct status_why *why);
/** Open a vocabulary that must be good: fails the running test otherwise. */
struct opened vocabulary_opened(const struct vocabulary *v);
void opened_close(struct opened *o);

/** Tokenize; fails the running test where that fails. The caller frees ids. */
struct model_tokens opened_encode(const struct opened *o, const char *text, size_t n_bytes,
                                  bool parse_special);
/** Fails the running test unless the ids of a text are exactly these. */
void opened_expect(const struct opened *o, const char *text, size_t n_bytes, bool parse_special,
                   const int32_t *expected, size_t n_expected);

#endif
