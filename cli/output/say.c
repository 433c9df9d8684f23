#include "cli/output/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static bool quiet;

void cli_be_quiet(bool be_quiet)
{
    quiet = be_quiet;
}

bool cli_is_quiet(void)
{
    return quiet;
}

void cli_say(const char *format, ...)
{
    va_list values;
    if (quiet)
        return;
    va_start(values, format);
    vfprintf(stderr, format, values);
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
