/** How the fuzz targets of the tokenizers turn bytes into a vocabulary and a text. */
#ifndef TESTS_FUZZ_TOKENIZER_INPUT_H
#define TESTS_FUZZ_TOKENIZER_INPUT_H

#include "model/tokenizer/tokenizer.h"
#include "tests/harness/gguf_writer.h"
#include "tests/harness/require.h"

/** What is left of the input; reading past its end gives zeros and empty strings. */
struct input {
    const uint8_t *p, *end;
};

uint8_t input_byte(struct input *in);
/** A length byte modulo limit, then that many bytes. */
struct base_string input_string(struct input *in, size_t limit);

enum { TOKENS_LIMIT = 512 };

/** A vocabulary in the making; no two tokens are equal. */
struct tokens {
    struct base_string text[TOKENS_LIMIT];
    float scores[TOKENS_LIMIT];
    int32_t types[TOKENS_LIMIT];
    size_t n;
    uint16_t first[256], next[TOKENS_LIMIT]; /* chains of tokens that look alike, by index + 1 */
    char bytes[1 << 15];
    size_t n_bytes;
};

/** Add a token unless it is empty, there already, or beyond the limits; returns its id or -1. */
int32_t tokens_add(struct tokens *t, struct base_string text, float score,
                   enum model_token_type type);
int32_t tokens_find(const struct tokens *t, struct base_string text);
void tokens_write(const struct tokens *t, struct gguf_writer *w);

enum { MERGES_LIMIT = 64 };

struct merges {
    struct base_string text[MERGES_LIMIT]; /* "left right" */
    char bytes[MERGES_LIMIT][128];
    size_t n;
};

/** Merges of tokens that the input picks; what they make is added to the vocabulary. */
void merges_make(struct merges *m, struct tokens *t, struct input *in);

enum { INPUT_BOS = 1 };
/** A vocabulary of bytes, and a few words; texts begin with BOS. Kept from one input to the next.
 */
const struct model_tokenizer *input_vocabulary(void);

/** Finish the file and open a tokenizer on it; *data and *file are the caller's to release. */
struct model_tokenizer *input_open(struct gguf_writer *w, void **data, struct gguf_file **file);

/**
 * The other way in: the input is a GGUF file as it stands. Opened if it can be, it must then
 * tokenize; the sentence of a refusal must be one line.
 */
void input_as_file(struct input in);

/** Tokenize twice: the same ids, all in range. The caller frees ids. */
struct model_tokens input_tokenize(const struct model_tokenizer *t, struct input text,
                                   bool parse_special);

/** The bytes of the tokens, one after the other; the caller frees them. */
char *input_spelled(const struct model_tokenizer *t, const struct model_tokens *ids,
                    size_t *n_bytes);

#endif
