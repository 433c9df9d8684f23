/** The lists that a server gave, and what was asked for each. */
#ifndef PROBE_ASK_LISTS_H
#define PROBE_ASK_LISTS_H

#include "clients/probe/api/answer.h"
#include "clients/probe/ask/windows.h"
#include "clients/probe/verdict.h"

struct probe_sample {
    size_t window, length, position; /* as in struct probe_judged */
    enum probe_path path;
    size_t first, n; /* entries */
    double dropped;  /* the largest value of one that is not kept; -infinity: all are */
    bool merged;     /* as in struct probe_place */
    bool repeated;   /* as in struct probe_judged */
    bool miscounted; /* the server counts other tokens in its prompt */
};

/** Zero-initialise; release with probe_lists_free. */
struct probe_lists {
    struct probe_sample *items;
    int32_t *ids; /* of the entries, all within the vocabulary */
    double *log_q;
    size_t n, capacity, n_entries, ids_capacity, q_capacity;
    size_t n_spoilt;                 /* answers and lists that could not be used */
    char spoilt[512];                /* why, for the first of them */
    size_t n_unknown;                /* lists of texts that are no token's, all of them */
    size_t n_fewer, n_more, n_other; /* answers to prompts of one token fewer, one more, others */
    size_t n_counted;                /* answers that say how many tokens the prompt has */
    int64_t counted, sent;           /* of the first that differs */
};

/** A prompt, for what its answer says of it. */
struct probe_asked {
    size_t window, length;
    enum probe_path path;
    const int32_t *ids; /* [length] */
    size_t known;       /* of its tokens the server may have in its cache; 0: none */
    size_t most;        /* lists of an answer that are kept: the ends, and others evenly between */
};

/**
 * Keep what an answer says. Tokens without an id are looked up by their bytes; what is not found
 * is left out of its list. Fails: STATUS_MEMORY.
 */
enum status probe_lists_add(struct probe_lists *lists, const struct probe_answer *answer,
                            const struct probe_asked *asked, const struct probe_names *names,
                            struct status_why *why);
/** An answer that cannot be used. */
__attribute__((format(printf, 2, 3))) void probe_lists_spoil(struct probe_lists *lists,
                                                             const char *format, ...);
/** By path, window, length and position, whatever they were asked in. */
void probe_lists_order(struct probe_lists *lists);
void probe_lists_free(struct probe_lists *lists);

#endif
