/**
 * Fold a tile of logits into the running sums of its rows: maximum, sum of exponentials, entropy,
 * arg max, ranks of targets, most likely tokens, and for two heads their divergences.
 *
 * Logits are [vocabulary][rows], rows side by side. A block of threads has a group of KERN_LANES
 * rows and sweeps the tile in rounds of KERN_SCORE_STRIPS score blocks of KERN_SCORE_BLOCK
 * vocabulary rows: thread (lane, strip) has one row in one score block. The running maximum before
 * each block is known as soon as the blocks' maxima are, so all exponentials are computed at once.
 * Then one thread per lane adds the blocks' sums in the order of the vocabulary, in double. These
 * are the CPU's blocks and the CPU's order (score_lanes.c, pair_lanes.c). So the bits are the
 * CPU's, and neither the tile nor the number of rows can change them.
 *
 * Per logit it must read 4 bytes (from L2, where the product left them) and do one exponential in
 * double, about 70 operations; for a pair 8 bytes and two; js three.
 */
#ifndef KERNELS_CUDA_KERNELS_SCORE_SCORE_H
#define KERNELS_CUDA_KERNELS_SCORE_SCORE_H

#include <math.h>
#include <stdbool.h>

#include "kernels/cuda/kernels/gated/gated.h"
#include "kernels/cuda/kernels/product.h"
#include "kernels/numerics/terms.h"

enum {
    KERN_SCORE_STRIPS = 32,
    KERN_SCORE_THREADS = KERN_LANES * KERN_SCORE_STRIPS,
    KERN_SCORE_ROUND = KERN_SCORE_STRIPS * KERN_SCORE_BLOCK, /* vocabulary rows */
    KERN_JS_RUN = 4 /* vocabulary rows of a thread in a round of the second pass */
};

/** What makes logits of a product's sums: see struct kern_sums. */
struct kern_raw_logits {
    struct kern_powers rows;   /* [stride], of the hidden rows; NULL: they are logits already */
    struct kern_powers vocab;  /* [n_vocab] */
    const float *bias;         /* [n_vocab], or NULL */
    float scale, cap, inverse; /* cap 0: none; else 1 / cap */
};

/** Logits of n_vocab vocabulary rows from first_token on. */
struct kern_logits {
    float *logits; /* [n_vocab, stride]; the rows of lanes without a row hold anything */
    size_t stride; /* a multiple of KERN_LANES */
    size_t n_vocab;
    int32_t first_token;
    struct kern_raw_logits raw; /* the kernel that reads them first makes logits of them */
};

/** The powers of a lane's hidden row, where there are sums. */
struct kern_raw_lane {
    float first, second;
};

KERN_INLINE struct kern_raw_lane kern_raw_lane_of(const struct kern_logits *tile, size_t group,
                                                  unsigned lane)
{
    struct kern_raw_lane powers = {1.0f, 1.0f};
    if (tile->raw.rows.first) {
        powers.first = tile->raw.rows.first[group * KERN_LANES + lane];
        powers.second = tile->raw.rows.second[group * KERN_LANES + lane];
    }
    return powers;
}

/** The logit of a vocabulary row of the tile, which is at *at; a sum there becomes it. */
KERN_INLINE float kern_raw_finish(const struct kern_logits *tile, uint32_t row,
                                  struct kern_raw_lane lane, float *at)
{
    const struct kern_raw_logits *raw = &tile->raw;
    float x = *at;
    if (!raw->rows.first)
        return x;
    x = x * (raw->vocab.first[row] * lane.first) * (raw->vocab.second[row] * lane.second);
    x = kern_finished(x, raw->scale, raw->bias ? raw->bias + row : NULL, NULL);
    if (raw->cap > 0.0f)
        x = fmath_soft_cap_f32(x, raw->cap, raw->inverse);
    *at = x;
    return x;
}

/** The vocabulary rows of a strip's score block in a round; 0 past the end. */
KERN_INLINE unsigned kern_score_rows(const struct kern_logits *tile, size_t round, unsigned strip)
{
    size_t first = round + (size_t)strip * KERN_SCORE_BLOCK;
    if (first >= tile->n_vocab)
        return 0;
    size_t left = tile->n_vocab - first;
    return left < KERN_SCORE_BLOCK ? (unsigned)left : KERN_SCORE_BLOCK;
}

