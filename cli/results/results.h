/** Result documents of any number of files, and the scoreboards that they make. */
#ifndef CLI_RESULTS_RESULTS_H
#define CLI_RESULTS_RESULTS_H

#include "cli/options/args.h"
#include "cli/results/scoreboard.h"

/** Zero-initialise; release with cli_results_free. */
struct cli_results {
    struct cli_document *documents; /* [n]; root NULL: it was no result, and was left out */
    size_t n;
    struct cli_scoreboard of_texts, of_tasks; /* models on texts, and on choice tasks */
    struct status_why *notes; /* [n_notes]: what was left out, and which inputs are not the same */
    size_t n_notes;
    size_t n_sweeps; /* documents of kind CLI_DOCUMENT_SWEEP, which are on no board */
};

/**
 * Read the files into documents and boards. What is noted is said, too.
 * with_sweeps: keep those of assay sweep; else they are left out.
 * files: must outlive the results.
 * Fails: STATUS_USAGE (nothing is left), STATUS_MEMORY, as cli_document_read and
 *        cli_scoreboard_add.
 */
enum status cli_results_read(struct cli_results *out, const struct cli_list *files,
                             bool with_sweeps, struct status_why *why);
void cli_results_free(struct cli_results *results);

#endif
