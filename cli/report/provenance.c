/* What documents say of their inputs, settings and machines: every value that is no figure. */
#include <stdio.h>
#include <string.h>

#include "cli/report/html.h"
#include "cli/report/report.h"

enum { MOST_DEPTH = 4, MOST_ROWS = 400, MOST_ITEMS = 16 };

/* Rows of a document: how many there are, for no document may fill a page alone. */
struct rows {
    struct base_file *file;
    size_t n;
};

static void put_row(struct rows *rows, const char *name, const cJSON *value)
{
    if (rows->n++ >= MOST_ROWS)
        return;
    cli_html(rows->file, "<tr><th scope=\"row\"><bdi>%s</bdi></th><td>", name);
    if (cJSON_IsString(value))
        cli_html(rows->file, "<bdi>%s</bdi>", value->valuestring);
    else if (cJSON_IsNumber(value))
        cli_html(rows->file, "%.17g", value->valuedouble);
    else
        cli_html(rows->file, "%s", cJSON_IsTrue(value) ? "yes" : cJSON_IsFalse(value) ? "no" : "-");
    cli_html(rows->file, "</td></tr>\n");
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

static void put_object(struct rows *rows, const struct cli_field *from, const char *path)
{
    struct cli_field field;
    if (cli_field_find(&field, from, path))
        put_value(rows, path, field.value, 0);
}

/* The models that a document evaluated. */
static void put_models(struct rows *rows, struct cli_field *root)
{
    put_object(rows, root, "model");
    put_object(rows, root, "base");
    put_object(rows, root, "around");
    bool swept = root->document->kind == CLI_DOCUMENT_SWEEP;
    if (root->document->kind != CLI_DOCUMENT_KLD && !swept)
        return;
    size_t n;
    struct cli_field list = cli_field_list(&n, root, "candidates"), item = {0};
    while (cli_field_next(&list, &item)) {
        struct cli_field model = item;
        char name[48];
        snprintf(name, sizeof name, "candidates[%zu]%s", item.index, swept ? "" : ".model");
        if (swept || cli_field_find(&model, &item, "model"))
            put_value(rows, name, model.value, 0);
    }
}

static void put_document(struct cli_report *r, size_t i)
{
    static const char *const objects[] = {"settings", "text",    "tokens",
                                          "windows",  "remarks", "run"};
    static const char *const heads[] = {"field", "value", NULL};
    struct cli_document *d = &r->results->documents[i];
    struct cli_field root = cli_document_root(d), found;
    struct rows rows = {.file = r->file};
    cli_html(r->file, "<h3 id=\"result-%zu\">Result %zu: <bdi>%s</bdi></h3>\n", i + 1, i + 1,
             d->file);
    cli_html(r->file, "<p>%s", cli_document_schema(d->kind));
    if (cli_field_find(&found, &root, "run.versions.assay") && cJSON_IsString(found.value))
        cli_html(r->file, " by assay <bdi>%s</bdi>", found.value->valuestring);
    if (cli_field_find(&found, &root, "run.device") && cJSON_IsString(found.value))
        cli_html(r->file, " on <bdi>%s</bdi>", found.value->valuestring);
    if (cli_field_find(&found, &root, "run.started") && cJSON_IsString(found.value))
        cli_html(r->file, ", started <bdi>%s</bdi>", found.value->valuestring);
    cli_html(r->file, ".</p>\n<details><summary>All fields</summary>\n");
    cli_report_table(r->file, "facts", "Inputs, settings and machine");
    cli_report_heads(r->file, heads, 2);
    put_models(&rows, &root);
    for (size_t k = 0; k < sizeof objects / sizeof *objects; k++)
        put_object(&rows, &root, objects[k]);
    cli_report_table_end(r->file);
    if (rows.n > MOST_ROWS)
        cli_html(r->file, "<p class=\"note\">%zu of %zu fields are shown.</p>\n", (size_t)MOST_ROWS,
                 rows.n);
    cli_html(r->file, "</details>\n");
}

void cli_report_provenance(struct cli_report *r)
{
    for (size_t i = 0; i < r->results->n; i++)
        if (r->results->documents[i].root)
            put_document(r, i);
}
