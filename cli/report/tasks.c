/* Choice tasks: the share of right choices of each model with its interval, task by task. */
#include <math.h>
#include <string.h>

#include "cli/report/html.h"
#include "cli/report/plot.h"
#include "cli/report/report.h"

enum { ROW = 26, FRAME = 60 };

static void draw_row(const struct cli_plot *p, const char *name,
                     const struct cli_scoreboard_run *run, double y)
{
    double share = 100 * cli_field_real(&run->from, "result.score.share");
    double low = 100 * cli_field_real(&run->from, "result.score_low");
    double high = 100 * cli_field_real(&run->from, "result.score_high");
    cli_html(p->file,
             "<text class=\"name\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"end\">%s</text>"
             "<path class=\"bar\" d=\"M%.1f %.1fH%.1f\"/>",
             p->x.from - 8, y + 4, name, cli_axis_at(&p->x, low), y, cli_axis_at(&p->x, high));
    if (isfinite(share))
        cli_html(p->file,
                 "<circle class=\"dot best\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>%s: %.3f %% "
                 "[%.3f, %.3f]</title></circle>\n",
                 cli_axis_at(&p->x, share), y, run->file, share, low, high);
}

/* The runs of one kind of tasks, neighbours on the board. */
static void draw(struct cli_report *r, const struct cli_scoreboard *board, size_t first,
                 size_t n_rows)
{
    const struct cli_scoreboard_run *run = &board->runs[first];
    struct cli_plot p = {.file = r->file,
                         .title = "Right choices with 95 % intervals",
                         .x_label = "right choices, %",
                         .height = FRAME + (double)n_rows * ROW,
                         .left = 170,
                         .right = 24,
                         .x = {.scale = CLI_LINEAR, .low = 0, .high = 100}};
    cli_html(r->file,
             "<h3>%s</h3>\n<figure><div class=\"wide\" role=\"region\" aria-label=\"%s\" "
             "tabindex=\"0\">\n",
             run->task, p.title);
    cli_plot_begin(&p);
    double chance = 100 * cli_field_real(&run->from, "result.chance");
    if (isfinite(chance))
        cli_html(
            r->file,
            "<path class=\"zero\" d=\"M%.1f %.1fV%.1f\"><title>chance: %.1f %%</title></path>\n",
            cli_axis_at(&p.x, chance), p.y.to, p.y.from, chance);
    for (size_t i = 0; i < n_rows; i++) {
        char name[CLI_RUN_NAME];
        draw_row(&p, cli_run_name(name, board, &run[i]), &run[i], p.y.to + ((double)i + 0.5) * ROW);
    }
    cli_plot_end(&p);
    cli_html(r->file,
             "</div><figcaption>Score with the 95 %% interval after Wilson; the dashed line is "
             "chance.</figcaption></figure>\n");
}

void cli_report_tasks(struct cli_report *r)
{
    const struct cli_scoreboard *board = &r->results->of_tasks;
    if (!board->n)
        cli_report_missing(r, "No tasks: none of the results is of assay perplexity with "
                              "--hellaswag, --winogrande or --multiple-choice.");
    for (size_t i = 0, n; i < board->n; i += n) {
        for (n = 1; i + n < board->n && !strcmp(board->runs[i + n].task, board->runs[i].task);)
            n++;
        draw(r, board, i, n);
    }
}
