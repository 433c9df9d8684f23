#include "cli/options/args.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"
#include "cli/options/value.h"

static bool is_list(const struct cli_option *row)
{
    return row->type == CLI_LIST || row->type == CLI_EACH || row->type == CLI_OPERANDS;
}

void cli_args_release(const struct cli_command *command, void *settings)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        if (is_list(row))
            cli_list_clear((struct cli_list *)((char *)settings + rows.at));
        else if (row->type == CLI_KV)
            cli_kv_clear((struct cli_kv_list *)((char *)settings + rows.at));
}

/* The row of an option, and where its setting lives. name NULL: the row that models without an
 * option are values of. */
static const struct cli_option *find_option(const struct cli_command *command, const char *name,
                                            void *settings, void **target)
{
    struct cli_rows rows = {.next = command->options};
    const struct cli_option *row;
    while ((row = cli_rows_next(&rows)))
        if (name ? row->names && base_words_index(row->names, name) >= 0 : row->bare)
            break;
    if (row)
        *target = (char *)settings + rows.at;
    return row;
}

/* A switch in the environment: set by a word for yes, left alone by a word for no. */
static enum status switch_from_environment(const char *name, const char *value, bool *on,
                                           struct status_why *why)
{
    *on = base_words_index("1 on true enabled", value) >= 0;
    if (*on || base_words_index("0 off false disabled", value) >= 0)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE, "%s: '%s' is neither on nor off", name, value);
}

static enum status read_environment(const struct cli_command *command, void *settings,
                                    struct cli_args *args, struct status_why *why)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
        const char *value = row->env ? getenv(row->env) : NULL;
        if (!value || !*value || row->type == CLI_INSTEAD)
            continue;
        bool on = true;
        enum status status = STATUS_OK;
        if (!row->value)
            status = switch_from_environment(row->env, value, &on, why);
        if (!status && on) {
            struct cli_value s = {row, row->env, value, (char *)settings + rows.at};
            status = cli_value_set(&s, args, why);
        }
        if (status)
            return status;
    }
    return STATUS_OK;
}

/* What people write for an option that is called otherwise. */
static const struct {
    const char *written, *meant;
} misnomers[] = {
    {"-ctx", "-c"},    {"--ctx", "-c"},           {"--context", "-c"},
    {"--n-ctx", "-c"}, {"--file-base", "--base"}, {"--reference", "--base"},
    {"--text", "-f"},  {"--output", "-o"},
};

static const char *meant_by(const struct cli_command *command, const char *name)
{
    const char *meant = NULL;
    for (size_t i = 0; i < sizeof misnomers / sizeof *misnomers; i++)
        if (strcmp(misnomers[i].written, name) == 0)
            meant = misnomers[i].meant;
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; meant && (row = cli_rows_next(&rows));)
        if (row->names && row->type != CLI_REFUSED && base_words_index(row->names, meant) >= 0)
            return meant;
    return NULL;
}

static enum status fail_unknown(const struct cli_command *command, const char *name,
                                struct status_why *why)
{
    char nearest[64] = "";
    const char *meant = meant_by(command, name);
    size_t rank = SIZE_MAX;
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; !meant && (row = cli_rows_next(&rows));)
        if (row->names && row->type <= CLI_IGNORED)
            base_likely_name(name, row->names, nearest, sizeof nearest, &rank);
    if (meant || *nearest)
        return status_fail(why, STATUS_USAGE, "unknown option %s; did you mean %s?", name,
                           meant ? meant : nearest);
    return status_fail(why, STATUS_USAGE, "unknown option %s; see assay help %s", name,
                       command->name);
}

/* The name of the option in `arg`, `_` made `-`, and what follows its `=` (NULL: no `=`). */
static const char *split_option(const char *arg, char *name, size_t capacity)
{
    snprintf(name, capacity, "%s", arg);
    if (strncmp(arg, "--", 2) != 0)
        return NULL;
    const char *equals = strchr(arg, '=');
    if (equals && (size_t)(equals - arg) < capacity)
        name[equals - arg] = '\0';
    for (char *c = name; *c; c++)
        if (*c == '_')
            *c = '-';
    return equals ? equals + 1 : NULL;
}

