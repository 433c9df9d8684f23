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

static void put_object(struct rows *rows, const struct doc_field *from, const char *path)
{
    struct doc_field field;
    if (doc_field_find(&field, from, path))
        put_value(rows, path, field.value, 0);
}

/* The models that a document evaluated. */
static void put_models(struct rows *rows, struct doc_field *root)
{
    put_object(rows, root, "model");
    put_object(rows, root, "base");
    put_object(rows, root, "around");
    bool swept = root->document->kind == DOC_SWEEP;
    if (root->document->kind != DOC_KLD && !swept)
        return;
    size_t n;
    struct doc_field list = doc_field_list(&n, root, "candidates"), item = {0};
    while (doc_field_next(&list, &item)) {
        struct doc_field model = item;
        char name[48];
        snprintf(name, sizeof name, "candidates[%zu]%s", item.index, swept ? "" : ".model");
        if (swept || doc_field_find(&model, &item, "model"))
            put_value(rows, name, model.value, 0);
    }
}

static void put_document(struct doc_report *r, size_t i)
{
    static const char *const objects[] = {"settings", "text",    "tokens",
                                          "windows",  "remarks", "run"};
    static const char *const heads[] = {"field", "value", NULL};
    struct doc_document *d = &r->results->documents[i];
    struct doc_field root = doc_root(d), found;
    struct rows rows = {.file = r->file};
    struct doc_table t = {.file = r->file, .heads = heads};
    doc_html(r->file, "<h3 id=\"result-%zu\">Result %zu: <bdi>%s</bdi></h3>\n", i + 1, i + 1,
             d->file);
    doc_html(r->file, "<p>%s", doc_schema(d->kind));
    if (doc_field_find(&found, &root, "run.versions.assay") && cJSON_IsString(found.value))
        doc_html(r->file, " by assay <bdi>%s</bdi>", found.value->valuestring);
    if (doc_field_find(&found, &root, "run.device") && cJSON_IsString(found.value))
        doc_html(r->file, " on <bdi>%s</bdi>", found.value->valuestring);
    if (doc_field_find(&found, &root, "run.started") && cJSON_IsString(found.value))
        doc_html(r->file, ", started <bdi>%s</bdi>", found.value->valuestring);
    doc_html(r->file, ".</p>\n<details><summary>All fields</summary>\n");
    doc_table_begin(&t, "facts", "Inputs, settings and machine", 2);
    put_models(&rows, &root);
    for (size_t k = 0; k < sizeof objects / sizeof *objects; k++)
        put_object(&rows, &root, objects[k]);
    doc_table_end(&t);
    if (rows.n > MOST_ROWS)
        doc_html(r->file, "<p class=\"note\">%zu of %zu fields are shown.</p>\n", (size_t)MOST_ROWS,
                 rows.n);
    doc_html(r->file, "</details>\n");
}

void doc_report_provenance(struct doc_report *r)
{
    for (size_t i = 0; i < r->results->n; i++)
        if (r->results->documents[i].root)
            put_document(r, i);
}
