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

void cli_print_notes(const char *lines)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        cli_say("assay: note: %.*s\n", (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}
