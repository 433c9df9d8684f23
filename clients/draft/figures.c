#include "clients/draft/figures.h"

#include <math.h>

void draft_sums_add(struct draft_sums *sums, const struct draft_position *position, size_t window)
{
    struct base_moments *const all[] = {&sums->hits,     &sums->agrees, &sums->guess_prob,
                                        &sums->accepted, &sums->log_p,  &sums->log_q};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        base_moments_lot(all[i], window);
    base_moments_add(&sums->hits, position->hits);
    base_moments_add(&sums->agrees, position->agrees);
    base_moments_add(&sums->guess_prob, position->guess_prob);
    base_moments_add(&sums->accepted, position->accepted);
    base_moments_add(&sums->log_p, position->log_p);
    base_moments_add(&sums->log_q, position->log_q);
}

static struct base_estimate one_more(struct base_estimate share)
{
    share.value += 1;
    return share;
}

static struct base_estimate perplexity(const struct base_moments *log_prob)
{
    struct base_estimate mean = base_moments_estimate(log_prob);
    double value = exp(-mean.value);
    return (struct base_estimate){value, value * mean.error, value * mean.lot_error};
}

struct draft_figures draft_figures(const struct draft_sums *sums)
{
    struct draft_figures f = {
        .n = sums->hits.n,
        .hits = base_moments_estimate(&sums->hits),
        .agrees = base_moments_estimate(&sums->agrees),
        .guess_prob = base_moments_estimate(&sums->guess_prob),
        .accepted = base_moments_estimate(&sums->accepted),
        .ppl = perplexity(&sums->log_p),
        .ppl_draft = perplexity(&sums->log_q),
    };
    f.tokens_greedy = one_more(f.agrees);
    f.tokens_sampled = one_more(f.accepted);
    return f;
}
