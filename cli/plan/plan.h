/**
 * assay plan: what a run would take, said before it is made. It is a host of the driver
 * (cli/host.h): it opens what the run would open, counts what the run would compute, evaluates for
 * some seconds, writes nothing of the run, and scales the times by the arithmetic.
 */
#ifndef CLI_PLAN_PLAN_H
#define CLI_PLAN_PLAN_H

#include "cli/evaluate.h"
#include "cli/host.h"

/** What plan itself is asked for. */
struct cli_plan_settings {
    const char *json_file; /* of the plan; NULL: none */
    bool force;            /* it may replace a file of another kind */
    int64_t seconds;       /* that the trial may take */
};
extern const struct cli_plan_settings cli_plan_defaults;

/** What a run has to do. */
struct cli_plan_work {
    size_t n_left; /* units that no journal has */
    size_t n_batches, n_tokens, n_rows, batch_tokens;
    double forward, head; /* operations of the layers, and of the heads */
    double weights;       /* bytes of weights that a batch passes over */
    double memory;        /* bytes that the run takes at most */
    double moved;         /* the sum: once for each tile of tokens */
};

/** How fast this machine does it, by a trial. */
struct cli_plan_pace {
    size_t n_tokens;      /* that were evaluated */
    bool whole;           /* a batch came to its end; else the layers speak for the head */
    double seconds;       /* that were measured */
    double forward, head; /* operations a second, of all workers together */
    double rest;          /* seconds for each token beside both */
    double loading, processor_loading; /* seconds until all is open */
    double opening;                    /* from there to the first batch */
    double n_busy;                     /* processors that were at work */
};

/** What the files and the machine say. */
struct cli_plan_machine {
    unsigned n_threads, n_processors;
    bool on_device;
    double available; /* bytes of memory; infinite where the system does not tell */
    double absent;    /* bytes of the models' files that are not in memory */
    double disk;      /* bytes a second that the absent ones are read with; infinite: none are */
    double bandwidth; /* bytes a second of memory, by all threads */
};

enum cli_plan_limit {
    CLI_PLAN_ARITHMETIC,
    CLI_PLAN_MEMORY,
    CLI_PLAN_DISK,
    CLI_PLAN_DEVICE,
};
extern const char *const cli_plan_limits[]; /* words, by enum cli_plan_limit */

/** Seconds, and the bytes that are read for them. */
struct cli_plan_times {
    double total, loading, layers, head, rest, disk; /* disk: while the others go on */
    double alone;         /* total, if nothing else computes; the same where nothing did */
    double loading_alone; /* its share of loading */
    double making;        /* of all of them, by another program; a guess */
    double to_look;       /* of alone, until the run may end; NaN: not before its end, or unknown */
    double processor;     /* of all threads together */
    double n_read;        /* bytes from disk */
    enum cli_plan_limit limit;
};

/** A cheaper run. */
struct cli_plan_way {
    char option[64];
    double seconds;
    double wider; /* standard errors are so many times as large; 1: as they are */
};
enum { CLI_PLAN_MAX_WAYS = 8 };

/** A plan on its way. Make it with cli_plan_make. */
struct cli_plan {
    struct cli_host host;
    const struct cli_plan_settings *settings;
    struct cli_evaluation *e;
    struct cli_outlook outlook;
    struct cli_plan_work work;
    struct cli_plan_pace pace;
    struct cli_plan_machine machine;
    struct cli_plan_times times;
    struct cli_plan_way ways[CLI_PLAN_MAX_WAYS];
    size_t n_ways;
    double journal_bytes, free_bytes; /* of the disk that the largest output is on; NaN: unknown */
    bool made;
    struct eval_row_sink sink; /* takes rows that a run would record */
};

/** A host that plans. settings: borrowed. */
void cli_plan_make(struct cli_plan *plan, const struct cli_plan_settings *settings);

/* scale.c: functions of what they are given. */

/** Count the batches from `first` item on, `n` at most, as operations and tokens. */
void cli_plan_count(struct cli_plan_work *out, const struct eval_units *units,
                    const struct eval_models *models, size_t n_batches);
/** Times of the whole. */
struct cli_plan_times cli_plan_scale(const struct cli_plan_work *work,
                                     const struct cli_plan_pace *pace,
                                     const struct cli_plan_machine *machine,
                                     const struct cli_outlook *outlook);
/** Cheaper runs. Returns how many. */
size_t cli_plan_ways(struct cli_plan_way out[CLI_PLAN_MAX_WAYS], const struct cli_plan_times *times,
                     const struct cli_plan_work *work, const struct cli_outlook *outlook);

/* trial.c */

/** Evaluate for some seconds, and set the pace. The units and models are prepared. */
enum status cli_plan_try(struct cli_plan *plan, struct status_why *why);

/* machine.c */

/** Look at processors, memory and the models' files; read some of what is absent. */
void cli_plan_look(struct cli_plan_machine *out, const struct cli_evaluation *e);

/* report.c */

/** "27 h", "2 h 05 min", "35 min", "1 min 20 s", "8.4 s", "0.04 s". */
enum { CLI_PLAN_TEXT = 32 };
const char *cli_plan_duration(char out[CLI_PLAN_TEXT], double seconds);
/** "1.2 GB" */
const char *cli_plan_bytes(char out[CLI_PLAN_TEXT], double n_bytes);
void cli_plan_print(const struct cli_plan *plan);
/** The document "assay-plan" into *file, which is committed. NULL: nothing. Fails: STATUS_IO. */
enum status cli_plan_write(const struct cli_plan *plan, struct base_file **file,
                           struct status_why *why);

#endif