/* One of two values would be lost, and nobody could tell which was meant. */
static enum status check_given_once(struct cli_args *args, const struct cli_value *s,
                                    struct status_why *why)
{
    enum cli_option_type type = s->option->type;
    if (type != CLI_TEXT && type != CLI_COUNT && type != CLI_COUNTS && type != CLI_NUMBER &&
        type != CLI_CHOICE && type != CLI_NAMED && type != CLI_KV)
        return STATUS_OK;
    assert(s->value);
    for (size_t i = 0; i < args->n_given; i++)
        if (args->given[i].option == s->option)
            return strcmp(args->given[i].value, s->value) == 0
                       ? STATUS_OK
                       : status_fail(why, STATUS_USAGE,
                                     "%s is given twice, as '%s' and as '%s'; it takes one value",
                                     s->spelling, args->given[i].value, s->value);
    if (args->n_given < CLI_MAX_GIVEN) {
        args->given[args->n_given].option = s->option;
        args->given[args->n_given++].value = s->value;
    }
    return STATUS_OK;
}

/* What is left of a command line. */
struct words {
    char **at;
    int n;
};

/* Handle the option at the front of the words and step over the arguments that it takes. */
static enum status parse_option(const struct cli_command *command, struct words *w, void *settings,
                                struct cli_args *args, struct status_why *why)
{
    const char *next = w->n > 1 ? w->at[1] : NULL;
    char name[64];
    const char *value = split_option(*w->at, name, sizeof name);
    if (strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 || strcmp(name, "--usage") == 0) {
        args->help = true;
        return STATUS_OK;
    }
    void *target = NULL;
    const struct cli_option *row = find_option(command, name, settings, &target);
    if (!row)
        return fail_unknown(command, name, why);
    if (value && !row->value)
        return status_fail(why, STATUS_USAGE, "%s takes no value, found '%s'", name, value);
    int n_values = row->n_values ? (int)row->n_values : row->value != NULL;
    if (value)
        n_values--;
    else if (row->type == CLI_IGNORED && row->choices) /* older versions took it without */
        n_values = next && base_words_index_any_case(row->choices, next) >= 0;
    if (row->type <= CLI_IGNORED && n_values >= w->n)
        return status_fail(why, STATUS_USAGE, "%s needs a value: %s %s", name, name, row->value);
    if (!value && n_values > 0)
        value = next;
    w->at += n_values;
    w->n -= n_values;
    struct cli_value s = {row, name, value, target};
    enum status status = check_given_once(args, &s, why);
    return status ? status : cli_value_set(&s, args, why);
}

/* A required option may be missing because a variable says it in a way that is refused. */
static enum status fail_missing(const struct cli_command *command, const struct cli_option *missing,
                                struct cli_args *args, struct status_why *why)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
        const char *value = row->type == CLI_INSTEAD && row->env ? getenv(row->env) : NULL;
        if (value && *value)
            return cli_value_set(&(struct cli_value){row, row->env, value, NULL}, args, why);
    }
    return status_fail(why, STATUS_USAGE, "%.*s is missing; see assay help %s",
                       (int)strcspn(missing->names, " "), missing->names, command->name);
}

static enum status fail_operand(const struct cli_command *command, struct status_why *why)
{
    return status_fail(why, STATUS_USAGE, "an argument is missing: assay %s %s", command->name,
                       command->usage);
}

/* target: the setting of a row of type CLI_TEXT or of a list. */
static bool is_given(const struct cli_option *row, const void *target)
{
    if (is_list(row))
        return ((const struct cli_list *)target)->n > 0;
    return *(const char *const *)target != NULL;
}

static enum status check_required(const struct cli_command *command, const void *settings,
                                  struct cli_args *args, struct status_why *why)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
        const char *target = (const char *)settings + rows.at;
        if (!row->required || is_given(row, target))
            continue;
        if (row->type == CLI_OPERANDS)
            return fail_operand(command, why);
        return fail_missing(command, row, args, why);
    }
    return STATUS_OK;
}

/* A model without an option: the value of the row that models are values of. */
static enum status take_model(const struct cli_command *command, const struct cli_value *s,
                              struct cli_args *args, struct status_why *why)
{
    for (size_t i = 0; i < args->n_given; i++)
        if (args->given[i].option == s->option && strcmp(args->given[i].value, s->value) != 0)
            return status_fail(why, STATUS_USAGE,
                               "unexpected argument '%s': assay %s takes one model, and %s is it; "
                               "assay kld compares several",
                               s->value, command->name, args->given[i].value);
    args->n_bare++;
    enum status status = check_given_once(args, s, why);
    return status ? status : cli_value_set(s, args, why);
}

