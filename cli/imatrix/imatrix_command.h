/** assay imatrix: importance matrices of a model, collected from a text. */
#ifndef CLI_IMATRIX_IMATRIX_COMMAND_H
#define CLI_IMATRIX_IMATRIX_COMMAND_H

#include "cli/evaluate.h"
#include "cli/input/windows.h"
#include "clients/imatrix/missing.h"
#include "clients/imatrix/windows/nextn.h"
#include "clients/imatrix/windows/units.h"
#include "eval/metrics.h"

/** Indices into the words of --output-format. */
enum cli_imatrix_format { CLI_IMATRIX_GGUF, CLI_IMATRIX_DAT };

struct cli_imatrix_settings {
    const char *model, *out_file;
    struct cli_text_settings text;
    struct cli_window_settings windows;
    struct cli_evaluate_settings evaluate;
    int format;
    bool process_output, no_nextn, no_ppl, llama_compat;
    int64_t n_ubatch;   /* of llama-imatrix; 0: not given */
    double stop_change; /* NaN: not given */
    int64_t stop_rows;  /* 0: not given */
};

struct cli_imatrix {
    struct cli_evaluation e;
    const struct cli_imatrix_settings *settings;
    struct cli_model model;
    struct cli_windows windows;
    struct imat_collector *collector;
    struct imat_units units;
    struct imat_nextn nextn;           /* its model NULL: no such block is collected */
    struct eval_stream_source streams; /* of it */
    struct imat_missing_list foreseen; /* matrices without an entry, before the run */
    struct imat_missing_list missing;  /* and after all of it, items NULL before that */
    struct imat_matrix matrix;         /* after the run */
    struct eval_perplexity_result result;
    char *sums_file, *sums_id;     /* --state has them; NULL: not given */
    double saved, seconds_to_save; /* when the sums were, and how long that took */
};

/** Whether only some rows count. */
static inline bool cli_imatrix_masked(const struct cli_imatrix *im)
{
    const struct cli_chat_settings *chat = &im->settings->text.chat;
    return chat->mask >= 0 && chat->mask != MODEL_CHAT_ALL;
}

/** llama-imatrix's -b and -ub; without --llama-compat 0. */
struct imat_llama cli_imatrix_llama(const struct cli_imatrix_settings *settings);

/** Windows that are in the sums. */
size_t cli_imatrix_n_windows(const struct cli_imatrix *im);

/** A matrix of a stack with fewer rows is one of those that are named; --stop-when-rows names
 * another number. */
enum { CLI_IMATRIX_FEW_ROWS = 32 };
uint64_t cli_imatrix_few_rows(const struct cli_imatrix *im);

/** Say which matrices of the file will have no entry, and what becomes of them. */
void cli_imatrix_say_missing(const struct cli_imatrix *im);

/* cli/imatrix/state.c: --state; without it these do nothing. */

/** Read the sums beside the journal; then whether they fit its windows. */
enum status cli_imatrix_load(void *self, struct status_why *why);
enum status cli_imatrix_check_loaded(void *self, struct status_why *why);
/** After a window: write them, if that was not done lately. A failure is a note. */
void cli_imatrix_keep(void *self, size_t window);
/** At the end. Fails: as imat_units_save. */
enum status cli_imatrix_keep_last(struct cli_imatrix *im, struct status_why *why);

/** The whole of it. Fails: as cli_evaluate. */
enum status cli_imatrix_run(const struct cli_imatrix_settings *settings, struct status_why *why);

/** Its rows: of the matrices of a stack the fewest, the most, and how many have few of them. */
struct cli_imatrix_rows {
    uint64_t least, most, n_few, n_none;
};
struct cli_imatrix_rows cli_imatrix_rows(const struct imat_entry *entry, uint64_t few);

extern const struct cli_lines cli_imatrix_lines;     /* imatrix_text.c */
extern const struct cli_members cli_imatrix_members; /* imatrix_json.c */

#endif
