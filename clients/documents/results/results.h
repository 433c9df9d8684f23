/** Result documents of any number of files, and the scoreboards that they make. */
#ifndef DOCUMENTS_RESULTS_RESULTS_H
#define DOCUMENTS_RESULTS_RESULTS_H

#include "clients/documents/results/scoreboard.h"

/** Zero-initialise; release with doc_results_free. */
struct doc_results {
    struct doc_document *documents; /* [n]; root NULL: it was no result, and was left out */
    size_t n;
    struct doc_scoreboard of_texts, of_tasks; /* models on texts, and on choice tasks */
    struct status_why *notes; /* [n_notes]: what was left out, and which inputs are not the same */
    size_t n_notes;
    size_t n_drawn; /* documents of sweeps and importance matrices, which are on no board */
};

/**
 * Read n files into documents and boards.
 * with_drawn: keep those that are on no board; else they are left out.
 * files: must outlive the results.
 * Fails: STATUS_USAGE (nothing is left), STATUS_MEMORY, as doc_read and
 *        doc_scoreboard_add.
 */
enum status doc_results_read(struct doc_results *out, const char *const *files, size_t n,
                             bool with_drawn, struct status_why *why);
void doc_results_free(struct doc_results *results);

#endif
