/**
 * The driver of all commands that evaluate: perplexity, record, kld, check, choice tasks, score.
 *
 * A command fills a struct cli_evaluation and calls cli_evaluate, which checks outputs, opens
 * devices and journal, evaluates, reports and writes, at the same moments for every command. What
 * differs between commands is a small table of functions, struct cli_evaluator.
 */
#ifndef CLI_EVALUATE_H
#define CLI_EVALUATE_H

#include <time.h>

#include "base/file/atomic_file.h"
#include "base/json/build.h"
#include "cli/options/common.h"
#include "cli/session/backends.h"
#include "cli/session/models.h"
#include "cli/session/outputs.h"
#include "cli/session/progress.h"
#include "eval/run.h"

struct cli_host;
struct eval_documents;

/*
 * What a command is, to the driver: three tables. self: the command's struct, which begins with its
 * struct cli_evaluation. A function may be NULL where its comment says so.
 */

/** The lines of a command. */
struct cli_lines {
    /** Before the run, on standard error: what is evaluated. */
    void (*beginning)(const void *self);
    /** After each unit, in order: its part of the running output. NULL: nothing. */
    void (*unit)(void *self, size_t unit);
    /** The figures, on standard output. */
    void (*end)(void *self);
};

/** The result document of a command: its members but for schema and version. */
struct cli_members {
    const char *schema;
    /** The first ones: the figures. */
    void (*result)(const void *self, struct base_json *json);
    /** What is evaluated and how. Also what a journal belongs to. */
    void (*description)(const void *self, struct base_json *json, bool for_journal);
    /** What follows. NULL: nothing. */
    void (*details)(const void *self, struct base_json *json);
    /** Names of further files, in `run`. NULL: there are none. */
    void (*files)(const void *self, struct base_json *json, cJSON *run);
};

/** A run that takes less: an option, and the arithmetic that is left with it. */
struct cli_outlook_way {
    const char *option;
    double forward, head; /* operations of the layers, and of the heads */
};

enum { CLI_MAX_WAYS = 3 };

/** What can be said of a run beforehand that its units and models do not say. */
struct cli_outlook {
    const char *fewer; /* an option that takes a number of what is evaluated; NULL: there is none */
    size_t n_fewer;    /* how many there are now */
    bool may_end;      /* before all units are evaluated */
    size_t n_again;    /* further passes over a unit, after the run */
    size_t n_look;     /* but not before so many of them are; 0: that is not known */
    size_t n_made;     /* models that another program makes before the run */
    double made;       /* seconds of a processor that this takes, about */
    struct cli_outlook_way ways[CLI_MAX_WAYS];
    size_t n_ways;
    const char *recorded_file; /* NULL: no rows are recorded */
    enum eval_row_kind recorded_kind;
    uint64_t n_recorded; /* bytes of that file */
};

/** What is evaluated. */
struct cli_evaluator {
    const struct cli_lines *lines;
    const struct cli_members *members;
    /** Open models and input; set `models` and `units`. Remarks go to standard error. */
    enum status (*open)(void *self, struct status_why *why);
    /** The journal is open, and not read yet. NULL: nothing to do. */
    enum status (*start)(void *self, struct status_why *why);
    /** Units that the journal had are restored. NULL: nothing to do. */
    enum status (*resumed)(void *self, struct status_why *why);
    /** After each unit, in order, before its lines. NULL: nothing to do. */
    void (*unit_done)(void *self, size_t unit);
    /** After the run, whole or not: the figures. NULL: there are none. */
    enum status (*summarise)(void *self, struct status_why *why);
    /** After they are printed: finish what is recorded. NULL: nothing to do. */
    enum status (*finish)(void *self, struct status_why *why);
    /** What a whole run comes to: STATUS_NONFINITE, STATUS_EXCEEDED, ... */
    enum status (*verdict)(const void *self, struct status_why *why);
    /** Release what `open` and the others made. Half-opened is allowed. */
    void (*close)(void *self);
    /**
     * Before a further run over what is open: forget all scores and figures, read reference rows
     * again; set `models` and `units`. After a failure, too. NULL: one run is all that it can do.
     */
    enum status (*again)(void *self, struct status_why *why);
    /** It is open: what can be said beforehand. Fails: STATUS_MEMORY. NULL: nothing. */
    enum status (*outlook)(const void *self, struct cli_outlook *out, struct status_why *why);
    /** The open models whose tensors may be replaced, i from 0 on. NULL after the last. */
    struct cli_model *(*model)(void *self, size_t i);
};

/** A file that is written when the run is over. */
struct cli_output {
    const char *option, *path; /* path NULL: not wanted */
    const char *kind;          /* of base/content/written.h */
    /* NULL: not the driver's to create, only to guard. */
    enum status (*write)(const void *self, struct base_file *file, struct status_why *why);
    bool only_whole;        /* abandoned where the run is incomplete */
    struct base_file *file; /* NULL: not wanted, or already written */
};

