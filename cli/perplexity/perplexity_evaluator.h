/** A run of assay perplexity or assay record: what the parts of the commands share. */
#ifndef CLI_PERPLEXITY_PERPLEXITY_EVALUATOR_H
#define CLI_PERPLEXITY_PERPLEXITY_EVALUATOR_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "cli/options/perplexity.h"
#include "eval/metrics.h"
#include "eval/reference.h"

/** A file of rows on its way, and what it has become once it is written. */
struct cli_recording {
    struct eval_writer *writer; /* of the settings' format; NULL: not wanted, or already written */
    struct eval_row_sink sink;  /* the writer's */
    char id[BASE_HEX];          /* "": nothing was recorded */
    uint64_t n_bytes;
    struct eval_compact_error error; /* of a compact base's rows */
};

struct cli_perplexity {
    struct cli_evaluation e;
    const struct cli_perplexity_settings *settings;
    struct cli_model model;
    struct cli_windows windows;
    struct eval_tally tally; /* of the windows that were reported */
    struct eval_perplexity_result result;
    struct eval_curve curve;   /* with --context-curve */
    struct eval_groups groups; /* of documents */
    struct cli_recording recording;
};

/**
 * The whole of it: open, run, report, close. assay record calls it, too.
 * Fails: STATUS_NONFINITE (a perplexity that is not finite), as cli_evaluate.
 */
enum status cli_perplexity_run(const struct cli_perplexity_settings *settings,
                               struct status_why *why);

/* cli/perplexity/recording.c: --kl-divergence-base without --kl-divergence, and assay record;
   nothing happens where no file is given. */

/** What plan asks for: the file's size, and --chunks. */
enum status cli_recording_outlook(const void *self, struct cli_outlook *out,
                                  struct status_why *why);
/** When the journal is open: begin the file, or go on with it. Fails: as the writers. */
enum status cli_recording_begin(void *self, struct status_why *why);
/**
 * When the journal has been read: a file that is there already must be the one it tells of, and
 * whole. Fails: STATUS_USAGE.
 */
enum status cli_recording_check_resumed(void *self, struct status_why *why);
/** With the result: give the file its name if it is whole and finite. Fails: STATUS_IO. */
enum status cli_recording_finish(void *self, struct status_why *why);
/** Close what has not been finished, keeping it where a journal can go on with it. */
void cli_recording_close(struct cli_perplexity *p);

extern const struct cli_lines cli_perplexity_lines;     /* perplexity_text.c */
extern const struct cli_members cli_perplexity_members; /* perplexity_json.c */

#endif