/** The first logit of a thread's score block. */
KERN_INLINE float *kern_score_at(const struct kern_logits *tile, size_t group, size_t round,
                                 unsigned strip, unsigned lane)
{
    size_t row = round + (size_t)strip * KERN_SCORE_BLOCK;
    return tile->logits + row * tile->stride + group * KERN_LANES + lane;
}

/** Maxima of a round's score blocks. */
struct kern_score_maxima {
    float max[KERN_SCORE_STRIPS][KERN_LANES];
    int32_t token[KERN_SCORE_STRIPS][KERN_LANES]; /* the first that has it */
};

/** finishes: sums become logits. */
KERN_INLINE void kern_score_find_max(struct kern_score_maxima *m, const struct kern_logits *tile,
                                     size_t group, size_t round, unsigned t, bool finishes)
{
    float max = -INFINITY;
    int32_t token = -1;
    unsigned lane = t % KERN_LANES, strip = t / KERN_LANES;
    unsigned n = kern_score_rows(tile, round, strip);
    float *l = kern_score_at(tile, group, round, strip, lane);
    struct kern_raw_lane powers = kern_raw_lane_of(tile, group, lane);
    uint32_t row = (uint32_t)(round + (size_t)strip * KERN_SCORE_BLOCK);
    for (unsigned i = 0; i < n; i++) {
        float logit = finishes ? kern_raw_finish(tile, row + i, powers, l) : *l;
        if (logit > max) {
            max = logit;
            token = tile->first_token + (int32_t)(round + strip * KERN_SCORE_BLOCK + i);
        }
        l += tile->stride;
    }
    m->max[strip][lane] = max;
    m->token[strip][lane] = token;
}

/** The running maximum before a strip's score block. */
KERN_INLINE float kern_score_max_before(const struct kern_score_maxima *m, float max,
                                        unsigned strip, unsigned lane)
{
    for (unsigned s = 0; s < strip; s++)
        max = m->max[s][lane] > max ? m->max[s][lane] : max;
    return max;
}

/** Exponents of a score block are taken against this, and what earlier sums are worth then. */
struct kern_score_reference {
    double reference, rise, rescale;
};

KERN_INLINE struct kern_score_reference
kern_score_reference_of(const struct kern_score_maxima *m, float max, unsigned strip, unsigned lane)
{
    float before = kern_score_max_before(m, max, strip, lane);
    float after = m->max[strip][lane] > before ? m->max[strip][lane] : before;
    struct kern_score_reference r;
    r.reference = kern_reference_of(after, 0.0f);
    r.rise = r.reference - kern_reference_of(before, (float)r.reference);
    r.rescale = fmath_exp_f64(-r.rise);
    return r;
}

/** The sums of one head. A block of threads per group. */
struct kern_fold_args {
    struct kern_logits tile;
    struct kern_score_lanes *sums; /* [groups] */
    struct kern_rank_lanes *ranks; /* [slots] */
    const size_t *slot_begin;      /* [groups + 1] */
    struct kern_top_lanes *tops;   /* [groups], or NULL */
};

struct kern_fold_shared {
    struct kern_score_maxima maxima;
    double sum[KERN_SCORE_STRIPS][KERN_LANES], moment[KERN_SCORE_STRIPS][KERN_LANES];
    double rise[KERN_SCORE_STRIPS][KERN_LANES], rescale[KERN_SCORE_STRIPS][KERN_LANES];
    float max[KERN_LANES]; /* before the round */
};

/** The sums of one score block. */
KERN_INLINE void kern_fold_strip(const struct kern_fold_args *a, struct kern_fold_shared *s,
                                 size_t round, unsigned strip, unsigned lane, const float *l)
{
    unsigned n = kern_score_rows(&a->tile, round, strip);
    struct kern_score_reference r = kern_score_reference_of(&s->maxima, s->max[lane], strip, lane);
    double sum = 0.0, moment = 0.0;
    for (unsigned i = 0; i < n; i++) {
        double d = kern_difference(l[i * a->tile.stride], r.reference);
        double e = fmath_exp_f64(d);
        sum += e;
        moment = fma(e, d, moment);
    }
    s->sum[strip][lane] = sum;
    s->moment[strip][lane] = moment;
    s->rise[strip][lane] = r.rise;
    s->rescale[strip][lane] = r.rescale;
}

