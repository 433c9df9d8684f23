/** A run of assay kld from end to end: what the parts of the command hand around. */
#ifndef CLI_KLD_KLD_H
#define CLI_KLD_KLD_H

#include "cli/kld/options.h"
#include "cli/reference/base.h"
#include "cli/session/job.h"
#include "cli/session/setup.h"
#include "eval/metrics/kld.h"
#include "eval/run/run.h"

struct cli_comparison {
    const struct cli_kld *settings;
    struct cli_job job;
    size_t n_candidates;
    struct cli_base base;
    struct cli_model *candidates;    /* [n_candidates] */
    const struct model **models;     /* [n_candidates] of the candidates */
    struct eval_kld_result *results; /* [n_candidates] */
    struct eval_table *tables;       /* [1 + n_candidates], the base's first */
    struct eval_text text;           /* empty where the base has the tokens */
    struct eval_stream stream;
    struct eval_plan plan;
    struct eval_run_options run_options;
    struct eval_kld_tally tally;      /* of the windows that were reported; one candidate only */
    struct base_file *per_token_file; /* NULL: not wanted, or already written */
};

/**
 * Open the backend, the base, the models and the text, check that the vocabularies agree,
 * tokenise and lay the windows. Remarks and warnings go to standard error.   Fails: as the layers
 * below.
 */
enum status cli_comparison_open(struct cli_comparison *c, const struct cli_kld *settings,
                                struct status_why *why);

/** The whole of assay kld with these settings; also behind assay perplexity --kl-divergence. */
enum status cli_comparison_run(const struct cli_kld *settings, struct status_why *why);

/** The model whose vocabulary names the tokens: the base, or, of a file of rows, the first. */
const struct model *cli_comparison_reader(const struct cli_comparison *c);

/** What is evaluated, as eval_run takes it. */
struct eval_task cli_comparison_task(const struct cli_comparison *c);

/** The tables of candidate i and the base. */
struct eval_kld_tables cli_comparison_tables(const struct cli_comparison *c, size_t i);

/** Release everything; output files that were not written are abandoned. */
void cli_comparison_close(struct cli_comparison *c);

/* kld_text.c */

/** Before the run: what is compared and the memory bound, on standard error. */
void cli_kld_print_beginning(const struct cli_comparison *c);
/** After a window, with one candidate: its line. With several they follow at the end. */
void cli_kld_print_window(struct cli_comparison *c, size_t w);
/** After the run: everything else, candidate by candidate. */
void cli_kld_print_end(struct cli_comparison *c);

/* kld_json.c */

/** Open the journal of --state, if there is one. Fails: as eval_journal_open. */
enum status cli_comparison_open_journal(struct cli_comparison *c, struct status_why *why);

/** Write the result document; docs/json.md describes it. Fails: STATUS_MEMORY. */
enum status cli_kld_write_json(const struct cli_comparison *c, struct base_file *file,
                               struct status_why *why);

#endif
