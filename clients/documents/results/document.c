#include "clients/documents/results/document.h"

#include <stdio.h>
#include <string.h>

#include "base/content/kind.h"
#include "base/content/text.h"
#include "base/json/parse.h"
#include "base/text/words.h"
#include "clients/documents/results/speeds/bench.h"
#include "clients/documents/schema.h"

static const char *const schemas[] = {
    [DOC_PERPLEXITY] = "assay-perplexity",
    [DOC_TASKS] = "assay-tasks",
    [DOC_KLD] = "assay-kld",
    [DOC_SWEEP] = DOC_SWEEP_SCHEMA,
    [DOC_IMATRIX] = DOC_IMATRIX_SCHEMA,
    [DOC_RACE] = "assay-best",
    [DOC_BENCH] = DOC_BENCH_SCHEMA,
};
static const char results[] = "assay-perplexity assay-tasks assay-kld";
enum { N_SCHEMAS = sizeof schemas / sizeof *schemas };

#define MAX_BYTES                                                                                  \
    ((size_t)128 << 20) /* one of 200,000 tasks has 100 MB and as many values as are parsed */

const char *doc_schema(enum doc_kind kind)
{
    return schemas[kind];
}

static enum status check_version(struct doc_document *d, struct base_field root,
                                 struct status_why *why)
{
    size_t version = doc_count(root, "schema_version");
    if (!d->json.status && version != DOC_SCHEMA_VERSION)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: schema_version is %zu, this program reads %d; evaluate again "
                           "with it",
                           d->json.file, version, (int)DOC_SCHEMA_VERSION);
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
    struct base_field root = doc_root(d);
    const cJSON *schema = base_field_get(root, "schema").json;
    d->is_other = true;
    if (!cJSON_IsString(schema))
        return status_fail(why, STATUS_FORMAT,
                           "%s: no result of assay: there is no `schema` that names it; expected a "
                           "file that --json wrote",
                           d->json.file);
    const char *found = schema->valuestring;
    wanted = wanted ? wanted : results;
    if (base_words_index(wanted, found) < 0 || strcmp(found, DOC_BENCH_SCHEMA) == 0)
        return fail_schema(d->json.file, found, wanted, why);
    d->is_other = false;
    for (size_t kind = 0; kind < N_SCHEMAS; kind++)
        if (strcmp(found, schemas[kind]) == 0)
            d->kind = (enum doc_kind)kind;
    return check_version(d, root, why);
}

/* at: where JSON ends. */
static enum status fail_no_json(const struct doc_document *d, struct base_string text, size_t at,
                                struct status_why *why)
{
    static const char expected[] = "a result that --json wrote";
    enum status status = base_file_check_kind(text, expected, why);
    if (!status && text.n_bytes && *text.data == '|')
        status = status_fail(why, STATUS_FORMAT,
                             "is a table in Markdown; of llama-bench its -o json or -o jsonl is "
                             "read");
    if (!status)
        status = status_fail(why, STATUS_FORMAT, "is not JSON from byte %zu on; expected %s", at,
                             expected);
    status_context(why, "%s", d->json.file);
    return status;
}

/* The rows of llama-bench take the place of the first value of their text. */
static enum status read_bench(struct doc_document *d, struct base_string text,
                              struct status_why *why)
{
    cJSON_Delete(d->json.root);
    d->kind = DOC_BENCH;
    d->json.missing = NULL; /* it was not assay that wrote it */
    enum status status = doc_bench_read(&d->json.root, text, why);
    status_context(why, "%s", d->json.file);
    return status;
}

enum status doc_parse_as(struct doc_document *out, const char *file, struct base_string text,
                         const char *schema, struct status_why *why)
{
    size_t at;
    *out = (struct doc_document){
        .json = {.file = file, .missing = "expected a whole result of this version of assay"}};
    enum status status = base_json_parse(&out->json.root, text.data, text.n_bytes, &at, why);
    if (status && status != STATUS_FORMAT) {
        status_context(why, "%s", file);
        return status;
    }
    bool whole = out->json.root != NULL;
    bool bench =
        schema && base_words_index(schema, DOC_BENCH_SCHEMA) >= 0 && doc_bench_is(out->json.root);
    while (whole && at < text.n_bytes && text.data[at] && strchr(" \t\r\n", text.data[at]))
        at++;
    if (bench)
        status = read_bench(out, text, why);
    else if (schema && strcmp(schema, DOC_BENCH_SCHEMA) == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "%s: is not what llama-bench prints with -o json or -o jsonl", file);
    else if (whole && at == text.n_bytes)
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
    base_json_close(&document->json);
    *document = (struct doc_document){0};
}

enum status doc_status(const struct doc_document *document, struct status_why *why)
{
    return base_json_status(&document->json, why);
}

struct base_field doc_root(struct doc_document *document)
{
    return base_json_root(&document->json);
}

struct doc_document *doc_of(struct base_field field)
{
    return (struct doc_document *)(void *)field.reader;
}

