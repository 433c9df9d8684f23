/** What assay compare says: lines for people, a document for programs. compare_text.c */
#ifndef CLI_RESULTS_COMPARE_H
#define CLI_RESULTS_COMPARE_H

#include "clients/documents/compare/compare.h"

void cli_compare_print(const struct doc_compare *c);
/** Fails: STATUS_MEMORY. */
enum status cli_compare_write_json(const struct doc_compare *c, struct base_file *file,
                                   struct status_why *why);

/** compare_files.c: two GGUF files. */
struct cli_compare_files_settings {
    const char *base;  /* NULL: there is none */
    int64_t n_threads; /* 0: as many as processors */
};
/** Whether a file is GGUF, and no importance matrix. */
bool cli_compare_is_model(const char *path);
/** Fails: as gguf_open, model_file_open, conv_files_compare, cli_output_create. */
enum status cli_compare_files(const char *const paths[2],
                              const struct cli_compare_files_settings *settings,
                              const char *json_file, bool force, struct status_why *why);

#endif
