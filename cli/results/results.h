/** What the commands share that read results. */
#ifndef CLI_RESULTS_RESULTS_H
#define CLI_RESULTS_RESULTS_H

#include "cli/options/args.h"
#include "clients/documents/results/results.h"

/** As doc_results_read; what is noted is said, too. */
enum status cli_results_read(struct doc_results *out, const struct cli_list *files, bool with_drawn,
                             struct status_why *why);

/**
 * Sort and print the table. csv: RFC 4180, all digits, errors in columns of their own; else
 * Markdown. by_metric: statistics as rows, runs as columns.   Fails: STATUS_MEMORY.
 */
enum status cli_scoreboard_print(struct doc_scoreboard *table, bool csv, bool by_metric,
                                 struct status_why *why);
/**
 * Sort and print a table of texts in lines of so many columns: the model, its divergence and, as
 * far as there is room, bits per weight, size, same top token, the 99.9 % quantile, perplexity and
 * the rest; errors have two digits.   Fails: STATUS_MEMORY.
 */
enum status cli_scoreboard_print_fitted(struct doc_scoreboard *table, size_t width,
                                        struct status_why *why);

#endif
