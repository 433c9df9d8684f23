#include "clients/documents/results/document.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/content/kind.h"
#include "base/content/text.h"
#include "base/json/parse.h"
#include "base/text/words.h"
#include "clients/documents/schema.h"

static const char *const schemas[] = {
    [DOC_PERPLEXITY] = "assay-perplexity",
    [DOC_TASKS] = "assay-tasks",
    [DOC_KLD] = "assay-kld",
    [DOC_SWEEP] = DOC_SWEEP_SCHEMA,
    [DOC_IMATRIX] = DOC_IMATRIX_SCHEMA,
};
static const char results[] = "assay-perplexity assay-tasks assay-kld";
enum { N_SCHEMAS = sizeof schemas / sizeof *schemas };

#define MAX_BYTES                                                                                  \
    ((size_t)128 << 20) /* one of 200,000 tasks has 100 MB and as many values as are parsed */

const char *doc_schema(enum doc_kind kind)
{
    return schemas[kind];
}

static enum status check_version(struct doc_document *d, const struct doc_field *root,
                                 struct status_why *why)
{
    size_t version = doc_field_count(root, "schema_version");
    if (!d->status && version != DOC_SCHEMA_VERSION)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: schema_version is %zu, this program reads %d; evaluate again "
                           "with it",
                           d->file, version, (int)DOC_SCHEMA_VERSION);
    return doc_status(d, why);
}

/* Before 0.1.0 two schemas had another form of name. Returns whether `found` is it of a wanted one.
 */
static bool is_old_name(const char *found, const char *now, const char *old, const char *wanted)
{
    return strcmp(found, old) == 0 && base_words_index(wanted, now) >= 0;
}

static enum status fail_schema(const char *file, const char *found, const char *wanted,
                               struct status_why *why)
{
    const char *now =
        is_old_name(found, DOC_SWEEP_SCHEMA, "assay.sweep/1", wanted)     ? DOC_SWEEP_SCHEMA
        : is_old_name(found, DOC_RECIPE_SCHEMA, "assay.recipe/1", wanted) ? DOC_RECIPE_SCHEMA
                                                                          : NULL;
    if (now)
        return status_fail(why, STATUS_FORMAT,
                           "%s: schema is '%s', the name before 0.1.0, expected '%s' with "
                           "schema_version %d; make the document again, or change these two "
                           "members",
                           file, found, now, (int)DOC_SCHEMA_VERSION);
    return status_fail(why, STATUS_FORMAT, "%s: schema is '%.40s', expected %s%s", file, found,
                       strchr(wanted, ' ') ? "one of " : "", wanted);
}

/* wanted: schemas; NULL: those of results. */
static enum status check_schema(struct doc_document *d, const char *wanted, struct status_why *why)
{
    struct doc_field root = doc_root(d), schema;
    d->is_other = true;
    if (!cJSON_IsObject(d->root) || !doc_field_find(&schema, &root, "schema") ||
        !cJSON_IsString(schema.value))
        return status_fail(why, STATUS_FORMAT,
                           "%s: no result of assay: there is no `schema` that names it; expected a "
                           "file that --json wrote",
                           d->file);
    const char *found = schema.value->valuestring;
    wanted = wanted ? wanted : results;
    if (base_words_index(wanted, found) < 0)
        return fail_schema(d->file, found, wanted, why);
    d->is_other = false;
    for (size_t kind = 0; kind < N_SCHEMAS; kind++)
        if (strcmp(found, schemas[kind]) == 0)
            d->kind = (enum doc_kind)kind;
    return check_version(d, &root, why);
}

/* at: where JSON ends. */
static enum status fail_no_json(const struct doc_document *d, struct base_string text, size_t at,
                                struct status_why *why)
{
    static const char expected[] = "a result that --json wrote";
    enum status status = base_file_check_kind(text, expected, why);
    if (!status)
        status = status_fail(why, STATUS_FORMAT, "is not JSON from byte %zu on; expected %s", at,
                             expected);
    status_context(why, "%s", d->file);
    return status;
}

enum status doc_parse_as(struct doc_document *out, const char *file, struct base_string text,
                         const char *schema, struct status_why *why)
{
    size_t at;
    *out = (struct doc_document){.file = file};
    enum status status = base_json_parse(&out->root, text.data, text.n_bytes, &at, why);
    if (status && status != STATUS_FORMAT) {
        status_context(why, "%s", file);
        return status;
    }
    while (out->root && at < text.n_bytes && text.data[at] && strchr(" \t\r\n", text.data[at]))
        at++;
    if (out->root && at == text.n_bytes)
        status = check_schema(out, schema, why);
    else
        status = fail_no_json(out, text, at, why);
    bool is_other = out->is_other;
    if (status)
        doc_free(out);
    out->is_other = is_other;
    return status;
}

enum status doc_read(struct doc_document *out, const char *file, struct status_why *why)
{
    return doc_read_as(out, file, NULL, NULL, why);
}