static enum status fail_unexpected(const struct cli_command *command, const char *argument,
                                   struct status_why *why)
{
    const char *option = command->n_operands ? NULL : cli_bare_option(command, argument);
    return option ? status_fail(why, STATUS_USAGE, "unexpected argument '%s'; did you mean %s %s?",
                                argument, option, argument)
                  : status_fail(why, STATUS_USAGE, "unexpected argument '%s'; see assay help %s",
                                argument, command->name);
}

/* Where a command takes any number of operands, the list that they go to; else NULL. */
static struct cli_list *operand_list(const struct cli_command *command, void *settings)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        if (row->type == CLI_OPERANDS)
            return (struct cli_list *)((char *)settings + rows.at);
    return NULL;
}

/** Whether a word is an option of the command, or asks for its help. */
static bool is_own(const struct cli_command *command, const char *word, void *settings)
{
    char name[64];
    void *target = NULL;
    (void)split_option(word, name, sizeof name);
    return strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0 ||
           find_option(command, name, settings, &target);
}

/* An argument without an option. */
static enum status parse_bare(const struct cli_command *command, const char *argument,
                              void *settings, struct cli_args *args, size_t *n_operands,
                              struct status_why *why)
{
    struct cli_list *list = operand_list(command, settings);
    void *target = NULL;
    const struct cli_option *row = find_option(command, NULL, settings, &target);
    char name[16] = "";
    if (row && cli_bare_is_model(argument)) {
        snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
        return take_model(command, &(struct cli_value){row, name, argument, target}, args, why);
    }
    if (*n_operands < command->n_operands) {
        args->operands[(*n_operands)++] = argument;
        return STATUS_OK;
    }
    return list ? cli_list_append(list, argument, strlen(argument), why)
                : fail_unexpected(command, argument, why);
}

/** The command line alone, after the environment. */
static enum status read_words(const struct cli_command *command, int argc, char **argv,
                              void *settings, struct cli_args *args, struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t n_operands = 0;
    bool only_operands = false;
    struct words w = {argv + 1, argc - 1};
    for (; w.n > 0 && !status && !args->help && !args->answer; w.at++, w.n--) {
        const char *word = *w.at;
        bool is_option = word[0] == '-' && word[1] && !only_operands;
        if (command->takes_command && !(is_option && is_own(command, word, settings))) {
            args->rest = w.at;
            args->n_rest = w.n;
            break;
        }
        if (is_option && strcmp(word, "--") == 0)
            only_operands = true;
        else if (is_option)
            status = parse_option(command, &w, settings, args, why);
        else
            status = parse_bare(command, word, settings, args, &n_operands, why);
    }
    if (status || args->help || args->answer)
        return status;
    return n_operands < command->n_operands ? fail_operand(command, why)
                                            : check_required(command, settings, args, why);
}

/* What is wrong in a file of settings must not stand in the way of the help. */
static bool asks_for_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (base_words_index("-h --help", argv[i]) >= 0)
            return true;
    return false;
}

enum status cli_args_parse(const struct cli_command *command, int argc, char **argv, void *settings,
                           struct cli_args *args, struct status_why *why)
{
    const char *slash = strrchr(argv[0], '/');
    *args = (struct cli_args){.called = slash ? slash + 1 : argv[0]};
    size_t n_bytes = command->settings_bytes;
    char *defaults = malloc(2 * n_bytes + 1);
    if (!defaults)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    char *before = defaults + n_bytes;
    memcpy(defaults, settings, n_bytes);
    enum status status = STATUS_OK;
    if (command->before && !asks_for_help(argc, argv))
        status = command->before(settings, args, why);
    if (!status)
        status = read_environment(command, settings, args, why);
    memcpy(before, settings, n_bytes);
    if (!status)
        status = read_words(command, argc, argv, settings, args, why);
    if (!status && !args->help && !args->answer)
        status = cli_rules_check(command, settings, before, defaults, why);
    free(defaults);
    return status;
}
