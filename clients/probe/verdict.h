/**
 * From the lists of a server to a verdict: whether they are what a correct program would say, and
 * what departs. Pure: nothing is asked or evaluated here.
 *
 * The yardstick of a position is what passes that round are off there (probe/exact/): `fine`, as a
 * correct program of this kind rounds; `coarse`, as the coarsest that is still right. Sizes are
 * RMS weighted by p, and flat (probe_flat), by which outcomes are told; a few positions make the
 * former. docs/server-check.md has the limits and what they were measured on.
 */
#ifndef PROBE_VERDICT_H
#define PROBE_VERDICT_H

#include <stdbool.h>
#include <stddef.h>

#include "clients/probe/figures.h"

enum { PROBE_STRETCH = 8 };
/** Positions of a text as near as this share most of what they are off, and count once. */
static inline size_t probe_stretch(size_t position)
{
    return (position + PROBE_STRETCH / 2) / PROBE_STRETCH;
}

/** How a prompt was asked. */
enum probe_path {
    PROBE_FRESH,    /* whole */
    PROBE_CACHED,   /* again, when the server may have its beginning in its cache */
    PROBE_TOGETHER, /* several at once */
    PROBE_WRITTEN,  /* after tokens that the server has written itself */
    PROBE_RECORDED, /* by somebody else */
    PROBE_N_PATHS
};
/** "fresh", "cached", ... */
const char *probe_path_name(enum probe_path path);

enum probe_outcome { PROBE_AGREES, PROBE_COARSELY, PROBE_DIFFERS, PROBE_NO_RESULT };
/** "agrees", "agrees coarsely", "differs", "no result". */
const char *probe_outcome_name(enum probe_outcome outcome);

/* What departs: X(NAME, the word in documents). */
#define PROBE_FINDINGS(X)                                                                          \
    X(NOTHING, "nothing")                                                                          \
    X(TEMPERATURE, "temperature")                                                                  \
    X(CUT_LIST, "cut list")                                                                        \
    X(TAIL_TWICE, "tail counted twice")                                                            \
    X(TOO_MUCH, "no distribution")                                                                 \
    X(NO_BOS, "BOS missing")                                                                       \
    X(TWO_BOS, "BOS doubled")                                                                      \
    X(TOKEN_LESS, "last token missing")                                                            \
    X(LISTS_AHEAD, "lists one ahead")                                                              \
    X(LISTS_BEHIND, "lists one behind")                                                            \
    X(OTHER_FILE, "another file")                                                                  \
    X(CACHED_PROMPTS, "cached prompts")                                                            \
    X(SHARED_BATCHES, "several prompts at once")                                                   \
    X(WRITTEN_TOKENS, "written tokens")                                                            \
    X(FROM_LENGTH, "from a length on")                                                             \
    X(FROM_POSITION, "from a position on")                                                         \
    X(LENGTHS, "certain lengths")                                                                  \
    X(SCATTERED, "some positions")                                                                 \
    X(EVERYWHERE, "everywhere")                                                                    \
    X(OTHER_ARITHMETIC, "another arithmetic or another file")                                      \
    X(TOKENS, "other tokens")                                                                      \
    X(OTHER_TEMPLATE, "another template")

enum probe_finding {
#define PROBE_FINDING(name, word) PROBE_##name,
    PROBE_FINDINGS(PROBE_FINDING)
#undef PROBE_FINDING
        PROBE_N_FINDINGS
};
const char *probe_finding_name(enum probe_finding finding);

/** One list. The arrays are the caller's. */
struct probe_judged {
    size_t window, length, position; /* tokens of the prompt; tokens before the predicted one */
    enum probe_path path;
    bool repeated; /* so many tokens were asked before, and the server may have kept what it said */
    const double *log_q, *log_p; /* [n] */
    size_t n;
    const double *simulated;       /* [n], of the simulated engine; NULL: there is none */
    size_t first;                  /* of its values in those of an alternative */
    double fine, coarse;           /* RMS to expect */
    double flat_fine, flat_coarse; /* NaN: no limit */
    double correlation_fine;       /* to expect; NaN: nothing is simulated */
    bool excused;                  /* a near tie of experts lies before it */
    /* By probe_judge: */
    struct probe_figures figures;
    double weight;      /* 1 / those of its stretch; 0: it is left out of the means */
    double flat;        /* how far it is off, flat */
    double correlation; /* with what is simulated, flat; NaN: there is nothing */
    double slope;       /* less what the simulated engine's is above 1 */
    double limit;       /* of the RMS, coarse */
    bool bad;
};

