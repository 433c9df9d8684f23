/**
 * The answers so far, in a file of JSON lines: {"path", "request", "response"}. The request is
 * an exchange's key, or its body. A run that is begun
 * again takes them from there. It is also what --logprobs reads.
 */
#ifndef PROBE_ASK_JOURNAL_H
#define PROBE_ASK_JOURNAL_H

#include "clients/probe/http/http.h"

struct probe_journal;

/**
 * Open or begin a file. A last line that is cut off is dropped. settings: a text that must be that
 * of the run which began the file.
 * Fails: STATUS_IO, STATUS_FORMAT (no such file), STATUS_USAGE (another run's), STATUS_MEMORY.
 */
enum status probe_journal_open(struct probe_journal **out, const char *path, const char *settings,
                               struct status_why *why);
void probe_journal_close(struct probe_journal *journal);
/** How many answers it had. */
size_t probe_journal_n(const struct probe_journal *journal);

/**
 * Take the answer to a request, if the file has one that was not taken yet: those to equal requests
 * in their order. Fails: STATUS_MEMORY.
 */
enum status probe_journal_find(struct probe_journal *journal, struct probe_exchange *exchange,
                               struct status_why *why);
/** Append an answer. Fails: STATUS_IO, STATUS_MEMORY. */
enum status probe_journal_add(struct probe_journal *journal, const struct probe_exchange *exchange,
                              struct status_why *why);

#endif
