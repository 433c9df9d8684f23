/**
 * Tokens for which experts are nearly tied: a correct program that rounds may choose others, and
 * what follows such a token may be honestly off by far more than rounding makes elsewhere.
 */
#ifndef PROBE_EXACT_TIES_H
#define PROBE_EXACT_TIES_H

#include "model/forward/forward.h"

/** What a pass saw of the experts, by layer and token. Zero-initialise; probe_ties_free. */
struct probe_ties {
    size_t n_tokens, n_layers, n_passes; /* passes that rounded */
    float *gaps;      /* [n_layers, n_tokens]: of the logits, chosen last and first left out */
    uint64_t *chosen; /* likewise: a sum over the chosen experts; 0: the layer has none */
    double *squares;  /* [n_layers]: of what passes that chose the same were off in the gap */
    size_t *counts;   /* [n_layers] */
    bool *tied;       /* [n_tokens]: a pass chose others, or a bias chose */
    /* of the row that is shown at the moment */
    float *logits;
    size_t n_logits, capacity;
    bool collects;
    enum status status;
};

/** Begin a pass. rounds: it is compared with the first one, which did not. Fails: STATUS_MEMORY. */
enum status probe_ties_begin(struct probe_ties *ties, const struct model *model, size_t n_tokens,
                             bool rounds, struct status_why *why);
model_trace_fn probe_ties_shown; /* user: the ties */
/**
 * The first token of which a layer chooses between experts that are nearly tied; n_tokens: none.
 * Whatever is predicted after it may be honestly off.
 */
size_t probe_ties_first(const struct probe_ties *ties);
void probe_ties_free(struct probe_ties *ties);

#endif
