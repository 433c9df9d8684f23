/* Heat maps of sweeps' documents. */
#include <stdint.h>
#include <stdlib.h>

#include "clients/documents/report/heatmap.h"
#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"

enum { MOST_CANDIDATES = 64, MOST_CELLS = 1 << 17 };

/** Room for the names and cells of a document. */
struct map {
    struct doc_report *report;
    const char **names;
    struct doc_heat_cell *cells;
    size_t n_names, n_cells;
};

static void take_choice(struct map *m, struct base_field choice, struct doc_heat_cell cell)
{
    cell.candidate = doc_count(choice, "candidate");
    cell.type = base_field_text(choice, "type");
    cell.nats = base_field_real_or_null(choice, "excess_kld.mean");
    cell.error = doc_error(choice, "excess_kld.se");
    cell.saved_bytes -= base_field_real_or_null(choice, "bytes");
    if (base_field_find(choice, "below").json)
        cell.below = base_field_text(choice, "below");
    if (m->n_cells < MOST_CELLS)
        m->cells[m->n_cells++] = cell;
}

static void take_group(struct map *m, struct base_field group)
{
    struct base_field choice = {0};
    size_t n;
    struct doc_heat_cell cell = {.group = base_field_text(group, "name"), .layer = SIZE_MAX};
    cell.kind = base_field_find(group, "role").json ? base_field_text(group, "role") : cell.group;
    if (base_field_find(group, "layer").json)
        cell.layer = doc_count(group, "layer");
    cell.saved_bytes = base_field_real_or_null(group, "around.bytes");
    struct base_field list = doc_list(&n, group, "choices");
    while (base_field_next(list, &choice))
        take_choice(m, choice, cell);
}

/** Names and cells of a document. Returns why there is no picture, or NULL. */
static const char *take(struct map *m, struct base_field root)
{
    struct base_field item = {0}, candidates = doc_list(&m->n_names, root, "candidates");
    if (m->n_names > MOST_CANDIDATES)
        return "it has more candidates than a page can show";
    while (base_field_next(candidates, &item))
        m->names[item.index] = doc_model_file_in(item);
    size_t n;
    struct base_field groups = doc_list(&n, root, "groups");
    for (item = (struct base_field){0}; base_field_next(groups, &item);)
        take_group(m, item);
    return m->n_cells == MOST_CELLS ? "it has more tensors than a page can show"
           : m->n_cells             ? NULL
                                    : "it tried nothing";
}

static void put_sweep(struct map *m, struct base_field root)
{
    struct base_file *file = m->report->file;
    struct status_why why = {""};
    m->n_cells = 0;
    const char *missing = take(m, root);
    struct base_field base = base_field_need(root, "base");
    doc_html(file, "<h3><bdi>%s</bdi>: tensors of <bdi>%s</bdi> in other types</h3>\n",
             root.reader->file, doc_model_file_in(base));
    const struct doc_heatmap map = {m->names,
                                    m->n_names,
                                    m->cells,
                                    m->n_cells,
                                    false,
                                    m->report->unit.name,
                                    m->report->unit.bytes};
    if (!missing && !doc_status(doc_of(root), NULL)) {
        doc_html(file, "<figure>");
        enum status status = doc_heatmap_draw(file, &map, &why);
        m->report->no_memory |= status == STATUS_MEMORY;
        missing = status ? why.text : NULL;
        doc_html(file,
                 "<figcaption>A row is a layer, a column a kind of tensors, a panel a "
                 "candidate. The colour is the KLD that this tensor alone adds in the "
                 "candidate's type, on a logarithmic scale. Where the border is dashed, the figure "
                 "is below twice its standard error, or below what rounding may make."
                 "</figcaption></figure>\n");
    }
    if (missing)
        doc_html(file, "<p class=\"missing\">No heat map: %s.</p>\n", missing);
}

void doc_report_sweeps(struct doc_report *r)
{
    struct map m = {.report = r};
    bool any = false;
    for (size_t i = 0; i < r->results->n; i++) {
        struct doc_document *d = &r->results->documents[i];
        struct base_field root = doc_root(d);
        if (!root.json || d->kind != DOC_SWEEP)
            continue;
        m.names = m.names ? m.names : calloc(MOST_CANDIDATES, sizeof *m.names);
        m.cells = m.cells ? m.cells : calloc(MOST_CELLS, sizeof *m.cells);
        r->no_memory |= !m.names || !m.cells;
        if (m.names && m.cells)
            put_sweep(&m, root);
        any = true;
    }
    free(m.names);
    free(m.cells);
    if (!any)
        doc_report_missing(r, "No heat map: none of the results is of assay sweep.");
}
