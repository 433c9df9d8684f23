/** Reading a PTX file: a cursor over its text that counts lines. */
#ifndef TESTS_PTX_TEXT_H
#define TESTS_PTX_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ptx_text {
    const char *file;
    char *bytes;    /* the whole file, and a 0 */
    const char *at; /* the next character */
    uint32_t line;
};

/** Part of a text. */
struct ptx_word {
    const char *at;
    size_t n;
};

/** Say what is wrong with the line, and abort: a test of a program that cannot be read ends here.
 */
_Noreturn void ptx_text_fail(const struct ptx_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

void ptx_text_open(struct ptx_text *t, const char *file);
void ptx_text_close(struct ptx_text *t);

/** Over white space and comments. */
void ptx_text_skip(struct ptx_text *t);
/** Whether `what` comes next; over it if so. */
bool ptx_text_take(struct ptx_text *t, const char *what);
/** The characters up to the first of `ends` or to a white space, and over them. */
struct ptx_word ptx_text_word(struct ptx_text *t, const char *ends);
void ptx_text_skip_line(struct ptx_text *t);

bool ptx_word_is(struct ptx_word w, const char *text);
bool ptx_word_begins(struct ptx_word w, const char *text);
/** A 0-terminated copy; malloc()ed. */
char *ptx_word_copy(struct ptx_word w);
/** malloc() and realloc() that cannot fail. */
void *ptx_grow(void *memory, size_t n_bytes);

#endif
