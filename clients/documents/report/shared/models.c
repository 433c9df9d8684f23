#include "clients/documents/report/shared/models.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { NAME_WIDTH = 24, N_COLOURS = 7, N_FORMS = 4 };

const char *doc_run_name(char out[DOC_RUN_NAME], const struct doc_scoreboard_run *run)
{
    struct base_label label;
    snprintf(out, DOC_RUN_NAME, "%s", base_label_fit(&label, run->label, NAME_WIDTH));
    return out;
}

bool doc_run_beats(const struct doc_scoreboard_run *a, double figure_a,
                   const struct doc_scoreboard_run *b, double figure_b)
{
    return a->n_bytes <= b->n_bytes && figure_a <= figure_b &&
           (a->n_bytes < b->n_bytes || figure_a < figure_b);
}

bool doc_run_diverges(const struct doc_scoreboard_run *run)
{
    return run->values[DOC_METRIC_KLD].known;
}

bool doc_same_model(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b)
{
    return strcmp(a->id, b->id) == 0 && strcmp(a->kv, b->kv) == 0;
}

/* The run of the same model among the first n of a board, or NULL. */
static const struct doc_scoreboard_run *find_model(const struct doc_scoreboard *board, size_t n,
                                                   const struct doc_scoreboard_run *run)
{
    for (size_t i = 0; i < n; i++)
        if (doc_same_model(&board->runs[i], run))
            return &board->runs[i];
    return NULL;
}

void doc_runs_number(struct doc_scoreboard *board, const struct doc_scoreboard *before)
{
    size_t n = 0;
    for (size_t i = 0; before && i < before->n; i++)
        if (before->runs[i].number != SIZE_MAX && before->runs[i].number >= n)
            n = before->runs[i].number + 1;
    for (size_t i = 0; i < board->n; i++) { /* bases come first */
        struct doc_scoreboard_run *run = &board->runs[i];
        const struct doc_scoreboard_run *same = before ? find_model(before, before->n, run) : NULL;
        if (!same)
            same = find_model(board, i, run);
        run->number = same ? same->number : run->is_base ? SIZE_MAX : n++;
    }
}

const char *doc_mark_classes(char out[DOC_MARK], size_t number)
{
    if (number == SIZE_MAX)
        snprintf(out, DOC_MARK, "mb f0");
    else
        snprintf(out, DOC_MARK, "m%zu f%zu", number % N_COLOURS, number % N_FORMS);
    return out;
}

struct doc_unit doc_unit_of(const struct doc_scoreboard *texts, const struct doc_scoreboard *tasks)
{
    const struct doc_scoreboard *boards[] = {texts, tasks};
    double most = 0;
    for (size_t b = 0; b < 2 && boards[b]; b++)
        for (size_t i = 0; i < boards[b]->n; i++)
            most = fmax(most, boards[b]->runs[i].n_bytes);
    return most >= 0x1p29 ? (struct doc_unit){"GiB", 0x1p30, 3}
                          : (struct doc_unit){"MiB", 0x1p20, 3};
}

bool doc_runs_comparable(const struct doc_scoreboard_run *a, const struct doc_scoreboard_run *b,
                         size_t metric)
{
    struct base_field x = doc_root(doc_of(a->from));
    struct base_field y = doc_root(doc_of(b->from));
    if (doc_of(x) == doc_of(y))
        return metric == DOC_METRIC_KLD || a->n_windows == b->n_windows;
    if (doc_equal(x, y, "tokens.sha256 windows.n_tokens result.n_windows", NULL, NULL))
        return false;
    if (metric != DOC_METRIC_KLD)
        return true;
    struct base_field base_x = doc_base_id(x), base_y = doc_base_id(y);
    return !doc_values_equal(base_x, base_y, NULL);
}

bool doc_run_is_head(const struct doc_scoreboard *board, size_t run, size_t metric)
{
    if (!board->runs[run].values[metric].known)
        return false;
    for (size_t i = 0; i < run; i++)
        if (board->runs[i].values[metric].known &&
            doc_runs_comparable(&board->runs[i], &board->runs[run], metric))
            return false;
    return true;
}
