/** Documents of a command: from -f to their tokens. */
#ifndef CLI_SESSION_DOCUMENTS_H
#define CLI_SESSION_DOCUMENTS_H

#include "cli/options/common.h"
#include "eval/input/documents.h"

/** Against what is no text of bytes: ends a sentence of eval_text_read_utf8. */
extern const char cli_text_remedy[];
/** Say on standard error that a file was converted, if it was. */
void cli_text_note(const struct eval_text *text, const char *path);

/** The template that is to take the model's place; empty where none was given. Fails: as
 * eval_text_read. */
enum status cli_chat_template_read(struct eval_text *out, const struct cli_chat_settings *settings,
                                   struct status_why *why);

/**
 * Read each -f, a folder file by file. Notes go to standard error.
 * Fails: STATUS_USAGE (standard input twice, -e with JSON lines), STATUS_FORMAT (also: a folder
 *        without files), as eval_text_read_document and eval_documents_end.
 */
enum status cli_documents_read(struct eval_documents *out, const struct cli_text_settings *settings,
                               const struct model_tokenizer *tokenizer, struct status_why *why);

#endif
