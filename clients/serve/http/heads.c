#include "clients/serve/http/heads.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

static const char nul[] = "a header of the request has the character NUL";
enum { MAX_GAP = 1 << 15 }; /* what is farther away is of another piece of memory */

static const struct {
    const char *name, *fault;
} once[] = {
    {"Content-Length", "the request has two headers Content-Length: where it ends is not known"},
    {"Transfer-Encoding", "the request has two headers Transfer-Encoding"},
    {"Host", "the request has two headers Host"},
    {"Content-Type", "the request has two headers Content-Type"},
    {"Authorization", "the request has two headers Authorization"},
};
enum { LENGTH = 1, ENCODING = 2, N_ONCE = sizeof once / sizeof *once };

/** Whether there is nothing but the end of a line between a value and what follows. */
static bool is_line_end(const char *end, const char *next)
{
    uintptr_t from = (uintptr_t)end, to = (uintptr_t)next;
    if (to < from || to - from > MAX_GAP)
        return true;
    size_t n = 0;
    for (const char *at = end; at < next; at++) {
        n += !*at;
        if (*at && !strchr("\r\n\t ", *at))
            return false;
    }
    return n <= 2; /* CR and LF */
}

void serve_heads_add(struct serve_heads *heads, const char *name, const char *value)
{
    const char *end = value ? value + strlen(value) : NULL;
    if (heads->fault)
        return;
    if (heads->end && !is_line_end(heads->end, name))
        heads->fault = nul;
    heads->end = end;
    for (unsigned i = 0; i < N_ONCE; i++) {
        if (strcasecmp(name, once[i].name) != 0)
            continue;
        if (heads->seen & 1U << i)
            heads->fault = once[i].fault;
        heads->seen |= 1U << i;
    }
    if ((heads->seen & (LENGTH | ENCODING)) == (LENGTH | ENCODING))
        heads->fault = "the request has Content-Length and Transfer-Encoding: where it ends is not "
                       "known";
}

void serve_heads_end(struct serve_heads *heads)
{
    if (!heads->fault && heads->end && !is_line_end(heads->end, heads->end + 2))
        heads->fault = nul;
}
