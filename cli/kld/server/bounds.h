/**
 * assay kld --base-url, and --base with recorded answers: how far models are from one of which
 * only the likeliest tokens are known. All figures of divergence are bounds.
 */
#ifndef CLI_KLD_SERVER_BOUNDS_H
#define CLI_KLD_SERVER_BOUNDS_H

#include "cli/kld/kld_evaluator.h"
#include "cli/server/connection.h"
#include "cli/server/phase.h"
#include "clients/probe/ask/plan.h"
#include "clients/probe/bounds.h"

enum { CLI_BOUNDS_REQUESTS = 100 }; /* without --requests */

/** A run from end to end. */
struct cli_bounds {
    const struct cli_kld_settings *settings;
    struct cli_model *models; /* [settings->models.n], as many as are open */
    struct base_text text;    /* of -f, or the recorded answers */
    struct probe_names *names;
    struct cli_connection connection;
    struct probe_questions questions; /* of a server */
    struct probe_records records;     /* of a file */
    struct probe_base base;
    struct probe_bounds *results; /* [settings->models.n] */
    size_t n_done;                /* models that are compared */
    size_t n_ctx;                 /* tokens of a window of -f; 0: recorded */
    struct cli_phase phase;
};

/** Fails: as what it calls; STATUS_FORMAT (too few answers that can be used). */
enum status cli_bounds_run(const struct cli_kld_settings *settings, struct status_why *why);

/* The parts of it. */

/** Ask the server of --base-url about the text: the lists are in `questions`. */
enum status cli_bounds_ask(struct cli_bounds *b, struct status_why *why);
/** Fails: STATUS_MEMORY. */
enum status cli_bounds_print(const struct cli_bounds *b, struct status_why *why);
enum status cli_bounds_write(const struct cli_bounds *b, struct base_file *file,
                             struct status_why *why);

#endif
