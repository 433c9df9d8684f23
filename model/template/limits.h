/** What a template may take, and what it is given beside its values. */
#ifndef TEMPLATE_LIMITS_H
#define TEMPLATE_LIMITS_H

#include <stddef.h>
#include <stdint.h>

/**
 * What a parse, and the renderings of one conversation, may take. Steps decide, so that a
 * conversation is refused everywhere or nowhere; the time is for what they do not foresee, and for
 * slow machines.
 */
struct jinja_limits {
    size_t n_bytes; /* of memory */
    uint64_t work;  /* steps; walking through 16 bytes is about one */
    double seconds; /* of processor time */
};

/** 256 MiB, 100 million steps, 2 seconds. */
extern const struct jinja_limits jinja_default_limits;

/** The day that strftime_now() shows, so that a conversation is always the same text. */
struct jinja_date {
    int year, month, day; /* 2024, 1..12, 1..31 */
};

/** Bytes from .. to-1 of a text. */
struct jinja_span {
    size_t from, to;
};

#endif
