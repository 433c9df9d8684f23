/**
 * What tokenizer.json declares to happen to a text before its pieces are merged: its members
 * normalizer and pre_tokenizer as one list of steps, each applied to the pieces of the one before.
 */
#ifndef MODEL_TOKENIZER_DECLARED_STEPS_H
#define MODEL_TOKENIZER_DECLARED_STEPS_H

#include <stdbool.h>

#include "base/json/read.h"
#include "model/tokenizer/declared/nfc.h"
#include "model/tokenizer/regex/regex.h"

enum { MODEL_MAX_STEPS = 16 };

enum model_step_kind {
    MODEL_STEP_NFC,
    MODEL_STEP_PREPEND, /* `text` is put in front of a piece that is not empty */
    MODEL_STEP_LEAD,    /* the same, unless the piece begins with it */
    MODEL_STEP_REPLACE, /* `text` replaces each match */
    MODEL_STEP_SPLIT    /* at the matches */
};

/** What becomes of a match; tokenizers' words. */
enum model_split_behaviour {
    MODEL_SPLIT_REMOVED,
    MODEL_SPLIT_ISOLATED,
    MODEL_SPLIT_MERGED_WITH_PREVIOUS,
    MODEL_SPLIT_MERGED_WITH_NEXT,
    MODEL_SPLIT_CONTIGUOUS /* matches that touch are one piece */
};

struct model_declared_step {
    enum model_step_kind kind;
    enum model_split_behaviour behaviour;
    bool inverted;   /* what lies between the matches counts as matches */
    bool first_only; /* LEAD: of the piece that the text begins with only */
    void *code;
    char *text;
    size_t n_text;
};

/** Zero-initialised is a valid, empty list. */
struct model_steps {
    struct model_declared_step items[MODEL_MAX_STEPS];
    size_t n_normalising, n; /* the first of them are the normaliser's */
    bool of_bytes; /* the pieces are merged from bytes (ByteLevel), else from characters */
};

/**
 * Read both members of tokenizer.json, where it has them. The reader keeps failures:
 * STATUS_UNSUPPORTED (something that is not known, or not read), STATUS_MEMORY.
 * steps: released with model_steps_free in any case.
 */
void model_steps_read(struct model_steps *steps, struct base_field tokenizer);
void model_steps_free(struct model_steps *steps);

/** What one call works with: zero-initialise, release with model_steps_run_free. */
struct model_steps_run {
    struct status_why *why;
    size_t n_text_bytes; /* of the whole text */
    struct model_regex_run regex;
    struct model_nfc nfc;
    struct base_buffer text[MODEL_MAX_STEPS]; /* what each step made of its piece */
};
void model_steps_run_free(struct model_steps_run *run);

/** Told of each piece, from left to right. first: the text begins with it. */
typedef enum status model_steps_fn(void *user, struct base_string piece, bool first);

struct model_steps_call {
    const struct model_steps *steps;
    struct model_steps_run *run;
    model_steps_fn *fn;
    void *user;
    size_t end; /* the steps before this one are applied */
};

/**
 * Apply the steps from `from` on to a piece of well-formed UTF-8.
 * Fails: as `fn`; STATUS_UNSUPPORTED where an expression needs too many steps, STATUS_MEMORY.
 */
enum status model_steps_apply(const struct model_steps_call *call, size_t from,
                              struct base_string piece, bool first);

#endif
