#include "cli/results/document.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json/parse.h"
#include "cli/options/words.h"
#include "cli/output/json_parts.h"

static const char *const schemas[] = {
    [CLI_DOCUMENT_PERPLEXITY] = "assay-perplexity",
    [CLI_DOCUMENT_TASKS] = "assay-tasks",
    [CLI_DOCUMENT_KLD] = "assay-kld",
};
enum { N_SCHEMAS = sizeof schemas / sizeof *schemas };

#define MAX_BYTES ((size_t)1 << 30) /* a document of a million tasks has a third of that */

const char *cli_document_schema(enum cli_document_kind kind)
{
    return schemas[kind];
}

static enum status check_schema(struct cli_document *r, struct status_why *why)
{
    struct cli_field root = cli_document_root(r), schema;
    if (!cJSON_IsObject(r->root) || !cli_field_find(&schema, &root, "schema") ||
        !cJSON_IsString(schema.value))
        return status_fail(why, STATUS_FORMAT,
                           "%s: no result of assay: there is no `schema` that names it; expected a "
                           "file that --json wrote",
                           r->file);
    size_t kind = 0, version;
    while (kind < N_SCHEMAS && strcmp(schema.value->valuestring, schemas[kind]) != 0)
        kind++;
    if (kind == N_SCHEMAS)
        return status_fail(why, STATUS_FORMAT,
                           "%s: schema is '%.40s', expected assay-perplexity, assay-tasks or "
                           "assay-kld",
                           r->file, schema.value->valuestring);
    r->kind = (enum cli_document_kind)kind;
    enum status status = cli_field_count(&version, &root, "schema_version", why);
    if (status == STATUS_OK && version != CLI_SCHEMA_VERSION)
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: schema_version is %zu, this program reads %d; evaluate again "
                             "with it",
                             r->file, version, (int)CLI_SCHEMA_VERSION);
    return status;
}

enum status cli_document_parse(struct cli_document *out, const char *file, const char *bytes,
                               size_t n_bytes, struct status_why *why)
{
    size_t at;
    *out = (struct cli_document){.file = file};
    enum status status = base_json_parse(&out->root, bytes, n_bytes, &at, why);
    if (status == STATUS_MEMORY) {
        status_context(why, "%s", file);
        return status;
    }
    while (out->root && at < n_bytes && strchr(" \t\r\n", bytes[at]) && bytes[at])
        at++;
    if (out->root && at == n_bytes)
        status = check_schema(out, why);
    else
        status = status_fail(why, STATUS_FORMAT,
                             "%s: is no JSON from byte %zu on; expected a result that --json "
                             "wrote",
                             file, at);
    if (status != STATUS_OK)
        cli_document_free(out);
    return status;
}

enum status cli_document_read(struct cli_document *out, const char *file, struct status_why *why)
{
    struct eval_text text;
    *out = (struct cli_document){0};
    enum status status = eval_text_read_whole(&text, file, MAX_BYTES, why);
    if (status == STATUS_OK)
        status = cli_document_parse(out, file, text.data, text.n_bytes, why);
    eval_text_free(&text);
    return status;
}

void cli_document_free(struct cli_document *result)
{
    cJSON_Delete(result->root);
    *result = (struct cli_document){0};
}

struct cli_field cli_document_root(const struct cli_document *result)
{
    return (struct cli_field){.file = result->file, .value = result->root};
}

/* Add to a place's name, which only errors show: cut at its end. */
__attribute__((format(printf, 2, 3))) static void extend(struct cli_field *place,
                                                         const char *format, ...)
{
    size_t used = strlen(place->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(place->name + used, sizeof place->name - used, format, arguments);
    va_end(arguments);
}

/* The member whose name is the first n bytes of `name`, or NULL. */
static const cJSON *member(const cJSON *object, const char *name, size_t n)
{
    if (cJSON_IsObject(object))
        for (const cJSON *item = object->child; item; item = item->next)
            if (strlen(item->string) == n && memcmp(item->string, name, n) == 0)
                return item;
    return NULL;
}

/* The place of a member; its value is NULL where there is none. */
static struct cli_field child_of(const struct cli_field *place, const char *name)
{
    struct cli_field child = *place;
    child.value = member(place->value, name, strlen(name));
    extend(&child, "%s%s", *child.name ? "." : "", name);
    return child;
}

/* Walk down a path; the name is that of the deepest place, reached or missing. */
static bool walk(struct cli_field *out, const struct cli_field *from, const char *path)
{
    struct cli_field place = *from;
    for (;;) {
        size_t n = strcspn(path, ".");
        place.value = member(place.value, path, n);
        extend(&place, "%s%.*s", *place.name ? "." : "", (int)n, path);
        if (!place.value || !path[n])
            break;
        path += n + 1;
    }
    *out = place;
    return place.value != NULL;
}

enum status cli_field_at(struct cli_field *out, const struct cli_field *from, const char *path,
                         struct status_why *why)
{
    if (walk(out, from, path))
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "%s: %s is missing; expected a whole result of this version of assay",
                       out->file, out->name);
}

bool cli_field_find(struct cli_field *out, const struct cli_field *from, const char *path)
{
    return walk(out, from, path) && !cJSON_IsNull(out->value);
}

