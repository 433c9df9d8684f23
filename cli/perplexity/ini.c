#include "cli/perplexity/ini.h"

#include <stdlib.h>
#include <string.h>

#include "base/content/text.h"

enum { MOST_ENTRIES = 1000, MOST_SHOWN = 40 };

#define BLANKS "\t "

/** Which entries the lines that follow belong to. */
enum section { SECTION_DEFAULT, SECTION_GENERAL, SECTION_OTHER };

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_of_key(char c)
{
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-';
}

/* Whether nothing but a comment is left of a line. */
static bool is_over(const char *rest)
{
    rest += strspn(rest, BLANKS);
    return !*rest || *rest == ';' || *rest == '#';
}

static void forget(struct cli_ini *ini, bool general)
{
    size_t n = 0;
    for (size_t i = 0; i < ini->n; i++)
        if (ini->entries[i].general != general)
            ini->entries[n++] = ini->entries[i];
    ini->n = n;
}

/* "[name]": blanks before the name do not count, those after it do. */
static bool read_section(struct cli_ini *ini, enum section *section, char *line)
{
    char *name = line + 1 + strspn(line + 1, BLANKS), *end = strchr(name, ']');
    if (!end || end == name || !is_over(end + 1))
        return false;
    *end = '\0';
    *section = strcmp(name, "default") == 0 ? SECTION_DEFAULT
               : strcmp(name, "*") == 0     ? SECTION_GENERAL
                                            : SECTION_OTHER;
    if (*section != SECTION_OTHER)
        forget(ini, *section == SECTION_GENERAL);
    return true;
}

static enum status keep(struct cli_ini *ini, struct cli_ini_entry entry, struct status_why *why)
{
    for (size_t i = 0; i < ini->n; i++)
        if (ini->entries[i].general == entry.general &&
            strcmp(ini->entries[i].key, entry.key) == 0) {
            ini->entries[i].value = entry.value;
            return STATUS_OK;
        }
    if (ini->n == MOST_ENTRIES)
        return status_fail(why, STATUS_FORMAT, "more than %d keys", MOST_ENTRIES);
    ini->entries[ini->n++] = entry;
    return STATUS_OK;
}

/* "key = value" into its two halves. */
static bool split(char *line, char **value)
{
    char *end = line;
    while (is_of_key(*end))
        end++;
    char *equals = end + strspn(end, BLANKS);
    if (*equals != '=')
        return false;
    *value = equals + 1 + strspn(equals + 1, BLANKS);
    size_t n = strcspn(*value, ";#");
    while (n && strchr(BLANKS, (*value)[n - 1]))
        n--;
    (*value)[n] = '\0';
    *end = '\0';
    return true;
}

static enum status read_line(struct cli_ini *ini, enum section *section, char *line, size_t number,
                             struct status_why *why)
{
    char *value;
    if (is_over(line) || (*line == '[' && read_section(ini, section, line)))
        return STATUS_OK;
    if (!is_letter(*line) || !split(line, &value))
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: expected 'key = value', '[section]' or a comment, found "
                           "'%.*s'%s",
                           number, MOST_SHOWN, line,
                           strchr(BLANKS, *line) ? ", which begins with a blank" : "");
    if (*section == SECTION_OTHER)
        return STATUS_OK;
    return keep(ini, (struct cli_ini_entry){*section == SECTION_GENERAL, line, value}, why);
}

static int by_section_and_key(const void *a, const void *b)
{
    const struct cli_ini_entry *x = a, *y = b;
    return x->general != y->general ? y->general - x->general : strcmp(x->key, y->key);
}

enum status cli_ini_parse(struct cli_ini *out, const char *bytes, size_t n_bytes,
                          struct status_why *why)
{
    enum section section = SECTION_DEFAULT;
    enum status status = base_text_check(bytes, n_bytes, why);
    if (status)
        return status;
    *out = (struct cli_ini){malloc(MOST_ENTRIES * sizeof *out->entries), 0, malloc(n_bytes + 1)};
    if (!out->text || !out->entries)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    if (n_bytes)
        memcpy(out->text, bytes, n_bytes);
    out->text[n_bytes] = '\0';
    char *line = out->text;
    for (size_t number = 1; *line && !status; number++) {
        char *end = line + strcspn(line, "\r\n");
        char *next = end + (*end != '\0') + (end[0] == '\r' && end[1] == '\n');
        *end = '\0';
        status = read_line(out, &section, line, number, why);
        line = next;
    }
    qsort(out->entries, out->n, sizeof *out->entries, by_section_and_key);
    return status;
}

void cli_ini_free(struct cli_ini *ini)
{
    free(ini->entries);
    free(ini->text);
    *ini = (struct cli_ini){0};
}
