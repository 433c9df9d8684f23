/* What documents say of their inputs, settings and machines: every value that is no figure. */
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"

enum { MOST_DEPTH = 4, MOST_ROWS = 400, MOST_ITEMS = 16 };

/* Rows of a document: how many there are, for no document may fill a page alone. */
struct rows {
    struct base_file *file;
    size_t n;
};

/* A page is for others: of a file it has the name, not where it lay. */
static const char *shown(const char *name, const char *text)
{
    bool is_file = strncmp(name, "run.", 4) == 0 && strstr(name, "_file");
    return is_file ? base_file_name(text) : text;
}

static void put_row(struct rows *rows, const char *name, const cJSON *value)
{
    if (rows->n++ >= MOST_ROWS)
        return;
    doc_html(rows->file, "<tr><th scope=\"row\"><bdi>%s</bdi></th><td>", name);
    if (cJSON_IsString(value))
        doc_html(rows->file, "<bdi>%s</bdi>", shown(name, value->valuestring));
    else if (cJSON_IsRaw(value)) /* whole numbers of a document that was not written yet */
        doc_html(rows->file, "%s", value->valuestring);
    else if (cJSON_IsNumber(value))
        doc_html(rows->file, "%.17g", value->valuedouble);
    else
        doc_html(rows->file, "%s", cJSON_IsTrue(value) ? "yes" : cJSON_IsFalse(value) ? "no" : "-");
    doc_html(rows->file, "</td></tr>\n");
}

/* An object's members, a list's elements; not lists of objects, which are figures. */
static void put_value(struct rows *rows, const char *name, const cJSON *value, size_t depth)
{
    if (!cJSON_IsObject(value) && !cJSON_IsArray(value)) {
        put_row(rows, name, value);
        return;
    }
    size_t n = 0;
    for (const cJSON *item = value->child; item && depth < MOST_DEPTH; item = item->next) {
        char inner[160];
        int n_bytes = cJSON_IsObject(value) ? snprintf(inner, sizeof inner, "%s%s%s", name,
                                                       *name ? "." : "", item->string)
                                            : snprintf(inner, sizeof inner, "%s[%zu]", name, n);
        if (n_bytes >= (int)sizeof inner)
            memcpy(inner + sizeof inner - sizeof "...", "...", sizeof "...");
        if (cJSON_IsArray(value) && (cJSON_IsObject(item) || n++ >= MOST_ITEMS))
            return;
        put_value(rows, inner, item, depth + 1);
    }
}

static void put_object(struct rows *rows, struct base_field from, const char *path)
{
    struct base_field field = base_field_find(from, path);
    if (field.json)
        put_value(rows, path, field.json, 0);
}

/* The models that a document evaluated. */
static void put_models(struct rows *rows, struct base_field root)
{
    put_object(rows, root, "model");
    put_object(rows, root, "base");
    put_object(rows, root, "around");
    bool swept = doc_of(root)->kind == DOC_SWEEP;
    if (doc_of(root)->kind != DOC_KLD && !swept)
        return;
    size_t n;
    struct base_field list = doc_list(&n, root, "candidates"), item = {0};
    while (base_field_next(list, &item)) {
        struct base_field model = swept ? item : base_field_find(item, "model");
        char name[48];
        snprintf(name, sizeof name, "candidates[%zu]%s", item.index, swept ? "" : ".model");
        if (model.json)
            put_value(rows, name, model.json, 0);
    }
}

static void put_fact(struct doc_report *r, const char *words, const char *fact)
{
    if (fact)
        doc_html(r->file, "%s <bdi>%s</bdi>", words, fact);
}

static void put_document(struct doc_report *r, size_t i)
{
    static const char *const objects[] = {"settings", "text",    "tokens",
                                          "windows",  "remarks", "run"};
    static const char *const heads[] = {"field", "value", NULL};
    struct doc_document *d = &r->results->documents[i];
    struct base_field root = doc_root(d);
    struct rows rows = {.file = r->file};
    struct doc_table t = {.file = r->file, .heads = heads};
    doc_html(r->file, "<h3 id=\"result-%zu\">Result %zu: <bdi>%s</bdi></h3>\n", i + 1, i + 1,
             d->json.file);
    doc_html(r->file, "<p>%s", doc_schema(d->kind));
    put_fact(r, " by assay", base_field_string(root, "run.versions.assay"));
    put_fact(r, " on", base_field_string(root, "run.device"));
    put_fact(r, ", started", base_field_string(root, "run.started"));
    doc_html(r->file, ".</p>\n<details><summary>All fields</summary>\n");
    doc_table_begin(&t, "facts", "Inputs, settings and machine", 2);
    put_models(&rows, root);
    for (size_t k = 0; k < sizeof objects / sizeof *objects; k++)
        put_object(&rows, root, objects[k]);
    struct base_field list = base_field_list_or_none(root, "rows"), item = {0};
    while (d->kind == DOC_BENCH && base_field_next(list, &item)) {
        char name[32];
        snprintf(name, sizeof name, "rows[%zu]", item.index);
        put_value(&rows, name, item.json, 0);
    }
    doc_table_end(&t);
    if (rows.n > MOST_ROWS)
        doc_html(r->file, "<p class=\"note\">%zu of %zu fields are shown.</p>\n", (size_t)MOST_ROWS,
                 rows.n);
    doc_html(r->file, "</details>\n");
}

void doc_report_provenance(struct doc_report *r)
{
    for (size_t i = 0; i < r->results->n; i++)
        if (r->results->documents[i].json.root)
            put_document(r, i);
}
