#include "cli/perplexity/config.h"

#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/content/text.h"
#include "base/text/words.h"
#include "cli/options/perplexity.h"
#include "cli/options/value.h"
#include "cli/perplexity/ini.h"

enum { MOST_BYTES = 1 << 16, LONGEST_NAME = 64, LONGEST_PATH = 4096, N_FILES = 2 };

/* The options that a configuration may set, by the first name of their rows: those that can change
 * a number, and the others. Texts to evaluate (-p, -f) are not among them. */
static const char numbers[] =
    "-c --chunks -ctk -ctv --rope-scaling --rope-scale --rope-freq-base --rope-freq-scale "
    "--yarn-orig-ctx --yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast "
    "--hellaswag-tasks --winogrande-tasks --multiple-choice-tasks --ppl-stride -okv";
static const char others[] =
    "-t -tb -b -e --no-escape --hellaswag --winogrande --multiple-choice --kl-divergence "
    "--kl-divergence-base --ppl-output-type -dev -ngl -m";

/* The files that were read. Settings point into them. */
static struct cli_ini files[N_FILES];

/* "" where there is none: nobody's home is known. */
static void path_of(char path[LONGEST_PATH], size_t i)
{
    const char *config = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    const struct passwd *user = home && *home ? NULL : getpwuid(getuid());
    home = user ? user->pw_dir : home;
    *path = '\0';
    if (i == 0)
        snprintf(path, LONGEST_PATH, "/etc/llama.cpp/config.ini");
    else if (config && *config)
        snprintf(path, LONGEST_PATH, "%s/llama.cpp/config.ini", config);
    else if (home && *home)
        snprintf(path, LONGEST_PATH, "%s/.config/llama.cpp/config.ini", home);
}

static enum status read_file(struct cli_ini *out, const char *path, struct status_why *why)
{
    struct base_text text = {0};
    cli_ini_free(out);
    if (!*path || access(path, F_OK) != 0)
        return STATUS_OK;
    enum status status = base_text_read_document(&text, path, MOST_BYTES, NULL, why);
    if (!status) {
        status = cli_ini_parse(out, text.data, text.n_bytes, why);
        if (status)
            status_context(why, "%s", path);
    }
    base_text_free(&text);
    return status;
}

/* The row that a key is a name of, without its dashes, or the variable of; NULL: there is none. */
static const struct cli_option *find_row(const char *key, size_t *at)
{
    char name[LONGEST_NAME + 3];
    snprintf(name, sizeof name, "--%s", key);
    struct cli_rows rows = {.next = cli_perplexity_options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
        *at = rows.at;
        if ((row->env && strcmp(row->env, key) == 0) ||
            (row->names && (base_words_index(row->names, name) >= 0 ||
                            base_words_index(row->names, name + 1) >= 0)))
            return row;
    }
    return NULL;
}

static bool is_among(const char *words, const struct cli_option *row)
{
    char name[LONGEST_NAME];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    return base_words_index(words, name) >= 0;
}

static void add(char *text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void add(char *text, size_t capacity, const char *format, ...)
{
    size_t used = strlen(text);
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text + used, capacity - used, format, values);
    va_end(values);
}

static bool is_on(const char *value)
{
    return base_words_index("1 on true enabled", value) >= 0;
}

/* One that has no opposite is on in llama-perplexity whatever its value is. */
static enum status set_switch(const struct cli_value *s, struct status_why *why)
{
    bool has_opposite = base_words_index("e escape no-escape", s->spelling) >= 0;
    if (!is_on(s->value) && !has_opposite)
        return status_fail(why, STATUS_USAGE,
                           "%s = %s: llama-perplexity takes any value as on; expected on, or no "
                           "such line",
                           s->spelling, s->value);
    *(bool *)s->target = (s->option->type == CLI_ON) == is_on(s->value);
    return STATUS_OK;
}

