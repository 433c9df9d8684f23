/** A run of assay score from end to end: what the parts of the command share. */
#ifndef CLI_SCORE_SCORE_H
#define CLI_SCORE_SCORE_H

#include "cli/evaluate.h"
#include "eval/units/requests.h"

/** What stands in front of a context: an index into the words of the option. */
enum cli_score_bos { CLI_SCORE_BOS_AUTO, CLI_SCORE_BOS_ALWAYS, CLI_SCORE_BOS_NEVER };

struct cli_score_settings {
    const char *model, *out_file;
    int64_t n_ctx; /* 0: as the model was trained */
    int bos;
    bool parse_special;
    struct cli_model_settings load;
    struct cli_evaluate_settings evaluate;
};

struct cli_score {
    struct cli_evaluation e;
    const struct cli_score_settings *settings;
    const char *request_file;
    struct cli_model model;
    struct eval_text text;
    struct eval_requests requests;
    struct eval_request_options options;
    struct eval_request_scores scores;
    size_t n_written;                    /* requests whose lines are written: all before it are */
    size_t n_nonfinite, first_nonfinite; /* of those; the line of the first */
};

/* output.c */

/** Write the line of a request that is finished. */
void cli_score_write_line(struct cli_evaluation *e, size_t i);
/** What is scored and what it took, on standard error. */
void cli_score_print_beginning(const struct cli_evaluation *e);
void cli_score_print_end(struct cli_evaluation *e);
/** The document, see struct cli_evaluator. */
void cli_score_describe(const struct cli_evaluation *e, struct base_json *json, bool for_journal);
void cli_score_add_result(const struct cli_evaluation *e, struct base_json *json);
void cli_score_add_files(const struct cli_evaluation *e, struct base_json *json, cJSON *run);

#endif
