/** Parts of a result document that every evaluator's has; docs/json.md describes them. */
#ifndef CLI_OUTPUT_JSON_PARTS_H
#define CLI_OUTPUT_JSON_PARTS_H

#include "base/json/build.h"
#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "clients/documents/schema.h"
#include "eval/metrics.h"

/** Members of `settings` about the windows and the text. */
void cli_json_add_window_settings(struct base_json *json, cJSON *settings,
                                  const struct cli_window_settings *windows,
                                  const struct eval_plan *plan);
void cli_json_add_text_settings(struct base_json *json, cJSON *settings,
                                const struct cli_text_settings *text);
/** Those about how models are opened, and what else the bits of a result depend on. */
void cli_json_add_computation(struct base_json *json, cJSON *settings,
                              const struct cli_evaluation *e);

/**
 * An object about a model: identity, size, remarks. Returns it.
 * with_file: also the name of its file, its label, types and cache, which a journal does not
 * belong to.
 */
cJSON *cli_json_add_model(struct base_json *json, cJSON *parent, const char *key,
                          const struct cli_model *model, bool with_file);

/** "remarks": a list of lines. */
void cli_json_add_remarks(struct base_json *json, cJSON *parent, const char *lines);

/** "text": digest and size of the file that is evaluated; the object, for what else is known. */
cJSON *cli_json_add_input(struct base_json *json, const struct base_text *input);

/**
 * Objects `text` (null where there was none: sha256 is ""), `tokens` and, without their sums, the
 * numbers of `windows`, which is returned.
 */
cJSON *cli_json_add_text(struct base_json *json, const struct cli_windows *windows,
                         const struct model_tokenizer *tokenizer);

/**
 * The object `doubts`: what of a text may not be meant as it was evaluated. Left out where there is
 * nothing. Not of a journal: it says nothing that the tokens do not say.
 */
void cli_json_add_doubts(struct base_json *json, const struct cli_windows *windows);

/** The object `nonfinite`: how many scores are not finite, and which is the first. Returns it. */
cJSON *cli_json_add_nonfinite(struct base_json *json, cJSON *parent,
                              const struct eval_nonfinite *nonfinite);

/** A figure, and its standard errors: KEY_error, and KEY_lot_error, null where it is not known. */
void cli_json_estimate(struct base_json *json, cJSON *parent, const char *key,
                       struct base_estimate estimate);
/** The object KEY of a quantity over tokens: its mean and its quantiles. Returns it. */
cJSON *cli_json_distribution(struct base_json *json, cJSON *parent, const char *key,
                             struct base_estimate mean,
                             const struct base_estimate quantiles[EVAL_N_QUANTILES]);
/** The list `context_curve`: mean divergence by position, from [n_scored of the plan]. */
void cli_json_add_curve(struct base_json *json, cJSON *parent, const struct eval_plan *plan,
                        const struct base_moments *positions);

/** The object `run`: what may differ from run to run and machine to machine. Returns it. */
cJSON *cli_json_add_run(struct base_json *json, const struct cli_evaluation *e);

#endif
