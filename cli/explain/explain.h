/** A run of assay explain from end to end: what the parts of the command share. */
#ifndef CLI_EXPLAIN_EXPLAIN_H
#define CLI_EXPLAIN_EXPLAIN_H

#include "cli/kld/kld_evaluator.h"
#include "cli/reference/budget.h"

struct cli_explain_settings {
    struct cli_kld_settings kld; /* base, text, windows, what every evaluation takes */
    const char *model;
    const char *recorded; /* what the engine recorded; NULL: nothing */
};

/** How the file is read: the candidates of the pass, in this order. */
enum { CLI_EXPLAIN_PLAIN, CLI_EXPLAIN_INPUTS, CLI_EXPLAIN_CACHE, CLI_EXPLAIN_BOTH, CLI_N_READINGS };

/** What the table has; the last two of a recording alone. */
enum cli_explain_part {
    CLI_EXPLAIN_WEIGHTS,     /* the divergence as it is */
    CLI_EXPLAIN_ACTIVATIONS, /* what rounded inputs add to it */
    CLI_EXPLAIN_KEYS,        /* what the rounded cache adds to it */
    CLI_EXPLAIN_BEYOND,      /* what both add beyond the sum of these */
    CLI_EXPLAIN_TOGETHER,    /* the divergence with both */
    CLI_EXPLAIN_RECORDED,    /* the divergence that the recording has */
    CLI_EXPLAIN_LEFT,        /* that beyond `together` */
    CLI_N_PARTS
};
/** As results name them. */
extern const char *const cli_explain_names[CLI_N_PARTS];

/** What the pass over a recording left. Zero-initialise; free(kld). */
struct cli_explain_recorded {
    double *kld; /* [n_windows][n_scored]: KL(base || recording) of each token */
    size_t n_windows, n_scored, n_ctx;
    double share; /* by how much their mean is too small at most, for what the format raises */
};

struct cli_explain {
    struct cli_kld k; /* its candidates are the readings */
    const struct cli_explain_settings *settings;
    struct cli_kld_settings plain; /* the settings of k: nothing is rounded */
    struct cli_explain_recorded recorded;
    struct base_moments parts[CLI_N_PARTS];
    struct cli_budget budget; /* of the recording */
};

/** Measure the recording: windows and tokens are its own. Fails: as cli_evaluate. */
enum status cli_explain_measure(struct cli_explain_recorded *out,
                                const struct cli_explain_settings *settings,
                                struct status_why *why);

/** How many parts there are. */
size_t cli_explain_n_parts(const struct cli_explain *x);

extern const struct cli_lines cli_explain_lines;
extern const struct cli_members cli_explain_members;

enum status cli_explain_run(const struct cli_explain_settings *settings, struct status_why *why);

#endif
