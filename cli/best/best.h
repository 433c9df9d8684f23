/** A run of assay best from end to end: what the parts of the command share. */
#ifndef CLI_BEST_BEST_H
#define CLI_BEST_BEST_H

#include <stdatomic.h>

#include "base/text/size.h"
#include "cli/kld/kld_evaluator.h"
#include "clients/documents/results/speeds/speeds.h"
#include "eval/run.h"
#include "eval/streams.h"

struct cli_best_settings {
    struct cli_kld_settings kld;      /* base, models, text, windows, what every evaluation takes */
    const char *memory, *size;        /* NULL: no limit */
    int64_t context;                  /* tokens of the cache that counts; 0: none */
    struct cli_list benches;          /* what llama-bench printed */
    double least_speed[DOC_N_SPEEDS]; /* tokens per second; 0: no limit */
    const char *margin;               /* "0.001", "5%", "0.001+5%" */
    double alpha;
    const char *report_file;
};

/** What stands in the way of a file, and what it takes. */
struct cli_best_file {
    const char *path;             /* borrowed */
    char label[CLI_CALLED_BYTES]; /* what the lines call it */
    char quantisation[64];
    uint64_t n_bytes; /* of its tensors */
    uint64_t on_disk; /* of the file, with its metadata */
    double cache;     /* bytes of the cache that counts */
    struct doc_metric_value speeds[DOC_N_SPEEDS];
    size_t candidate; /* SIZE_MAX: it does not fit, or is */
    bool too_slow;
};

/** How much there is room for; 0: any. */
struct cli_best_limits {
    uint64_t memory, size;
};

struct cli_best {
    struct cli_kld k; /* its candidates are those that fit, the smallest first */
    const struct cli_best_settings *settings;
    struct cli_best_limits limits;
    struct eval_race_rules rules;
    struct doc_document *benches; /* [n_benches] */
    size_t n_benches;
    struct doc_speeds speeds;
    const struct base_size_unit *unit; /* of sizes that are shown: the one that was asked for */
    struct cli_best_file *files;       /* [n_files], the smallest first */
    size_t n_files;
    struct eval_race race;
    size_t *order;              /* [windows]: the window of the text that unit i is */
    double *divergences;        /* [candidates]: of a window */
    struct eval_unit_kind kind; /* windows in this order, until the race is over */
    atomic_bool *idle;          /* [passes] */
    struct eval_idle idling;
    struct eval_stream_source streams;
    size_t n_looks_told;
};

/** What is said of a file. */
enum cli_best_standing {
    CLI_BEST_ANSWER,
    CLI_BEST_NO_GAIN, /* it is no smaller, and the answer is as good */
    CLI_BEST_WORSE,
    CLI_BEST_OPEN, /* the windows so far do not tell */
    CLI_BEST_NONFINITE,
    CLI_BEST_TOO_LARGE,
    CLI_BEST_TOO_SLOW
};
extern const char *const cli_best_standings[]; /* by enum cli_best_standing, for documents */

/** What became of file i of best->files. Differences are of mean divergences, in nats. */
struct cli_best_place {
    enum cli_best_standing standing;
    bool clear;
    size_t beside; /* the candidate that the difference is from; SIZE_MAX: there is none */
    double difference, low, high;
};
struct cli_best_place cli_best_place(const struct cli_best *b, size_t i);

/** The size of a file that is held against the limit, without its cache. */
double cli_best_bytes(const struct cli_best *b, const struct cli_best_file *f);

/** The answer, a candidate; SIZE_MAX: there is none. clear: out, it will stay. */
size_t cli_best_answer(const struct cli_best *b, bool *clear);

/** What there is to say, the answer first: the first *n of out[n_files + 1]. */
void cli_best_verdict(const struct cli_best *b, struct status_why *out, size_t *n);

/** Read the limits and the margin. Fails: STATUS_USAGE. */
enum status cli_best_read(struct cli_best *b, struct status_why *why);
/**
 * fits.c. Measure the open candidates, sort them by size, and close those that do not fit, are the
 * base, or are one of the others. Fails: STATUS_EXCEEDED (none is left), STATUS_MEMORY.
 */
enum status cli_best_fit(struct cli_best *b, struct status_why *why);

/* speed.c */

/** Read what llama-bench printed. Fails: STATUS_USAGE, as doc_read_as and doc_speeds_open. */
enum status cli_best_read_speeds(struct cli_best *b, struct status_why *why);
void cli_best_close_speeds(struct cli_best *b);
/** Give the files, which are in the order of the candidates, their speeds, and say which rows were
 * taken. Fails: as doc_speeds_of. */
enum status cli_best_measure_speeds(struct cli_best *b, struct status_why *why);
bool cli_best_is_fast(const struct cli_best *b, const struct cli_best_file *f);
enum { CLI_BEST_SLOW = 128 };
/** Why it is not: "it generates 12 tokens per second, less than 30". */
const char *cli_best_say_slow(char out[CLI_BEST_SLOW], const struct cli_best *b,
                              const struct cli_best_file *f);

/** Share of the tokens that all candidates take on the whole text. */
double cli_best_share(const struct cli_best *b);

/** best_json.c: the sentences of cli_best_verdict, in a document's `verdict`. */
void cli_best_add_verdict(const struct cli_best *b, struct base_json *json);

extern const struct cli_lines cli_best_lines;     /* best_text.c */
extern const struct cli_members cli_best_members; /* best_json.c */
/** As struct cli_output has it: report.c. */
enum status cli_best_write_report(const void *self, struct base_file *file, struct status_why *why);

/** The whole of assay best with these settings. */
enum status cli_best_run(const struct cli_best_settings *settings, struct status_why *why);

#endif
