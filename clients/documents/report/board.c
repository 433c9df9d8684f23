/* The notes of the page, and the scoreboard. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"
#include "clients/documents/results/cache.h"

void doc_report_missing(struct doc_report *r, const char *sentence)
{
    r->missing[r->n_missing++] = sentence;
}

void doc_report_put_missing(struct doc_report *r)
{
    for (size_t i = 0; i < r->n_missing; i++)
        doc_html(r->file, "<p class=\"missing\">%s</p>\n", r->missing[i]);
}

void doc_report_notes(struct doc_report *r)
{
    for (size_t i = 0; i < r->results->n_notes; i++)
        doc_html(r->file, "<p class=\"note\"><bdi>%s</bdi></p>\n", r->results->notes[i].text);
    for (size_t i = 0; i < r->results->n; i++) {
        struct base_field root = doc_root(&r->results->documents[i]);
        if (!base_field_flag_or(root, "result.complete", true))
            doc_html(r->file,
                     "<p class=\"note\"><bdi>%s</bdi> was interrupted: its figures cover a part "
                     "of the inputs.</p>\n",
                     root.reader->file);
    }
}

enum { N_HEADS = 11 + DOC_MOST_METRICS };

/* What a run's row begins with: the link leads to the document that it is from. */
static void put_model(struct doc_report *r, struct doc_table *t,
                      const struct doc_scoreboard_run *run, bool named, bool raced)
{
    size_t document = (size_t)(doc_of(run->from) - r->results->documents) + 1;
    struct doc_unit unit = r->unit;
    char classes[DOC_MARK + 4] = "key ";
    doc_mark_classes(classes + 4, run->number);
    doc_table_row(t, classes, run->label);
    if (named)
        doc_table_words(t, run->name);
    doc_table_words(t, run->quantisation);
    doc_table_words(t, run->imatrix);
    if (r->results->n > 1) {
        doc_table_cell(t, "", (double)document);
        doc_html(r->file, "<a href=\"#result-%zu\">%zu</a>", document, document);
        doc_table_cell_end(t);
    }
    if (doc_of(run->from)->kind == DOC_TASKS)
        doc_table_words(t, run->task);
    doc_table_number(t, run->n_bytes / unit.bytes, unit.n_decimals);
    if (r->n_context)
        doc_table_number(
            t, (run->n_bytes + doc_cache_bytes(run->model, (double)r->n_context)) / unit.bytes,
            unit.n_decimals);
    doc_table_number(t, run->bits_per_weight, 4);
    if (raced)
        doc_table_number(t, run->n_windows ? (double)run->n_windows : (double)NAN, 0);
}

/* The heads; returns how many are of words. */
static size_t choose_heads(const struct doc_report *r, const struct doc_scoreboard *board,
                           bool named, bool raced, const char *heads[N_HEADS])
{
    bool gib = r->unit.bytes > 0x1p20;
    size_t n_heads = 0, n;
    heads[n_heads++] = "model";
    if (named)
        heads[n_heads++] = "name";
    heads[n_heads++] = "quantisation";
    heads[n_heads++] = "imatrix";
    size_t n_words = n_heads;
    if (r->results->n > 1)
        heads[n_heads++] = "result";
    if (board->of_tasks)
        heads[n_heads++] = "task";
    heads[n_heads++] = gib ? "size GiB" : "size MiB";
    if (r->n_context)
        heads[n_heads++] = gib ? "with cache GiB" : "with cache MiB";
    heads[n_heads++] = "bpw";
    if (raced)
        heads[n_heads++] = "windows";
    const struct doc_metric *metrics = doc_scoreboard_metrics(&n, board);
    for (size_t i = 0; i < n; i++)
        if (metrics[i].flags & DOC_ON_BOARD)
            heads[n_heads++] = metrics[i].label;
    heads[n_heads] = NULL;
    return n_words;
}

static void put_board(struct doc_report *r, const struct doc_scoreboard *board, const char *name)
{
    const char *heads[N_HEADS];
    struct doc_table t = {.file = r->file, .heads = heads};
    size_t n;
    bool named = false; /* the runs are of several models, so that each needs its name */
    bool raced = false; /* and were evaluated on as many windows as it took */
    for (size_t i = 0; i < board->n; i++) {
        named |= strcmp(board->runs[i].name, board->runs[0].name) != 0;
        raced |= board->runs[i].fewer;
    }
    if (raced)
        doc_html(r->file,
                 "<p>A file leaves the run when it is not needed any more. All figures of a row "
                 "are of its windows: &#916;PPL is from the base on the same ones, and two PPL can "
                 "be compared only where the windows are as many.</p>\n");
    const struct doc_metric *metrics = doc_scoreboard_metrics(&n, board);
    doc_table_begin(&t, "sortable", name, choose_heads(r, board, named, raced, heads));
    for (size_t k = 0; k < board->n; k++) {
        put_model(r, &t, &board->runs[k], named, raced);
        for (size_t i = 0; i < n; i++)
            if (metrics[i].flags & DOC_ON_BOARD)
                doc_table_value(&t, &metrics[i], &board->runs[k].values[i]);
        doc_table_row_end(&t);
    }
    doc_table_end(&t);
}

void doc_report_board(struct doc_report *r)
{
    if (r->results->of_texts.n)
        put_board(r, &r->results->of_texts, "Models on a text");
    if (r->results->of_tasks.n)
        put_board(r, &r->results->of_tasks, "Models on choice tasks");
    if (!r->results->of_texts.n && !r->results->of_tasks.n)
        doc_report_missing(r, "No scoreboard: none of the results is of assay kld or perplexity.");
}
