/** The figures of a draft: means over positions, in the order in which these come. */
#ifndef DRAFT_FIGURES_H
#define DRAFT_FIGURES_H

#include "base/moments.h"
#include "clients/draft/draft.h"

/** Zero-initialise. */
struct draft_sums {
    struct base_moments hits, agrees, guess_prob, accepted, log_p, log_q;
};

/** window: the one that the position lies in; windows are lots (base/moments.h). */
void draft_sums_add(struct draft_sums *sums, const struct draft_position *position, size_t window);

struct draft_figures {
    size_t n; /* positions */
    struct base_estimate hits, agrees, guess_prob, accepted;
    /* Tokens that a pass of the model yields if it checks one drafted token: 1 + the share that is
     * accepted, by greedy decoding and by speculative sampling. */
    struct base_estimate tokens_greedy, tokens_sampled;
    struct base_estimate ppl, ppl_draft; /* perplexities of the text's tokens */
};
struct draft_figures draft_figures(const struct draft_sums *sums);

#endif
