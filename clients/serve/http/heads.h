/** Whether the headers of a request say one thing. */
#ifndef SERVE_HTTP_HEADS_H
#define SERVE_HTTP_HEADS_H

/** Zero-initialise. */
struct serve_heads {
    const char *fault; /* a sentence; NULL: there is none so far */
    unsigned seen;     /* bits of the names that count */
    const char *end;   /* of the last value */
};

/**
 * The next header, in the order in which they came. Faults are a name that counts given twice,
 * Content-Length beside Transfer-Encoding, and a NUL. Strings end at a NUL, so it is looked for
 * after them: name and value lie in what was received, where blanks and a line's end, which may
 * have become NULs, are all that is between a value and the next name.
 */
void serve_heads_add(struct serve_heads *heads, const char *name, const char *value);
/** There are no more. Two bytes after the last value can be read: a head ends with an empty line.
 */
void serve_heads_end(struct serve_heads *heads);

#endif
