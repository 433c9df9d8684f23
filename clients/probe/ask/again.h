/** Prompts that are asked several times: how much a server's answers to one differ. */
#ifndef PROBE_ASK_AGAIN_H
#define PROBE_ASK_AGAIN_H

#include "clients/probe/ask/lists.h"

/** Lists that were given twice. */
struct probe_pairs {
    size_t n, n_same; /* the latter with the same bits */
};

/** Zero-initialise. */
struct probe_repeats {
    size_t n_answers; /* beside the first of each prompt */
    /* By what the server says of its cache: it used none, it used some, it says nothing. */
    struct probe_pairs computed, cached, unknown;
    /* Distances (probe_lists_distance) are of lists that are not cached. */
    double squares;    /* summed */
    double largest;    /* of them */
    size_t n_disjoint; /* lists of other tokens than the first one's, which have none */
};

enum probe_repeated {
    PROBE_REPEATED_NOTHING, /* no lists to compare */
    PROBE_REPEATED_NOISE,
    PROBE_REPEATED_EXACT,     /* the same bits, computed anew each time by what the server says */
    PROBE_REPEATED_PERHAPS,   /* the same bits, and the server says nothing of its cache */
    PROBE_REPEATED_FROM_CACHE /* most of them, by what the server says */
};
/** "nothing", "noise", "exact", "may be cached", "cached". */
const char *probe_repeated_name(enum probe_repeated what);
enum probe_repeated probe_repeated_of(const struct probe_repeats *repeats);
/** RMS of the distances; NaN: there are none. */
double probe_repeats_rms(const struct probe_repeats *repeats);

/** How far two lists of one prompt are apart: RMS over the tokens of both, by the first one's
    probabilities; NaN: they share none. */
double probe_lists_distance(const struct probe_lists *a, const struct probe_sample *first,
                            const struct probe_lists *b, const struct probe_sample *second);

/**
 * Add an answer that was given again: its lists beside those of the first answer, which are the
 * ones from `from` on. n_cached: as of struct probe_answer.
 */
void probe_repeats_add(struct probe_repeats *repeats, const struct probe_lists *first, size_t from,
                       const struct probe_lists *again, int64_t n_cached);

#endif
