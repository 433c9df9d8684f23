/**
 * Result codes and the sentence that goes with a failure; used by every layer.
 *
 * A function that can fail returns `enum status` and takes a `struct status_why *`
 * as its last parameter. The deepest function that knows what went wrong writes one
 * sentence into it: what was read, where, what was found, what was expected and, where
 * there is one, the remedy. Callers may put context in front (status_context).
 * Mistakes of the programmer are assertions, not statuses.
 */
#ifndef BASE_STATUS_H
#define BASE_STATUS_H

#include <stdarg.h>
#include <stdint.h>

enum status {
    STATUS_OK = 0,
    STATUS_USAGE,       /* an argument or option that makes no sense */
    STATUS_IO,          /* the operating system refused to open, read, map or write */
    STATUS_FORMAT,      /* a file says something impossible */
    STATUS_UNSUPPORTED, /* a file says something that this program does not do */
    STATUS_CHANGED,     /* a file changed while it was read */
    STATUS_MEMORY,      /* an allocation failed */
    STATUS_DEVICE,      /* a compute device failed or is absent */
    STATUS_NONFINITE,   /* a computation met NaN or infinity */
    STATUS_EXCEEDED,    /* a figure is above a limit that was set for it */
    STATUS_CANCELLED    /* the caller's cancel flag was set */
};

/**
 * The sentence; empty while nothing failed. One line of printable text (base/text/escape.h),
 * whatever a file's names hold; no trailing full stop.
 */
struct status_why {
    char text[1024];
};

/**
 * Write the sentence (printf format; cut at the buffer's end) and return `code`,
 * so that a failing function can end with `return status_fail(why, ...)`.
 * why may be NULL: then only the code is passed on.
 */
enum status status_fail(struct status_why *why, enum status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
#ifdef __clang_analyzer__ /* which would not see what it returns */
#define status_fail(why, code, ...) (status_fail(why, code, __VA_ARGS__), (code))
#endif

/**
 * Put "<context>: " in front of the sentence, unless it begins so: each caller that has a file's
 * name may give it. Nothing if why is NULL or empty.
 */
void status_context(struct status_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/**
 * It keeps the first failure; calls that are given it do nothing after one. So code is a list of
 * such calls, and asks status_of once, at its end. Zero-initialise.
 */
struct status_kept {
    enum status status;
    struct status_why why;
};

/** Keep a failure, unless one is kept: status_fail's arguments. */
void status_keep(struct status_kept *kept, enum status code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** What is kept, its sentence in `why`. */
enum status status_of(const struct status_kept *kept, struct status_why *why);

/** What a noun ends in after this number: "1 token", "2 tokens". */
static inline const char *status_plural(uint64_t n)
{
    return n == 1 ? "" : "s";
}

/** A short name of the code ("format", "memory", ...), for logs and tests. Static storage. */
const char *status_name(enum status code);

#endif
