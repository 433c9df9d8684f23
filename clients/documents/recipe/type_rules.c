#include "clients/documents/recipe/type_rules.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <ctype.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/content/kind.h"
#include "base/content/text.h"
#include "base/text/quote.h"
#include "clients/documents/recipe/recipe_document.h"

enum {
    MATCH_LIMIT = 100000,  /* steps of an expression on a name */
    MOST_BYTES = 64 << 20, /* of a text of rules */
    MOST_NAMES = 1000000   /* rules: more than any model has tensors */
};

struct doc_expression {
    pcre2_code *code;
    pcre2_match_data *found;
    pcre2_match_context *limits;
};

static void expression_free(struct doc_expression *e)
{
    if (!e)
        return;
    pcre2_code_free(e->code);
    pcre2_match_data_free(e->found);
    pcre2_match_context_free(e->limits);
    free(e);
}

static enum status compile(struct doc_expression **out, const char *text, const char *where,
                           struct status_why *why)
{
    int error;
    PCRE2_SIZE at;
    struct doc_expression *e = *out = calloc(1, sizeof *e);
    if (!e)
        return status_fail(why, STATUS_MEMORY, "no memory for a rule");
    e->code = pcre2_compile((PCRE2_SPTR)text, PCRE2_ZERO_TERMINATED, PCRE2_DOLLAR_ENDONLY, &error,
                            &at, NULL);
    if (!e->code) {
        char message[128];
        struct base_quoted quoted;
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        return status_fail(why, STATUS_USAGE, "%s: %s is no expression: %s at character %zu", where,
                           base_quote(&quoted, (struct base_string){text, strlen(text)}), message,
                           (size_t)at);
    }
    e->found = pcre2_match_data_create(1, NULL);
    e->limits = pcre2_match_context_create(NULL);
    if (!e->found || !e->limits)
        return status_fail(why, STATUS_MEMORY, "no memory for a rule");
    pcre2_set_match_limit(e->limits, MATCH_LIMIT);
    return STATUS_OK;
}

/** Add a rule with a copy of its text. */
static enum status add(struct doc_type_rules *rules, const char *text, size_t n_bytes,
                       const struct gguf_type_info *type, struct status_why *why)
{
    if (rules->n == MOST_NAMES)
        return status_fail(why, STATUS_USAGE, "a recipe has more than %d rules", MOST_NAMES);
    enum status status =
        base_array_reserve(rules->items, rules->capacity, rules->n + 1, "rules", why);
    char *copy = status ? NULL : strndup(text, n_bytes);
    if (!status && !copy)
        status = status_fail(why, STATUS_MEMORY, "no memory for a rule");
    if (!status)
        rules->items[rules->n++] = (struct doc_type_rule){.text = copy, .type = type};
    return status;
}

static enum status unknown_type(const char *where, struct base_string type, struct status_why *why)
{
    struct base_quoted quoted;
    return status_fail(why, STATUS_USAGE,
                       "%s: %s is no type that can be decoded; expected a name as q4_K", where,
                       base_quote(&quoted, type));
}

/** A rule NAME=TYPE. where: what sentences begin with. */
static enum status add_rule(struct doc_type_rules *rules, struct base_string rule,
                            const char *where, struct status_why *why)
{
    const char *sign = memchr(rule.data, '=', rule.n_bytes);
    struct base_quoted quoted;
    char type[32];
    if (!sign || sign == rule.data || memchr(rule.data, '\0', rule.n_bytes))
        return status_fail(why, STATUS_USAGE, "%s: %s is no rule; expected NAME=TYPE", where,
                           base_quote(&quoted, rule));
    struct base_string name = {sign + 1, rule.n_bytes - (size_t)(sign + 1 - rule.data)};
    const struct gguf_type_info *info = NULL;
    if (name.n_bytes < sizeof type) {
        memcpy(type, name.data, name.n_bytes);
        type[name.n_bytes] = '\0';
        info = gguf_type_named(type);
    }
    if (!info)
        return unknown_type(where, name, why);
    enum status status = add(rules, rule.data, (size_t)(sign - rule.data), info, why);
    if (status)
        return status;
    struct doc_type_rule *added = &rules->items[rules->n - 1];
    for (char *c = added->text; *c; c++)
        *c = (char)tolower((unsigned char)*c);
    return compile(&added->expression, added->text, where, why);
}

