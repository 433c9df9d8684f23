/**
 * Figures of documents: of each, of each file and each category, and the macro means. Pure
 * functions of the tables, in index order.
 */
#ifndef EVAL_METRICS_GROUPS_H
#define EVAL_METRICS_GROUPS_H

#include "eval/input/documents.h"
#include "eval/metrics/kld.h"

enum eval_group_figure {
    EVAL_GROUP_NLL,
    EVAL_GROUP_N_OF_ONE, /* the rest is of a comparison */
    EVAL_GROUP_BASE_NLL = EVAL_GROUP_N_OF_ONE,
    EVAL_GROUP_LN_RATIO, /* ln(PPL(Q) / PPL(base)) */
    EVAL_GROUP_KLD,
    EVAL_GROUP_SAME_TOP,
    EVAL_GROUP_N_OF_PAIR
};

/** Documents that are summed up, of their finished windows. */
struct eval_group {
    size_t n_documents, n_windows, n_tokens;
    double n_bytes; /* of text that the scored tokens stand for */
    struct base_moments figures[EVAL_GROUP_N_OF_PAIR];
};

/** Release with eval_groups_free. */
struct eval_groups {
    size_t n_figures;             /* EVAL_GROUP_N_OF_ONE or EVAL_GROUP_N_OF_PAIR */
    struct eval_group *documents; /* by index, as the others */
    struct eval_group *files;
    struct eval_group *categories; /* [n_categories]; the last one may be of those without one */
    size_t n_categories;           /* 0: no document has one */
    size_t n_macro;                /* groups that the macro means are over: those with a token */
    struct eval_group all;         /* whose means are the micro means */
    struct base_estimate macro[EVAL_GROUP_N_OF_PAIR];
};

/**
 * tables: with base NULL, of one model.
 * The macro means are over the categories, or over the documents where there are none: the mean of
 * the groups' means m_g with error sqrt(sum of e_g^2) / n. Their error of lots is that of the m_g
 * themselves over documents; over categories as above, of the errors of lots.
 * Fails: STATUS_MEMORY.
 */
enum status eval_groups_make(struct eval_groups *out, const struct eval_documents *documents,
                             const struct eval_kld_tables *tables, struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_groups_free(struct eval_groups *groups);

/** A figure's mean over the tokens and its standard error: 0 for one token, NaN for none. */
struct base_estimate eval_group_estimate(const struct eval_group *group,
                                         enum eval_group_figure figure);

#endif
