/**
 * What parsing and rendering share: memory that is released as a whole, a bound on the work, and
 * the first failure. For this room only.
 *
 * A function that fails notes it here and returns an absent value (or NULL, or what is at hand of
 * its type): what follows runs on without harm, and whoever loops looks at `status`.
 */
#ifndef TEMPLATE_VALUE_RUN_H
#define TEMPLATE_VALUE_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "base/text/string.h"
#include "model/template/limits.h"

struct jinja_block;

/** Bytes that are appended to; zero-initialise. The memory is a run's. */
struct jinja_buffer {
    char *data;
    size_t n_bytes, capacity;
};

struct jinja_run {
    enum status status; /* the first failure */
    struct status_why *why;
    uint32_t line;  /* of the template, for sentences; 0: not in a template */
    unsigned depth; /* of nesting */
    struct jinja_limits limits;
    size_t n_bytes_left;
    uint64_t work_left;
    double deadline;   /* of the thread's processor time */
    uint64_t unlooked; /* steps since the clock was looked at */
    size_t n_put;      /* bytes that are not a step yet */
    bool is_spent;     /* the failure is a limit that more attempts share, or a lack of memory */
    bool is_full;      /* the failure is the limit of memory, of which each attempt has all */
    struct jinja_block *blocks; /* all memory */
    char *at, *end;             /* what is left of the newest block */

    /* of a rendering */
    struct jinja_buffer *out; /* where text goes: the result, or a capture */
    struct jinja_buffer text; /* the result */
    struct jinja_span *spans; /* of generation blocks, in `text` */
    size_t n_spans, span_capacity;
    struct jinja_date time; /* for strftime_now */
    bool has_generation;    /* of a parse: there is such a statement */
};

/** How deeply expressions, statements, calls and values may nest. */
enum { JINJA_MAX_DEPTH = 250 };

void jinja_begin(struct jinja_run *r, const struct jinja_limits *limits, struct status_why *why);
/** Begin a part of another run: the same limits, of which it has what is left, but all memory. */
void jinja_begin_part(struct jinja_run *r, const struct jinja_run *of, struct status_why *why);
/** What the part took is taken from the whole. */
void jinja_take_part(struct jinja_run *of, const struct jinja_run *r);
void jinja_end(struct jinja_run *r);

/** Note a failure, unless there is one: "chat template, line N: <sentence>". */
void jinja_fail(struct jinja_run *r, enum status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Memory of the run, zeroed and aligned for anything; NULL after a failure. */
void *jinja_alloc(struct jinja_run *r, size_t n, size_t item_bytes);

/** An array of n items that has room for one more; as it was after a failure. */
void *jinja_grow(struct jinja_run *r, void *items, size_t n, size_t *capacity, size_t item_bytes);

/** Count work that is not one step: n bytes or items that are walked through. */
void jinja_work(struct jinja_run *r, size_t n);

/** Go one level deeper; false: too deep, or something failed. Then jinja_leave all the same.
 */
bool jinja_enter(struct jinja_run *r, uint32_t line);
static inline void jinja_leave(struct jinja_run *r)
{
    r->depth--;
}

void jinja_put(struct jinja_run *r, struct jinja_buffer *buffer, const char *bytes, size_t n);
void jinja_put_string(struct jinja_run *r, struct jinja_buffer *buffer, struct base_string s);

#endif
