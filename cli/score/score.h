/** How requests of a harness are scored: what assay score and assay serve share. */
#ifndef CLI_SCORE_SCORE_H
#define CLI_SCORE_SCORE_H

#include "base/json/build.h"
#include "eval/units.h"
#include "model/model.h"

/** What begins contexts: an index into these words. */
#define CLI_SCORE_BOS "auto always never"

struct cli_score_settings {
    int64_t n_ctx; /* 0: as the model was trained */
    int bos;
    bool parse_special;
};

/** What they are for a model. Fails: STATUS_USAGE (its vocabulary has no BOS, and one is wanted).
 */
enum status cli_score_options(struct eval_request_options *out,
                              const struct cli_score_settings *settings, const struct model *model,
                              struct status_why *why);

/** Members `n_ctx`, `bos` and `parse_special`. */
void cli_score_add_settings(struct base_json *json, cJSON *settings,
                            const struct eval_request_options *options);

#endif
