/** Requests to a server, each of them once or more: what the journal has is not sent. */
#ifndef PROBE_ASK_SEND_H
#define PROBE_ASK_SEND_H

#include "clients/probe/ask/server.h"

/**
 * Answer n requests, those of them that are sent at the same time: from the journal, or by the
 * server, which is asked again after a wait where that may help. New answers go to the journal.
 * What becomes of each is in the exchange, as probe_http_send has it.
 * Fails: as probe_http_send; STATUS_IO (the journal).
 */
enum status probe_send(struct probe_server *server, struct probe_exchange *exchanges, size_t n,
                       struct status_why *why);

/** Whether it was refused because the server has too much to do, or is loading. */
bool probe_send_is_busy(long code);

/** What became of a request that was not answered, for a sentence. */
void probe_send_failure(char *out, size_t capacity, const struct probe_exchange *exchange);

#endif
