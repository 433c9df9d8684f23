/**
 * A metric: what is known of a kind of figure, as a row of data. The figure's member in JSON, its
 * column in tables and CSV and its line for people are views of it (cli/output/metrics.h).
 */
#ifndef DOCUMENTS_RESULTS_METRIC_H
#define DOCUMENTS_RESULTS_METRIC_H

#include <stddef.h>

enum doc_metric_kind {
    DOC_ESTIMATE, /* struct base_estimate; in JSON beside its errors PATH_error, PATH_lot_error */
    DOC_REAL,     /* double */
    DOC_SHARE     /* in JSON an object with `share` and `error` */
};

/** How a figure is shown: times `scale`, with so many decimals and, in lines, so wide. */
struct doc_format {
    double scale;
    int n_decimals, width, error_width;
    const char *unit; /* what follows in lines, or "" */
};
extern const struct doc_format doc_as_number, doc_as_percent;

/** Lines for people stand in blocks. */
enum doc_block { DOC_NO_BLOCK, DOC_PERPLEXITIES, DOC_DIVERGENCES, DOC_PROBABILITIES, DOC_FURTHER };

/* When and where a figure is shown, and how. */
enum {
    DOC_ON_BOARD = 1,      /* a column of the scoreboard */
    DOC_OF_NEW_TYPE = 2,   /* a column of what is asked of a new quantisation type */
    DOC_NO_ERROR = 4,      /* its line has only the value */
    DOC_NOT_NEGATIVE = 8,  /* its line has 0 in place of what is below */
    DOC_WITH_JS = 16,      /* it is there where it was asked for (--js) */
    DOC_PPL_FINITE = 32,   /* its line is there where the candidate's perplexity is finite, */
    DOC_PPL_INFINITE = 64, /* or not */
    DOC_BASE_FINITE = 128, /* the base's */
    DOC_BASE_INFINITE = 256,
    DOC_SAMPLED =
        512 /* its error is a deviation of samples; NaN: there was one, which none shows */
};

/** Where a view has another order than the rows: equals keep theirs. */
enum { DOC_MOST_PLACES = 6 };

struct doc_metric {
    const char *path; /* of its member in JSON: "kld.p99_9"; in the document's part about a model */
    enum doc_metric_kind kind;
    size_t place; /* in the struct of the result */
    const struct doc_format *as;
    const char *label; /* head of its column; NULL: tables do not have it. A document without
                           a member that has one is refused */
    const char *key;   /* head of its column in CSV, beside which stands <key>_error */
    unsigned flags;
    enum doc_block block;
    const char *line; /* what its line begins with; NULL: it has none */
    /* Among the lines of its block, and the members of its object. */
    unsigned char nth_line, nth_member;
};

/** The figures of a divergence, of a struct eval_kld_result. n: how many; speeds follow. */
const struct doc_metric *doc_kld_metrics(size_t *n);

#endif
