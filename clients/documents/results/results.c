#include "clients/documents/results/results.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/documents/results/speeds/bench.h"
#include "clients/documents/results/speeds/speeds.h"
#include "clients/documents/schema.h"

static void note(struct doc_results *r, const char *what, const char *why)
{
    status_fail(&r->notes[r->n_notes++], STATUS_OK, "%s%s", what, why);
}

/* What can be read; what is drawn alone is kept or left out. */
static const char readable[] = "assay-perplexity assay-tasks assay-kld assay-best " DOC_SWEEP_SCHEMA
                               " " DOC_IMATRIX_SCHEMA " " DOC_BENCH_SCHEMA;

static void take_drawn(struct doc_results *r, struct doc_document *document, bool keep)
{
    if (keep) {
        r->n_drawn++;
        return;
    }
    note(r, document->json.file,
         document->kind == DOC_SWEEP
             ? " is left out: a sweep has no row in a table; assay report draws it, assay recipe "
               "reads it"
             : " is left out: an importance matrix has no row in a table; assay report draws the "
               "use of its experts");
    doc_free(document);
}

static struct doc_scoreboard *board_of(struct doc_results *r, const struct doc_document *result)
{
    return result->kind == DOC_TASKS ? &r->of_tasks : &r->of_texts;
}

/* The first result before this one that stands in the same table, on tasks of the same kind. */
static struct doc_document *first_like(struct doc_document *results, size_t i)
{
    bool tasks = results[i].kind == DOC_TASKS;
    struct base_field own = doc_root(&results[i]);
    for (size_t k = 0; k < i; k++) {
        struct base_field root = doc_root(&results[k]);
        if (root.json && results[k].kind < DOC_SWEEP && (results[k].kind == DOC_TASKS) == tasks &&
            (!tasks || strcmp(base_field_text(root, "kind"), base_field_text(own, "kind")) == 0))
            return &results[k];
    }
    return &results[i];
}

/* Rows of other texts or windows may stand beside each other, but not unsaid. */
static enum status note_differences(struct doc_results *r, size_t i, struct status_why *why)
{
    struct doc_document *first = first_like(r->documents, i);
    struct base_field a = doc_root(first), b = doc_root(&r->documents[i]);
    struct status_why difference = {""};
    const char *paths = first->kind == DOC_TASKS
                            ? "result.n_tasks"
                            : "tokens.sha256 windows.n_tokens result.n_windows";
    enum status status = doc_same_text(a, b, &difference);
    if (!status)
        status = doc_equal(a, b, paths, NULL, &difference);
    if (status != STATUS_USAGE)
        return status ? status_fail(why, status, "%s", difference.text) : STATUS_OK;
    note(r, "", difference.text);
    return STATUS_OK;
}

/* A result of assay best becomes that of a divergence: each candidate gives way to its figures. */
static enum status read_race(struct doc_document *d, struct status_why *why)
{
    struct base_field item = {0}, list = base_field_list(doc_root(d), "candidates");
    while (base_field_next(list, &item))
        base_field_object(item, "figures");
    enum status status = doc_status(d, why);
    cJSON *candidates = cJSON_GetObjectItemCaseSensitive(d->json.root, "candidates"), *next;
    for (cJSON *c = status ? NULL : candidates->child; c; c = next) {
        cJSON *figures = cJSON_DetachItemFromObjectCaseSensitive(c, "figures");
        next = c->next;
        cJSON_ReplaceItemViaPointer(candidates, c, figures);
    }
    d->kind = DOC_KLD;
    return status;
}

/* Rows of a race may be of different windows. */
static void note_race(struct doc_results *r, const struct doc_document *d)
{
    if (doc_scoreboard_is_of_race(board_of(r, d), d))
        note(r, d->json.file,
             ": files that left the race have figures of fewer windows than others");
}

/* What llama-bench measured stands beside what texts say. */
static enum status put_speeds(struct doc_results *r, struct status_why *why)
{
    struct doc_speeds speeds = {0};
    enum status status = doc_speeds_open(&speeds, r->documents, r->n, why);
    if (!status)
        status = doc_speeds_put(&speeds, &r->of_texts, why);
    if (!status) {
        doc_speeds_pass(&speeds, &r->of_tasks);
        doc_speeds_note(&speeds, r->notes, &r->n_notes);
    }
    doc_speeds_close(&speeds);
    return status;
}

enum status doc_results_read(struct doc_results *r, const char *const *files, size_t n,
                             bool with_drawn, struct status_why *why)
{
    if (base_array_new(r->documents, n, "results", why) ||
        base_array_new(r->notes, 2 * n + DOC_MOST_SPEED_NOTES, "results", why))
        return STATUS_MEMORY;
    r->n = n;
    for (size_t i = 0; i < n; i++) {
        struct doc_document *document = &r->documents[i];
        enum status status = doc_read_as(document, files[i], readable, NULL, why);
        if (document->is_other) {
            note(r, "left out: ", why->text);
            continue;
        }
        if (!status && document->kind == DOC_RACE)
            status = read_race(document, why);
        if (!status && document->kind == DOC_BENCH)
            continue;
        if (!status && document->kind >= DOC_SWEEP) {
            take_drawn(r, document, with_drawn);
            continue;
        }
        if (!status)
            status = doc_scoreboard_add(board_of(r, document), document, why);
        if (!status)
            note_race(r, document);
        if (!status)
            status = note_differences(r, i, why);
        if (status)
            return status;
    }
    enum status status = doc_scoreboard_label(&r->of_texts, why);
    if (!status)
        status = doc_scoreboard_label(&r->of_tasks, why);
    if (!status)
        status = put_speeds(r, why);
    if (status)
        return status;
    return r->of_texts.n || r->of_tasks.n || r->n_drawn
               ? STATUS_OK
               : status_fail(
                     why, STATUS_USAGE,
                     "there is no table: %zu file%s read, and %s a result of a model; expected "
                     "documents that assay perplexity or assay kld wrote with --json",
                     n, n == 1 ? " was" : "s were", n == 1 ? "it is not" : "none of them is");
}

void doc_results_free(struct doc_results *r)
{
    doc_scoreboard_free(&r->of_texts);
    doc_scoreboard_free(&r->of_tasks);
    for (size_t i = 0; i < r->n; i++)
        doc_free(&r->documents[i]);
    free(r->documents);
    free(r->notes);
    *r = (struct doc_results){0};
}
