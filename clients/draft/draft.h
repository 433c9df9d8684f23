/**
 * Drafts: a model has a block that predicts the token after the next from the model's last hidden
 * row and the next token. Both distributions of one position are compared, the tokens before it
 * being the text's: p is the model's, q the block's.
 */
#ifndef DRAFT_DRAFT_H
#define DRAFT_DRAFT_H

#include <stdbool.h>

#include "base/pool.h"
#include "kernels/kernels.h"
#include "model/forward/forward.h"

/** What is known of a position. */
struct draft_position {
    int32_t guess;       /* the block's most likely token: the first of equals */
    bool hits;           /* it is the text's token */
    bool agrees;         /* it is the model's most likely token, too */
    double guess_prob;   /* p of the guess */
    double accepted;     /* sum of min(p, q) over the vocabulary */
    double log_p, log_q; /* of the text's token; natural logarithms */
};

struct draft_options {
    const struct model *model; /* opened with model_options.nextn */
    struct kern_backend *backend;
    struct base_pool *pool; /* compares distributions */
    size_t max_tokens;      /* of a window */
};

/** A model and its block on a backend. */
struct draft_session;

/** Fails: STATUS_MEMORY, STATUS_DEVICE. */
enum status draft_open(struct draft_session **out, const struct draft_options *options,
                       struct status_why *why);
void draft_close(struct draft_session *s);

/** Positions first .. n-1 of some tokens, each of which predicts the token after it. */
struct draft_window {
    const int32_t *tokens;            /* [n] */
    size_t n, first;                  /* first: at least 1, for the block sees two tokens */
    const int32_t *targets;           /* [n - first]: the text's tokens after these positions */
    struct draft_position *positions; /* [n - first]: what they come to */
};

/**
 * Evaluate a window.
 * Fails: STATUS_USAGE (an id beyond the vocabulary), STATUS_NONFINITE (a prediction that is not
 *        finite), STATUS_MEMORY, STATUS_DEVICE, STATUS_CANCELLED.
 */
enum status draft_evaluate(struct draft_session *s, const struct draft_window *window,
                           struct status_why *why);

/** Compare the logits of one position; false: some are not finite. soft_cap 0: there is no cap. */
bool draft_compare(const float *p, const float *q, size_t n_vocab, float soft_cap, int32_t target,
                   struct draft_position *out);

#endif