/** Whether a list is of a token of the prompt, and not of the next one. */
static inline bool probe_is_of_prompt(size_t length, size_t position)
{
    return position < length;
}

/** Another explanation: the same lists beside what it would make of them. */
struct probe_alternative {
    enum probe_finding finding;
    const char *file;    /* OTHER_FILE: which; else NULL */
    const double *log_p; /* of all lists, each from its `first` on; NaN: says nothing of it */
};

/** The servers and files for which it was measured how far right ones are off. */
enum probe_known {
    PROBE_NOT_KNOWN,
    PROBE_KNOWN_QUANTISED, /* llama-server, files with quantised weights */
    PROBE_KNOWN_HALF,      /* llama-server, files of F16 */
    PROBE_KNOWN_IK         /* ik_llama.cpp's server, files with quantised weights */
};

/** What is judged. */
struct probe_evidence {
    struct probe_judged *items;
    size_t n, n_spoilt; /* answers that could not be read */
    /* May be none; they are needed only where the outcome without them is `differs`, and for files
     * that are named. */
    const struct probe_alternative *alternatives;
    size_t n_alternatives;
    enum probe_known known;
    bool small_cache; /* exact values are over a cache of 4 bits */
};

struct probe_verdict {
    enum probe_outcome outcome;
    enum probe_finding finding;
    char sentence[1024];
    double rms, fine, coarse; /* over the positions that are compared */
    double flat, flat_fine, flat_coarse;
    size_t n_stretches;   /* of positions: neighbours count once */
    double n_tokens_each; /* of a list, in the mean */
    /* Mean of the lists', and what a right server's is to be; NaN: nothing was simulated. */
    double correlation, correlation_fine;
    double scatter; /* what so few lists scatter, beside 40 of 100 tokens; at least 1 */
    /* How many times flat_fine `flat` may be, and the least correlation at that size; NaN: any. */
    double most, least_correlation;
    enum probe_known known;
    bool small_cache;
    double bound;       /* mean */
    double slope;       /* median of the lists'; NaN: none is long enough */
    double slope_error; /* its standard error, of how it scatters over the lists */
    double temperature; /* where that is the finding, else NaN */
    size_t from;        /* length or position of the finding; 0: none */
    const char *file;   /* of OTHER_FILE */
    size_t n, n_bad, n_excused;
    size_t n_flips, n_clear_flips; /* another likeliest token; where two were 0.1 nats apart */
};

enum { PROBE_LEAST_LISTS = 8 };
/** How many times what a yardstick is off a server may be off in the mean, weighted by p. */
#define PROBE_MOST_MEAN 3.0

/** Judge the lists. */
void probe_judge(struct probe_verdict *out, const struct probe_evidence *evidence);
/** How often verdicts on such servers were wrong, as words. */
const char *probe_error_rates(const struct probe_verdict *v);

/* The parts of it. */

/** Which of the lists depart, by path, length and position. Sets finding, from and sentence. */
void probe_judge_groups(struct probe_verdict *out, const struct probe_judged *items, size_t n);
/** Lists that are cut or badly summed. True: that is the finding. */
bool probe_judge_sums(struct probe_verdict *out, const struct probe_judged *items, size_t n);
/** Lists that are those of a temperature. Sets slope. True: that is the finding. */
bool probe_judge_temperature(struct probe_verdict *out, const struct probe_judged *items, size_t n);
/**
 * An alternative that explains the lists; where their tails are counted twice, a file that explains
 * what is left of them. True: that is the finding.
 */
bool probe_judge_alternatives(struct probe_verdict *out, const struct probe_judged *items, size_t n,
                              const struct probe_alternative *alternatives, size_t n_alternatives);

#endif
