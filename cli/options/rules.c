/* Which options go together, and which a mode of a command has. */
#include "cli/options/args.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"

/** An option as a rule names it: --name, or --name=word of a choice. */
struct term {
    char text[64]; /* as a sentence has it: --name word */
    const struct cli_option *row;
    size_t at;  /* of its setting */
    int choice; /* -1: it is about being given */
};

/** The next term of a list. false: there is none. */
static bool next_term(struct term *t, const char **words, const struct cli_command *command)
{
    const char *word;
    size_t length;
    if (!*words || !(*words = base_words_next(*words, &word, &length)))
        return false;
    assert(length < sizeof t->text);
    *t = (struct term){.choice = -1};
    memcpy(t->text, word, length);
    char *equals = strchr(t->text, '=');
    if (equals)
        *equals = '\0';
    struct cli_rows rows = {.next = command->options};
    while ((t->row = cli_rows_next(&rows)))
        if (t->row->names && base_words_index(t->row->names, t->text) >= 0)
            break;
    t->at = rows.at;
    if (equals) {
        *equals = ' ';
        t->choice = t->row ? base_words_index(t->row->choices, equals + 1) : -1;
    }
    return true;
}

static size_t bytes_of(enum cli_option_type type)
{
    switch (type) {
    case CLI_ON:
    case CLI_OFF:
        return sizeof(bool);
    case CLI_TEXT:
    case CLI_NAMED:
    case CLI_KV: /* begins with a pointer, too */
        return sizeof(const char *);
    case CLI_COUNT:
    case CLI_COUNTS: /* begins with the first count */
        return sizeof(int64_t);
    case CLI_NUMBER:
        return sizeof(double);
    case CLI_CHOICE:
        return sizeof(int);
    default:
        return 0;
    }
}

static bool is_changed(const struct cli_option *row, const void *now, const void *before)
{
    if (row->type == CLI_LIST || row->type == CLI_EACH)
        return ((const struct cli_list *)now)->n != ((const struct cli_list *)before)->n;
    return memcmp(now, before, bytes_of(row->type)) != 0;
}

/** What a run of the check looks at. */
struct settings {
    const struct cli_command *command;
    const char *now, *before, *defaults;
};

/** before: what an option that counts differs from. */
static bool holds(const struct settings *s, const struct term *t, const char *before)
{
    if (!t->row)
        return false;
    const void *now = s->now + t->at;
    return t->choice >= 0 ? *(const int *)now == t->choice
                          : is_changed(t->row, now, before + t->at);
}

/** The next of the words that holds; *words moves past it. */
static bool find(struct term *t, const struct settings *s, const char **words, const char *before)
{
    while (next_term(t, words, s->command))
        if (holds(s, t, before))
            return true;
    return false;
}

static void append(char out[CLI_RULE_BYTES], const char *separator, const char *text)
{
    size_t n = strlen(out);
    snprintf(out + n, CLI_RULE_BYTES - n, "%s%s", separator, text);
}

/** "a, b and c" of those that the command has. last: " and ". */
static const char *join(char out[CLI_RULE_BYTES], const char *words, const char *last,
                        const struct cli_command *command)
{
    struct term now, before = {.row = NULL};
    const char *separator = "";
    *out = '\0';
    while (next_term(&now, &words, command)) {
        if (!now.row)
            continue;
        if (before.row) {
            append(out, separator, before.text);
            separator = ", ";
        }
        before = now;
    }
    if (before.row)
        append(out, *out ? last : "", before.text);
    return out;
}

static const char *modes_joined(char out[CLI_RULE_BYTES], const struct cli_command *command,
                                unsigned modes)
{
    *out = '\0';
    for (size_t i = 0; command->modes[i]; i++)
        if (modes & 1u << i)
            append(out, !*out ? "" : modes >> i > 1 ? ", " : " or ", command->modes[i]);
    return out;
}

const char *cli_rules_modes_named(char out[CLI_RULE_BYTES], const struct cli_command *command,
                                  unsigned modes)
{
    char names[CLI_RULE_BYTES];
    unsigned lacking = 0;
    int n = 0;
    for (size_t i = 0; command->modes[i]; i++) {
        bool has = modes & 1u << i;
        lacking |= has ? 0 : 1u << i;
        n += has ? 1 : -1;
    }
    snprintf(out, CLI_RULE_BYTES, "%s with %.900s", n > 0 ? "Not" : "Only",
             modes_joined(names, command, n > 0 ? lacking : modes));
    return out;
}

static bool names(const struct cli_rule *r, const struct cli_command *command,
                  const struct cli_option *row)
{
    struct term t;
    for (const char *words = r->options; next_term(&t, &words, command);)
        if (t.row == row)
            return true;
    return false;
}

