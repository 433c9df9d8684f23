/** The command that gives the figures of a result again. */
#ifndef DOCUMENTS_CARD_COMMAND_LINE_H
#define DOCUMENTS_CARD_COMMAND_LINE_H

#include "base/file/atomic_file.h"
#include "clients/documents/results/document.h"

/**
 * Write the command of a divergence or a perplexity, a line for a shell, with every setting that is
 * not the default. Files have their names without folders. A setting that it does not know follows
 * in a comment.
 */
void doc_command_line(struct base_file *file, struct doc_document *document);

#endif
