/**
 * What Linux has and POSIX has not, as callers need it. linux.c has it as Linux does, posix.c as
 * other systems can; the option ASSAY_PORTABLE of the build takes the second.
 */
#ifndef BASE_SYSTEM_SYSTEM_H
#define BASE_SYSTEM_SYSTEM_H

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

/** A file without a name in the folder, to be written and named later; -1: there can be none. */
int base_system_nameless(const char *folder);
/** Give it a name that nothing has. Returns 0, or -1 and errno. */
int base_system_give_name(int fd, const char *path);

/**
 * Rename unless there is a file of the new name. Returns 0, or -1 and errno: EEXIST where there is
 * one, ENOSYS or EINVAL where the system or the file system cannot do it in one step.
 */
int base_system_rename_new(const char *from, const char *to);

/**
 * Take space for a file, whose length stays. Returns 0 or an errno: ENOSYS, EOPNOTSUPP or EINVAL
 * where that cannot be done.
 */
int base_system_set_aside(int fd, int64_t n_bytes);

/** Processors that this process may use; of all that there are where only that is known. */
unsigned base_system_processors(void);

/** Most bytes that ever were resident; 0: unknown. */
double base_system_peak(void);
/** Bytes that are resident, or the peak where only that is known; 0: unknown. */
double base_system_resident(void);
/** Whether the mapping of [start, end) counts. */
typedef bool base_system_counts(const void *context, uintptr_t start, uintptr_t end);
/** Resident bytes of the mappings that count; negative: the system does not tell. */
double base_system_resident_of(base_system_counts *counts, const void *context);

/**
 * Put whole pages that are read only in place of others. from: of mmap, without a file; they are
 * gone from there. Returns 0, or -1 and errno; then they are where they were.
 */
int base_system_move_pages(void *from, void *to, size_t n_bytes);
/** A hint: fewer and larger pages for this memory. */
void base_system_huge_pages(void *memory, size_t n_bytes);

/**
 * As pipe, socket and accept; what they return is closed by exec. waits: whether calls wait, as
 * they do without O_NONBLOCK. They return -1 and errno.
 */
int base_system_pipe(int ends[2]);
int base_system_socket(int family, bool waits);
int base_system_accept(int listener, bool waits);
/** As send, without waiting, and without SIGPIPE. fd: of the two above. */
ssize_t base_system_send(int fd, const void *bytes, size_t n_bytes);
/**
 * Whether the other end of a connection will send no more. Where the system tells only what comes
 * next, false as long as something is unread.
 */
bool base_system_hung_up(int fd);

/** For base/condition.h. The time may be earlier than the deadline, on base_clock_seconds(). */
void base_system_condition_init(pthread_cond_t *condition);
struct timespec base_system_condition_time(double deadline);

/** The absolute path of the running program. False: unknown. */
bool base_system_program(char path[PATH_MAX]);

#endif
