/** A run of assay check from end to end: what the parts of the command share. */
#ifndef CLI_CHECK_CHECK_EVALUATOR_H
#define CLI_CHECK_CHECK_EVALUATOR_H

#include "cli/check/conversion/conversion.h"
#include "cli/check/server/server.h"
#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "cli/reference/budget.h"
#include "cli/trace/worst.h"
#include "eval/metrics.h"

struct cli_check_settings {
    const char *model, *recorded;
    const char *against;     /* NULL: no second recording */
    struct cli_list again;   /* recordings of the same program once more */
    struct cli_list recipes; /* --recipe: what types should be, in place of what is recorded */
    struct cli_list others;  /* --or: further models that may have been recorded */
    double resolve;          /* of --against; NaN: not given */
    bool markdown;
    struct cli_server_settings server;  /* instead of what is recorded */
    struct cli_window_settings windows; /* n_ctx -1: the file's */
    double max_kld, max_beyond;         /* NaN: no limit */
    const char *per_token_file;
    struct cli_divergence_settings divergence;
    int64_t n_trace; /* --trace-worst */
    struct cli_evaluate_settings evaluate;
};

/** The second recording, which the first one is held against. */
struct cli_check_against {
    struct cli_base recorded;
    struct eval_table table;
    struct eval_check_result result;
    struct eval_against_result paired;
};

/** A recording of the same program once more. */
struct cli_check_run {
    struct cli_base recorded;
    struct eval_table table;
    bool same_bits;
    double apart;      /* mean KL(recorded || this) */
    double beyond;     /* mean KL(exact || this) beyond its file's share */
    double difference; /* mean KL(exact || recorded) - KL(exact || this) */
};

/** How far the program's runs are apart. */
struct cli_check_noise {
    struct cli_check_run *runs; /* [settings->again.n] */
    struct eval_noise figures;  /* of a token's mean of KL(recorded || .) over the runs */
    double part;                /* of that mean which is one run's: half of it */
    double of_budget;           /* the same of the windows that the budget is measured on */
    double difference;          /* the largest difference in size */
    bool judges;                /* the runs are alike enough to be called runs of one program */
    const struct cli_check_run *unlike; /* the one that is not */
};

/** A model that may have been recorded: -m, then each --or. */
struct cli_check_fit {
    struct cli_model opened;        /* of --or */
    const struct cli_model *model;  /* the one that is meant */
    double kld;                     /* mean KL(model || recorded) */
    struct eval_paired beyond_best; /* that less the best one's, over windows */
};

struct cli_check {
    struct cli_evaluation e;
    const struct cli_check_settings *settings;
    struct cli_model model;
    struct cli_base recorded;
    struct cli_windows windows; /* tables: exact, recorded, then one for each --or */
    struct eval_check *check;
    struct eval_check_result result;
    struct cli_worst *traces; /* [result.kld.n_worst], with --trace-worst */
    struct cli_check_against against;
    struct cli_check_noise noise;
    const struct eval_row_source **sources; /* [n_others]: of --against, then of each --again */
    struct eval_table *others;              /* of them, sharing the cells of those above */
    size_t n_others;
    struct cli_budget budget;
    struct cli_check_fit *fits;  /* [n_fits]; n_fits 1: there is no --or */
    const struct model **models; /* [n_fits] of them */
    size_t n_fits, best;
};

/** A limit that was set for a figure of the result. */
struct cli_check_limit {
    const char *option, *what;
    double limit, found; /* limit NaN: none was set */
};
enum { CLI_CHECK_LIMITS = 2 };
/** The limits of a finished run, in the order of the options. (figures.c) */
void cli_check_limits(const struct cli_check *c, struct cli_check_limit out[CLI_CHECK_LIMITS]);

/** Open another recording. Fails: as cli_base_open; STATUS_FORMAT (no recording). */
enum status cli_check_open_other(struct cli_base *out, const char *path, const struct cli_check *c,
                                 struct status_why *why);
/** Whether it has the windows of the plan, which are laid; make its table. */
enum status cli_check_lay_other(struct cli_base *other, struct eval_table *table,
                                const struct cli_check *c, struct status_why *why);

/** What is read beside the recording: of --against, which is the first, and of --again. (again.c)
 * Fails: STATUS_MEMORY. */
enum status cli_check_list_others(struct cli_check *c, struct status_why *why);

/* against.c; without --against they do nothing. */

/** Fails: STATUS_USAGE (what --resolve takes). */
enum status cli_against_check(const struct cli_check_settings *settings, struct status_why *why);
/** Open the second recording. Fails: as cli_base_open. */
enum status cli_against_open(struct cli_check *c, struct status_why *why);
/** Whether it has the windows of the plan, which are laid; make its table. */
enum status cli_against_lay(struct cli_check *c, struct status_why *why);
void cli_against_close(struct cli_check *c);
/** A window is done: after the first ones say how many --resolve takes. */
void cli_against_window(const struct cli_check *c, size_t w);
/** The figures. Fails: as eval_against. */
enum status cli_against_summarise(struct cli_check *c, struct status_why *why);
/** Fails: STATUS_EXCEEDED (further from exact), STATUS_USAGE (too few windows for --resolve). */
enum status cli_against_verdict(const struct cli_check *c, struct status_why *why);

/* against_text.c */

/** The answer, in a sentence without a full stop; made printable. */
enum { CLI_AGAINST_BYTES = 2048 };
const char *cli_against_sentence(char out[CLI_AGAINST_BYTES], const struct cli_check *c);
void cli_against_print(const struct cli_check *c);
/** Fails: STATUS_MEMORY. */
enum status cli_against_print_markdown(const struct cli_check *c, struct status_why *why);

/** The object `against`. (against_json.c) */
void cli_against_add_json(struct base_json *json, const struct cli_check *c);
/** The figures of a recording, into an object. (figures.c) */
void cli_check_add_figures(struct base_json *json, cJSON *o, const struct eval_check_result *r);

/* again.c, again_text.c: how far runs of the program are apart; without --again they do nothing. */

enum status cli_again_open(struct cli_check *c, struct status_why *why);
enum status cli_again_lay(struct cli_check *c, struct status_why *why);
void cli_again_close(struct cli_check *c);
/** Before what judges by it. Fails: STATUS_MEMORY. */
enum status cli_again_summarise(struct cli_check *c, struct status_why *why);
/** What is said of the runs: a sentence without a full stop, made printable. */
const char *cli_again_sentence(char out[CLI_AGAINST_BYTES], const struct cli_check *c);
void cli_again_print(const struct cli_check *c);
/** The object `noise`. */
void cli_again_add_json(struct base_json *json, const struct cli_check *c);

/* fits.c: which model was recorded. */

enum status cli_fits_open(struct cli_check *c, struct status_why *why);
void cli_fits_close(struct cli_check *c);
/** Fails: STATUS_MEMORY. */
enum status cli_fits_summarise(struct cli_check *c, struct status_why *why);
/* Without --or they do nothing. */
void cli_fits_print(const struct cli_check *c);
void cli_fits_add_json(struct base_json *json, const struct cli_check *c);

extern const struct cli_lines cli_check_lines;     /* check_text.c */
extern const struct cli_members cli_check_members; /* files.c */
/** The table of --per-token. */
enum status cli_check_write_table(const void *self, struct base_file *file, struct status_why *why);

#endif
