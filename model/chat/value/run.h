/**
 * What parsing and rendering share: memory that is released as a whole, a bound on the work, and
 * the first failure. For this folder only.
 *
 * A function that fails notes it here and returns an absent value (or NULL, or what is at hand of
 * its type): what follows runs on without harm, and whoever loops looks at `status`.
 */
#ifndef MODEL_CHAT_VALUE_RUN_H
#define MODEL_CHAT_VALUE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"
#include "model/chat/chat.h"

struct chat_block;

/** Bytes that are appended to; zero-initialise. The memory is a run's. */
struct chat_buffer {
    char *data;
    size_t n_bytes, capacity;
};

struct chat_run {
    enum status status; /* the first failure */
    struct status_why *why;
    uint32_t line;  /* of the template, for sentences; 0: not in a template */
    unsigned depth; /* of nesting */
    struct model_chat_limits limits;
    size_t n_bytes_left;
    uint64_t work_left;
    double deadline;   /* of the thread's processor time */
    uint64_t unlooked; /* steps since the clock was looked at */
    size_t n_put;      /* bytes that are not a step yet */
    bool is_spent;     /* the failure is a limit that more attempts share, or a lack of memory */
    struct chat_block *blocks; /* all memory */
    char *at, *end;            /* what is left of the newest block */

    /* of a rendering */
    struct chat_buffer *out;       /* where text goes: the result, or a capture */
    struct chat_buffer text;       /* the result */
    struct model_chat_span *spans; /* of generation blocks, in `text` */
    size_t n_spans, span_capacity;
    struct model_chat_time time; /* for strftime_now */
    bool has_generation;         /* of a parse: there is such a statement */
};

/** How deeply expressions, statements, calls and values may nest. */
enum { CHAT_MAX_DEPTH = 250 };

void model_chat_begin(struct chat_run *r, const struct model_chat_limits *limits,
                      struct status_why *why);
/** Begin a part of another run: the same limits, of which it has what is left, but all memory. */
void model_chat_begin_part(struct chat_run *r, const struct chat_run *of, struct status_why *why);
/** What the part took is taken from the whole. */
void model_chat_take_part(struct chat_run *of, const struct chat_run *r);
void model_chat_end(struct chat_run *r);

/** Note a failure, unless there is one: "chat template, line N: <sentence>". */
void model_chat_fail(struct chat_run *r, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Memory of the run, zeroed and aligned for anything; NULL after a failure. */
void *model_chat_alloc(struct chat_run *r, size_t n, size_t item_bytes);

/** An array of n items that has room for one more; as it was after a failure. */
void *model_chat_grow(struct chat_run *r, void *items, size_t n, size_t *capacity,
                      size_t item_bytes);

/** Count work that is not one step: n bytes or items that are walked through. */
void model_chat_work(struct chat_run *r, size_t n);

/** Go one level deeper; false: too deep, or something failed. Then model_chat_leave all the same.
 */
bool model_chat_enter(struct chat_run *r, uint32_t line);
static inline void model_chat_leave(struct chat_run *r)
{
    r->depth--;
}

void model_chat_put(struct chat_run *r, struct chat_buffer *buffer, const char *bytes, size_t n);
void model_chat_put_string(struct chat_run *r, struct chat_buffer *buffer, struct base_string s);

#endif
