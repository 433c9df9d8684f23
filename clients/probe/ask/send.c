#include "clients/probe/ask/send.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json/parse.h"
#include "clients/probe/ask/journal.h"

static const double most_wait = 20; /* seconds */

bool probe_send_is_busy(long code)
{
    return code == 429 || code == 503;
}

/** Whether asking again may help: the server is loading, busy, or has dropped the connection. */
static bool is_passing(const struct probe_exchange *e)
{
    return (e->code == 0 && !e->is_final) || probe_send_is_busy(e->code) || e->code == 500 ||
           e->code == 502;
}

void probe_send_failure(char *out, size_t capacity, const struct probe_exchange *e)
{
    char words[160];
    probe_answer_error(words, sizeof words, e->bytes, e->n_bytes);
    if (e->code == 0)
        snprintf(out, capacity, "%s", e->failure);
    else if (e->code >= 300 && e->code < 400)
        snprintf(out, capacity,
                 "HTTP %ld, a redirect, which is not followed; give the address "
                 "itself",
                 e->code);
    else
        snprintf(out, capacity, "HTTP %ld%s%s%s", e->code, *words ? ": \"" : "", words,
                 *words ? "\"" : "");
}

/** Those that have no answer yet, or, from the second round on, none that counts. */
static size_t pick(size_t *at, const struct probe_exchange *all, size_t n, bool again)
{
    size_t n_left = 0;
    for (size_t i = 0; i < n; i++)
        if (again ? is_passing(&all[i]) : !all[i].bytes)
            at[n_left++] = i;
    return n_left;
}

/** How long to wait before a round: longer each time, and as long as the server says. */
static double seconds_before(size_t round, const struct probe_exchange *all, const size_t *at,
                             size_t n)
{
    double wait = 0.1 * (double)(1 << round);
    for (size_t i = 0; i < n; i++)
        wait = fmax(wait, all[at[i]].retry_after);
    return fmin(wait, most_wait);
}

/** Wait before a round. *over: the server has been busy for too long. */
static enum status wait_for(struct probe_server *s, double seconds, const struct probe_exchange *e,
                            bool *over, struct status_why *why)
{
    char failure[400];
    double now = base_clock_seconds();
    s->busy_since = s->busy_since > 0 ? s->busy_since : now;
    double left = s->busy_since + s->patience - now;
    *over = left <= 0;
    if (*over)
        return STATUS_OK;
    seconds = fmin(seconds, left);
    probe_send_failure(failure, sizeof failure, e);
    if (s->waits)
        s->waits(s->user, failure, seconds);
    return probe_http_wait(s->http, seconds, why);
}

/** Send n of them at the same time, and keep the answers. left: room for n. */
static enum status send_some(struct probe_server *s, struct probe_exchange *all, const size_t *at,
                             size_t n, struct probe_exchange *left, struct status_why *why)
{
    for (size_t i = 0; i < n; i++)
        left[i] = (struct probe_exchange){.path = all[at[i]].path,
                                          .body = all[at[i]].body,
                                          .key = all[at[i]].key,
                                          .retry_after = -1};
    enum status status = probe_http_send(s->http, left, n, why);
    s->n_requests += n;
    for (size_t i = 0; i < n; i++) {
        probe_exchange_free(&all[at[i]]);
        all[at[i]] = left[i];
        s->busy_since = left[i].code == 200 ? 0 : s->busy_since;
        if (left[i].bytes) /* a list may have such a token; what is kept is read again */
            base_json_replace_nul(left[i].bytes, left[i].n_bytes);
        if (!status && s->journal && left[i].code == 200)
            status = probe_journal_add(s->journal, &left[i], why);
    }
    return status;
}

enum status probe_send(struct probe_server *s, struct probe_exchange *all, size_t n,
                       struct status_why *why)
{
    struct probe_exchange *left = NULL;
    size_t *at = NULL, n_left;
    enum status status = base_array_new(left, n, "requests", why);
    if (!status)
        status = base_array_new(at, n, "requests", why);
    s->n_asked += n;
    for (size_t i = 0; i < n && !status && s->journal; i++)
        status = probe_journal_find(s->journal, &all[i], why);
    bool over = false;
    for (size_t round = 0; !status && round < s->n_tries && !over; round++) {
        n_left = pick(at, all, n, round > 0);
        if (n_left == 0)
            break;
        if (round)
            status = wait_for(s, seconds_before(round, all, at, n_left), &all[at[0]], &over, why);
        if (!status && !over)
            status = send_some(s, all, at, n_left, left, why);
    }
    free(left);
    free(at);
    return status;
}
