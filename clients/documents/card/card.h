/** assay card: what a model's page says of its quantisations, as Markdown. */
#ifndef DOCUMENTS_CARD_CARD_H
#define DOCUMENTS_CARD_CARD_H

#include "base/file/atomic_file.h"
#include "clients/documents/results/results.h"

/**
 * Write a block for each result of a text. The board of texts is sorted.
 * chart: the name of a picture to show, or NULL.
 * Fails: STATUS_USAGE (no result is of a text), STATUS_FORMAT (a field that is missing or of
 *        another type).
 */
enum status doc_card_write(struct base_file *file, struct doc_results *results, const char *chart,
                           struct status_why *why);

#endif