/** Count the block's logits above the targets of the row. */
KERN_INLINE void kern_fold_ranks(const struct kern_fold_args *a, size_t group, size_t round,
                                 unsigned strip, unsigned lane, const float *l)
{
    unsigned n = kern_score_rows(&a->tile, round, strip);
    int32_t first = a->tile.first_token + (int32_t)(round + strip * KERN_SCORE_BLOCK);
    for (size_t slot = a->slot_begin[group]; slot < a->slot_begin[group + 1]; slot++) {
        float target = a->ranks[slot].logit[lane];
        int32_t token = a->ranks[slot].token[lane];
        uint32_t above = 0;
        for (unsigned i = 0; i < n; i++) {
            float logit = l[i * a->tile.stride];
            int32_t row = first + (int32_t)i;
            /* The library's logit of the token itself may differ from the target's last bits. */
            above += row != token && (logit > target || (logit == target && row < token));
        }
        if (above > 0)
            kern_atomic_add(&a->ranks[slot].above[lane], above);
    }
}

/** Insert a logit that is larger than the last one of the list. */
KERN_INLINE void kern_top_enter(struct kern_top_lanes *top, unsigned lane, float logit,
                                int32_t token)
{
    unsigned place = KERN_TOP_MAX - 1;
    for (; place > 0 && logit > top->logit[place - 1][lane]; place--) {
        top->logit[place][lane] = top->logit[place - 1][lane];
        top->token[place][lane] = top->token[place - 1][lane];
    }
    top->logit[place][lane] = logit;
    top->token[place][lane] = token;
}

/** Enter the round's logits; few blocks have one that is large enough. */
KERN_INLINE void kern_fold_top(const struct kern_fold_args *a, const struct kern_fold_shared *s,
                               size_t group, size_t round, unsigned lane)
{
    struct kern_top_lanes *top = &a->tops[group];
    for (unsigned strip = 0; strip < KERN_SCORE_STRIPS; strip++) {
        if (!(s->maxima.max[strip][lane] > top->logit[KERN_TOP_MAX - 1][lane]))
            continue;
        const float *l = kern_score_at(&a->tile, group, round, strip, lane);
        unsigned n = kern_score_rows(&a->tile, round, strip);
        int32_t first = a->tile.first_token + (int32_t)(round + strip * KERN_SCORE_BLOCK);
        for (unsigned i = 0; i < n; i++) {
            float logit = l[i * a->tile.stride];
            if (logit > top->logit[KERN_TOP_MAX - 1][lane])
                kern_top_enter(top, lane, logit, first + (int32_t)i);
        }
    }
}

/** Add the round's blocks to a lane, in their order. */
KERN_INLINE void kern_fold_merge(const struct kern_fold_args *a, struct kern_fold_shared *s,
                                 size_t group, size_t round, unsigned lane)
{
    struct kern_score_lanes *sums = &a->sums[group];
    double sum = sums->sum[lane], moment = sums->moment[lane];
    float max = s->max[lane];
    int32_t argmax = sums->argmax[lane];
    for (unsigned strip = 0; strip < KERN_SCORE_STRIPS; strip++) {
        if (kern_score_rows(&a->tile, round, strip) == 0)
            break;
        if (s->maxima.max[strip][lane] > max) {
            max = s->maxima.max[strip][lane];
            argmax = s->maxima.token[strip][lane];
        }
        double old_moment = fma(-s->rise[strip][lane], sum, moment);
        moment = fma(old_moment, s->rescale[strip][lane], s->moment[strip][lane]);
        sum = fma(sum, s->rescale[strip][lane], s->sum[strip][lane]);
    }
    sums->sum[lane] = sum;
    sums->moment[lane] = moment;
    sums->max[lane] = max;
    sums->argmax[lane] = argmax;
    s->max[lane] = max;
    if (a->tops)
        kern_fold_top(a, s, group, round, lane);
}

