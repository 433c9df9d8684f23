/**
 * Pre-tokenisers: how byte-level BPE cuts a text into pieces before it merges bytes.
 * tokenizer.ggml.pre names a list of regular expressions; PCRE2 runs them.
 */
#ifndef MODEL_TOKENIZER_PRETOKENIZER_H
#define MODEL_TOKENIZER_PRETOKENIZER_H

#include <stdbool.h>

#include "gguf/file.h"
#include "model/tokenizer/run.h"

enum { MODEL_PRETOKENIZER_EXPRESSIONS = 6 };

/** What else a name stands for. */
enum model_pretokenizer_flag {
    MODEL_PRE_WHOLE = 1, /* a whole piece that is a token is taken as it is */
    MODEL_PRE_BOS = 2,   /* texts begin with BOS, where the file does not say */
    /* Pieces are merged from characters, and U+2581 stands for a space: as gemma4's. */
    MODEL_PRE_CHARACTERS = 4
};

/** One row of the list of names. */
struct model_pretokenizer_row {
    const char *name;
    unsigned flags; /* of enum model_pretokenizer_flag */
    /* Applied one after the other, each to the pieces that the one before it made: its matches
     * and what lies between them. Where an expression has a group, its matches are cut again: what
     * the group matched is divided from the right, by threes. NULL past the last. */
    const char *expressions[MODEL_PRETOKENIZER_EXPRESSIONS];
};

/** A compiled row; immutable after init. */
struct model_pretokenizer {
    const struct model_pretokenizer_row *row;
    void *codes[MODEL_PRETOKENIZER_EXPRESSIONS]; /* pcre2_code */
    size_t n_codes;
    bool as_llama_cpp;
};

/** The i-th row of the list, NULL past the end. */
const struct model_pretokenizer_row *model_pretokenizer_row_at(size_t i);
/** What llama.cpp has in place of an expression of the list; the same where it agrees. */
const char *model_pretokenizer_in_llama_cpp(const char *expression);
/**
 * PCRE2's expression with the same pieces as a published one, where that one reads a text more
 * often than once; NULL where none is needed.
 */
const char *model_pretokenizer_in_linear_time(const char *published);

/**
 * Compile the expressions of a name: its authors', or with as_llama_cpp llama.cpp's.
 * Fails: STATUS_UNSUPPORTED (unknown name: the sentence lists the known ones), STATUS_MEMORY.
 *        Half-built on failure: release with model_pretokenizer_free in any case.
 */
enum status model_pretokenizer_init(struct model_pretokenizer *p, struct base_string name,
                                    bool as_llama_cpp, struct status_why *why);
void model_pretokenizer_free(struct model_pretokenizer *p);

/** Called for each piece, from left to right; together they are the whole text. */
typedef enum status model_piece_fn(void *user, const char *piece, size_t n_bytes);

/**
 * Cut a text of well-formed UTF-8. run: its PCRE2 scratch is made on the first call.
 * Returns the first failure of `fn`; STATUS_MEMORY; STATUS_UNSUPPORTED where PCRE2 gives up.
 * Cost: O(n_bytes); no memory in proportion to the text.
 */
enum status model_pretokenizer_split(const struct model_pretokenizer *p, struct model_tok_run *run,
                                     const char *text, size_t n_bytes, model_piece_fn *fn,
                                     void *user);
#endif
