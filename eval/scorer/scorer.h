/**
 * From a batch of segments to scores: embed, all layers, output norm, head. Rows of the batch are
 * scored, each for its targets. Logits never exist as a whole: hidden rows meet the head in slabs.
 *
 * Several models go in step, each with a session and a residual stream. Their heads are multiplied
 * together, so each candidate is compared with exact rows of the base, which is evaluated once.
 * Arrays by head begin with the base: reference rows (eval/scorer/reference_rows.h), if there are
 * any, then the scorer's model, then the candidates.
 */
#ifndef EVAL_SCORER_SCORER_H
#define EVAL_SCORER_SCORER_H

#include "eval/scorer/reference_rows.h"
#include "eval/scorer/streams.h"
#include "kernels/types.h"

struct eval_scorer;

/** Called often during a batch; fraction: the share of its arithmetic that is done, 0 to 1. */
typedef void eval_fraction_fn(void *user, double fraction);

struct eval_scorer_options {
    size_t max_batch;           /* largest number of tokens of a batch */
    size_t max_rows;            /* largest number of rows that are scored in a batch */
    size_t max_segment;         /* longest segment plus its parent */
    size_t tile_tokens;         /* tokens per tile of the forward pass; 0: the backend's choice */
    eval_fraction_fn *progress; /* may be NULL */
    void *progress_user;
    const struct model *const *candidates; /* beside the scorer's model; copied */
    size_t n_candidates;                   /* 0: the model alone */
    size_t n_common;                    /* rows that heads are compared on; 0: all have as many */
    const struct eval_row_source *base; /* head 0; NULL: the model is */
    const struct eval_row_sink *sink;   /* takes the model's rows; NULL: none */
    const struct eval_stream_source *streams; /* what enters layers; NULL: the embedding */
};

/** Rows per call of the head, at most: the hidden slab holds that many times D floats. */
enum { EVAL_SLAB_ROWS = 2048 };

/** What to score in a batch. All arrays are the caller's. */
struct eval_items {
    const uint32_t *rows; /* tokens of the batch: [n_rows], each row once */
    size_t n_rows;
    const size_t *plan_rows; /* [n_rows]: each row's number; NULL without source and sink */
    size_t variant;          /* of the streams' source, that the batch is evaluated with */
    const struct kern_target *targets; /* .row is an index into rows; in non-falling order */
    size_t n_targets;
    struct kern_row_score *row_scores;       /* out: [n_heads, n_rows] */
    struct kern_target_score *target_scores; /* out: [n_heads, n_targets] */
    struct kern_pair_score *pair_scores;     /* out: [n_heads, n_rows]; NULL: not wanted */
    bool want_js;                            /* of the pairs; a second pass over the head */
    struct kern_top *tops; /* out: [n_rows, KERN_TOP_MAX], the last head's; NULL: not wanted */
};

/** Where the time of a batch went, in seconds; added to by eval_scorer_run. */
struct eval_scorer_times {
    double forward, head;
};

/**
 * Allocate for each model a session, a residual stream and a slab. Models, backend, sources and
 * sink must outlive it; the heads must all be as long as the model's, or have the common rows
 * first. Fails: STATUS_MEMORY, STATUS_DEVICE, as the source of streams and eval_cut_head.
 */
enum status eval_scorer_open(struct eval_scorer **out, const struct model *model,
                             struct kern_backend *backend,
                             const struct eval_scorer_options *options, struct status_why *why);
/** NULL is allowed. */
void eval_scorer_close(struct eval_scorer *scorer);

/** Bytes that such a scorer allocates, and the backend for its largest operation. */
double eval_scorer_bytes(const struct model *model, struct kern_backend *backend,
                         const struct eval_scorer_options *options);

/**
 * Evaluate a batch and score its items. times may be NULL. Where the last layers are not evaluated
 * here (eval_stream_scores), nothing is scored: the streams have what left the layers.
 * Fails: as model_forward, kern_score, the sources and the sink; STATUS_CANCELLED once the
 * backend's flag is set. On failure the outputs are undefined.
 */
enum status eval_scorer_run(struct eval_scorer *scorer, const struct model_batch *batch,
                            const struct eval_items *items, struct eval_scorer_times *times,
                            struct status_why *why);

#endif
