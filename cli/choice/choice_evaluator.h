/** assay perplexity with --hellaswag, --winogrande, --multiple-choice or --mc2: choice tasks. */
#ifndef CLI_CHOICE_CHOICE_EVALUATOR_H
#define CLI_CHOICE_CHOICE_EVALUATOR_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "cli/options/perplexity.h"
#include "eval/units.h"

struct cli_choice {
    struct cli_evaluation e;
    const struct cli_perplexity_settings *settings;
    enum eval_choice_kind kind;
    struct cli_model model;
    struct base_text text, labels; /* labels: empty where the tasks have them */
    struct eval_dataset dataset;
    struct eval_choices choices;
    struct eval_choice_tally tally;    /* of the tasks that were reported */
    struct eval_choice_winners latest; /* of the last of them */
};

/** Whether the settings ask for choice tasks. */
bool cli_choice_wanted(const struct cli_perplexity_settings *settings);

/** Note what is not used, as llama-perplexity ignores it. */
void cli_choice_note(const struct cli_perplexity_settings *settings);

/** Load everything, evaluate, print, write. Fails: as cli_evaluate, STATUS_NONFINITE. */
enum status cli_choice_run(const struct cli_perplexity_settings *settings, struct status_why *why);

/** The name of a kind in results: "hellaswag", "winogrande", "multiple-choice", "mc2". */
const char *cli_choice_name(enum eval_choice_kind kind);

/** Whether the second of two choices wins a tie, as it does in llama-perplexity's Winogrande. */
bool cli_choice_last_wins(const struct cli_choice *t);

extern const struct cli_lines cli_choice_lines;     /* choice_text.c */
extern const struct cli_members cli_choice_members; /* files.c */
/** The table of --per-task. */
enum status cli_choice_write_table(const void *self, struct base_file *file,
                                   struct status_why *why);

#endif