enum { CLI_MAX_INPUTS = 3, CLI_MAX_OUTPUTS = 5, CLI_MAX_GUARDED = 2 };

/** The first member of what a command keeps of a run. Zero-initialise but for the first part. */
struct cli_evaluation {
    const struct cli_evaluator *kind;
    const struct cli_evaluate_settings *settings;
    const char *name; /* of the evaluator, in the journal */
    struct cli_named_file inputs[CLI_MAX_INPUTS];
    struct cli_list model_paths; /* further inputs, each a -m or what follows */
    const char *model_option;    /* NULL: -m */
    struct cli_list more_inputs; /* each a `more_option` */
    const char *more_option;
    struct cli_list text_paths;           /* of documents, by `open`: each a -f */
    const struct cli_text_settings *text; /* -f and -bf, which are inputs, too; or NULL */
    const char *model_file, *text_file; /* their names in results, or NULL; that of `text` is set */
    bool extends; /* a journal of fewer windows is a beginning: see cli/session/journal.h */
    struct cli_output outputs[CLI_MAX_OUTPUTS]; /* beside --json and --state */

    /* The host's, before it is opened. */

    struct cli_backends backends;                   /* none: they are opened as the settings say */
    struct cli_named_file guarded[CLI_MAX_GUARDED]; /* its own files: no outputs, no inputs */

    /* By `open`. */

    struct eval_units *units;
    struct eval_models models;       /* without backends, which are the host's */
    const struct model *head_model;  /* of a compact base, if it was opened */
    const struct cli_model *sources; /* whose tensors are swapped into the candidate */
    size_t n_sources;

    /* The driver's. */

    struct cli_host *host;
    bool owns_backends; /* closed last: models live on them */
    char remarks[1024]; /* lines: what is said of the run beforehand */
    struct base_file *json_file;
    struct eval_journal *journal; /* NULL: none is kept */
    struct eval_memory memory;    /* the bound that was told beforehand; total NaN: none was */
    struct cli_progress progress;
    struct eval_run_stats stats;
    size_t n_faults;                 /* faults of mapped files that do not concern this run */
    size_t n_runs;                   /* begun */
    struct kern_times phases_before; /* of earlier runs, all devices together */
    time_t started;
    double clock_started, seconds_to_load; /* everything before the first batch */
};

/** The whole of it, by its host (hosts.c). Fails: as the evaluator's functions and the layers
 * below. */
enum status cli_evaluate(struct cli_evaluation *e, struct status_why *why);

/*
 * The parts of it, for hosts: begin, open, check, run as often as wanted,
 * whatever became of the runs before, then close, also after a failure. Each run writes its outputs
 * anew; its figures do not depend on those before it.
 */

/** Note the time, and check that nothing that is written is read. Fails: STATUS_USAGE. */
enum status cli_evaluation_begin(struct cli_evaluation *e, struct cli_host *host,
                                 struct status_why *why);
/** Fails: as cli_backends_open, the evaluator's open, and the host's ready. */
enum status cli_evaluation_open(struct cli_evaluation *e, struct status_why *why);
/** What is open is no output either: a path names only one part of a model. Fails: STATUS_USAGE. */
enum status cli_evaluation_check(const struct cli_evaluation *e, struct status_why *why);
/** Fails: also STATUS_CANCELLED. */
enum status cli_evaluation_run(struct cli_evaluation *e, struct status_why *why);
void cli_evaluation_close(struct cli_evaluation *e);

/** By `open`: the files of documents stand for the text, if there are any. */
void cli_evaluation_take_documents(struct cli_evaluation *e, const struct eval_documents *d);

/** The flag that ends it. From now on there may be files that a signal must not leave. */
const atomic_bool *cli_evaluation_cancel(const struct cli_evaluation *e);

/**
 * What a journal belongs to: this version of the program, and everything that determines numbers.
 * split: what else processes have in common that share the run (--split); 0: nothing.
 * out: a JSON object; cJSON_free() it.   Fails: STATUS_MEMORY.
 */
enum status cli_evaluation_identify(char **out, const struct cli_evaluation *e, size_t split,
                                    struct status_why *why);

/* remarks.c */

/** Say a line of the run in a note, and in the document's remarks. Before the journal is opened. */
__attribute__((format(printf, 2, 3))) void cli_remark(struct cli_evaluation *e, const char *format,
                                                      ...);

/**
 * Remark that a base has fewer bits per weight than a candidate, or fewer bytes: whoever swaps them
 * gets numbers that look right. Returns whether it did.
 */
bool cli_remark_swapped(struct cli_evaluation *e, const char *base_path, struct cli_model_size base,
                        const struct cli_model *candidate);

/** After the run: how many tokens in how much time, on standard error. */
void cli_print_speed(const struct cli_evaluation *e);

#endif
