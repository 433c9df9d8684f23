/* Divergence by category of documents and by model: a table whose cells have colours. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"

enum { MOST_MODELS = 64, N_SHADES = 10 }; /* page/page.css has the shades */

/* The lists of categories of a document's models, and the range of their divergences. */
struct categories {
    struct base_field lists[MOST_MODELS];
    char names[MOST_MODELS][DOC_RUN_NAME];
    size_t n_models;
    double low, high; /* logarithms */
};

static void take_range(struct categories *c, struct base_field list)
{
    struct base_field item = {0};
    while (base_field_next(list, &item)) {
        double x = log(base_field_real_or_null(item, "kld"));
        if (isfinite(x)) {
            c->low = fmin(c->low, x);
            c->high = fmax(c->high, x);
        }
    }
}

/* The models of a document that have categories, in the order of the scoreboard. */
static void take(struct categories *c, const struct doc_report *r, const struct doc_document *d)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    *c = (struct categories){.low = HUGE_VAL, .high = -HUGE_VAL};
    for (size_t i = 0; i < board->n && c->n_models < MOST_MODELS; i++) {
        const struct doc_scoreboard_run *run = &board->runs[i];
        size_t n;
        if (!doc_run_is_of(run, d) || !doc_run_diverges(run) ||
            !base_field_find(run->from, "categories").json)
            continue;
        struct base_field list = doc_list(&n, run->from, "categories");
        if (!n)
            continue;
        doc_run_name(c->names[c->n_models], run);
        c->lists[c->n_models++] = list;
        take_range(c, list);
    }
}

static void put_cell(const struct categories *c, struct doc_table *t, struct base_field item)
{
    double kld = base_field_real_or_null(item, "kld"), x = log(kld);
    char shade[8] = "";
    if (isfinite(x)) {
        double share = c->high > c->low ? (x - c->low) / (c->high - c->low) : 0;
        snprintf(shade, sizeof shade, "h%d", (int)fmin(N_SHADES * share, N_SHADES - 1));
    }
    doc_table_cell(t, shade, kld);
    doc_html(t->file, "%.3g <span class=\"error\">± %.2g</span>", kld,
             doc_error(item, "kld_error"));
    doc_table_cell_end(t);
}

/* A row: the category that the first model has at a place, and what all models have there. */
static void put_row(struct categories *c, struct doc_table *t, struct base_field *items)
{
    doc_table_row(t, "", base_field_text_or(items[0], "category", "no category"));
    doc_table_number(t, (double)doc_count(items[0], "n_tokens"), 0);
    for (size_t i = 0; i < c->n_models; i++)
        put_cell(c, t, items[i]);
    doc_table_row_end(t);
}

static void put_document(struct doc_report *r, struct categories *c, const struct doc_document *d)
{
    const char *heads[MOST_MODELS + 3] = {"category", "tokens"};
    struct base_field items[MOST_MODELS] = {{0}};
    struct doc_table t = {.file = r->file, .heads = heads};
    for (size_t i = 0; i < c->n_models; i++)
        heads[i + 2] = c->names[i];
    doc_html(r->file, "<h3><bdi>%s</bdi></h3>\n", d->json.file);
    doc_table_begin(&t, "sortable shades", "Mean KLD by category, nats", 1);
    for (bool more = true; more;) {
        for (size_t i = 0; i < c->n_models; i++)
            more &= base_field_next(c->lists[i], &items[i]);
        if (more)
            put_row(c, &t, items);
    }
    doc_table_end(&t);
}

void doc_report_categories(struct doc_report *r)
{
    struct categories *c = malloc(sizeof *c);
    bool any = false;
    r->no_memory |= !c;
    for (size_t i = 0; c && i < r->results->n; i++) {
        take(c, r, &r->results->documents[i]);
        if (c->n_models)
            put_document(r, c, &r->results->documents[i]);
        any |= c->n_models > 0;
    }
    if (!any)
        doc_report_missing(r, "No categories: none of the results is of assay kld with documents "
                              "that have a category (-f FILE.jsonl).");
    free(c);
}
