/* Help of a command, laid out from its list of options. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/text/words.h"
#include "cli/options/args.h"
#include "cli/options/width.h"

enum { INDENT = 2, COLUMN = 30, MOST_WIDTH = 98, LEAST_TEXT = 30 };

struct layout {
    size_t width, column; /* column: where what an option does begins */
};

/* Words of `text` from the current column on, broken before the width, continued at `indent`. */
static void print_wrapped(const struct layout *l, const char *text, size_t at, size_t indent)
{
    const char *word;
    size_t length;
    const char *separator = "";
    while ((text = base_words_next(text, &word, &length))) {
        if (*separator && at + 1 + length > l->width) {
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

/* more: what follows the row's own help. modes: which have it, where that is to be said; or "". */
static void print_option(const struct layout *l, const struct cli_option *row, const char *more,
                         const char *modes)
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
    if (INDENT + used + 2 > l->column)
        printf("\n%*s", (int)l->column, "");
    else
        printf("%*s", (int)(l->column - INDENT - used), "");

    char right[1024];
    snprintf(right, sizeof right, "%s%s%s%s%s%s%s", row->help, more, *modes ? ". " : "", modes,
             row->env ? " [" : "", row->env ? row->env : "", row->env ? "]" : "");
    print_wrapped(l, right, l->column, l->column);
}

/* Lines of a text, as `print` prints the n-th of them. */
static void for_each_line(const struct layout *l, const char *text,
                          void (*print)(const struct layout *l, const char *line, size_t n))
{
    char line[1024];
    for (size_t n = 0; *text; n++) {
        size_t length = strcspn(text, "\n");
        snprintf(line, sizeof line, "%.*s", (int)length, text);
        print(l, line, n);
        text += length + (text[length] == '\n');
    }
}

static void print_paragraphs(const struct layout *l, const char *text)
{
    char joined[2048];
    size_t n = 0;
    for (; text[n] && n + 1 < sizeof joined; n++) {
        bool beside = text[n + 1] == '\n' || (n && text[n - 1] == '\n');
        joined[n] = text[n] == '\n' && !beside ? ' ' : text[n];
    }
    joined[n] = '\0';
    for (char *c = joined; *c;) {
        size_t length = strcspn(c, "\n");
        bool more = c[length] == '\n';
        c[length] = '\0';
        if (length)
            print_wrapped(l, c, 0, 0);
        else
            putchar('\n');
        c += length + more;
    }
}

static void print_example(const struct layout *l, const char *line, size_t n)
{
    enum { FURTHER = 6 };
    if (n % 2 == 0) {
        printf("%*s%s\n", INDENT, "", line);
        return;
    }
    printf("%*s", FURTHER, "");
    print_wrapped(l, line, FURTHER, FURTHER);
}

static bool is_listed(const struct cli_option *row)
{
    return row->names && row->help && row->type > CLI_GROUP && row->type < CLI_IGNORED;
}

/* usual: those that are, without headings; else the others, each heading with what it has, of
 * these modes. */
static void print_options(const struct layout *l, const struct cli_command *command, bool usual,
                          unsigned modes)
{
    char named[CLI_RULE_BYTES];
    const char *heading = usual   ? "Usual options"
                          : modes ? cli_rules_modes_named(named, command, modes)
                                  : NULL;
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
        if (row->type == CLI_HEADING && !usual && !modes)
            heading = row->help;
        if (!is_listed(row) || row->usual != usual ||
            (!usual && cli_rules_modes(command, row) != modes))
            continue;
        if (heading) {
            putchar('\n');
            print_wrapped(l, heading, 0, 0);
        }
        heading = NULL;
        unsigned some = usual ? cli_rules_modes(command, row) : 0;
        print_option(l, row, rows.more, some ? cli_rules_modes_named(named, command, some) : "");
    }
}

/* What only some modes have, the same modes together. */
static void print_modes(const struct layout *l, const struct cli_command *command)
{
    for (const struct cli_rule *r = command->rules; r && r->options; r++) {
        const struct cli_rule *first = command->rules;
        while (first->relation != CLI_ONLY || first->modes != r->modes)
            if (++first > r)
                break;
        if (first == r)
            print_options(l, command, false, r->modes);
    }
}

static void print_rules(const struct layout *l, const struct cli_command *command)
{
    const struct cli_rule *lists[] = {cli_shared_rules, command->rules};
    const char *heading = "\nTogether";
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++)
        for (const struct cli_rule *r = lists[i]; r && r->options; r++) {
            char line[CLI_RULE_BYTES];
            if (!cli_rules_named(line, command, r))
                continue;
            if (*heading)
                puts(heading);
            heading = "";
            printf("%*s", INDENT, "");
            print_wrapped(l, line, INDENT, 3 * INDENT);
        }
}

/* A short list needs no order. */
static void print_plain(const struct layout *l, const struct cli_command *command)
{
    struct cli_rows rows = {.next = command->options};
    putchar('\n');
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        if (is_listed(row))
            print_option(l, row, rows.more, "");
}

void cli_args_help(const struct cli_command *command)
{
    struct layout l = {base_min(cli_width(STDOUT_FILENO), MOST_WIDTH), COLUMN};
    if (l.width < COLUMN + LEAST_TEXT)
        l.column = 3 * INDENT;
    char usage[256];
    snprintf(usage, sizeof usage, "usage: assay %s %s", command->name, command->usage);
    print_wrapped(&l, usage, 0, strlen("usage: "));
    putchar('\n');
    print_paragraphs(&l, command->summary);
    if (*command->description) {
        putchar('\n');
        print_paragraphs(&l, command->description);
    }
    bool in_sections = command->options->type == CLI_HEADING;
    if (in_sections) {
        print_options(&l, command, true, 0);
        print_options(&l, command, false, 0);
        print_modes(&l, command);
        putchar('\n');
    } else {
        print_plain(&l, command);
    }
    print_option(&l, &(struct cli_option){.names = "-h --help", .help = "this page"}, "", "");
    print_rules(&l, command);
    if (command->examples)
        puts("\nExamples");
    for_each_line(&l, command->examples ? command->examples : "", print_example);
}
