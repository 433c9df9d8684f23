/**
 * What models are compared with. A base is of one of three kinds, each a table of functions in a
 * file of its own: a model that is evaluated in step with the others, or a file of the rows that
 * one has left (compact, or llama-perplexity's base-logits file).
 */
#ifndef CLI_REFERENCE_BASE_H
#define CLI_REFERENCE_BASE_H

#include "base/json/build.h"
#include "cli/input/windows.h"
#include "cli/reference/description.h"
#include "cli/session/models.h"
#include "eval/input.h"
#include "eval/reference.h"

struct cli_base;

/** A kind of base. Functions that a file of rows alone has are NULL for a model. */
struct cli_base_kind {
    const char *name; /* in documents */

    /** Fill in what the kind has. The caller closes it, also after a failure. */
    enum status (*open)(struct cli_base *base, const struct cli_evaluate_settings *settings,
                        struct status_why *why);
    void (*close)(struct cli_base *base);
    /**
     * Whether a model can be compared with it: the vocabulary, BOS. n_common: where one of them may
     * have more tokens, receives how many both have; NULL: they must have the same.
     * Fails: STATUS_FORMAT.
     */
    enum status (*check)(const struct cli_base *base, const struct model *candidate,
                         size_t *n_common, struct status_why *why);
    /** How many tokens its vocabulary has. */
    size_t (*n_vocab)(const struct cli_base *base);
    /** Size of its tensors. NULL: it is not known. */
    struct cli_model_size (*size)(const struct cli_base *base);
    /** The members of the object `base`. */
    void (*add_json)(struct base_json *json, cJSON *o, const struct cli_base *base);

    /** Its tokens. Fails: STATUS_MEMORY. */
    enum status (*tokens)(const struct cli_base *base, struct eval_stream *stream,
                          struct status_why *why);
    /**
     * Instead, its documents, with their tokens; n 0: it is of one text. NULL: it always is.
     * out: released with eval_documents_free. Fails: STATUS_MEMORY.
     */
    enum status (*documents)(const struct cli_base *base, struct eval_documents *out,
                             struct status_why *why);
    /** What it says of the text; NULL: nothing. Release with base_text_free. */
    struct base_text (*text)(const struct cli_base *base);
    /**
     * Make base->source for the windows of a plan over its tokens. llama_compat: without the tokens
     * that llama.cpp leaves out. Fails: STATUS_FORMAT (windows that are not whole), STATUS_MEMORY.
     */
    enum status (*use)(struct cli_base *base, const struct eval_plan *plan, bool llama_compat,
                       struct status_why *why);
    /** What its rows cannot say, on standard error. */
    void (*print_limits)(const struct cli_base *base, const struct cli_machine_settings *machine);
};

extern const struct cli_base_kind cli_base_model, cli_base_logits, cli_base_compact;

/** Zero-initialise; release with cli_base_close(). */
struct cli_base {
    const struct cli_base_kind *kind;
    const char *path; /* as it was given; borrowed */

    struct cli_model model; /* of a model; of a compact base the one that has its head, if it is
                               elsewhere */

    /* For a file of rows. */

    char id[BASE_HEX], sha256[BASE_HEX]; /* a model has its own */
    size_t n_ctx, n_windows;
    struct eval_row_source source; /* once `use` has been called */

    struct eval_logits_file logits;
    double step; /* of the codes: see eval_logits_step */
    struct eval_logits_reading logits_reading;

    struct eval_compact_file compact;
    struct cli_description description;
    struct eval_compact_reading compact_reading;
};

/** What a file is, by its first bytes. Whatever is nothing else is taken for a model. */
const struct cli_base_kind *cli_base_recognise(const char *path);

/** Whether it is a base-logits file; the sentence says why not. Fails: as eval_logits_open. */
enum status cli_base_check_logits(const char *path, struct status_why *why);

/** Open it, as its kind says. Fails: as cli_model_open, eval_logits_open, eval_compact_open. */
enum status cli_base_open(struct cli_base *out, const char *path,
                          const struct cli_evaluate_settings *settings, struct status_why *why);
void cli_base_close(struct cli_base *base);

/** Whether it is a file of rows: tokens and windows are then its own. */
bool cli_base_has_rows(const struct cli_base *base);

/**
 * The tokens of a file of rows, those of documents with these, and the limits of a plan over them.
 * plan->n_ctx: in: what was asked for, 0 for nothing; out: the base's. windows: text, documents and
 * stream are filled in.
 * Fails: STATUS_USAGE (another context size was asked for, windows that it has not), STATUS_MEMORY.
 */
enum status cli_base_tokens(const struct cli_base *base, struct cli_windows *windows,
                            struct eval_plan_options *plan, struct status_why *why);

/** The object `base`: kind, identity. with_file: as cli_json_add_model. */
void cli_base_add_json(struct base_json *json, cJSON *parent, const struct cli_base *base,
                       bool with_file);

#endif
