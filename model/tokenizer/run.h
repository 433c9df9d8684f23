/**
 * What one call of model_tokenize() works with: its output, and scratch that is reused from
 * piece to piece. The tokenizer itself is immutable and shared by threads.
 */
#ifndef MODEL_TOKENIZER_RUN_H
#define MODEL_TOKENIZER_RUN_H

#include <stdbool.h>

#include "model/tokenizer/cache.h"
#include "model/tokenizer/merge.h"
#include "model/tokenizer/tokenizer.h"

/** Bytes that grow on demand. */
struct model_tok_buffer {
    char *bytes;
    size_t n, capacity;
};

struct model_tok_run {
    struct model_tokens *out;
    struct status_why *why;
    struct model_tok_cache cache;
    struct model_merge merge;
    struct model_tok_buffer text; /* the fragment or piece as it is merged */
    struct model_tok_buffer word; /* bpe: a piece in stand-in characters; gemma4: repaired text */
    uint32_t *slots;              /* spm: where each slot begins, and the end; bpe: ids */
    size_t slots_capacity;
    void *match_data, *match_context, *jit_stack; /* bpe: PCRE2's */
};

/** Append ids. Fails: STATUS_MEMORY. */
enum status model_tok_emit(struct model_tok_run *run, int32_t id);
enum status model_tok_emit_all(struct model_tok_run *run, const int32_t *ids, size_t n);

/** Make room for n bytes in all, or n slots; contents are kept. Fails: STATUS_MEMORY. */
enum status model_tok_grow(struct model_tok_run *run, struct model_tok_buffer *b, size_t n);
enum status model_tok_grow_slots(struct model_tok_run *run, size_t n);

/** The same, where there is usually room already. */
static inline enum status model_tok_reserve(struct model_tok_run *run, struct model_tok_buffer *b,
                                            size_t n)
{
    return n <= b->capacity ? STATUS_OK : model_tok_grow(run, b, n);
}

static inline enum status model_tok_reserve_slots(struct model_tok_run *run, size_t n)
{
    return n <= run->slots_capacity ? STATUS_OK : model_tok_grow_slots(run, n);
}

/**
 * Replace each byte of *text that is not well-formed UTF-8 by U+FFFD: *text then is b's bytes,
 * *n_bytes their number. A good text stays where it is.   Fails: STATUS_MEMORY.
 */
enum status model_tok_repair(struct model_tok_run *run, struct model_tok_buffer *b,
                             const char **text, size_t *n_bytes);

/** Release the scratch (not the output). */
void model_tok_run_free(struct model_tok_run *run);

#endif
