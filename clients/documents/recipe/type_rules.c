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
#include "base/text/strtab.h"
#include "clients/documents/recipe/recipe_document.h"

enum {
    MATCH_LIMIT = 100000,   /* steps back of an expression on a name */
    MOST_STEPS = 200000000, /* of all expressions on all names: a few seconds */
    STEPS_OF_TRY = 4,       /* what a try costs that ends at once */
    MOST_BYTES = 64 << 20,  /* of a text of rules; of all compiled expressions */
    MOST_EXPRESSIONS = 10000,
    MOST_RULES = 1000000 /* more than any model has tensors */
};

struct expression {
    size_t rule;
    pcre2_code *code;
};

struct doc_rule_index {
    struct base_strtab names; /* whole ones */
    size_t *by_name;          /* [names.n]: the first rule of each */
    size_t by_name_capacity;
    struct expression *expressions; /* [n_expressions], in the order of the rules */
    size_t n_expressions, expression_capacity, n_bytes;
    pcre2_match_data *found;
    pcre2_match_context *limits;
    int64_t steps_left;
};

/** PCRE2 calls this before each item of an expression that it tries. */
static int count_step(pcre2_callout_block *block, void *steps_left)
{
    (void)block;
    int64_t *left = steps_left;
    return --*left < 0 ? PCRE2_ERROR_CALLOUT : 0;
}

static enum status make_index(struct doc_rule_index **out, struct status_why *why)
{
    struct doc_rule_index *x = *out;
    if (!x)
        x = *out = calloc(1, sizeof *x);
    if (x && !x->found)
        x->found = pcre2_match_data_create(1, NULL);
    if (x && !x->limits)
        x->limits = pcre2_match_context_create(NULL);
    if (!x || !x->found || !x->limits)
        return status_fail(why, STATUS_MEMORY, "no memory for a rule");
    x->steps_left = MOST_STEPS;
    pcre2_set_match_limit(x->limits, MATCH_LIMIT);
    pcre2_set_callout(x->limits, count_step, &x->steps_left);
    return STATUS_OK;
}

static void free_index(struct doc_rule_index *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n_expressions; i++)
        pcre2_code_free(x->expressions[i].code);
    base_strtab_free(&x->names);
    free(x->by_name);
    free(x->expressions);
    pcre2_match_data_free(x->found);
    pcre2_match_context_free(x->limits);
    free(x);
}

/** Put the last rule among whole names. */
static enum status index_name(struct doc_type_rules *rules, struct status_why *why)
{
    struct doc_rule_index *x = rules->index;
    const char *name = rules->items[rules->n - 1].text;
    size_t n = x->names.n;
    int32_t number = 0;
    enum status status = base_array_reserve(x->by_name, x->by_name_capacity, n + 1, "rules", why);
    if (!status)
        status = base_strtab_add(&x->names, (struct base_string){name, strlen(name)}, &number, why);
    if (!status && (size_t)number == n)
        x->by_name[n] = rules->n - 1;
    return status;
}

/** Compile the last rule. where: what sentences begin with. */
static enum status index_expression(struct doc_type_rules *rules, const char *where,
                                    struct status_why *why)
{
    struct doc_rule_index *x = rules->index;
    struct doc_type_rule *rule = &rules->items[rules->n - 1];
    int error;
    PCRE2_SIZE at, n_bytes = 0;
    if (x->n_expressions == MOST_EXPRESSIONS)
        return status_fail(why, STATUS_USAGE, "%s: more than %d rules with expressions", where,
                           MOST_EXPRESSIONS);
    if (base_array_reserve(x->expressions, x->expression_capacity, x->n_expressions + 1, "rules",
                           why))
        return STATUS_MEMORY;
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)rule->text, PCRE2_ZERO_TERMINATED,
                                     PCRE2_DOLLAR_ENDONLY | PCRE2_AUTO_CALLOUT, &error, &at, NULL);
    if (!code) {
        char message[128];
        struct base_quoted quoted;
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        return status_fail(
            why, STATUS_USAGE, "%s: %s is no expression: %s at character %zu", where,
            base_quote(&quoted, (struct base_string){rule->text, strlen(rule->text)}), message,
            (size_t)at);
    }
    rule->is_expression = true;
    x->expressions[x->n_expressions++] = (struct expression){rules->n - 1, code};
    pcre2_pattern_info(code, PCRE2_INFO_SIZE, &n_bytes);
    x->n_bytes += n_bytes;
    return x->n_bytes <= MOST_BYTES
               ? STATUS_OK
               : status_fail(why, STATUS_USAGE, "%s: its expressions take more than %d MiB", where,
                             MOST_BYTES >> 20);
}

/** Add a rule with a copy of its text. */
static enum status add(struct doc_type_rules *rules, const char *text, size_t n_bytes,
                       const struct gguf_type_info *type, struct status_why *why)
{
    if (rules->n == MOST_RULES)
        return status_fail(why, STATUS_USAGE, "a recipe has more than %d rules", MOST_RULES);
    enum status status = make_index(&rules->index, why);
    if (!status)
        status = base_array_reserve(rules->items, rules->capacity, rules->n + 1, "rules", why);
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
    return index_expression(rules, where, why);
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
        if (!status && type)
            status = index_name(rules, why);
        else if (!status && t->type)
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
    free_index(rules->index);
    for (size_t i = 0; i < rules->n; i++)
        free(rules->items[i].text);
    free(rules->items);
    *rules = (struct doc_type_rules){0};
}

/** Whether an expression is found in a tensor's name. */
static enum status is_found(bool *out, const struct doc_type_rules *rules,
                            const struct expression *e, struct base_string tensor,
                            struct status_why *why)
{
    struct doc_rule_index *x = rules->index;
    struct base_quoted quoted[2];
    x->steps_left -= STEPS_OF_TRY;
    int n =
        pcre2_match(e->code, (PCRE2_SPTR)tensor.data, tensor.n_bytes, 0, 0, x->found, x->limits);
    *out = n >= 0;
    if (x->steps_left < 0)
        return status_fail(why, STATUS_USAGE,
                           "--recipe: its expressions take more than %d steps to be found in the "
                           "names of tensors",
                           MOST_STEPS);
    if (n >= 0 || n == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    const char *text = rules->items[e->rule].text;
    return status_fail(why, n == PCRE2_ERROR_NOMEMORY ? STATUS_MEMORY : STATUS_USAGE,
                       "--recipe: %s takes too many steps to be found in %s",
                       base_quote(&quoted[0], (struct base_string){text, strlen(text)}),
                       base_quote(&quoted[1], tensor));
}

enum status doc_type_rules_find(const struct doc_type_rule **out,
                                const struct doc_type_rules *rules, const char *tensor,
                                struct status_why *why)
{
    const struct doc_rule_index *x = rules->index;
    const struct base_string name = {tensor, strlen(tensor)};
    int32_t number = x ? base_strtab_find(&x->names, name) : -1;
    size_t first = number < 0 ? rules->n : x->by_name[number];
    enum status status = STATUS_OK;
    for (size_t i = 0; x && i < x->n_expressions && x->expressions[i].rule < first && !status;
         i++) {
        bool found = false;
        status = is_found(&found, rules, &x->expressions[i], name, why);
        if (found)
            first = x->expressions[i].rule;
    }
    *out = status || first == rules->n ? NULL : &rules->items[first];
    return status;
}
