#include "clients/documents/card/which.h"

#include <math.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/printable.h"
#include "clients/documents/card/origin.h"
#include "clients/documents/report/shared/models.h"
#include "clients/documents/results/drawn.h"

/* What a document has on the board, the nearest to the base first. */
struct files {
    struct base_file *file;
    const struct doc_scoreboard *board;
    struct doc_document *document;
    const struct doc_scoreboard_run *base; /* NULL: it is no model */
};

static double divergence(const struct doc_scoreboard_run *run)
{
    return run->values[DOC_METRIC_KLD].value;
}

static bool is_judged(const struct files *f, const struct doc_scoreboard_run *run)
{
    return doc_run_is_of(run, f->document) && !run->is_base && run->values[DOC_METRIC_KLD].known &&
           isfinite(divergence(run));
}

/* The nearest file that is no larger than this one and better in size or divergence, or NULL. */
static const struct doc_scoreboard_run *instead_of(const struct files *f,
                                                   const struct doc_scoreboard_run *run)
{
    for (const struct doc_scoreboard_run *k = f->board->runs; k < run; k++)
        if (is_judged(f, k) && doc_run_beats(k, divergence(k), run, divergence(run)))
            return k;
    return NULL;
}

static double percent_smaller(const struct doc_scoreboard_run *run,
                              const struct doc_scoreboard_run *than)
{
    return 100 * (1 - run->n_bytes / than->n_bytes);
}

static void put_instead(const struct files *f, const struct doc_scoreboard_run *run,
                        const struct doc_scoreboard_run *other)
{
    char figure[BASE_FIGURE_BYTES];
    base_file_printf(f->file, "; ");
    doc_card_code(f->file, other->file);
    if (other->n_bytes < run->n_bytes)
        base_file_printf(f->file, " is %.3g %% smaller", percent_smaller(other, run));
    else
        base_file_printf(f->file, " is as large");
    if (divergence(other) < divergence(run))
        base_file_printf(f->file, " and nearer (%s)", base_figure(figure, divergence(other), 3));
    else
        base_file_printf(f->file, " and as near");
}

/* A line. larger: the next larger file that is worth its size, or NULL. */
static void put_line(const struct files *f, const struct doc_scoreboard_run *run,
                     const struct doc_scoreboard_run *larger)
{
    char figure[BASE_FIGURE_BYTES];
    const struct doc_scoreboard_run *other = instead_of(f, run), *than = larger ? larger : f->base;
    base_file_printf(f->file, "  - ");
    doc_card_code(f->file, run->file);
    base_file_printf(f->file, ": %s nats from the base (tokens drawn otherwise: %s)",
                     base_figure(figure, divergence(run), 3),
                     doc_drawn_otherwise(divergence(run), doc_run_rounding(run)));
    if (!larger)
        base_file_printf(f->file, ", the nearest");
    if (other) {
        put_instead(f, run, other);
    } else if (than && than->n_bytes > run->n_bytes) {
        base_file_printf(f->file, ", %.3g %% smaller than ", percent_smaller(run, than));
        doc_card_code(f->file, than->file);
    }
    base_file_printf(f->file, "\n");
}

/* The sentences of a race. False: the document is of no race. */
static bool put_verdict(const struct files *f)
{
    struct base_field sentence = {0};
    struct base_field list = base_field_list_or_none(doc_root(f->document), "verdict");
    char shown[BASE_PATH_BYTES];
    if (!base_field_count(list))
        return false;
    base_file_printf(f->file, "- **Which file**, as `assay best` answers:\n");
    while (base_field_next(list, &sentence))
        base_file_printf(f->file, "  - %s\n",
                         base_markdown(shown, sizeof shown, base_field_text(sentence, "")));
    return true;
}

void doc_card_which(struct base_file *file, const struct doc_scoreboard *board,
                    struct doc_document *document)
{
    struct files f = {.file = file, .board = board, .document = document};
    const struct doc_scoreboard_run *end = board->runs + board->n, *larger = NULL;
    const char *base_id = base_field_text(doc_base_id(doc_root(document)), "");
    bool any = false, rounded = false;
    if (put_verdict(&f))
        return;
    for (const struct doc_scoreboard_run *run = board->runs; run < end; run++) {
        if (run->is_base && strcmp(run->id, base_id) == 0 &&
            (!f.base || doc_run_is_of(run, document)))
            f.base = run; /* the document's own, which may be left out as a repetition */
        rounded |= doc_run_is_of(run, document) && *run->kv;
        any |= is_judged(&f, run);
    }
    if (!any || rounded)
        return;
    base_file_printf(file, "- **Which file**, by size and mean divergence:\n");
    for (const struct doc_scoreboard_run *run = board->runs; run < end; run++)
        if (is_judged(&f, run)) {
            put_line(&f, run, larger);
            larger = instead_of(&f, run) ? larger : run;
        }
}
