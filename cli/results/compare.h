/** What assay compare says: lines for people, a document for programs. compare_text.c */
#ifndef CLI_RESULTS_COMPARE_H
#define CLI_RESULTS_COMPARE_H

#include "clients/documents/results/compare.h"

void cli_compare_print(const struct doc_compare *c);
/** Fails: STATUS_MEMORY. */
enum status cli_compare_write_json(const struct doc_compare *c, struct base_file *file,
                                   struct status_why *why);

#endif
