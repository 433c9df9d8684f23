/** What models are compared with: another model, or a file of rows that one left behind. */
#ifndef CLI_REFERENCE_BASE_H
#define CLI_REFERENCE_BASE_H

#include "base/json/build.h"
#include "cli/reference/description.h"
#include "cli/session/setup.h"
#include "eval/input/stream.h"
#include "eval/input/window.h"
#include "eval/reference/compact_source.h"
#include "eval/reference/logits_source.h"

enum cli_base_kind {
    CLI_BASE_MODEL,  /* a GGUF file, evaluated in step with the others */
    CLI_BASE_LOGITS, /* a base-logits file: eval/reference/logits_file.h */
    CLI_BASE_COMPACT /* a compact base: eval/reference/compact_file.h */
};

/** Zero-initialise; release with cli_base_close(). */
struct cli_base {
    enum cli_base_kind kind;
    const char *path; /* as it was given; borrowed */
    struct cli_model model;
    struct eval_logits_file logits;
    struct eval_compact_file compact;
    struct cli_description description; /* the compact base's */
    struct cli_model head;              /* the model that has the compact base's head, if it is
                                           elsewhere */
    struct eval_compact_reading compact_reading;
    char id[BASE_HEX]; /* of a file of rows; a model has its own */
    char sha256[BASE_HEX];
    double step; /* of the codes: see eval_logits_step */
    struct eval_logits_reading reading;
    struct eval_row_source source; /* of a file of rows, once cli_base_place has been called */
};

/** What a file is, by its first bytes. Whatever is nothing else is taken for a model. */
enum cli_base_kind cli_base_recognise(const char *path);

/** How a base is opened. */
struct cli_base_options {
    const struct cli_model_settings *load; /* of a model */
    bool hash;                             /* also the SHA-256 of all of its bytes */
};

/** Open it, as its kind says. Fails: as cli_model_open and eval_logits_open. */
enum status cli_base_open(struct cli_base *out, const char *path,
                          const struct cli_base_options *options, struct status_why *why);
void cli_base_close(struct cli_base *base);

/** Where the tokens come from: with a file of rows it is the file, else the text. */
bool cli_base_has_tokens(const struct cli_base *base);

/**
 * Whether a model can be compared with the base: the vocabulary, BOS.
 * Fails: as eval_check_same_vocab; STATUS_FORMAT.
 */
enum status cli_base_check(const struct cli_base *base, const struct model *candidate,
                           struct status_why *why);

/**
 * The tokens and the context size of a base that has them.
 * n_ctx: in: what was asked for, 0 for nothing; out: the base's.
 * Fails: STATUS_USAGE (another context size was asked for), STATUS_MEMORY.
 */
enum status cli_base_tokens(const struct cli_base *base, struct eval_stream *stream, size_t *n_ctx,
                            struct status_why *why);

/** What a base that has the tokens says of the text. Release with eval_text_free. */
struct eval_text cli_base_text(const struct cli_base *base);

/** Size of the base's tensors; n_weights 0 where it is not known. */
struct cli_model_size cli_base_size(const struct cli_base *base);

/**
 * Limit a plan to the windows that a base has rows of. Fails: STATUS_USAGE (it has none of
 * them).
 */
enum status cli_base_limit(const struct cli_base *base, struct eval_plan_options *plan,
                           struct status_why *why);

/**
 * Make the source of rows for the windows of a plan over cli_base_tokens'; nothing for a model.
 * llama_compat: without the tokens that llama.cpp leaves out.
 * Fails: STATUS_FORMAT (windows that are not whole in the file), STATUS_MEMORY.
 */
enum status cli_base_place(struct cli_base *base, const struct eval_plan *plan, bool llama_compat,
                           struct status_why *why);

/** What a file's rows cannot say, on standard error; nothing for a model. */
void cli_base_print_floor(const struct cli_base *base, const struct cli_machine_settings *machine);

/** The object `base`: kind, identity. */
void cli_base_add_json(struct base_json *json, cJSON *parent, const struct cli_base *base);

/* compact_base.c: the compact base's part of the above. */

enum status cli_compact_open(struct cli_base *base, const struct cli_base_options *options,
                             struct status_why *why);
enum status cli_compact_check(const struct cli_base *base, const struct model *candidate,
                              struct status_why *why);
enum status cli_compact_place(struct cli_base *base, const struct eval_plan *plan,
                              struct status_why *why);
void cli_compact_add_json(struct base_json *json, cJSON *o, const struct cli_base *base);
void cli_compact_print_floor(const struct cli_base *base,
                             const struct cli_machine_settings *machine);

#endif
