/** Files of importance matrices where commands also take others: merge, compare, info. */
#ifndef CLI_IMATRIX_FILES_FILES_H
#define CLI_IMATRIX_FILES_FILES_H

#include "cli/options/args.h"
#include "clients/imatrix/imatrix.h"
#include "gguf/gguf.h"

/** Whether a file is an importance matrix, as far as its beginning tells. Damaged GGUF counts. */
bool cli_imatrix_is(const char *path);

/** Refuse a file among importance matrices.   Fails: STATUS_IO (it cannot be opened), STATUS_USAGE.
 */
enum status cli_imatrix_refuse(const char *path, struct status_why *why);

/**
 * Add files up into a file that is none of them, and say what may not be meant. It is of the older
 * format where all of them are. force: whatever is there is replaced.
 * Fails: as imat_read, imat_add and cli_output_create.
 */
enum status cli_imatrix_merge(const struct cli_list *paths, const char *out_file, bool force,
                              struct status_why *why);

/**
 * Compare two files, print it, and write it where `json_file` is a path. force: whatever is there
 * is replaced. Fails: as imat_read, imat_compare and cli_output_create.
 */
enum status cli_imatrix_compare(const char *const paths[2], const char *json_file, bool force,
                                struct status_why *why);

/**
 * Print what a file holds. file: the file, where it is GGUF; else NULL.
 * Fails: as imat_read.
 */
enum status cli_imatrix_info(const char *path, const struct gguf_file *file, bool json,
                             struct status_why *why);

#endif