enum status doc_read_as(struct doc_document *out, const char *file, const char *schema,
                        char sha256[BASE_HEX], struct status_why *why)
{
    struct base_text text;
    *out = (struct doc_document){0};
    enum status status = base_text_read_whole(&text, file, MAX_BYTES, why);
    if (!status && sha256)
        memcpy(sha256, text.sha256, BASE_HEX);
    if (!status)
        status =
            doc_parse_as(out, file, (struct base_string){text.data, text.n_bytes}, schema, why);
    base_text_free(&text);
    return status;
}

void doc_free(struct doc_document *document)
{
    cJSON_Delete(document->root);
    *document = (struct doc_document){0};
}

enum status doc_status(const struct doc_document *document, struct status_why *why)
{
    return document->status ? status_fail(why, document->status, "%s", document->why.text)
                            : STATUS_OK;
}

struct doc_field doc_root(struct doc_document *document)
{
    return (struct doc_field){.document = document, .value = document->root};
}

/* Add to a field's name, which only errors show: cut at its end. */
__attribute__((format(printf, 2, 3))) static void extend(struct doc_field *field,
                                                         const char *format, ...)
{
    size_t used = strlen(field->name);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(field->name + used, sizeof field->name - used, format, arguments);
    va_end(arguments);
}

/* The member whose name is the first n bytes of `name`; its value is NULL where there is none. */
static struct doc_field member(const struct doc_field *object, const char *name, size_t n)
{
    struct doc_field found = *object;
    found.value = NULL;
    extend(&found, "%s%.*s", *found.name ? "." : "", (int)n, name);
    if (cJSON_IsObject(object->value))
        for (const cJSON *item = object->value->child; item && !found.value; item = item->next)
            if (strlen(item->string) == n && memcmp(item->string, name, n) == 0)
                found.value = item;
    return found;
}

/* Walk down a path; the name is that of the deepest field, reached or missing. */
static bool walk(struct doc_field *out, const struct doc_field *from, const char *path)
{
    size_t n = strcspn(path, ".");
    *out = member(from, path, n);
    while (out->value && path[n]) {
        path += n + 1;
        n = strcspn(path, ".");
        *out = member(out, path, n);
    }
    return out->value != NULL;
}

struct doc_field doc_field_at(const struct doc_field *from, const char *path)
{
    struct doc_field field;
    struct doc_document *d = from->document;
    if (!walk(&field, from, path) && !d->status)
        d->status = status_fail(&d->why, STATUS_FORMAT,
                                "%s: %s is missing; expected a whole result of this version of "
                                "assay",
                                d->file, field.name);
    return field;
}

bool doc_field_find(struct doc_field *out, const struct doc_field *from, const char *path)
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

static void fail_type(const struct doc_field *field, const char *expected)
{
    struct doc_document *d = field->document;
    if (!d->status)
        d->status = status_fail(&d->why, STATUS_FORMAT, "%s: %s is %s, expected %s", d->file,
                                field->name, kind_of(field->value), expected);
}

/* A number that was read, or one that base/json/build.h put there, as its digits; else NaN. */
static double number_of(const cJSON *value)
{
    return cJSON_IsNumber(value) ? value->valuedouble
           : cJSON_IsRaw(value)  ? strtod(value->valuestring, NULL)
                                 : (double)NAN;
}

double doc_field_real(const struct doc_field *from, const char *path)
{
    struct doc_field field = doc_field_at(from, path);
    double value = number_of(field.value);
    if (isfinite(value))
        return value;
    if (!cJSON_IsNull(field.value))
        fail_type(&field, "a finite number, or null");
    return (double)NAN;
}

double doc_field_error(const struct doc_field *from, const char *path)
{
    char of_lots[64];
    struct doc_field lots;
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] != '.' && path[n - 1] != '_')
        n--;
    snprintf(of_lots, sizeof of_lots, "%.*slot_%s", (int)n, path, path + n);
    return doc_field_real(from, doc_field_find(&lots, from, of_lots) ? of_lots : path);
}

size_t doc_field_count(const struct doc_field *from, const char *path)
{
    struct doc_field field = doc_field_at(from, path);
    double value = number_of(field.value);
    if (value >= 0 && value <= 0x1p53 && !(floor(value) < value))
        return (size_t)value;
    fail_type(&field, "a whole number from 0 to 2^53");
    return 0;
}

const char *doc_field_text(const struct doc_field *from, const char *path)
{
    struct doc_field field = doc_field_at(from, path);
    if (cJSON_IsString(field.value))
        return field.value->valuestring;
    fail_type(&field, "a text");
    return "";
}

const char *doc_model_file_in(const struct doc_field *model)
{
    struct doc_field file;
    return doc_field_find(&file, model, "file") ? doc_field_text(model, "file") : "-";
}