KERN_INLINE void kern_fold_block(const struct kern_fold_args *a, size_t group, void *shared)
{
    struct kern_fold_shared *s = (struct kern_fold_shared *)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_LANES;
         t += kern_thread_step(KERN_SCORE_THREADS))
        s->max[t] = a->sums[group].max[t];
    for (size_t round = 0; round < a->tile.n_vocab; round += KERN_SCORE_ROUND) {
        for (unsigned t = kern_thread_begin(); t < KERN_SCORE_THREADS;
             t += kern_thread_step(KERN_SCORE_THREADS)) {
            unsigned lane = t % KERN_LANES, strip = t / KERN_LANES;
            kern_score_find_max(&s->maxima, &a->tile, group, round, t, true);
            kern_fold_ranks(a, group, round, strip, lane,
                            kern_score_at(&a->tile, group, round, strip, lane));
        }
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < KERN_SCORE_THREADS;
             t += kern_thread_step(KERN_SCORE_THREADS)) {
            unsigned lane = t % KERN_LANES, strip = t / KERN_LANES;
            kern_fold_strip(a, s, round, strip, lane,
                            kern_score_at(&a->tile, group, round, strip, lane));
        }
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < KERN_LANES;
             t += kern_thread_step(KERN_SCORE_THREADS))
            kern_fold_merge(a, s, group, round, t);
        kern_barrier();
    }
}

/**
 * The pair sums of base and other. Launched before either head's tile is folded: it needs the
 * maxima of both as they were.
 */
struct kern_pair_args {
    struct kern_logits base, other;                        /* base: no sums */
    const struct kern_score_lanes *base_sums, *other_sums; /* [groups] */
    struct kern_pair_lanes *pairs;                         /* [groups] */
    double cut;
};

struct kern_pair_shared {
    struct kern_score_maxima base, other;
    double cross[KERN_SCORE_STRIPS][KERN_LANES], mass[KERN_SCORE_STRIPS][KERN_LANES];
    double reverse[KERN_SCORE_STRIPS][KERN_LANES];
    double base_rescale[KERN_SCORE_STRIPS][KERN_LANES];
    double other_rescale[KERN_SCORE_STRIPS][KERN_LANES];
    float base_max[KERN_LANES], other_max[KERN_LANES]; /* before the round */
};

KERN_INLINE void kern_pair_strip(const struct kern_pair_args *a, struct kern_pair_shared *s,
                                 size_t group, size_t round, unsigned strip, unsigned lane)
{
    const float *base = kern_score_at(&a->base, group, round, strip, lane);
    const float *other = kern_score_at(&a->other, group, round, strip, lane);
    unsigned n = kern_score_rows(&a->base, round, strip);
    struct kern_score_reference ra =
        kern_score_reference_of(&s->base, s->base_max[lane], strip, lane);
    struct kern_score_reference rb =
        kern_score_reference_of(&s->other, s->other_max[lane], strip, lane);
    double cross = 0.0, mass = 0.0, reverse = 0.0;
    for (unsigned i = 0; i < n; i++) {
        float base_logit = base[i * a->base.stride], other_logit = other[i * a->other.stride];
        double la = (double)base_logit, lb = (double)other_logit;
        bool is_cut = la <= a->cut; /* a NaN is not */
        double e = is_cut ? 0.0 : fmath_exp_f64(kern_difference(base_logit, ra.reference));
        double f = fmath_exp_f64(kern_difference(other_logit, rb.reference));
        mass += e;
        cross = fma(e, is_cut ? 0.0 : la - lb, cross);
        reverse = fma(f, lb == -(double)INFINITY ? 0.0 : la - lb, reverse);
    }
    s->cross[strip][lane] = cross;
    s->mass[strip][lane] = mass;
    s->reverse[strip][lane] = reverse;
    s->base_rescale[strip][lane] = ra.rescale;
    s->other_rescale[strip][lane] = rb.rescale;
}

