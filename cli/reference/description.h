/**
 * What a compact base says of itself: a JSON object with members of the result documents (`base`,
 * a model; `text`; `tokens`; `windows`; `settings`), so that a comparison with the file can say
 * what one with the model would. docs/base-file.md has it.
 */
#ifndef CLI_REFERENCE_DESCRIPTION_H
#define CLI_REFERENCE_DESCRIPTION_H

#include "base/content/text.h"
#include "base/json/build.h"
#include "cli/session/models.h"
#include "eval/input.h"

/** A description that was read. Zero-initialise; release with cli_description_free. */
struct cli_description {
    cJSON *root; /* an object */
};

/** Parse n bytes. Fails: STATUS_FORMAT (no JSON object), STATUS_MEMORY. */
enum status cli_description_parse(struct cli_description *out, const char *bytes, size_t n,
                                  struct status_why *why);
void cli_description_free(struct cli_description *description);

/**
 * What it says of the text, as far as it does; no bytes of it are there.
 * Release with base_text_free.
 */
struct base_text cli_description_text(const struct cli_description *description);

/** Set what it says of conversations in the members of documents for results. */
void cli_description_conversations(const struct cli_description *description,
                                   struct eval_documents *documents);

/** Size of the model's tensors; n_weights 0: it does not say. */
struct cli_model_size cli_description_size(const struct cli_description *description);

/** The precision that the base was computed with, a name of --precision; NULL: it does not say. */
const char *cli_description_precision(const struct cli_description *description);

/** Add the object `model` to a document, its members null where the description lacks them. */
void cli_description_add_model(struct base_json *json, cJSON *parent,
                               const struct cli_description *description);

#endif
