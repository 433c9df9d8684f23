/**
 * Windows: how a protocol cuts a token stream and which positions it scores. All windows of one
 * text have the same shape, so a plan is a few numbers, and window w is arithmetic; those of
 * documents are a list. The target of a position is the next token of the stream.
 * docs/protocols.md has the procedures in words.
 */
#ifndef EVAL_INPUT_WINDOW_H
#define EVAL_INPUT_WINDOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "eval/input/stream.h"

enum eval_protocol {
    EVAL_PROTOCOL_DEFAULT,  /* disjoint windows; the second half of each is scored */
    EVAL_PROTOCOL_STRIDED,  /* windows that overlap; the last `stride` targets are scored */
    EVAL_PROTOCOL_FIXED,    /* disjoint windows; every token is scored */
    EVAL_PROTOCOL_DOCUMENTS /* see eval_plan_make_documents */
};

/** What happens to BOS in each window. */
enum eval_bos {
    EVAL_BOS_NONE,
    EVAL_BOS_REPLACES, /* the window's first token gives way to it */
    EVAL_BOS_IN_FRONT  /* it stands before the window's tokens, at position 0 */
};

struct eval_plan_options {
    enum eval_protocol protocol;
    size_t n_ctx;        /* tokens of a window: -c */
    size_t stride;       /* strided only: tokens from one window to the next */
    size_t max_windows;  /* --chunks, of those that remain; 0: all */
    int32_t bos;         /* the BOS id where the vocabulary asks for it, else -1 */
    bool llama_compat;   /* llama.cpp's windows and refusals, see docs/peer-defects.md */
    size_t compat_batch; /* llama.cpp's -b (its default: 2048); only eval_plan_offset uses it */
    size_t skip_windows; /* --chunk-from: that many at the text's beginning are left out */
    bool apart;          /* documents: windows side by side, so that no token is evaluated twice */
    bool whole;          /* documents: all tokens of a window are evaluated, scored or not */
};

/** A window of documents. */
struct eval_plan_window {
    size_t first;    /* of the stream: its first token */
    size_t n_inputs; /* positions evaluated: 0 .. n_inputs-1 */
    size_t row;      /* of all windows' scored positions, its first; the next window's ends them */
    size_t document;
    bool begins; /* its document, whose first token stays */
};

/** Plain numbers but for documents, whose plan is released with eval_plan_free. */
struct eval_plan {
    struct eval_plan_options options;
    enum eval_bos bos_use;
    size_t n_stream;     /* tokens of the stream */
    size_t window;       /* tokens of the stream that a window covers */
    size_t step;         /* from the first token of a window to that of the next */
    size_t n_of_text;    /* windows of the whole text */
    size_t n_windows;    /* without those that are skipped */
    size_t n_inputs;     /* positions evaluated in each window: 0 .. n_inputs-1 */
    size_t first_scored; /* positions first_scored .. n_inputs-1 are scored */
    size_t n_scored;     /* n_inputs - first_scored */
    char warning[256];   /* a sentence for the user, "" if there is nothing to say */

    /* Documents only, else NULL. n_inputs is then the most of any window, first_scored is 0. */

    struct eval_plan_window *windows; /* those left out at the beginning, too, and an end */
    uint32_t *positions;              /* [windows' rows]: the scored positions */
};

/** The name of a protocol in options and results: "default", "strided", "fixed", "documents". */
const char *eval_protocol_name(enum eval_protocol protocol);

/**
 * Lay windows over a stream of n_stream tokens.
 * Fails: STATUS_USAGE (n_ctx or stride that leave nothing to score), STATUS_FORMAT (fewer
 *        tokens than one window; the sentence has both numbers; no window left).
 */
enum status eval_plan_make(struct eval_plan *out, const struct eval_plan_options *options,
                           size_t n_stream, struct status_why *why);

/**
 * Parts of it that eval_plan_make_documents has, too: a size between `least` and what positions can
 * be; --chunk-from and --chunks. Fails: STATUS_USAGE.
 */
enum status eval_plan_check_size(const char *what, size_t size, size_t least,
                                 struct status_why *why);
enum status eval_plan_limit(struct eval_plan *plan, struct status_why *why);

/** A zero-initialised object, and one of a single text, is allowed. */
void eval_plan_free(struct eval_plan *plan);

/** Positions that are evaluated in window w, and how many of them are scored: 1 or more. */
size_t eval_plan_n_inputs(const struct eval_plan *plan, size_t w);
size_t eval_plan_n_scored(const struct eval_plan *plan, size_t w);
/** Its scored position i. */
size_t eval_plan_position(const struct eval_plan *plan, size_t w, size_t i);
/** The document that window w is of. The plan must be one of documents. */
size_t eval_plan_document(const struct eval_plan *plan, size_t w);
/**
 * The lot of window w, for errors (base/moments.h): its document, where the plan has so many that
 * an error can be told of them, else the window itself.
 */
size_t eval_plan_lot(const struct eval_plan *plan, size_t w);
bool eval_plan_lots_are_documents(const struct eval_plan *plan);
/** How many positions are scored in the windows before w, which may be n_windows. */
size_t eval_plan_row(const struct eval_plan *plan, size_t w);
/** Stream index of the first token of window w. */
size_t eval_plan_first(const struct eval_plan *plan, size_t w);
/** The id at input position p of window w: the stream's, or BOS. */
int32_t eval_plan_input(const struct eval_plan *plan, const struct eval_stream *stream, size_t w,
                        size_t p);
/** Stream index of the token that position p of window w is scored against. */
size_t eval_plan_target(const struct eval_plan *plan, size_t w, size_t p);

/**
 * Stream index of the first token that is shown in front of the one at `target`, a token of
 * window w that is singled out: EVAL_CONTEXT_TOKENS before it, or the window's first.
 */
enum { EVAL_CONTEXT_TOKENS = 12 };
size_t eval_plan_context(const struct eval_plan *plan, size_t w, size_t target);

/**
 * The token index that `--ppl-output-type 1` prints for window w: its first token's, but see
 * eval_compat_offset_window.
 */
size_t eval_plan_offset(const struct eval_plan *plan, size_t w);

#endif
