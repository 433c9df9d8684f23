#include "cli/results/results.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/output/say.h"

static void note(struct cli_results *r, const char *what, const char *why)
{
    status_fail(&r->notes[r->n_notes], STATUS_OK, "%s%s", what, why);
    cli_say("assay: note: %s\n", r->notes[r->n_notes++].text);
}

/* What can be read; sweeps, which are no results, are kept or left out. */
static const char readable[] = "assay-perplexity assay-tasks assay-kld " CLI_SWEPT_SCHEMA;

static void take_sweep(struct cli_results *r, struct cli_document *document, bool keep)
{
    if (keep) {
        r->n_sweeps++;
        return;
    }
    note(r, document->file,
         " is left out: a sweep has no row in a table; assay report draws it, assay recipe reads "
         "it");
    cli_document_free(document);
}

static struct cli_scoreboard *board_of(struct cli_results *r, const struct cli_document *result)
{
    return result->kind == CLI_DOCUMENT_TASKS ? &r->of_tasks : &r->of_texts;
}

/* The first result before this one that stands in the same table, on tasks of the same kind. */
static struct cli_document *first_like(struct cli_document *results, size_t i)
{
    bool tasks = results[i].kind == CLI_DOCUMENT_TASKS;
    struct cli_field own = cli_document_root(&results[i]);
    for (size_t k = 0; k < i; k++) {
        struct cli_field root = cli_document_root(&results[k]);
        if (root.value && results[k].kind != CLI_DOCUMENT_SWEEP &&
            (results[k].kind == CLI_DOCUMENT_TASKS) == tasks &&
            (!tasks || strcmp(cli_field_text(&root, "kind"), cli_field_text(&own, "kind")) == 0))
            return &results[k];
    }
    return &results[i];
}

/* Rows of other texts or windows may stand beside each other, but not unsaid. */
static enum status note_differences(struct cli_results *r, size_t i, struct status_why *why)
{
    struct cli_document *first = first_like(r->documents, i);
    struct cli_field a = cli_document_root(first), b = cli_document_root(&r->documents[i]);
    struct status_why difference = {""};
    const char *paths = first->kind == CLI_DOCUMENT_TASKS
                            ? "result.n_tasks"
                            : "tokens.sha256 windows.n_tokens result.n_windows";
    enum status status = cli_fields_same_text(&a, &b, &difference);
    if (!status)
        status = cli_fields_equal(&a, &b, paths, NULL, &difference);
    if (status != STATUS_USAGE)
        return status ? status_fail(why, status, "%s", difference.text) : STATUS_OK;
    note(r, "", difference.text);
    return STATUS_OK;
}

enum status cli_results_read(struct cli_results *r, const struct cli_list *files, bool with_sweeps,
                             struct status_why *why)
{
    if (base_array_new(r->documents, files->n, "results", why) ||
        base_array_new(r->notes, files->n, "results", why))
        return STATUS_MEMORY;
    r->n = files->n;
    for (size_t i = 0; i < files->n; i++) {
        struct cli_document *document = &r->documents[i];
        enum status status = cli_document_read_as(document, files->items[i], readable, NULL, why);
        if (document->is_other) {
            note(r, "left out: ", why->text);
            continue;
        }
        if (!status && document->kind == CLI_DOCUMENT_SWEEP) {
            take_sweep(r, document, with_sweeps);
            continue;
        }
        if (!status)
            status = cli_scoreboard_add(board_of(r, document), document, why);
        if (!status)
            status = note_differences(r, i, why);
        if (status)
            return status;
    }
    return r->of_texts.n || r->of_tasks.n || r->n_sweeps
               ? STATUS_OK
               : status_fail(why, STATUS_USAGE,
                             "none of %zu file%s is a result of a model: there is no table",
                             files->n, status_plural(files->n));
}

void cli_results_free(struct cli_results *r)
{
    cli_scoreboard_free(&r->of_texts);
    cli_scoreboard_free(&r->of_tasks);
    for (size_t i = 0; i < r->n; i++)
        cli_document_free(&r->documents[i]);
    free(r->documents);
    free(r->notes);
    *r = (struct cli_results){0};
}