unsigned cli_rules_modes(const struct cli_command *command, const struct cli_option *row)
{
    for (const struct cli_rule *r = command->rules; r && r->options; r++)
        if (r->relation == CLI_ONLY && names(r, command, row))
            return r->modes;
    return 0;
}

const char *cli_rules_named(char out[CLI_RULE_BYTES], const struct cli_command *command,
                            const struct cli_rule *rule)
{
    char options[CLI_RULE_BYTES], others[CLI_RULE_BYTES];
    join(options, rule->options, rule->relation == CLI_ONE_OF ? " or " : " and ", command);
    join(others, rule->others, " or ", command);
    if (rule->relation == CLI_ONLY || !*options || (rule->others && !*others))
        return NULL;
    const char *why = rule->why && rule->relation != CLI_ONE_OF ? rule->why : NULL;
    char modes[CLI_RULE_BYTES] = "", which[CLI_RULE_BYTES];
    if (rule->modes)
        snprintf(modes, sizeof modes, "With %.100s: ", modes_joined(which, command, rule->modes));
    snprintf(out, CLI_RULE_BYTES, "%.120s%s %.400s%s%.400s%s%s%s.", modes,
             rule->relation == CLI_ONE_OF  ? "One only:"
             : rule->relation == CLI_NEEDS ? "Only with"
                                           : "Not with",
             rule->others ? others : options, rule->others ? ": " : "", rule->others ? options : "",
             why ? " (" : "", why ? why : "", why ? ")" : "");
    return out;
}

static enum status fail_both(const struct cli_rule *r, const struct term *a, const struct term *b,
                             struct status_why *why)
{
    return status_fail(why, STATUS_USAGE, "%s does not go with %s%s%s", a->text, b->text,
                       r->why ? ": " : "", r->why ? r->why : "");
}

static enum status fail_several(const struct settings *s, const struct cli_rule *r,
                                const struct term *a, const struct term *b, struct status_why *why)
{
    char names[CLI_RULE_BYTES];
    if (r->why)
        return status_fail(why, STATUS_USAGE, "%s and %s both say %s: give one", a->text, b->text,
                           r->why);
    return status_fail(why, STATUS_USAGE, "give one of %s",
                       join(names, r->options, " and ", s->command));
}

static enum status fail_alone(const struct settings *s, const struct cli_rule *r,
                              const struct term *a, struct status_why *why)
{
    char names[CLI_RULE_BYTES];
    return status_fail(why, STATUS_USAGE, "%s goes with %s only%s%s", a->text,
                       join(names, r->others, " and ", s->command), r->why ? ": " : "",
                       r->why ? r->why : "");
}

static enum status fail_mode(const struct settings *s, const struct cli_rule *r,
                             const struct term *a, int mode, struct status_why *why)
{
    char names[CLI_RULE_BYTES];
    return status_fail(why, STATUS_USAGE, "%s is for %s; with %s it would do nothing%s%s", a->text,
                       modes_joined(names, s->command, r->modes), s->command->modes[mode],
                       r->why ? ": " : "", r->why ? r->why : "");
}

/** mode: -1 where the command has none, or none is chosen. */
static enum status check(const struct settings *s, const struct cli_rule *r, int mode,
                         struct status_why *why)
{
    struct term a, b;
    const char *options = r->options, *others = r->others;
    const char *before = r->always ? s->defaults : s->before;
    bool in_modes = !r->modes || (mode >= 0 && r->modes & 1u << mode);
    bool is_about = r->relation == CLI_ONLY ? mode >= 0 && !in_modes : in_modes;
    if (!is_about || !find(&a, s, &options, before))
        return STATUS_OK;
    switch (r->relation) {
    case CLI_NEEDS:
        return find(&b, s, &others, s->defaults) ? STATUS_OK : fail_alone(s, r, &a, why);
    case CLI_NOT_WITH:
        return find(&b, s, &others, before) ? fail_both(r, &a, &b, why) : STATUS_OK;
    case CLI_ONE_OF:
        return find(&b, s, &options, before) ? fail_several(s, r, &a, &b, why) : STATUS_OK;
    case CLI_ONLY:
        return fail_mode(s, r, &a, mode, why);
    }
    return STATUS_OK;
}

enum status cli_rules_check(const struct cli_command *command, const void *settings,
                            const void *before, const void *defaults, struct status_why *why)
{
    const struct settings s = {command, settings, before, defaults};
    const struct cli_rule *lists[] = {cli_shared_rules, command->rules};
    enum status status = STATUS_OK;
    int mode = -1;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !status; i++)
        for (const struct cli_rule *r = lists[i]; r && r->options && !status; r++) {
            if (r->modes && mode < 0)
                mode = command->mode(settings);
            status = check(&s, r, mode, why);
        }
    return status;
}
