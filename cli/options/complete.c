#include "cli/options/complete.h"

#include <stdio.h>
#include <string.h>

#include "base/text/words.h"

/* A word that begins as what is typed does, and the first phrase of its help. */
static void offer(const char *typed, const char *word, size_t length, const char *help)
{
    static const char *const ends[] = {"; ", ": ", " ("};
    size_t phrase = strlen(help), n = strlen(typed);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        const char *end = strstr(help, ends[i]);
        if (end && (size_t)(end - help) < phrase)
            phrase = (size_t)(end - help);
    }
    if (n <= length && memcmp(typed, word, n) == 0)
        printf("%.*s\t%.*s\n", (int)length, word, (int)phrase, help);
}

static void offer_words(const char *typed, const char *words, const char *help)
{
    const char *word;
    size_t length;
    while ((words = base_words_next(words, &word, &length)))
        offer(typed, word, length, help);
}

static void offer_commands(const struct cli_command_list *commands, const char *typed)
{
    for (size_t i = 0; i < commands->n; i++)
        offer_words(typed, commands->items[i]->name, commands->items[i]->summary);
    offer_words(typed, "help", "Print the options of a command");
}

/* Whether help lists the row as an option. */
static bool is_listed(const struct cli_option *row)
{
    return row->names && row->help && row->type != CLI_HEADING && row->type < CLI_IGNORED;
}

static void offer_options(const struct cli_command *command, const char *typed)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        if (is_listed(row))
            offer_words(typed, row->names, row->help);
    offer_words(typed, "--help", "this page");
}

/* What can follow an option. Returns false where it takes no value. */
static bool offer_values(const struct cli_command *command, const char *option, const char *typed)
{
    struct cli_rows rows = {.next = command->options};
    const struct cli_option *row = NULL;
    while ((row = cli_rows_next(&rows)))
        if (is_listed(row) && row->value && base_words_index(row->names, option) >= 0)
            break;
    if (!row)
        return false;
    if (row->choices)
        offer_words(typed, row->choices, "");
    else if (strcmp(row->value, "FILE") == 0 || strchr(row->value, '.'))
        puts(":file");
    return true;
}

/** The command that another one takes, among the words before the one that is typed, or NULL. */
static const struct cli_command *find_inner(const struct cli_command_list *commands, char **words,
                                            size_t n)
{
    for (size_t w = 1; w + 1 < n; w++)
        for (size_t i = 0; i < commands->n; i++)
            if (commands->items[i]->evaluate && strcmp(commands->items[i]->name, words[w]) == 0)
                return commands->items[i];
    return NULL;
}

static void offer_planned(const struct cli_command_list *commands, const char *typed)
{
    for (size_t i = 0; i < commands->n; i++)
        if (commands->items[i]->evaluate)
            offer_words(typed, commands->items[i]->name, commands->items[i]->summary);
}

void cli_complete(const struct cli_command_list *commands, char **words, size_t n)
{
    const char *typed = n ? words[n - 1] : "", *before = n > 1 ? words[n - 2] : "";
    const struct cli_command *command = n && *words[0] == '-' ? commands->assumed : NULL;
    for (size_t i = 0; i < commands->n && n > 1; i++)
        if (strcmp(commands->items[i]->name, words[0]) == 0)
            command = commands->items[i];
    if (command && command->takes_command) {
        const struct cli_command *inner = find_inner(commands, words, n);
        if (!inner && *typed != '-' && !offer_values(command, before, typed))
            offer_planned(commands, typed);
        if (!inner && *typed != '-')
            return;
        command = inner ? inner : command;
    }
    if (!command && (n < 2 || (n == 2 && strcmp(words[0], "help") == 0)))
        offer_commands(commands, typed);
    if (!command || offer_values(command, before, typed))
        return;
    if (*typed == '-')
        offer_options(command, typed);
    else
        puts(":file");
}
