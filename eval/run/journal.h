/**
 * A journal: what a run has finished, so that a killed one can be continued.
 *
 * An append-only file. Its head says what it belongs to. Then comes an entry for each finished
 * unit, in order, with the unit's numbers. Each entry ends with a checksum that covers it and,
 * through the checksum before it, everything in front of it. Reading stops at the first entry that
 * is not whole; appending overwrites from there. docs/state.md has the layout and the guarantees.
 *
 * An entry is written by one call, so a killed process loses at most the one being written. The
 * disk is waited for at most once a second, and at the end: a power cut costs a second's entries.
 */
#ifndef EVAL_RUN_JOURNAL_H
#define EVAL_RUN_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/atomic_file.h"

struct eval_journal;

/**
 * Open a journal, or begin one where no file is or where one's head was left unfinished.
 * settings: a JSON object, everything that determines the numbers; compared to the byte.
 * The file is locked: a second run is refused.
 * out: the caller releases it with eval_journal_close; NULL on failure.   path: copied.
 * Fails: STATUS_IO (cannot be created, read or written; no regular file; in use by another run),
 *        STATUS_FORMAT (no journal, another version, a head that is damaged), STATUS_USAGE (made
 *        with other settings; the sentence names the first that differs), STATUS_MEMORY.
 */
enum status eval_journal_open(struct eval_journal **out, const char *path, const char *settings,
                              struct status_why *why);

/**
 * Begin a journal in a file that the caller commits or abandons, after it has closed the journal.
 * Only eval_journal_append and _close are for it. A write that fails is the commit's to report.
 * Fails: STATUS_USAGE (the settings are too long for a journal), STATUS_MEMORY.
 */
enum status eval_journal_begin(struct eval_journal **out, struct base_file *file,
                               const char *settings, struct status_why *why);

/**
 * Read the next entry, which must have n_values. To be called before anything is appended.
 * found: false where it does not follow whole; whatever is there will be overwritten.
 * Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status eval_journal_read(struct eval_journal *journal, double *values, size_t n_values,
                              bool *found, struct status_why *why);

/**
 * Open a journal that is there, to read it, whatever it belongs to.
 * settings: out, the object that it belongs to; freed by the caller.
 * Fails: STATUS_IO (also: in use by a run), STATUS_FORMAT, STATUS_UNSUPPORTED, STATUS_MEMORY.
 */
enum status eval_journal_look(struct eval_journal **out, const char *path, char **settings,
                              struct status_why *why);
/**
 * Read the next entry of any length. values: malloc; NULL where none follows whole.
 * Fails: STATUS_IO, STATUS_MEMORY.
 */
enum status eval_journal_next(struct eval_journal *journal, double **values, size_t *n_values,
                              struct status_why *why);

/** Take back the last successful eval_journal_read: the entry counts as absent. */
void eval_journal_unread(struct eval_journal *journal);

/**
 * Append an entry after the ones that were read; the first cuts off what follows them.
 * Fails: STATUS_IO (disk full, ...), STATUS_MEMORY.
 */
enum status eval_journal_append(struct eval_journal *journal, const double *values, size_t n_values,
                                struct status_why *why);

/** Bytes of a journal before its entries, with settings of n_settings bytes, and of an entry. */
uint64_t eval_journal_head_bytes(size_t n_settings);
uint64_t eval_journal_entry_bytes(size_t n_values);

/** Entries read and appended so far. */
uint64_t eval_journal_n(const struct eval_journal *journal);
/** Bytes after those entries. */
uint64_t eval_journal_n_behind(const struct eval_journal *journal);
/** As it was given. */
const char *eval_journal_path(const struct eval_journal *journal);

/** Wait until the disk has everything. Fails: STATUS_IO (also where it lost its name). */
enum status eval_journal_sync(struct eval_journal *journal, struct status_why *why);

/** Release, also the lock; NULL is allowed. What was appended stays, synced or not. */
void eval_journal_close(struct eval_journal *journal);

#endif
