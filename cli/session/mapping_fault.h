/** A mapped file that becomes shorter, or whose disk fails, while it is read: SIGBUS. */
#ifndef CLI_SESSION_MAPPING_FAULT_H
#define CLI_SESSION_MAPPING_FAULT_H

#include <stddef.h>

/**
 * From now on touching a page that a mapped file no longer has ends the process with a sentence
 * that names the file, and the exit code of unreadable input. Any other SIGBUS kills as before.
 */
void cli_mapping_fault_catch(void);

/**
 * The file that is mapped at an address, read from /proc/self/maps; async-signal-safe.
 * path: receives its name, cut to capacity - 1 bytes, and a NUL; "" where there is none.
 */
void cli_mapping_path(const void *address, char *path, size_t capacity);

#endif