/* What a value is, for a sentence. */
static const char *kind_of(const cJSON *value)
{
    return cJSON_IsNull(value)     ? "null"
           : cJSON_IsBool(value)   ? "true or false"
           : cJSON_IsNumber(value) ? "another number"
           : cJSON_IsString(value) ? "a text"
           : cJSON_IsArray(value)  ? "a list"
                                   : "an object";
}

static enum status fail_type(const struct cli_field *place, const char *expected,
                             struct status_why *why)
{
    return status_fail(why, STATUS_FORMAT, "%s: %s is %s, expected %s", place->file, place->name,
                       kind_of(place->value), expected);
}

enum status cli_field_real(double *out, const struct cli_field *from, const char *path,
                           struct status_why *why)
{
    struct cli_field place;
    *out = (double)NAN;
    enum status status = cli_field_at(&place, from, path, why);
    if (status != STATUS_OK || cJSON_IsNull(place.value))
        return status;
    if (!cJSON_IsNumber(place.value) || !isfinite(place.value->valuedouble))
        return fail_type(&place, "a finite number, or null", why);
    *out = place.value->valuedouble;
    return STATUS_OK;
}

enum status cli_field_count(size_t *out, const struct cli_field *from, const char *path,
                            struct status_why *why)
{
    struct cli_field place;
    *out = 0;
    enum status status = cli_field_at(&place, from, path, why);
    if (status != STATUS_OK)
        return status;
    double value = cJSON_IsNumber(place.value) ? place.value->valuedouble : -1;
    if (!(value >= 0 && value <= 0x1p53) || floor(value) < value)
        return fail_type(&place, "a whole number from 0 to 2^53", why);
    *out = (size_t)value;
    return STATUS_OK;
}

enum status cli_field_text(const char **out, const struct cli_field *from, const char *path,
                           struct status_why *why)
{
    struct cli_field place;
    *out = "";
    enum status status = cli_field_at(&place, from, path, why);
    if (status != STATUS_OK)
        return status;
    if (!cJSON_IsString(place.value))
        return fail_type(&place, "a text", why);
    *out = place.value->valuestring;
    return STATUS_OK;
}

enum status cli_field_list(struct cli_field *out, size_t *n, const struct cli_field *from,
                           const char *path, struct status_why *why)
{
    *n = 0;
    enum status status = cli_field_at(out, from, path, why);
    if (status != STATUS_OK)
        return status;
    if (!cJSON_IsArray(out->value))
        return fail_type(out, "a list", why);
    for (const cJSON *item = out->value->child; item; item = item->next)
        ++*n;
    return STATUS_OK;
}

bool cli_field_next(const struct cli_field *list, struct cli_field *item)
{
    bool first = !item->value;
    item->index = first ? 0 : item->index + 1;
    item->value = first ? list->value->child : item->value->next;
    item->file = list->file;
    memcpy(item->name, list->name, sizeof item->name);
    extend(item, "[%zu]", item->index);
    return item->value != NULL;
}

static enum status fail_different(const struct cli_field *a, const struct cli_field *b,
                                  struct status_why *why)
{
    char *values[2] = {a->value ? cJSON_PrintUnformatted(a->value) : NULL,
                       b->value ? cJSON_PrintUnformatted(b->value) : NULL};
    enum status status = status_fail(
        why, STATUS_USAGE,
        "%s and %s are not of the same inputs: %s is %.72s and %.72s; only results of the same "
        "text, tokens and windows can be compared",
        a->file, b->file, a->name, values[0] ? values[0] : "not there",
        values[1] ? values[1] : "not there");
    cJSON_free(values[0]);
    cJSON_free(values[1]);
    return status;
}

enum status cli_fields_equal(const struct cli_field *a, const struct cli_field *b, const char *path,
                             const char *but, struct status_why *why)
{
    struct cli_field x, y;
    enum status status = cli_field_at(&x, a, path, why);
    if (status == STATUS_OK)
        status = cli_field_at(&y, b, path, why);
    if (status != STATUS_OK)
        return status;
    if (!cJSON_IsObject(x.value) || !cJSON_IsObject(y.value))
        return cJSON_Compare(x.value, y.value, true) ? STATUS_OK : fail_different(&x, &y, why);
    /* What only the second one has is found by a second look, from its side. */
    for (int side = 0; side < 2; side++)
        for (const cJSON *item = (side ? y : x).value->child; item; item = item->next) {
            if (but && cli_words_index(but, item->string) >= 0)
                continue;
            struct cli_field p = child_of(&x, item->string), q = child_of(&y, item->string);
            if (!p.value || !q.value || !cJSON_Compare(p.value, q.value, true))
                return fail_different(&p, &q, why);
        }
    return STATUS_OK;
}

enum status cli_fields_same_text(const struct cli_field *a, const struct cli_field *b,
                                 struct status_why *why)
{
    struct cli_field x, y;
    enum status status = cli_field_at(&x, a, "text", why);
    if (status == STATUS_OK)
        status = cli_field_at(&y, b, "text", why);
    if (status != STATUS_OK || cJSON_IsNull(x.value) || cJSON_IsNull(y.value))
        return status;
    return cli_fields_equal(a, b, "text.sha256", NULL, why);
}
