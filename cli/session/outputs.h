/** The files that a command writes. They must be none of those that it reads. */
#ifndef CLI_SESSION_OUTPUTS_H
#define CLI_SESSION_OUTPUTS_H

#include <stddef.h>

#include "base/content/written.h"
#include "base/file/atomic_file.h"
#include "cli/options/args.h"
#include "model/model.h"

/** A file and the option that names it. path NULL: the option was not given. */
struct cli_named_file {
    const char *option;
    const char *path;
};

/**
 * Compare each output with every input and with the outputs before it. The same regular file
 * under two names counts, and so do two names of one file that is yet to be, of one stream ("-" and
 * /dev/stdout) and one name given twice; but a device may be written to twice.
 * Fails: STATUS_USAGE, naming both options.
 */
enum status cli_outputs_check(const struct cli_named_file *outputs, size_t n_outputs,
                              const struct cli_named_file *inputs, size_t n_inputs,
                              struct status_why *why);

/**
 * The same with every file of a model, whose path names only one of its parts, or which
 * was not named at all.   option: what reads it, for the sentence.
 */
enum status cli_outputs_check_model(const struct cli_named_file *outputs, size_t n_outputs,
                                    const char *option, const struct gguf_file *file,
                                    struct status_why *why);

/** Check each path of a list. option: what reads them, for the sentence. */
enum status cli_outputs_check_list(const struct cli_named_file *outputs, size_t n_outputs,
                                   const char *option, const struct cli_list *paths,
                                   struct status_why *why);

/**
 * Create *out where a path is given (NULL: no file is wanted). Where that is standard output, what
 * is printed from now on goes to standard error. kind: what is written (base/content/written.h), or
 * NULL with --force. Fails: as base_file_create.
 */
enum status cli_output_create(struct base_file **out, const char *path, const char *kind,
                              struct status_why *why);

/** Remove the regular file that an output may replace; links are followed. NULL: nothing. */
void cli_output_remove(const char *path, const char *kind);

/**
 * Commit a file where `filled`, the outcome of writing into it, is STATUS_OK, else abandon it.
 * *file is NULL afterwards. Returns the first failure.
 */
enum status cli_output_commit(struct base_file **file, enum status filled, struct status_why *why);

#endif
