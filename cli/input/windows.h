/** The text of a command, and its windows: from options over tokens to tables. */
#ifndef CLI_INPUT_WINDOWS_H
#define CLI_INPUT_WINDOWS_H

#include "base/content/text.h"
#include "cli/input/documents.h"
#include "eval/units.h"

/** Zero-initialise; release with cli_windows_close. */
struct cli_windows {
    struct base_text text;           /* empty where a base has the tokens, or of documents */
    struct eval_documents documents; /* n 0: it is one text */
    struct eval_stream stream;
    struct eval_plan plan;
    size_t n_laid; /* windows of the plan before the run ended early */
    struct eval_stop stop;
    bool is_cut;               /* only ids that all models have are compared */
    struct eval_table *tables; /* [units.n_tables], the base's first */
    struct eval_windows units;
};

/** Tokens of a window without -c. */
enum { CLI_DEFAULT_CONTEXT = 512 };
/** The default protocol's windows as the options choose them; n_default: n_ctx without -c. */
struct eval_plan_options cli_plan_options(const struct cli_window_settings *settings,
                                          const struct model *model, size_t n_default);

/**
 * Read w->text or w->documents, and make their tokens w->stream. Documents take of the options
 * parse_special only. what: what takes one text only, as cli_text_check_single has it; NULL:
 * documents are allowed.
 * Fails: as cli_text_open, eval_stream_make, cli_documents_read; STATUS_USAGE (documents for what
 *        takes one text).
 */
enum status cli_windows_read(struct cli_windows *w, const struct cli_text_settings *settings,
                             const struct eval_stream_options *options, const char *what,
                             const struct model_tokenizer *tokenizer, struct status_why *why);
/** Lay windows over w->stream, document by document if it has such; the plan's warning goes to
 * standard error. As eval_plan_make. */
enum status cli_windows_lay(struct cli_windows *w, const struct eval_plan_options *plan,
                            struct status_why *why);
/**
 * Make the tables of the windows, one, and n_pairs of what is compared with it; w->units are then
 * ready to be evaluated. Again: new and empty ones.   Fails: STATUS_MEMORY.
 */
enum status cli_windows_make_tables(struct cli_windows *w, size_t n_pairs, struct status_why *why);
/** The run may end when this standard error is reached; NaN: it does not. After the tables. */
enum status cli_windows_stop_at(struct cli_windows *w, double se, struct status_why *why);
/** After the run: if it ended early, the plan ends there, too, as if --chunks had said so. */
void cli_windows_close_plan(struct cli_windows *w);
void cli_windows_close(struct cli_windows *w);

#endif
