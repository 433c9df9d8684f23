/* Help of a command, laid out from its list of options. */
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"
#include "cli/options/args.h"

enum { INDENT = 2, COLUMN = 30, WIDTH = 98 };

/* Words of `text` from the current column on, broken before WIDTH, continued at `indent`. */
static void print_wrapped(const char *text, size_t at, size_t indent)
{
    const char *word;
    size_t length;
    const char *separator = "";
    while ((text = base_words_next(text, &word, &length))) {
        if (*separator && at + 1 + length > WIDTH) {
            printf("\n%*s", (int)indent, "");
            at = indent;
            separator = "";
        }
        printf("%s%.*s", separator, (int)length, word);
        at += strlen(separator) + length;
        separator = " ";
    }
    putchar('\n');
}

/* more: what follows the row's own help. */
static void print_option(const struct cli_option *row, const char *more)
{
    char left[160] = "";
    const char *names = row->names, *name;
    size_t length, used = 0;
    while ((names = base_words_next(names, &name, &length)))
        used += (size_t)snprintf(left + used, sizeof left - used, "%s%.*s", used ? ", " : "",
                                 (int)length, name);
    if (row->value)
        used += (size_t)snprintf(left + used, sizeof left - used, " %s", row->value);

    printf("%*s%s", INDENT, "", left);
    if (INDENT + used + 2 > COLUMN)
        printf("\n%*s", COLUMN, "");
    else
        printf("%*s", (int)(COLUMN - INDENT - used), "");

    char right[1024];
    snprintf(right, sizeof right, "%s%s%s%s%s", row->help, more, row->env ? " [" : "",
             row->env ? row->env : "", row->env ? "]" : "");
    print_wrapped(right, COLUMN, COLUMN);
}

static void print_heading(const char *text)
{
    putchar('\n');
    print_wrapped(text, 0, 0);
}

void cli_args_help(const struct cli_command *command)
{
    printf("usage: assay %s %s\n\n%s\n", command->name, command->usage, command->summary);
    if (*command->description)
        printf("\n%s\n", command->description);
    bool in_sections = command->options->type == CLI_HEADING;
    if (!in_sections)
        putchar('\n');
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
        if (row->type == CLI_HEADING)
            print_heading(row->help);
        else if (row->names && row->help && row->type < CLI_IGNORED)
            print_option(row, rows.more);
    }
    printf("%s  -h, --help                  this page\n", in_sections ? "\n" : "");
}
