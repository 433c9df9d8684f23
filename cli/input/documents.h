/** Documents of a command: from -f to their tokens. */
#ifndef CLI_INPUT_DOCUMENTS_H
#define CLI_INPUT_DOCUMENTS_H

#include "cli/input/input_text.h"
#include "eval/input.h"

/** The template that is to take the model's place; empty where none was given. Fails: as
 * base_text_read. */
enum status cli_chat_template_read(struct base_text *out, const struct cli_chat_settings *settings,
                                   struct status_why *why);

/**
 * Read each -f, a folder file by file; or, unless it is NULL, take the JSON objects of `text`,
 * which was read from settings->text_file. Notes go to standard error. usual: whose tokens of
 * conversations count where --mask does not say. Fails: STATUS_USAGE
 * (standard input twice, -e with JSON, --mask without a conversation), STATUS_FORMAT (also: a
 * folder without files), as base_text_read_document, eval_documents_end and cli_doubt.
 */
enum status cli_documents_read(struct eval_documents *out, const struct cli_text_settings *settings,
                               struct base_text *text, const struct model_tokenizer *tokenizer,
                               enum model_chat_mask usual, struct status_why *why);

#endif
