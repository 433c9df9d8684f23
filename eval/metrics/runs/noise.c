#include "eval/metrics/runs/noise.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/moments.h"
#include "base/random.h"

enum { RESAMPLES = 1000, SEED = 1, FIGURES = 1 + EVAL_NOISE_LEVELS };

const double eval_noise_levels[EVAL_NOISE_LEVELS] = {0.5, 0.9, 0.95, 0.99, 0.999};

/** A token's number, and the block that it is in. */
struct token {
    double value;
    size_t block;
};

struct block {
    double sum;
    size_t n;
    size_t drawn; /* how often, in the resample at work */
};

/** What is drawn from, and what the draws gave. */
struct room {
    struct token *tokens; /* [n], by value */
    struct block *blocks; /* [n_blocks] */
    double *draws;        /* [FIGURES][RESAMPLES] */
    size_t n, n_blocks;
};

static int by_value(const void *a, const void *b)
{
    const struct token *x = a, *y = b;
    return (x->value > y->value) - (x->value < y->value);
}

/** A place in the tokens, each as often as its block was drawn. */
struct place {
    size_t token, before; /* the token, and how many lie before it */
};

/** Go on to the k-th, counted from 0, which is not before the place. */
static double go_to(struct place *p, const struct room *r, size_t k)
{
    while (p->before + r->blocks[r->tokens[p->token].block].drawn <= k)
        p->before += r->blocks[r->tokens[p->token++].block].drawn;
    return r->tokens[p->token].value;
}

/** Mean and quantiles of what was drawn; quantiles as base_quantile has them. */
static void compute(double figures[FIGURES], const struct room *r)
{
    double sum = 0;
    size_t n = 0;
    for (size_t b = 0; b < r->n_blocks; b++) {
        sum += r->blocks[b].sum * (double)r->blocks[b].drawn;
        n += r->blocks[b].n * r->blocks[b].drawn;
    }
    figures[0] = sum / (double)n;
    struct place at = {0, 0};
    for (size_t q = 0; q < EVAL_NOISE_LEVELS; q++) {
        double position = eval_noise_levels[q] * (double)(n - 1),
               share = position - floor(position);
        double below = go_to(&at, r, (size_t)position);
        struct place next = at;
        double above = share > 0 ? go_to(&next, r, (size_t)position + 1) : below;
        figures[1 + q] = below + share * (above - below);
    }
}

static void draw(struct room *r)
{
    struct base_twister twister;
    double figures[FIGURES];
    base_twister_seed(&twister, SEED);
    for (size_t i = 0; i < RESAMPLES; i++) {
        for (size_t b = 0; b < r->n_blocks; b++)
            r->blocks[b].drawn = 0;
        for (size_t b = 0; b < r->n_blocks; b++)
            r->blocks[base_twister_below(&twister, (uint32_t)r->n_blocks)].drawn++;
        compute(figures, r);
        for (size_t f = 0; f < FIGURES; f++)
            r->draws[f * RESAMPLES + i] = figures[f];
    }
}

static struct eval_interval interval_of(double value, double *draws)
{
    const double tail = 0.025;
    base_sort(draws, RESAMPLES);
    return (struct eval_interval){value, base_quantile(draws, RESAMPLES, tail),
                                  base_quantile(draws, RESAMPLES, 1 - tail)};
}

static void fill(struct eval_noise *out, struct room *r)
{
    const double none = (double)NAN;
    double figures[FIGURES];
    struct eval_interval intervals[FIGURES];
    qsort(r->tokens, r->n, sizeof *r->tokens, by_value);
    for (size_t b = 0; b < r->n_blocks; b++)
        r->blocks[b].drawn = 1;
    compute(figures, r);
    if (r->n_blocks > 1)
        draw(r);
    for (size_t f = 0; f < FIGURES; f++)
        intervals[f] = r->n_blocks > 1 ? interval_of(figures[f], r->draws + f * RESAMPLES)
                                       : (struct eval_interval){figures[f], none, none};
    *out = (struct eval_noise){.n_tokens = r->n,
                               .n_blocks = r->n_blocks,
                               .mean = intervals[0],
                               .max = r->tokens[r->n - 1].value};
    memcpy(out->quantiles, intervals + 1, sizeof out->quantiles);
}

enum status eval_noise(struct eval_noise *out, const double *x, size_t n_windows, size_t n_scored,
                       struct status_why *why)
{
    *out = (struct eval_noise){0};
    struct room r = {.n = n_windows * n_scored};
    if (!r.n)
        return STATUS_OK;
    size_t parts = base_min(base_div_up(BASE_LEAST_VALUES, n_windows), n_scored);
    r.n_blocks = n_windows * parts;
    enum status status = base_array_new(r.tokens, r.n, "tokens", why);
    if (!status)
        status = base_array_new(r.blocks, r.n_blocks, "blocks", why);
    if (!status)
        status = base_array_new(r.draws, FIGURES * RESAMPLES, "draws", why);
    for (size_t i = 0; i < r.n && !status; i++) {
        size_t block = i / n_scored * parts + i % n_scored * parts / n_scored;
        r.tokens[i] = (struct token){x[i], block};
        r.blocks[block].sum += x[i];
        r.blocks[block].n++;
    }
    if (!status)
        fill(out, &r);
    free(r.tokens);
    free(r.blocks);
    free(r.draws);
    return status;
}
