/** Where the files of a result are from: parent models, sources and importance matrices. */
#ifndef DOCUMENTS_CARD_ORIGIN_H
#define DOCUMENTS_CARD_ORIGIN_H

#include "base/file/atomic_file.h"
#include "clients/documents/results/scoreboard.h"

/** Write a line for each origin that the models name, once, with a link where it has an address. */
void doc_card_origins(struct base_file *file, const struct doc_scoreboard *board,
                      struct doc_document *document);

/** Write a line for each importance matrix, with the models that it made. */
void doc_card_matrices(struct base_file *file, const struct doc_scoreboard *board,
                       struct doc_document *document);

/** Write a text as code in Markdown. */
void doc_card_code(struct base_file *file, const char *text);

/** Write a text so that it may be a part of an address. but: characters that stay, beside letters
 * and digits. */
void doc_card_address(struct base_file *file, const char *text, const char *but);

#endif
