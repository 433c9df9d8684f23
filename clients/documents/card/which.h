/** Which file of a result to take: a line for each, of its size and its divergence. */
#ifndef DOCUMENTS_CARD_WHICH_H
#define DOCUMENTS_CARD_WHICH_H

#include "base/file/atomic_file.h"
#include "clients/documents/results/scoreboard.h"

/**
 * Write the lines for the candidates of a divergence: of a race its verdict. Nothing is written
 * where they are one file over several caches.
 * board: sorted.
 */
void doc_card_which(struct base_file *file, const struct doc_scoreboard *board,
                    struct doc_document *document);

#endif