double doc_error(struct base_field from, const char *path)
{
    char of_lots[64];
    size_t n = strlen(path);
    while (n > 0 && path[n - 1] != '.' && path[n - 1] != '_')
        n--;
    snprintf(of_lots, sizeof of_lots, "%.*slot_%s", (int)n, path, path + n);
    return base_field_real_or_null(from, base_field_find(from, of_lots).json ? of_lots : path);
}

size_t doc_count(struct base_field from, const char *path)
{
    return (size_t)base_field_uint(from, path, UINT64_C(1) << 53);
}

struct base_field doc_list(size_t *n, struct base_field from, const char *path)
{
    struct base_field list = base_field_list(from, path);
    *n = base_field_count(list);
    return list;
}

const char *doc_model_file_in(struct base_field model)
{
    return base_field_text_or(model, "file", "-");
}

const char *doc_model_label_in(struct base_field model)
{
    return base_field_text_or(model, "label", NULL);
}

const char *doc_model_kv_in(char out[DOC_KV_LABEL], struct base_field model)
{
    struct base_field types = base_field_find(model, "kv_types");
    out[0] = '\0';
    if (types.json) {
        bool rotated = !cJSON_IsFalse(base_field_get(types, "rotation").json);
        doc_kv_label(out, base_field_text(types, "k"), base_field_text(types, "v"), rotated);
    }
    size_t n = strlen(out);
    if (base_field_find(model, "experts_used").json)
        snprintf(out + n, DOC_KV_LABEL - n, " experts %.4g",
                 base_field_real_or_null(model, "experts_used"));
    return out;
}

/** name: of a member that one of the two lacks. */
static enum status fail_different(struct base_field a, struct base_field b, const char *name,
                                  struct status_why *why)
{
    struct base_field_path path;
    struct base_field x = base_field_get(a, name), y = base_field_get(b, name);
    char *values[2] = {x.json ? cJSON_PrintUnformatted(x.json) : NULL,
                       y.json ? cJSON_PrintUnformatted(y.json) : NULL};
    base_field_path(&path, a);
    enum status status = status_fail(
        why, STATUS_USAGE,
        "%s and %s are not of the same inputs: %s%s%s is %.72s and %.72s; only results of the same "
        "text, tokens and windows can be compared",
        a.reader->file, b.reader->file, path.text, *path.text && *name ? "." : "", name,
        values[0] ? values[0] : "not there", values[1] ? values[1] : "not there");
    cJSON_free(values[0]);
    cJSON_free(values[1]);
    return status;
}

static enum status equal(struct base_field a, struct base_field b, const char *but,
                         struct status_why *why)
{
    enum status status = base_json_status(a.reader, why);
    if (!status)
        status = base_json_status(b.reader, why);
    if (status)
        return status;
    if (!cJSON_IsObject(a.json) || !cJSON_IsObject(b.json))
        return cJSON_Compare(a.json, b.json, true) ? STATUS_OK : fail_different(a, b, "", why);
    /* What only the second one has is found by a second look, from its side. */
    for (int side = 0; side < 2; side++)
        for (struct base_field item = {0}; base_field_next(side ? b : a, &item);) {
            const char *name = item.json->string;
            if (but && base_words_index(but, name) >= 0)
                continue;
            const cJSON *x = base_field_get(a, name).json, *y = base_field_get(b, name).json;
            bool off = (!x && cJSON_IsFalse(y)) || (!y && cJSON_IsFalse(x));
            if (!off && !cJSON_Compare(x, y, true))
                return fail_different(a, b, name, why);
        }
    return STATUS_OK;
}

struct base_field doc_base_id(struct base_field root)
{
    return base_field_need(root, base_field_find(root, "base.model.id").json ? "base.model.id"
                                                                             : "base.id");
}

enum status doc_values_equal(struct base_field a, struct base_field b, struct status_why *why)
{
    return equal(a, b, NULL, why);
}

enum status doc_equal(struct base_field a, struct base_field b, const char *paths, const char *but,
                      struct status_why *why)
{
    const char *word;
    size_t length;
    enum status status = STATUS_OK;
    while (!status && (paths = base_words_next(paths, &word, &length))) {
        char path[64];
        snprintf(path, sizeof path, "%.*s", (int)length, word);
        struct base_field x = base_field_need(a, path), y = base_field_need(b, path);
        status = equal(x, y, but, why);
    }
    return status;
}

enum status doc_same_text(struct base_field a, struct base_field b, struct status_why *why)
{
    bool lacks = cJSON_IsNull(base_field_need(a, "text").json) ||
                 cJSON_IsNull(base_field_need(b, "text").json);
    enum status status = lacks ? STATUS_OK : doc_equal(a, b, "text.sha256", NULL, why);
    bool documents =
        base_field_find(a, "tokens.documents").json && base_field_find(b, "tokens.documents").json;
    return status || !documents ? status : doc_equal(a, b, "tokens.documents.sha256", NULL, why);
}
