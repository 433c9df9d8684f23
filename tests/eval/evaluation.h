/** A whole evaluation in one call, for tests: from paths to a filled table. */
#ifndef TESTS_EVAL_EVALUATION_H
#define TESTS_EVAL_EVALUATION_H

#include "clients/cluster/remote.h"
#include "eval/metrics/kld.h"
#include "eval/run/run.h"
#include "eval/units/windows.h"
#include "kernels/cpu/cpu.h"

enum { MAX_CANDIDATES = 36 };

/** What to evaluate and how; zero means the usual. */
struct setup {
    const char *model, *text;
    float soft_cap; /* of all models' heads, whatever their files say; 0: as they say */
    const char *candidates[MAX_CANDIDATES]; /* the first n_candidates, compared with the model */
    size_t n_candidates;
    bool want_js;
    const struct eval_row_source *base; /* the model is then compared with it, too */
    const struct eval_row_sink *sink;
    const struct eval_stream_source *streams; /* what enters layers; not with a team */
    struct eval_plan_options plan;            /* .bos is filled in from the model */
    bool split_lines;
    struct kern_cpu_options cpu; /* isa_cap zero is scalar: set it */
    size_t batch_tokens;
    struct eval_run_options run;
    struct cluster_link *link; /* evaluate what rank 0 sends over it, instead of a run */
    struct cluster_team *team; /* whose other ranks share the run; NULL: nobody */
    size_t n_shares;           /* of the layers, by as many ranks of the team; 0: not divided */
    size_t n_look;             /* after so many windows they may be enough; 0: never */
    const atomic_bool *cancel;
    struct kern_backend *const *backends; /* instead of the one of `cpu`; the caller's */
    size_t n_backends;
};

/** Windows of the bundled text on two threads and whatever instructions there are. */
struct setup setup_usual(const char *model, size_t n_ctx, size_t n_windows);

/** Everything that an evaluation leaves behind; release with evaluation_close. */
struct evaluation {
    struct model *model;
    struct kern_backend *backend;
    struct base_text text;
    struct eval_stream stream;
    struct eval_plan plan;
    struct eval_table table;
    size_t n_candidates;
    struct model *candidates[MAX_CANDIDATES];
    size_t n_pairs; /* n_candidates, and one more where there are base rows: the model's, first */
    struct eval_table candidate_tables[1 + MAX_CANDIDATES];
    struct eval_run_stats stats;
    struct eval_memory memory; /* as told before the run */
    struct eval_perplexity_result result;
};

/** Open everything and make the table, but do not run. Fails the test on any error. */
void evaluation_open(struct evaluation *e, const struct setup *setup);
/** Run what evaluation_open prepared. */
enum status evaluation_run(struct evaluation *e, const struct setup *setup, struct status_why *why);
/** Both; fails the test on any error, and computes the result. */
void evaluate(struct evaluation *e, const struct setup *setup);
void evaluation_close(struct evaluation *e);

/** The tables of one that is compared, for eval_kld. */
struct eval_kld_tables evaluation_pair(const struct evaluation *e, size_t candidate);

#endif
