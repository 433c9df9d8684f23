/**
 * Requests as an EleutherAI harness means them: which tokens a line is, which of them are scored
 * and after what. docs/harness.md has the rules in words, and where they differ.
 */
#ifndef EVAL_UNITS_REQUESTS_H
#define EVAL_UNITS_REQUESTS_H

#include "eval/input/requests.h"
#include "eval/units/sequences.h"
#include "model/tokenizer/tokenizer.h"

struct eval_request_options {
    size_t n_ctx;       /* tokens that the model sees at once, at most */
    bool bos;           /* contexts begin with BOS */
    bool parse_special; /* recognise control tokens in the texts */
};

/** The tokens of a request and their scores. */
struct eval_request_score {
    int32_t *ids;               /* what stands in front, then the request's tokens */
    double *log_probs;          /* [n_scored], of the last tokens of ids; valid when n_left is 0 */
    struct kern_top *likeliest; /* [n_scored, n_likeliest of the prompts]; NULL: not wanted */
    size_t n_scored;            /* tokens of the continuation, or of the whole text */
    size_t n_truncated;         /* tokens at the beginning that were left out to fit n_ctx */
    size_t n_left;              /* sequences that are not evaluated yet */
    bool greedy;                /* each scored token is the most likely one */
};

/** Requests as units of a run. Zero-initialise; release with eval_request_scores_free. */
struct eval_request_scores {
    struct eval_sequences sequences;  /* owner: the request; an entry of the journal is the
                                         log_probs, then 1 if greedy, else 0 */
    struct eval_request_score *items; /* by request */
    size_t n;
    size_t n_scored;    /* of all requests */
    size_t n_truncated; /* requests of which tokens were left out */
    size_t longest;     /* inputs of the longest sequence; 0 if there is none */
};

/**
 * Turn requests into sequences. Blanks at the end of a context belong to the continuation, which
 * is what tokens the two together have beyond those of the context alone. BOS (EOS where there is
 * none) replaces a missing context, also of a whole text. A pair longer than n_ctx loses tokens at
 * its beginning; a whole text is cut into windows side by side, the last as long as the others.
 * Fails: STATUS_FORMAT (a continuation without tokens; no BOS or EOS where one is needed),
 *        STATUS_USAGE (a continuation longer than n_ctx), as model_tokenize. Sentences name the
 *        line.
 */
enum status eval_request_scores_make(struct eval_request_scores *out,
                                     const struct eval_requests *requests,
                                     const struct eval_request_options *options,
                                     const struct model_tokenizer *tokenizer,
                                     struct status_why *why);
/** A zero-initialised or failed object is allowed. */
void eval_request_scores_free(struct eval_request_scores *scores);

/* request_units.c: for eval_request_scores_make. */
void eval_request_units_open(struct eval_request_scores *scores);

/** The log-probability of a finished request: the sum over its tokens, in order. */
double eval_request_log_prob(const struct eval_request_score *score);

#endif
