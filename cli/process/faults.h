/** Pages that a mapped file no longer has: it became shorter, or its disk failed. */
#ifndef CLI_PROCESS_FAULTS_H
#define CLI_PROCESS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

/**
 * From now on touching such a page ends the process with a sentence that names the file, and the
 * exit code of an evaluation that failed. Any other SIGBUS kills as before.
 */
void cli_mapping_fault_catch(void);

/**
 * From now on such a page, and all after it in the file, are zeros, and the process goes on.
 * A reader of a mapped file must see that there was no fault before it believes what it read.
 */
void cli_mapping_fault_survive(void);

/** How many faults there were so far. */
size_t cli_mapping_faults(void);

/** Whether a part of these bytes has become zeros so. */
bool cli_mapping_lost(const void *data, size_t n_bytes);

/** They are about to be unmapped: what lies there next is not lost. */
void cli_mapping_forget(const void *data, size_t n_bytes);

#endif
