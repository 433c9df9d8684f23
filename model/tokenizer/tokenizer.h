/**
 * Text to token ids and back, as a GGUF file's tokenizer.ggml.* keys describe it.
 * Works on vocabulary-only files and on any architecture. Immutable after opening.
 */
#ifndef MODEL_TOKENIZER_TOKENIZER_H
#define MODEL_TOKENIZER_TOKENIZER_H

#include "gguf/meta.h"

struct model_tokenizer;

/** Token types as stored. */
enum model_token_type {
    MODEL_TOKEN_NORMAL = 1,
    MODEL_TOKEN_UNKNOWN = 2,
    MODEL_TOKEN_CONTROL = 3,
    MODEL_TOKEN_USER_DEFINED = 4,
    MODEL_TOKEN_UNUSED = 5,
    MODEL_TOKEN_BYTE = 6
};

/** A growable list of ids that the caller owns; zero-initialise, release with free(ids). */
struct model_tokens {
    int32_t *ids;
    size_t n, capacity;
    size_t n_dropped; /* bytes of texts that no token stands for; model_tokenize adds them */
};

/** Append a token. Fails: STATUS_MEMORY. */
enum status model_tokens_add(struct model_tokens *tokens, int32_t id, struct status_why *why);

/** How many tokens both lists begin with. */
size_t model_tokens_common(const struct model_tokens *a, const struct model_tokens *b);

/**
 * Read and check the vocabulary.
 * pre: overrides tokenizer.ggml.pre (NULL: the file's; the only value that SentencePiece and
 *      gemma4 take). as_llama_cpp: cut texts as llama.cpp does where it departs from what the
 *      model's authors published. `file` must outlive the result.
 * Fails: STATUS_FORMAT (missing keys, arrays of unequal length, duplicate tokens, ids out of
 *        range), STATUS_UNSUPPORTED (tokenizer model or pre-tokeniser; names the known ones),
 *        STATUS_USAGE (pre for one that has none), STATUS_MEMORY.
 */
enum status model_tokenizer_open(struct model_tokenizer **out, const struct gguf_file *file,
                                 const char *pre, bool as_llama_cpp, struct status_why *why);
void model_tokenizer_close(struct model_tokenizer *t);

/**
 * Append the ids of a text (any bytes, invalid UTF-8 and NUL included), without BOS or EOS.
 * parse_special: also recognise control tokens in the text.
 * Cost: O(n log n) at worst, linear in practice; 100 MB in under 30 s.
 */
enum status model_tokenize(const struct model_tokenizer *t, const char *text, size_t n_bytes,
                           bool parse_special, struct model_tokens *out, struct status_why *why);

size_t model_n_vocab(const struct model_tokenizer *t);
/** "spm" or "bpe", and the pre-tokeniser's name ("" for spm, "gemma4" for that model). */
const char *model_tokenizer_kind(const struct model_tokenizer *t);
const char *model_tokenizer_pre(const struct model_tokenizer *t);
/** Ids of special tokens; -1 where the vocabulary has none. */
int32_t model_token_bos(const struct model_tokenizer *t);
int32_t model_token_eos(const struct model_tokenizer *t);
int32_t model_token_unknown(const struct model_tokenizer *t);
/** Whether texts begin with BOS, after defaults. Adding it is the caller's job. */
bool model_adds_bos(const struct model_tokenizer *t);
/** Whether texts end with EOS, which no evaluation adds. */
bool model_adds_eos(const struct model_tokenizer *t);
/**
 * Append what a text of its own begins with: BOS, where texts begin with it; the tokens that a
 * tokenizer.json puts there, where these are several (a window has one place for BOS and does not
 * get them).   Fails: STATUS_MEMORY.
 */
enum status model_begin_text(const struct model_tokenizer *t, struct model_tokens *out,
                             struct status_why *why);

/**
 * The file's chat template (tokenizer.chat_template); empty where it has none.
 * Fails: STATUS_FORMAT (it is no string).
 */
enum status model_tokenizer_chat_template(const struct model_tokenizer *t, struct base_string *text,
                                          struct status_why *why);

enum model_token_type model_token_type(const struct model_tokenizer *t, int32_t id);
/** The token as stored in the vocabulary. */
struct base_string model_token_text(const struct model_tokenizer *t, int32_t id);
/**
 * The bytes that the token stands for in a text (U+2581 as a space, stand-ins as bytes, byte
 * tokens as one byte). Writes at most `capacity` bytes; returns how many there are.
 */
size_t model_token_bytes(const struct model_tokenizer *t, int32_t id, char *bytes, size_t capacity);

/**
 * How many bytes of a tokenised text a token stands for, where the text goes on with the n_left
 * bytes at `text`. A space that was put in front counts 0; U+2581 in the text counts its 3 bytes,
 * white space that a special token swallows is the token's, and the unknown token has a
 * character. Bytes that were left out in front of a token are its own. Bytes that the text does not
 * go on with (repaired UTF-8) count as they are.
 */
size_t model_token_span(const struct model_tokenizer *t, int32_t id, const char *text,
                        size_t n_left);

#endif
