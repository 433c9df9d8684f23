/* Choice tasks: the share of right choices of each model with its interval, task by task. */
#include <math.h>
#include <string.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/plot.h"
#include "clients/documents/report/report.h"

enum { ROW = 26, FRAME = 60 };

static void draw_row(const struct doc_plot *p, const char *name,
                     const struct doc_scoreboard_run *run, double y)
{
    double share = 100 * base_field_real_or_null(run->from, "result.score.share");
    double low = 100 * base_field_real_or_null(run->from, "result.score_low");
    double high = 100 * base_field_real_or_null(run->from, "result.score_high");
    doc_html(p->file,
             "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>"
             "<path class=\"bar\" d=\"M%.1f %.1fH%.1f\"/>",
             p->x.from - 8, y + 4, name, doc_axis_at(&p->x, low), y, doc_axis_at(&p->x, high));
    if (!isfinite(share))
        return;
    doc_plot_mark(p, doc_axis_at(&p->x, share), y, run->number, true);
    doc_html(p->file, "%s: %.3f %% [%.3f, %.3f]", run->file, share, low, high);
    doc_plot_mark_end(p);
}

/* The runs of one kind of tasks, neighbours on the board. */
static void draw(struct doc_report *r, size_t first, size_t n_rows, enum doc_form form)
{
    const struct doc_scoreboard *board = &r->results->of_tasks;
    const struct doc_scoreboard_run *run = &board->runs[first];
    struct doc_plot p = {.file = r->file,
                         .form = form,
                         .title = "Right choices with 95 % intervals",
                         .x_label = "right choices, %",
                         .height = FRAME + (double)n_rows * ROW,
                         .left = doc_names_width(board) + 16,
                         .right = 24,
                         .x = {.scale = DOC_LINEAR, .low = 0, .high = 100}};
    doc_plot_begin(&p);
    double chance = 100 * base_field_real_or_null(run->from, "result.chance");
    if (isfinite(chance))
        doc_html(
            r->file,
            "<path class=\"zero\" d=\"M%.1f %.1fV%.1f\"><title>chance: %.1f %%</title></path>\n",
            doc_axis_at(&p.x, chance), p.y.to, p.y.from, chance);
    for (size_t i = 0; i < n_rows; i++) {
        char name[DOC_RUN_NAME];
        draw_row(&p, doc_run_name(name, &run[i]), &run[i], p.y.to + ((double)i + 0.5) * ROW);
    }
    doc_plot_end(&p);
}

void doc_report_tasks(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_tasks;
    if (!board->n)
        doc_report_missing(r, "No tasks: none of the results is of assay perplexity with "
                              "--hellaswag, --winogrande, --multiple-choice or --mc2.");
    for (size_t i = 0, n; i < board->n; i += n) {
        for (n = 1; i + n < board->n && !strcmp(board->runs[i + n].task, board->runs[i].task);)
            n++;
        doc_html(r->file, "<h3>%s</h3>\n<figure>", board->runs[i].task);
        for (int form = 0; form < DOC_N_PAGE_FORMS; form++)
            draw(r, i, n, (enum doc_form)form);
        doc_html(r->file, "<figcaption>Score with the 95 %% interval after Wilson; the dashed line "
                          "is chance.</figcaption></figure>\n");
    }
}