enum status doc_type_rules_take(struct doc_type_rules *rules, struct base_string text,
                                const char *where, struct status_why *why)
{
    const char *at = text.data, *end = text.data + text.n_bytes, *from;
    enum status status = STATUS_OK;
    while (at < end && !status) {
        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        bool comment = *at == '#';
        for (from = at; at < end && (comment ? *at != '\n' : !isspace((unsigned char)*at));)
            at++;
        if (!comment)
            status = add_rule(rules, (struct base_string){from, (size_t)(at - from)}, where, why);
    }
    return status;
}

static enum status add_text(struct doc_type_rules *rules, const char *path, struct status_why *why)
{
    struct base_text text = {0};
    enum status status = base_text_read_utf8(&text, path, MOST_BYTES, "", why);
    if (!status)
        status =
            doc_type_rules_take(rules, (struct base_string){text.data, text.n_bytes}, path, why);
    base_text_free(&text);
    return status;
}

/** Tensors of a document; of one without a type it says nothing. */
static enum status add_document(struct doc_type_rules *rules, const char *path,
                                struct status_why *why)
{
    struct doc_recipe recipe = {0};
    enum status status = doc_recipe_read(&recipe, path, NULL, why);
    for (size_t i = 0; i < recipe.n_tensors && !status; i++) {
        const struct doc_recipe_tensor *t = &recipe.tensors[i];
        const struct gguf_type_info *type = t->type ? gguf_type_named(t->type) : NULL;
        if (type)
            status = add(rules, t->name, strlen(t->name), type, why);
        else if (t->type)
            status = unknown_type(path, (struct base_string){t->type, strlen(t->type)}, why);
    }
    doc_recipe_free(&recipe);
    return status;
}

enum status doc_type_rules_add(struct doc_type_rules *rules, const char *given,
                               struct status_why *why)
{
    size_t before = rules->n;
    struct base_string rule = {given, strlen(given)};
    enum status status = STATUS_OK;
    if (access(given, F_OK) != 0 && strchr(given, '='))
        status = add_rule(rules, rule, "--recipe", why);
    else if (base_file_begins_object(given))
        status = add_document(rules, given, why);
    else
        status = add_text(rules, given, why);
    if (!status && rules->n == before)
        status = status_fail(why, STATUS_FORMAT, "%s: has no rule about a type", given);
    return status;
}

void doc_type_rules_free(struct doc_type_rules *rules)
{
    for (size_t i = 0; i < rules->n; i++) {
        expression_free(rules->items[i].expression);
        free(rules->items[i].text);
    }
    free(rules->items);
    *rules = (struct doc_type_rules){0};
}

static enum status names(bool *out, const struct doc_type_rule *rule, const char *tensor,
                         struct status_why *why)
{
    const struct doc_expression *e = rule->expression;
    *out = !e && strcmp(rule->text, tensor) == 0;
    if (!e)
        return STATUS_OK;
    int n = pcre2_match(e->code, (PCRE2_SPTR)tensor, strlen(tensor), 0, 0, e->found, e->limits);
    *out = n >= 0;
    if (n >= 0 || n == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    struct base_quoted quoted[2];
    return status_fail(why, n == PCRE2_ERROR_NOMEMORY ? STATUS_MEMORY : STATUS_USAGE,
                       "--recipe: %s takes too many steps to be found in %s",
                       base_quote(&quoted[0], (struct base_string){rule->text, strlen(rule->text)}),
                       base_quote(&quoted[1], (struct base_string){tensor, strlen(tensor)}));
}

enum status doc_type_rules_find(const struct doc_type_rule **out,
                                const struct doc_type_rules *rules, const char *tensor,
                                struct status_why *why)
{
    bool named = false;
    enum status status = STATUS_OK;
    *out = NULL;
    for (size_t i = 0; i < rules->n && !status && !named; i++) {
        status = names(&named, &rules->items[i], tensor, why);
        *out = named ? &rules->items[i] : NULL;
    }
    return status;
}
