#include "tests/ptx/text.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void ptx_text_fail(const struct ptx_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fprintf(stderr, "%s:%u: ", t->file, t->line);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void *ptx_grow(void *memory, size_t n_bytes)
{
    memory = realloc(memory, n_bytes);
    if (!memory)
        abort();
    return memory;
}

void ptx_text_open(struct ptx_text *t, const char *file)
{
    *t = (struct ptx_text){.file = file, .line = 1};
    FILE *f = fopen(file, "rb");
    if (!f)
        ptx_text_fail(t, "cannot be opened");
    size_t n = 0, capacity = (size_t)1 << 20, got;
    do {
        t->bytes = ptx_grow(t->bytes, 2 * capacity + 1);
        capacity *= 2;
        got = fread(t->bytes + n, 1, capacity - n, f);
        n += got;
    } while (got > 0);
    fclose(f);
    t->bytes[n] = 0;
    t->at = t->bytes;
}

void ptx_text_close(struct ptx_text *t)
{
    free(t->bytes);
    t->bytes = NULL;
}

static void advance(struct ptx_text *t, const char *to)
{
    for (; t->at < to; t->at++)
        t->line += *t->at == '\n';
}

void ptx_text_skip_line(struct ptx_text *t)
{
    advance(t, t->at + strcspn(t->at, "\n"));
}

void ptx_text_skip(struct ptx_text *t)
{
    for (;;) {
        advance(t, t->at + strspn(t->at, " \t\r\n"));
        if (strncmp(t->at, "//", 2) != 0)
            return;
        ptx_text_skip_line(t);
    }
}

bool ptx_text_take(struct ptx_text *t, const char *what)
{
    ptx_text_skip(t);
    size_t n = strlen(what);
    if (strncmp(t->at, what, n) != 0)
        return false;
    t->at += n;
    return true;
}

struct ptx_word ptx_text_word(struct ptx_text *t, const char *ends)
{
    ptx_text_skip(t);
    struct ptx_word w = {t->at, 0};
    while (w.at[w.n] && !isspace((unsigned char)w.at[w.n]) && !strchr(ends, w.at[w.n]))
        w.n++;
    t->at += w.n;
    return w;
}

bool ptx_word_is(struct ptx_word w, const char *text)
{
    return strlen(text) == w.n && memcmp(w.at, text, w.n) == 0;
}

bool ptx_word_begins(struct ptx_word w, const char *text)
{
    size_t n = strlen(text);
    return n <= w.n && memcmp(w.at, text, n) == 0;
}

char *ptx_word_copy(struct ptx_word w)
{
    char *copy = ptx_grow(NULL, w.n + 1);
    memcpy(copy, w.at, w.n);
    copy[w.n] = 0;
    return copy;
}
