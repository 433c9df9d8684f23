#include "cli/options/value.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"

void cli_list_clear(struct cli_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        free(list->items[i]);
    free(list->items);
    *list = (struct cli_list){0};
}

enum status cli_list_append(struct cli_list *list, const char *text, size_t n_bytes,
                            struct status_why *why)
{
    char **items = realloc(list->items, (list->n + 1) * sizeof *items);
    list->items = items ? items : list->items;
    char *copy = items ? strndup(text, n_bytes) : NULL;
    if (!copy)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    list->items[list->n++] = copy;
    return STATUS_OK;
}

/* Comma-separated; a part in double quotes may hold commas, and a doubled quote is one. */
static enum status set_list(const struct cli_value *s, struct status_why *why)
{
    assert(s->value);
    char *part = malloc(strlen(s->value) + 1);
    if (!part)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    enum status status = STATUS_OK;
    const char *c = s->value;
    for (;;) {
        size_t n = 0;
        bool quoted = false;
        for (; *c && (quoted || *c != ','); c++) {
            if (*c != '"')
                part[n++] = *c;
            else if (quoted && c[1] == '"')
                part[n++] = *c++;
            else
                quoted = !quoted;
        }
        if (quoted)
            status = status_fail(why, STATUS_USAGE, "%s: '%s' has a quote that is not closed",
                                 s->spelling, s->value);
        else
            status = cli_list_append(s->target, part, n, why);
        if (status || !*c)
            break;
        c++;
    }
    free(part);
    return status;
}

/** The number that a text begins with; *end: what follows it. */
static enum status read_count(const struct cli_value *s, int64_t *out, const char *text,
                              const char **end, struct status_why *why)
{
    char *after;
    errno = 0;
    long long value = strtoll(text, &after, 10);
    bool several = s->option->type == CLI_COUNTS;
    if (after == text || (*after && !(several && *after == ',')))
        return status_fail(why, STATUS_USAGE, "%s: '%s' is not a whole number%s", s->spelling,
                           s->value, several ? ", or several with commas between" : "");
    if (errno || value < s->option->min || value > s->option->max)
        return status_fail(why, STATUS_USAGE, "%s: %s is out of range, expected %lld to %lld",
                           s->spelling, s->value, (long long)s->option->min,
                           (long long)s->option->max);
    *out = value;
    *end = after;
    return STATUS_OK;
}

static enum status set_count(const struct cli_value *s, struct status_why *why)
{
    const char *end;
    assert(s->value);
    return read_count(s, s->target, s->value, &end, why);
}

static enum status set_counts(const struct cli_value *s, struct status_why *why)
{
    struct cli_counts counts = {0};
    const char *end;
    int64_t other;
    assert(s->value);
    enum status status = read_count(s, &counts.value, s->value, &end, why);
    if (!status && *end)
        counts.more = end + 1;
    while (!status && *end)
        status = read_count(s, &other, end + 1, &end, why);
    if (!status)
        *(struct cli_counts *)s->target = counts;
    return status;
}

struct cli_counts cli_counts_next(struct cli_counts counts)
{
    char *end;
    counts.value = strtoll(counts.more, &end, 10);
    counts.more = *end ? end + 1 : NULL;
    return counts;
}

static enum status set_number(const struct cli_value *s, struct status_why *why)
{
    assert(s->value);
    char *end;
    double value = strtod(s->value, &end);
    if (end == s->value || *end || !isfinite(value))
        return status_fail(why, STATUS_USAGE, "%s: '%s' is not a finite number", s->spelling,
                           s->value);
    *(double *)s->target = value;
    return STATUS_OK;
}

static enum status set_choice(const struct cli_value *s, struct status_why *why)
{
    int index = base_words_index(s->option->choices, s->value);
    if (index < 0)
        return status_fail(why, STATUS_USAGE, "%s: '%s' is not one of: %s", s->spelling, s->value,
                           s->option->choices);
    *(int *)s->target = index;
    return STATUS_OK;
}

static enum status set_named(const struct cli_value *s, struct status_why *why)
{
    const void *found = s->option->find(s->value, why);
    memcpy(s->target, &found, sizeof found);
    return found ? STATUS_OK : STATUS_USAGE;
}

static void note_ignored(struct cli_args *args, const char *spelling)
{
    size_t used = strlen(args->ignored);
    snprintf(args->ignored + used, sizeof args->ignored - used, "%s%s", used ? ", " : "", spelling);
}

/* The help with what was given in place of the name of the argument: REPO, without ":Q4_0". */
static void fill_in(char *out, size_t capacity, const struct cli_option *row, const char *value)
{
    const char *at = strstr(row->help, row->value), *tag = strrchr(value, ':');
    int n_value = (int)(tag && !strchr(tag, '/') ? (size_t)(tag - value) : strlen(value));
    if (at)
        snprintf(out, capacity, "%.*s%.*s%s", (int)(at - row->help), row->help, n_value, value,
                 at + strlen(row->value));
}

/* A value that is what happens anyway, or nearly so, is accepted; see CLI_REFUSED. */
static enum status refuse(const struct cli_value *s, struct cli_args *args, struct status_why *why)
{
    const struct cli_option *row = s->option;
    const char *value = s->value ? s->value : "", *choices = row->choices ? row->choices : "";
    char head[64];
    snprintf(head, sizeof head, "%.*s", (int)strcspn(value, ","), value);
    int whole = base_words_index(choices, value), index = base_words_index(choices, head);
    if (whole < 0 && index < 0) {
        const char *between = s->spelling[0] == '-' ? " " : "=";
        bool shown = *value && *value != '-'; /* else it may well be the next option */
        char help[1024];
        snprintf(help, sizeof help, "%s", row->help);
        if (shown && row->type == CLI_INSTEAD)
            fill_in(help, sizeof help, row, value);
        return status_fail(why, STATUS_USAGE, "%s%s%s: %s", s->spelling, shown ? between : "",
                           shown ? value : "", help);
    }
    size_t used = strlen(args->notes);
    if (index > 0 && row->note && !strstr(args->notes, row->note))
        snprintf(args->notes + used, sizeof args->notes - used, "%s\n", row->note);
    return STATUS_OK;
}

enum status cli_value_set(const struct cli_value *s, struct cli_args *args, struct status_why *why)
{
    switch (s->option->type) {
    case CLI_ON:
    case CLI_OFF:
        *(bool *)s->target = s->option->type == CLI_ON;
        return STATUS_OK;
    case CLI_TEXT:
        *(const char **)s->target = s->value;
        return STATUS_OK;
    case CLI_COUNT:
        return set_count(s, why);
    case CLI_COUNTS:
        return set_counts(s, why);
    case CLI_NUMBER:
        return set_number(s, why);
    case CLI_CHOICE:
        return set_choice(s, why);
    case CLI_NAMED:
        return set_named(s, why);
    case CLI_KV:
        return cli_kv_set(s, why);
    case CLI_LIST:
        return set_list(s, why);
    case CLI_EACH:
        return cli_list_append(s->target, s->value, strlen(s->value), why);
    case CLI_IGNORED:
        note_ignored(args, s->spelling);
        return STATUS_OK;
    case CLI_REFUSED:
    case CLI_INSTEAD:
        return refuse(s, args, why);
    case CLI_ANSWER:
        args->answer = s->option->help;
        return STATUS_OK;
    case CLI_QUIET:
        args->quiet = true;
        return STATUS_OK;
    case CLI_HEADING:
    case CLI_GROUP:
    case CLI_OPERANDS:
        break;
    }
    return STATUS_OK;
}
