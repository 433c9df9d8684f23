/* The page's title: which models, compared with what, on which text. */
#include <stdint.h>
#include <string.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"
#include "clients/documents/results/texts.h"

enum { MOST_NAMED = 5 };

/* Whether a run's model has no earlier run on the board. */
static bool is_first(const struct doc_scoreboard *board, size_t run)
{
    bool first = board->runs[run].number != SIZE_MAX;
    for (size_t i = 0; i < run && first; i++)
        first = board->runs[i].number != board->runs[run].number;
    return first;
}

static void put_models(struct base_file *file, const struct doc_scoreboard *board)
{
    size_t n = 0, put = 0;
    for (size_t i = 0; i < board->n; i++)
        n += is_first(board, i);
    size_t n_named = n <= MOST_NAMED + 1 ? n : MOST_NAMED;
    for (size_t i = 0; i < board->n && put < n_named; i++) {
        if (!is_first(board, i))
            continue;
        const char *separator = !put ? "" : put + 1 == n ? " and " : ", ";
        doc_html(file, "%s%s", separator, board->runs[i].label);
        put++;
    }
    if (n > n_named)
        doc_html(file, " and %zu more", n - n_named);
    for (size_t i = 0; i < board->n; i++)
        if (board->runs[i].number == SIZE_MAX) {
            doc_html(file, n ? " against %s" : "%s", board->runs[i].label);
            break;
        }
}

/* The name that all models of a board have, or "". */
static const char *shared_name(const struct doc_scoreboard *board)
{
    const char *name = board->n ? board->runs[0].name : "";
    for (size_t i = 1; i < board->n; i++)
        if (strcmp(board->runs[i].name, name) != 0)
            return "";
    return name;
}

/* The texts of the boards' documents, or of the sweeps' where there are no boards. */
static void put_texts(struct doc_report *r, bool of_sweeps)
{
    char first[DOC_TEXT_NAME] = "", name[DOC_TEXT_NAME];
    size_t n_more = 0;
    for (size_t i = 0; i < r->results->n; i++) {
        struct doc_document *d = &r->results->documents[i];
        if (!d->json.root || d->kind == DOC_IMATRIX || d->kind == DOC_BENCH ||
            (d->kind == DOC_SWEEP) != of_sweeps)
            continue;
        doc_text_name(name, d);
        if (!*first)
            memcpy(first, name, sizeof first);
        n_more += strcmp(first, name) != 0;
    }
    if (*first)
        doc_html(r->file, " on %s", first);
    if (n_more)
        doc_html(r->file, " and others");
}

void doc_report_title(struct doc_report *r)
{
    const struct doc_scoreboard *board =
        r->results->of_texts.n ? &r->results->of_texts : &r->results->of_tasks;
    const char *name = shared_name(board);
    if (*name)
        doc_html(r->file, "%s: ", name);
    if (board->n)
        put_models(r->file, board);
    for (size_t i = 0; i < r->results->n && !board->n; i++) {
        struct base_field root = doc_root(&r->results->documents[i]);
        if (root.json && doc_of(root)->kind == DOC_IMATRIX)
            doc_html(r->file, "The use of experts");
        else if (root.json)
            doc_html(r->file, "%s: tensors in other types", base_field_text(root, "base.name"));
        if (root.json)
            break;
    }
    put_texts(r, !board->n);
}
