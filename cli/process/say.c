#include "cli/process/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/escape.h"

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

/* The notes are told from each other by their beginning. */
enum { MAX_SAID = 64, SAID_BYTES = 128 };

static bool is_new(const char *line, size_t n)
{
    static char said[MAX_SAID][SAID_BYTES];
    static size_t n_said;
    char begins[SAID_BYTES];
    snprintf(begins, sizeof begins, "%.*s", (int)n, line);
    for (size_t i = 0; i < n_said; i++)
        if (strcmp(said[i], begins) == 0)
            return false;
    if (n_said < MAX_SAID)
        memcpy(said[n_said++], begins, sizeof begins);
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
