#include "cli/process/say.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/text/escape.h"
#include "base/text/hash.h"

static bool quiet;

void cli_be_quiet(bool be_quiet)
{
    quiet = be_quiet;
}

bool cli_is_quiet(void)
{
    return quiet;
}

/* A line. What it is made of may come from anywhere. */
__attribute__((format(printf, 1, 0))) static void print_line(const char *format, va_list values)
{
    char line[2048], shown[sizeof line];
    size_t n = (size_t)vsnprintf(line, sizeof line, format, values);
    n = n < sizeof line ? n : sizeof line - 1;
    n -= n && line[n - 1] == '\n';
    fprintf(stderr, "%s\n", base_printable(shown, sizeof shown, line, n));
}

void cli_say(const char *format, ...)
{
    va_list values;
    if (quiet)
        return;
    va_start(values, format);
    print_line(format, values);
    va_end(values);
}

void cli_complain(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    print_line(format, values);
    va_end(values);
}

/* Lines are told apart by their hashes. After the most that are kept, a line counts as new. */
static bool is_new(const char *line, size_t n)
{
    enum { MAX_SAID = 256 };
    static uint64_t said[MAX_SAID];
    static size_t n_said;
    uint64_t hash = base_hash_bytes(0, line, n);
    for (size_t i = 0; i < n_said; i++)
        if (said[i] == hash)
            return false;
    if (n_said < MAX_SAID)
        said[n_said++] = hash;
    return true;
}

static void print_notes(const char *lines, bool only_new)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        if (!only_new || is_new(lines, n))
            cli_say("assay: note: %.*s\n", (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

void cli_print_notes(const char *lines)
{
    print_notes(lines, false);
}

void cli_print_new_notes(const char *lines)
{
    print_notes(lines, true);
}
