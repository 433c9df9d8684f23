#include "cli/session/progress.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/options/width.h"
#include "cli/process/run.h"
#include "cli/process/say.h"

enum { BAR_CELLS = 30, FEW_CELLS = 10 }; /* few: beside figures, and in a narrow terminal */
enum { LEFT_BYTES = 96 };
static const double bar_interval = 0.1;     /* seconds between two drawings of the bar */
static const double line_first = 5;         /* the first line, if something is known then */
static const double line_interval = 2;      /* least time between two lines */
static const double line_interval_max = 60; /* a line even where no tenth was completed */

void cli_progress_begin(struct cli_progress *progress)
{
    *progress = (struct cli_progress){
        .bar = isatty(STDERR_FILENO),
    };
    progress->shared = cli_same_stream();
}

/* "1:02:03" or "2:03"; "?" while nothing is known. */
static void format_duration(char *out, size_t capacity, double seconds)
{
    if (!isfinite(seconds) || seconds > 1e8) {
        snprintf(out, capacity, "?");
        return;
    }
    unsigned total = (unsigned)(seconds + 0.5);
    unsigned hours = total / 3600, minutes = total / 60 % 60;
    if (hours)
        snprintf(out, capacity, "%u:%02u:%02u", hours, minutes, total % 60);
    else
        snprintf(out, capacity, "%u:%02u", minutes, total % 60);
}

/* As many whole entries as `room` columns hold, and an ellipsis for others. */
static void add_figures(char *out, size_t capacity, const char *figures, size_t room)
{
    size_t n = 0, used = strlen(out), columns = 0, fits = 0;
    for (; figures[n]; n++) {
        bool ends = strncmp(figures + n, "  ", 2) == 0;
        if (ends && columns + 2 <= room) /* a blank and the ellipsis after it */
            fits = n;
        columns += ((unsigned char)figures[n] & 0xc0) != 0x80;
    }
    bool all = columns <= room;
    snprintf(out + used, capacity - used, "%.*s%s", (int)(all ? n : fits), figures,
             all ? "" : " …");
}

/* "2:03"; before a race's look "0:40 to the next look, at most 2:03". */
static void format_left(char out[LEFT_BYTES], const struct eval_progress *now)
{
    char most[32], look[32];
    format_duration(most, sizeof most, now->seconds_left);
    format_duration(look, sizeof look, now->seconds_to_look);
    if (now->seconds_to_look > 0)
        snprintf(out, LEFT_BYTES, "%s to the next look, at most %s", look, most);
    else
        snprintf(out, LEFT_BYTES, "%s", most);
}

void cli_progress_text(char *out, size_t capacity, const struct eval_progress *now,
                       const struct cli_progress *how, size_t width)
{
    char left[LEFT_BYTES];
    format_left(left, now);
    bool few = how->figures || width < CLI_USUAL_WIDTH || now->seconds_to_look > 0;
    int percent = (int)(now->fraction * 100), n_cells = few ? FEW_CELLS : BAR_CELLS;
    char cells[BAR_CELLS + 1];
    for (int i = 0; i < n_cells; i++)
        cells[i] = i < (int)(now->fraction * n_cells) ? '#' : '.';
    cells[n_cells] = '\0';
    if (!how->bar)
        snprintf(out, capacity, "assay: %d %% done, %s left", percent, left);
    else if (now->n_tokens == 0 || few)
        snprintf(out, capacity, "[%s] %3d %%  %s left", cells, percent, left);
    else
        snprintf(out, capacity, "[%s] %3d %%  %zu of %zu token%s  %s left", cells, percent,
                 now->n_tokens_done, now->n_tokens, status_plural(now->n_tokens), left);
    size_t used = strlen(out);
    if (how->figures && !how->bar)
        snprintf(out + used, capacity - used, "%s", how->figures);
    else if (how->figures && used + 1 < width)
        add_figures(out, capacity, how->figures, width - 1 - used);
}

void cli_progress_update(struct cli_progress *progress, const struct eval_progress *now)
{
    double since = now->seconds - progress->shown;
    int tenth = (int)(now->fraction * 10);
    bool first = progress->shown == 0 && since >= line_first && isfinite(now->seconds_left);
    bool due = progress->bar ? since >= bar_interval
                             : since >= line_interval_max || first ||
                                   (tenth > progress->tenth && since >= line_interval);
    /* In a file, scripts read the last figure of the line that begins with [1]: it stays whole. */
    bool would_cut = progress->line_open && !progress->bar;
    if (cli_is_quiet() || !due || would_cut || now->fraction >= 1)
        return;
    progress->shown = now->seconds;
    progress->tenth = tenth;

    char text[4096];
    cli_progress_text(text, sizeof text, now, progress, cli_width(STDERR_FILENO));
    cli_progress_line_end(progress);
    if (!progress->bar) {
        fprintf(stderr, "%s\n", text);
        return;
    }
    fprintf(stderr, "\r%s\033[K", text);
    progress->drawn = true;
}

void cli_progress_clear(struct cli_progress *progress)
{
    if (progress->drawn)
        fputs("\r\033[K", stderr);
    progress->drawn = false;
}

void cli_progress_line_end(struct cli_progress *progress)
{
    if (!progress->line_open)
        return;
    putchar('\n');
    cli_flush();
    progress->line_open = false;
}

void cli_progress_line_open(struct cli_progress *progress)
{
    progress->line_open = progress->shared;
}
