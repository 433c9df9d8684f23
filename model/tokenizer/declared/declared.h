/**
 * A text cut into pieces as a published tokenizer.json declares it, and its added tokens. The keys
 * tokenizer.declared.* have it (model/folder/ writes them, in memory); merging the pieces is the
 * tokenizer's.
 */
#ifndef MODEL_TOKENIZER_DECLARED_DECLARED_H
#define MODEL_TOKENIZER_DECLARED_DECLARED_H

#include "model/tokenizer/declared/steps.h"
#include "model/tokenizer/special.h"
#include "model/tokenizer/vocab.h"

/** For each token, the key tokenizer.declared.added: 0, or a sum of these. */
enum model_added_flag {
    MODEL_ADDED = 1,             /* recognised in the text */
    MODEL_ADDED_LSTRIP = 2,      /* takes the white space before it, */
    MODEL_ADDED_RSTRIP = 4,      /* after it */
    MODEL_ADDED_SINGLE_WORD = 8, /* not where a letter or the like touches it */
    MODEL_ADDED_NORMALIZED = 16, /* recognised in the normalised text, normalised itself */
    MODEL_ADDED_FLAGS = 31
};

/** The key of the tokens that a text begins with, where these are several. */
#define MODEL_DECLARED_FRONT "tokenizer.declared.front"

/** The longest added token: recognition tries each place of a text with each of its bytes. */
enum { MODEL_ADDED_MAX_BYTES = 1024 };

/** Immutable after init. */
struct model_declared {
    const struct model_vocab *vocab;
    struct model_steps steps;
    const uint8_t *flags; /* [vocab->n]: the file's */
    int32_t *front;       /* [n_front]: what a text begins with instead of BOS */
    size_t n_front;
    struct model_special in_text, in_normalised;
    char *normalised; /* texts of the second set */
    void *word;       /* an expression: one character of a word */
    bool has_declared, ignore_merges;
};

/**
 * Read the keys; has_declared false: the file has none, and nothing is to be done with the rest.
 * Fails: STATUS_FORMAT (a key of another type or length), as model_steps_read.
 *        Half-built on failure: release with model_declared_free in any case.
 */
enum status model_declared_init(struct model_declared *d, const struct model_vocab *vocab,
                                struct status_why *why);
void model_declared_free(struct model_declared *d);

/** Whoever merges: told of pieces and of added tokens, from left to right. */
struct model_declared_sink {
    enum status (*piece)(void *user, struct base_string piece);
    enum status (*token)(void *user, int32_t token);
    void *user;
};

/**
 * Cut a text of well-formed UTF-8. parse_special: recognise control tokens, too.
 * Fails: as the sink, as model_steps_apply.
 */
enum status model_declared_cut(const struct model_declared *d, struct base_string text,
                               bool parse_special, const struct model_declared_sink *sink,
                               struct status_why *why);

/**
 * Bytes of the text that an added token stands for, with the white space that it takes. 0: it is
 * none, or the text does not go on with it.
 */
size_t model_declared_span(const struct model_declared *d, int32_t id, const char *text,
                           size_t n_left);

#endif
