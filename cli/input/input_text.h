/** The bytes of a command's text, and what is doubtful about them. */
#ifndef CLI_INPUT_INPUT_TEXT_H
#define CLI_INPUT_INPUT_TEXT_H

#include "base/content/text.h"
#include "cli/options/common.h"

/** Against what is no text of bytes: ends a sentence of base_text_read_utf8. */
extern const char cli_text_remedy[];

/**
 * Say in a note that a text may not be meant as it is evaluated; with --strict it is refused.
 * Fails: STATUS_USAGE (strict).
 */
__attribute__((format(printf, 3, 4))) enum status cli_doubt(bool strict, struct status_why *why,
                                                            const char *format, ...);

/** Say on standard error that a file was converted, if it was. */
void cli_text_note(const struct base_text *text, const char *path);

/**
 * Whether a file has JSON documents, by its name or by what it begins with. Other JSON is doubtful;
 * so are documents where settings->undivided.
 * Fails: as cli_doubt, eval_documents_recognise.
 */
enum status cli_text_recognise(bool *documents, const struct base_text *text, const char *path,
                               const struct cli_text_settings *settings, struct status_why *why);

/** Read the text of -f, -bf or -p, one of which is given. Fails: as base_text_read. */
enum status cli_text_read(struct base_text *out, const struct cli_text_settings *settings,
                          struct status_why *why);
/** Whether it is a file of which nobody said that its bytes are meant as they are. */
bool cli_text_is_doubtful(const struct cli_text_settings *settings);
/** What is done with it before it becomes tokens: doubts, and -e. Fails: as cli_doubt. */
enum status cli_text_prepare(struct base_text *text, const struct cli_text_settings *settings,
                             struct status_why *why);
/** Both, reading and preparing. */
enum status cli_text_open(struct base_text *out, const struct cli_text_settings *settings,
                          struct status_why *why);

#endif
