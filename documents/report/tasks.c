/* Choice tasks: the share of right choices of each model with its interval, task by task. */
#include <math.h>
#include <string.h>

#include "documents/report/html.h"
#include "documents/report/plot.h"
#include "documents/report/report.h"

enum { ROW = 26, FRAME = 60 };

static void draw_row(const struct doc_plot *p, const char *name,
                     const struct doc_scoreboard_run *run, double y)
{
    double share = 100 * doc_field_real(&run->from, "result.score.share");
    double low = 100 * doc_field_real(&run->from, "result.score_low");
    double high = 100 * doc_field_real(&run->from, "result.score_high");
    doc_html(p->file,
             "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>"
             "<path class=\"bar\" d=\"M%.1f %.1fH%.1f\"/>",
             p->x.from - 8, y + 4, name, doc_axis_at(&p->x, low), y, doc_axis_at(&p->x, high));
    if (isfinite(share))
        doc_html(p->file,
                 "<circle class=\"dot best\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>%s: %.3f %% "
                 "[%.3f, %.3f]</title></circle>\n",
                 doc_axis_at(&p->x, share), y, run->file, share, low, high);
}

/* The runs of one kind of tasks, neighbours on the board. */
static void draw(struct doc_report *r, const struct doc_scoreboard *board, size_t first,
                 size_t n_rows)
{
    const struct doc_scoreboard_run *run = &board->runs[first];
    struct doc_plot p = {.file = r->file,
                         .title = "Right choices with 95 % intervals",
                         .x_label = "right choices, %",
                         .height = FRAME + (double)n_rows * ROW,
                         .left = 170,
                         .right = 24,
                         .x = {.scale = DOC_LINEAR, .low = 0, .high = 100}};
    doc_html(r->file, "<h3>%s</h3>\n", run->task);
    doc_report_figure(r->file, p.title);
    doc_plot_begin(&p);
    double chance = 100 * doc_field_real(&run->from, "result.chance");
    if (isfinite(chance))
        doc_html(
            r->file,
            "<path class=\"zero\" d=\"M%.1f %.1fV%.1f\"><title>chance: %.1f %%</title></path>\n",
            doc_axis_at(&p.x, chance), p.y.to, p.y.from, chance);
    for (size_t i = 0; i < n_rows; i++) {
        struct base_label name;
        draw_row(&p, doc_run_name(&name, &run[i]), &run[i], p.y.to + ((double)i + 0.5) * ROW);
    }
    doc_plot_end(&p);
    doc_html(r->file,
             "</div><figcaption>Score with the 95 %% interval after Wilson; the dashed line is "
             "chance.</figcaption></figure>\n");
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
        draw(r, board, i, n);
    }
}