KERN_INLINE void kern_pair_merge(const struct kern_pair_args *a, struct kern_pair_shared *s,
                                 size_t group, size_t round, unsigned lane)
{
    struct kern_pair_lanes *pair = &a->pairs[group];
    double cross = pair->cross[lane], mass = pair->mass[lane], reverse = pair->reverse[lane];
    for (unsigned strip = 0; strip < KERN_SCORE_STRIPS; strip++) {
        if (kern_score_rows(&a->base, round, strip) == 0)
            break;
        cross = fma(cross, s->base_rescale[strip][lane], s->cross[strip][lane]);
        mass = fma(mass, s->base_rescale[strip][lane], s->mass[strip][lane]);
        reverse = fma(reverse, s->other_rescale[strip][lane], s->reverse[strip][lane]);
    }
    pair->cross[lane] = cross;
    pair->mass[lane] = mass;
    pair->reverse[lane] = reverse;
    s->base_max[lane] = kern_score_max_before(&s->base, s->base_max[lane], KERN_SCORE_STRIPS, lane);
    s->other_max[lane] =
        kern_score_max_before(&s->other, s->other_max[lane], KERN_SCORE_STRIPS, lane);
}

KERN_INLINE void kern_pair_block_of(const struct kern_pair_args *a, size_t group, void *shared)
{
    struct kern_pair_shared *s = (struct kern_pair_shared *)shared;
    for (unsigned t = kern_thread_begin(); t < KERN_LANES;
         t += kern_thread_step(KERN_SCORE_THREADS)) {
        s->base_max[t] = a->base_sums[group].max[t];
        s->other_max[t] = a->other_sums[group].max[t];
    }
    for (size_t round = 0; round < a->base.n_vocab; round += KERN_SCORE_ROUND) {
        for (unsigned t = kern_thread_begin(); t < KERN_SCORE_THREADS;
             t += kern_thread_step(KERN_SCORE_THREADS)) {
            kern_score_find_max(&s->base, &a->base, group, round, t, false);
            kern_score_find_max(&s->other, &a->other, group, round, t, true);
        }
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < KERN_SCORE_THREADS;
             t += kern_thread_step(KERN_SCORE_THREADS))
            kern_pair_strip(a, s, group, round, t / KERN_LANES, t % KERN_LANES);
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < KERN_LANES;
             t += kern_thread_step(KERN_SCORE_THREADS))
            kern_pair_merge(a, s, group, round, t);
        kern_barrier();
    }
}

/** The second pass: terms of struct kern_js_lanes, added in the vocabulary's order. */
struct kern_js_args {
    struct kern_logits base, other; /* base: no sums */
    struct kern_js_lanes *js;       /* [groups] */
};

struct kern_js_shared {
    double term[KERN_SCORE_STRIPS * KERN_JS_RUN][2 * KERN_LANES]; /* divergences, distances */
};

KERN_INLINE void kern_js_block(const struct kern_js_args *a, size_t group, void *shared)
{
    struct kern_js_shared *s = (struct kern_js_shared *)shared;
    struct kern_js_lanes *js = &a->js[group];
    const size_t rows = KERN_SCORE_STRIPS * KERN_JS_RUN;
    for (size_t round = 0; round < a->base.n_vocab; round += rows) {
        size_t left = a->base.n_vocab - round, n = left < rows ? left : rows;
        for (unsigned t = kern_thread_begin(); t < KERN_SCORE_THREADS;
             t += kern_thread_step(KERN_SCORE_THREADS)) {
            unsigned lane = t % KERN_LANES;
            size_t at = group * KERN_LANES + lane;
            struct kern_raw_lane powers = kern_raw_lane_of(&a->other, group, lane);
            for (size_t i = t / KERN_LANES; i < n; i += KERN_SCORE_STRIPS) {
                float base = a->base.logits[(round + i) * a->base.stride + at];
                float other = kern_raw_finish(&a->other, (uint32_t)(round + i), powers,
                                              a->other.logits + (round + i) * a->other.stride + at);
                struct kern_js_terms terms =
                    kern_js_terms_of(kern_log_prob(base, js->base_shift[lane]),
                                     kern_log_prob(other, js->other_shift[lane]));
                s->term[i][lane] = terms.divergence;
                s->term[i][KERN_LANES + lane] = terms.distance;
            }
        }
        kern_barrier();
        for (unsigned t = kern_thread_begin(); t < 2 * KERN_LANES;
             t += kern_thread_step(KERN_SCORE_THREADS)) {
            double *out = t < KERN_LANES ? &js->sum[t] : &js->distance[t - KERN_LANES];
            double sum = *out;
            for (size_t i = 0; i < n; i++)
                sum += s->term[i][t];
            *out = sum;
        }
        kern_barrier();
    }
}

#endif
