/** A scored token in its text, for people and in documents. */
#ifndef CLI_OUTPUT_PASSAGE_H
#define CLI_OUTPUT_PASSAGE_H

#include "base/json/build.h"
#include "cli/input/windows.h"
#include "eval/metrics.h"

/** Which token: `place` of a table over the windows. */
struct cli_passage {
    const struct cli_windows *windows;
    const struct model_tokenizer *tokenizer;
    struct eval_scored_token place;
};

/** The position in its window of the token that predicts it. */
size_t cli_passage_position(const struct cli_passage *passage);

/** Print it as <token>, after the tokens of the window before it (12 at most), and a newline. */
void cli_print_passage(const struct cli_passage *passage);

/** An object of a list: window, position, id and text of the token. Returns it. */
cJSON *cli_json_add_passage(struct base_json *json, cJSON *list, const struct cli_passage *passage);
/** Its member `context`: the tokens of the window before it (12 at most). */
void cli_json_add_context(struct base_json *json, cJSON *o, const struct cli_passage *passage);

#endif
