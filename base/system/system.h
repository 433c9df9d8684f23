/**
 * What Linux has and POSIX has not, as callers need it. linux.c has it as Linux does, posix.c as
 * other systems can; the option ASSAY_PORTABLE of the build takes the second.
 */
#ifndef BASE_SYSTEM_SYSTEM_H
#define BASE_SYSTEM_SYSTEM_H

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <time.h>

#ifdef __APPLE__
#define st_ctim                            st_ctimespec
#define st_mtim                            st_mtimespec
#define BASE_SYSTEM_LIBRARY(name, version) "lib" name "." version ".dylib"
#else
/** A library as the loader knows it, from two literals: its name and the version of its ABI. */
#define BASE_SYSTEM_LIBRARY(name, version) "lib" name ".so." version
#endif

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

/**
 * Bytes of memory that can be had without writing anything out; all that there are where only that
 * is known; infinite: unknown.
 */
double base_system_available(void);
/** Most bytes that ever were resident; 0: unknown. */
double base_system_peak(void);
/** Bytes that are resident, or the peak where only that is known; 0: unknown. */
double base_system_resident(void);
/** Whether the mapping of [start, end) counts. */
typedef bool base_system_counts(const void *context, uintptr_t start, uintptr_t end);
/** Resident bytes of the mappings that count; negative: the system does not tell. */
double base_system_resident_of(base_system_counts *counts, const void *context);

/**
 * To be asked by a handler of SIGBUS: whether a mapped file no longer has the page. path: of the
 * file, or "a file" where that is unknown. *end: of the mapping, or of the page likewise.
 */
bool base_system_lost_page(const siginfo_t *fault, char *path, size_t capacity, uintptr_t *end);

/**
 * Put whole pages that are read only in place of others. from: of mmap, without a file; they are
 * gone from there. Returns 0, or -1 and errno; then they are where they were.
 */
int base_system_move_pages(void *from, void *to, size_t n_bytes);
/** A hint: fewer and larger pages for this memory. */
void base_system_huge_pages(void *memory, size_t n_bytes);
/** A hint: these whole pages of a mapped file are not needed in memory any more. */
void base_system_drop_pages(void *memory, size_t n_bytes);
/** A hint: what was freed, and is kept for the next allocation, goes back to the system. */
void base_system_return_memory(void);

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
 * Have a connection of TCP fail when the other machine has been silent for ms; sending: also while
 * something is on its way there. Where the system has but a time of its own, that one holds.
 */
void base_system_end_when_gone(int fd, int ms, bool sending);
/**
 * Whether the other end of a connection will send no more. Where the system tells only what comes
 * next, false as long as something is unread.
 */
bool base_system_hung_up(int fd);

/** For base/condition.h. The time may be earlier than the deadline, on base_clock_seconds(). */
void base_system_condition_init(pthread_cond_t *condition);
struct timespec base_system_condition_time(double deadline);

/** A signal of the set, which is blocked, if one comes within so many seconds; else 0. */
int base_system_signal(const sigset_t *set, double seconds);

/** What aarch64 has beyond NEON, as bits; elsewhere none. */
enum { BASE_SYSTEM_DOTPROD = 1, BASE_SYSTEM_I8MM = 2 };
unsigned base_system_instructions(void);
/** Have the system keep a set of registers of x86-64, as XCR0 numbers them. False: it does not. */
bool base_system_keep_registers(int set);

/** The absolute path of the running program. False: unknown. */
bool base_system_program(char path[PATH_MAX]);

#endif
