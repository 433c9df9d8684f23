/**
 * What one call of model_tokenize() works with: its output, and scratch that is reused from
 * piece to piece. The tokenizer itself is immutable and shared by threads.
 */
#ifndef MODEL_TOKENIZER_RUN_H
#define MODEL_TOKENIZER_RUN_H

#include "base/array.h"
#include "base/buffer.h"
#include "model/tokenizer/cache.h"
#include "model/tokenizer/merge/merge.h"
#include "model/tokenizer/regex/regex.h"
#include "model/tokenizer/tokenizer.h"

struct model_tok_run {
    struct model_tokens *out;
    struct status_why *why;
    struct model_tok_cache cache;
    struct model_merge merge;
    struct base_buffer text; /* the fragment or piece as it is merged */
    struct base_buffer word; /* bpe: a piece in stand-in characters; gemma4: repaired text */
    uint32_t *slots;         /* spm: where each slot begins, and the end; bpe: ids */
    size_t slots_capacity;
    struct model_regex_run regex; /* bpe */
};

/** Append ids. Fails: STATUS_MEMORY. */
enum status model_tok_emit(struct model_tok_run *run, int32_t id);
enum status model_tok_emit_all(struct model_tok_run *run, const int32_t *ids, size_t n);

/** Make room for n bytes in all, or n slots; contents are kept. Fails: STATUS_MEMORY. */
static inline enum status model_tok_reserve(struct model_tok_run *run, struct base_buffer *b,
                                            size_t n)
{
    return base_array_reserve(b->data, b->capacity, n, "bytes of text", run->why);
}

static inline enum status model_tok_reserve_slots(struct model_tok_run *run, size_t n)
{
    return base_array_reserve(run->slots, run->slots_capacity, n, "pieces of text", run->why);
}

/**
 * Replace each byte of *text that is not well-formed UTF-8 by U+FFFD: *text then is b's bytes,
 * *n_bytes their number. A good text stays where it is.   Fails: STATUS_MEMORY.
 */
enum status model_tok_repair(struct model_tok_run *run, struct base_buffer *b, const char **text,
                             size_t *n_bytes);

/** Release the scratch (not the output). */
void model_tok_run_free(struct model_tok_run *run);

#endif