/* Whether the program has an option that is used here as it is there; its value is applied. */
static enum status apply(const struct cli_value *s, struct cli_args *args, bool *used,
                         struct status_why *why)
{
    enum cli_option_type type = s->option->type;
    *used = type < CLI_IGNORED && (is_among(numbers, s->option) || is_among(others, s->option));
    if (*used && !s->option->value)
        return set_switch(s, why);
    return *used || type == CLI_REFUSED ? cli_value_set(s, args, why) : STATUS_OK;
}

/* What llama.cpp reads no option in, or this program one that changes nothing. */
static bool is_silent(const char *key, const struct cli_option *row)
{
    bool variable = !row && strncmp(key, "LLAMA_ARG_", strlen("LLAMA_ARG_")) == 0;
    return variable || strcmp(key, "version") == 0 || (row && row->type == CLI_IGNORED);
}

static enum status apply_file(void *settings, struct cli_args *args, const struct cli_ini *ini,
                              const char *path, struct status_why *why)
{
    char set[sizeof args->notes] = "", unused[sizeof args->notes] = "";
    enum status status = STATUS_OK;
    for (size_t i = 0; i < ini->n && !status; i++) {
        const struct cli_ini_entry *entry = &ini->entries[i];
        size_t at = 0;
        const struct cli_option *row = find_row(entry->key, &at);
        struct cli_value s = {row, entry->key, entry->value, (char *)settings + at};
        bool used = false;
        if (row)
            status = apply(&s, args, &used, why);
        if (used)
            add(set, sizeof set, "%s%s = %s", *set ? ", " : "", entry->key, entry->value);
        else if (!is_silent(entry->key, row) && !(row && row->type == CLI_REFUSED))
            add(unused, sizeof unused, "%s%s", *unused ? ", " : "", entry->key);
    }
    if (status) {
        status_context(why, "%s", path);
        return status;
    }
    if (*set)
        add(args->notes, sizeof args->notes,
            "%s gives %s where neither a variable nor an option does\n", path, set);
    if (*unused)
        add(args->notes, sizeof args->notes, "%s: not used here: %s\n", path, unused);
    return STATUS_OK;
}

bool cli_called_as_peer(const struct cli_args *args)
{
    return strncmp(args->called, CLI_PEER, strlen(CLI_PEER)) == 0;
}

enum status cli_config_apply(void *settings, struct cli_args *args, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < N_FILES && !status && cli_called_as_peer(args); i++) {
        char path[LONGEST_PATH];
        path_of(path, i);
        status = read_file(&files[i], path, why);
        if (!status)
            status = apply_file(settings, args, &files[i], path, why);
    }
    return status;
}

static bool is_given(const struct cli_option *row, const struct cli_args *args)
{
    const char *variable = row->env ? getenv(row->env) : NULL;
    for (size_t i = 0; i < args->n_given; i++)
        if (args->given[i].option == row)
            return true;
    return variable && *variable;
}

void cli_config_note(struct cli_args *args)
{
    for (size_t i = 0; i < N_FILES && !cli_called_as_peer(args); i++) {
        char path[LONGEST_PATH], found[sizeof args->notes] = "";
        struct cli_ini ini = {0};
        path_of(path, i);
        if (read_file(&ini, path, &(struct status_why){""}))
            continue;
        for (size_t k = 0; k < ini.n; k++) {
            const struct cli_ini_entry *entry = &ini.entries[k];
            size_t at;
            const struct cli_option *row = find_row(entry->key, &at);
            if (row && row->type < CLI_IGNORED && is_among(numbers, row) && !is_given(row, args))
                add(found, sizeof found, "%s%s = %s", *found ? ", " : "", entry->key, entry->value);
        }
        if (*found)
            add(args->notes, sizeof args->notes,
                "%s gives " CLI_PEER " %s; by the name of assay it is not read\n", path, found);
        cli_ini_free(&ini);
    }
}
