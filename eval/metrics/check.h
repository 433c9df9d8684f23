/**
 * Validating another program: the rows that it recorded in a base-logits file against the exact
 * ones of the same model.
 *
 * p is the exact distribution after a token, r the recorded one, divided by the sum of its
 * probabilities. Part of KL(p || r) is the file's: its 16 bits and the floor under its
 * probabilities. That part is measured: each exact row is recorded, too, and compared with itself
 * (docs/validating.md). Pass the check's models to eval_run, its sink to the windows, too, and each
 * finished window to eval_check_window.
 */
#ifndef EVAL_METRICS_CHECK_H
#define EVAL_METRICS_CHECK_H

#include "eval/metrics/kld.h"
#include "eval/run/run.h"

/** What is checked; everything is borrowed and must outlive the check. */
struct eval_check_task {
    const struct model *model;
    struct kern_backend *const *backends;
    size_t n_backends;
    const struct eval_plan *plan;
    const struct eval_stream *stream;
    const struct eval_row_source *recorded;      /* of kind EVAL_ROWS_CODES, without a cut */
    double reach;                                /* of their codes: eval_logits_reach() */
    const struct eval_row_source *const *others; /* [n_others] recordings that are read beside */
    size_t n_others;
};

struct eval_check;

/**
 * Fails: STATUS_MEMORY, STATUS_DEVICE.
 * Cost: the head is evaluated three times for each row: to compare, to record, and to compare
 * with what was recorded; once more for each other recording.
 */
enum status eval_check_open(struct eval_check **out, const struct eval_check_task *task,
                            struct status_why *why);
/** NULL is allowed. */
void eval_check_close(struct eval_check *check);

/** As it was opened. */
const struct eval_check_task *eval_check_task(const struct eval_check *check);

/**
 * What eval_run takes; the windows have two tables, the second one of pairs. Further models may be
 * set as its candidates: a table of pairs each.
 */
struct eval_models eval_check_models(const struct eval_check *check);

/** The tables of a check. */
struct eval_check_tables {
    struct eval_table *tables; /* [n_tables], of the run */
    size_t n_tables;           /* 2, and one for each further model */
    struct eval_table *others; /* of pairs: [task.n_others] */
};

/**
 * Window w is done: turn the tables around. Afterwards the first has the exact scores, the second
 * those of r, with EVAL_KL = KL(p || r), EVAL_REVERSE_KL = KL(r || p) and EVAL_BASE_TOP of p; so
 * that eval_kld takes them as base and candidate. Those of other recordings are filled in the same
 * way. One of a further model q keeps its scores, with EVAL_KL = KL(q || r) and
 * EVAL_REVERSE_KL = KL(r || q). Call it once for each window.
 */
void eval_check_window(const struct eval_check *check, const struct eval_check_tables *tables,
                       size_t w);

/** Whether the k-th of the others has the recording's bits in all windows that are done in its
 * table.
 */
bool eval_check_same_bits(const struct eval_check *check, size_t k, const struct eval_table *table);

/** KL(recorded || the k-th of the others) of scored token i of window w, both divided by their
 * sums. */
double eval_check_apart(const struct eval_check *check, size_t k, size_t w, size_t i);

/** Mean square and largest absolute value of a difference between two NLLs. */
struct eval_check_nll {
    double rms, max;
};

/** What a check has to say; release with eval_check_result_free. */
struct eval_check_result {
    struct eval_kld_result kld; /* of r from p; log_ratio is the mean of NLL(r) - NLL(p) */
    struct eval_check_nll nll;  /* of NLL(r) - NLL(p) */
    struct base_estimate floor; /* KL(p || p as recorded): what the file's 16 bits make */
    double floor_max;           /* the largest of a token */
    struct eval_check_nll floor_nll;
    struct base_estimate nll_beyond; /* mean NLL(r) - NLL(p), less what recording adds */
    double beyond;                   /* mean KL(p || r) less the floor's mean */
    double share; /* the floor's mean over the mean KL(p || r); NaN where that is 0 */
};

/**
 * Over the finished windows, tables as eval_check_window leaves them: of the exact scores, and of a
 * recording (either one's). As eval_kld.
 */
enum status eval_check_summarise(struct eval_check_result *out, const struct eval_check *check,
                                 const struct eval_table tables[2], size_t n_worst,
                                 struct status_why *why);
/** A zero-initialised object is allowed. */
void eval_check_result_free(struct eval_check_result *result);

/** Scored token i of window w: its KL(p || p as recorded), and what recording adds to its NLL. */
struct eval_check_floor {
    double kld, nll;
};
struct eval_check_floor eval_check_floor_of(const struct eval_check *check, size_t w, size_t i);

#endif