const char *doc_model_label_in(const struct doc_field *model)
{
    struct doc_field label;
    return doc_field_find(&label, model, "label") ? doc_field_text(model, "label") : NULL;
}

const char *doc_model_kv_in(char out[DOC_KV_LABEL], const struct doc_field *model)
{
    struct doc_field field;
    out[0] = '\0';
    if (doc_field_find(&field, model, "kv_types")) {
        struct doc_field rotation;
        bool rotated =
            !doc_field_find(&rotation, &field, "rotation") || !cJSON_IsFalse(rotation.value);
        doc_kv_label(out, doc_field_text(&field, "k"), doc_field_text(&field, "v"), rotated);
    }
    size_t n = strlen(out);
    if (doc_field_find(&field, model, "experts_used"))
        snprintf(out + n, DOC_KV_LABEL - n, " experts %.4g", doc_field_real(model, "experts_used"));
    return out;
}

struct doc_field doc_field_list(size_t *n, const struct doc_field *from, const char *path)
{
    struct doc_field field = doc_field_at(from, path);
    if (!cJSON_IsArray(field.value))
        fail_type(&field, "a list");
    *n = cJSON_IsArray(field.value) ? (size_t)cJSON_GetArraySize(field.value) : 0;
    return field;
}

bool doc_field_next(const struct doc_field *list, struct doc_field *item)
{
    bool first = !item->value;
    size_t index = first ? 0 : item->index + 1;
    const cJSON *value = !first                       ? item->value->next
                         : cJSON_IsArray(list->value) ? list->value->child
                                                      : NULL;
    *item = *list;
    item->index = index;
    item->value = value;
    extend(item, "[%zu]", index);
    return value != NULL;
}

static enum status fail_different(const struct doc_field *a, const struct doc_field *b,
                                  struct status_why *why)
{
    char *values[2] = {a->value ? cJSON_PrintUnformatted(a->value) : NULL,
                       b->value ? cJSON_PrintUnformatted(b->value) : NULL};
    enum status status = status_fail(
        why, STATUS_USAGE,
        "%s and %s are not of the same inputs: %s is %.72s and %.72s; only results of the same "
        "text, tokens and windows can be compared",
        a->document->file, b->document->file, a->name, values[0] ? values[0] : "not there",
        values[1] ? values[1] : "not there");
    cJSON_free(values[0]);
    cJSON_free(values[1]);
    return status;
}

static enum status equal(const struct doc_field *a, const struct doc_field *b, const char *but,
                         struct status_why *why)
{
    enum status status = doc_status(a->document, why);
    if (!status)
        status = doc_status(b->document, why);
    if (status)
        return status;
    if (!cJSON_IsObject(a->value) || !cJSON_IsObject(b->value))
        return cJSON_Compare(a->value, b->value, true) ? STATUS_OK : fail_different(a, b, why);
    /* What only the second one has is found by a second look, from its side. */
    for (int side = 0; side < 2; side++)
        for (const cJSON *item = (side ? b : a)->value->child; item; item = item->next) {
            if (but && base_words_index(but, item->string) >= 0)
                continue;
            size_t n = strlen(item->string);
            struct doc_field p = member(a, item->string, n), q = member(b, item->string, n);
            if (!p.value || !q.value || !cJSON_Compare(p.value, q.value, true))
                return fail_different(&p, &q, why);
        }
    return STATUS_OK;
}

struct doc_field doc_base_id(const struct doc_field *root)
{
    struct doc_field found;
    return doc_field_at(root, doc_field_find(&found, root, "base.model.id") ? "base.model.id"
                                                                            : "base.id");
}

enum status doc_values_equal(const struct doc_field *a, const struct doc_field *b,
                             struct status_why *why)
{
    return equal(a, b, NULL, why);
}

enum status doc_fields_equal(const struct doc_field *a, const struct doc_field *b,
                             const char *paths, const char *but, struct status_why *why)
{
    const char *word;
    size_t length;
    enum status status = STATUS_OK;
    while (!status && (paths = base_words_next(paths, &word, &length))) {
        char path[64];
        snprintf(path, sizeof path, "%.*s", (int)length, word);
        struct doc_field x = doc_field_at(a, path), y = doc_field_at(b, path);
        status = equal(&x, &y, but, why);
    }
    return status;
}

enum status doc_fields_same_text(const struct doc_field *a, const struct doc_field *b,
                                 struct status_why *why)
{
    bool lacks =
        cJSON_IsNull(doc_field_at(a, "text").value) || cJSON_IsNull(doc_field_at(b, "text").value);
    struct doc_field of_a, of_b;
    enum status status = lacks ? STATUS_OK : doc_fields_equal(a, b, "text.sha256", NULL, why);
    bool documents = doc_field_find(&of_a, a, "tokens.documents") &&
                     doc_field_find(&of_b, b, "tokens.documents");
    return status || !documents ? status
                                : doc_fields_equal(a, b, "tokens.documents.sha256", NULL, why);
}
