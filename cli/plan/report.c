/* What a plan says: a sentence, figures, and the document. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/plan/plan.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "clients/documents/schema.h"

static const double little = 1e6;  /* bytes that are not worth a word */
static const double long_run = 60; /* seconds from which on cheaper runs are named */

enum { MINUTE = 60, HOUR = 3600, HOURS_ALONE = 10 };

const char *cli_plan_duration(char out[CLI_PLAN_TEXT], double seconds)
{
    double whole = floor(seconds + 0.5);
    unsigned long long total = whole < 1e15 ? (unsigned long long)fmax(whole, 0) : 0;
    if (!isfinite(seconds) || seconds >= 1e15)
        snprintf(out, CLI_PLAN_TEXT, "longer than can be said");
    else if (seconds < 9.95)
        snprintf(out, CLI_PLAN_TEXT, "%.*f s", seconds < 0.095 ? 2 : 1, seconds);
    else if (total < MINUTE)
        snprintf(out, CLI_PLAN_TEXT, "%llu s", total);
    else if (total < HOUR && total % MINUTE && total < (unsigned long long)HOURS_ALONE * MINUTE)
        snprintf(out, CLI_PLAN_TEXT, "%llu min %llu s", total / MINUTE, total % MINUTE);
    else if (total < HOUR - MINUTE / 2)
        snprintf(out, CLI_PLAN_TEXT, "%llu min", (total + MINUTE / 2) / MINUTE);
    else if (total < (unsigned long long)HOURS_ALONE * HOUR)
        snprintf(out, CLI_PLAN_TEXT, "%llu h %02llu min", (total + MINUTE / 2) / HOUR,
                 (total + MINUTE / 2) % HOUR / MINUTE);
    else
        snprintf(out, CLI_PLAN_TEXT, "%llu h", (total + HOUR / 2) / HOUR);
    return out;
}

const char *cli_plan_bytes(char out[CLI_PLAN_TEXT], double n_bytes)
{
    static const char *const units[] = {"kB", "MB", "GB", "TB", "PB"};
    double n = n_bytes / 1e3;
    size_t unit = 0;
    for (; n >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        n /= 1e3;
    snprintf(out, CLI_PLAN_TEXT, "%.*f %s", n < 9.995 ? 2 : n < 99.95 ? 1 : 0, n, units[unit]);
    return out;
}

/** Bytes that are written beside the results. */
static double n_written(const struct cli_plan *p)
{
    return p->journal_bytes + (double)p->outlook.n_recorded;
}

static void print_verdict(const struct cli_plan *p)
{
    char time[CLI_PLAN_TEXT], memory[CLI_PLAN_TEXT], disk[CLI_PLAN_TEXT];
    printf("The run would take %s %s", p->outlook.may_end ? "at most" : "about",
           cli_plan_duration(time, p->times.alone));
    if (!isnan(p->times.to_look))
        printf(" (%s if its first look decides)", cli_plan_duration(time, p->times.to_look));
    printf(" and %s of memory here", cli_plan_bytes(memory, p->e->memory.total));
    if (n_written(p) > 0)
        printf(", and %s of disk", cli_plan_bytes(disk, n_written(p)));
    printf("; %s%s limits it.\n", p->times.limit == CLI_PLAN_DEVICE ? "the " : "",
           cli_plan_limits[p->times.limit]);
}

static void print_times(const struct cli_plan *p)
{
    const struct cli_plan_times *t = &p->times;
    double f = t->alone / t->total;
    char a[CLI_PLAN_TEXT], b[CLI_PLAN_TEXT], c[CLI_PLAN_TEXT], d[CLI_PLAN_TEXT];
    printf("  time         layers %s, head %s, all else %s, opening %s\n",
           cli_plan_duration(a, f * t->layers), cli_plan_duration(b, f * t->head),
           cli_plan_duration(c, f * t->rest), cli_plan_duration(d, f * t->loading));
    if (p->outlook.n_made)
        printf("  making       %zu model%s before that, %s: a guess from the number of weights\n",
               p->outlook.n_made, status_plural(p->outlook.n_made),
               cli_plan_duration(a, t->making));
    printf("  processors   %s of processor time, on %u thread%s\n",
           cli_plan_duration(a, t->processor), p->machine.n_threads,
           status_plural(p->machine.n_threads));
}

static void print_work(const struct cli_plan *p)
{
    const struct cli_plan_work *w = &p->work;
    const struct eval_units *units = p->e->units;
    const struct cli_plan_times *t = &p->times;
    char a[CLI_PLAN_TEXT], b[CLI_PLAN_TEXT];
    printf("  work         %zu %s%s", w->n_left, units->kind->name, status_plural(w->n_left));
    if (units->n_resumed)
        printf(" (%zu of %zu are in the journal)", units->n_resumed, units->n);
    printf(", %zu tokens through the layers, %zu scored; %.3g TFLOP\n", w->n_tokens, w->n_rows,
           (w->forward + w->head) / 1e12);
    printf("  passes       %zu over the weights, %s each, of up to %zu tokens\n", w->n_batches,
           cli_plan_bytes(a, w->weights), w->batch_tokens);
    printf("  memory       %s of files, %s beside them\n", cli_plan_bytes(a, p->e->memory.weights),
           cli_plan_bytes(b, p->e->memory.total - p->e->memory.weights));
    if (p->e->memory.total > p->machine.available)
        printf(
            "  disk         the files do not fit into memory: each pass reads them, %s in all, in "
            "%s\n",
            cli_plan_bytes(a, t->n_read), cli_plan_duration(b, t->disk));
    else if (t->n_read > little)
        printf("  disk         %s to be read once, in %s\n", cli_plan_bytes(a, t->n_read),
               cli_plan_duration(b, t->disk));
    else
        printf("  disk         nothing to be read: the files are in memory\n");
}

static void print_written(const struct cli_plan *p)
{
    char a[CLI_PLAN_TEXT], b[CLI_PLAN_TEXT];
    if (p->outlook.n_recorded)
        printf("  written      %s, the recording\n",
               cli_plan_bytes(a, (double)p->outlook.n_recorded));
    if (p->journal_bytes > 0)
        printf("  written      %s, the journal\n", cli_plan_bytes(a, p->journal_bytes));
    if (n_written(p) > p->free_bytes)
        printf("  written      the disk has room for %s only, %s are needed\n",
               cli_plan_bytes(a, p->free_bytes), cli_plan_bytes(b, n_written(p)));
}

static void print_trial(const struct cli_plan *p)
{
    const struct cli_plan_pace *pace = &p->pace;
    char a[CLI_PLAN_TEXT];
    if (!pace->n_tokens)
        return;
    printf("  measured     %s of the run: %zu tokens, %.1f tokens/s, %.0f GFLOP/s, %.2f of %u "
           "processors%s\n",
           cli_plan_duration(a, pace->seconds), pace->n_tokens,
           (double)pace->n_tokens / pace->seconds, pace->forward / 1e9, pace->n_busy,
           p->machine.n_processors, pace->whole ? "" : "; no batch came to its end");
}

void cli_plan_print(const struct cli_plan *p)
{
    char a[CLI_PLAN_TEXT];
    print_verdict(p);
    print_times(p);
    print_work(p);
    print_written(p);
    print_trial(p);
    for (size_t i = 0; i < p->n_ways && p->times.alone >= long_run; i++) {
        printf("  cheaper      %s: %s", p->ways[i].option,
               cli_plan_duration(a, p->ways[i].seconds));
        if (p->ways[i].wider > 1)
            printf(", with standard errors %.1f times as large", p->ways[i].wider);
        putchar('\n');
    }
    if (p->times.alone < p->times.total)
        cli_say("assay: note: the trial had %.2f of %.0f processors, because other programs "
                "compute; the time is that without them, %s as long as they do\n",
                p->pace.n_busy, fmin(p->machine.n_threads, p->machine.n_processors),
                cli_plan_duration(a, p->times.total));
    cli_flush();
}

static void add_times(struct base_json *json, const struct cli_plan *p)
{
    const struct cli_plan_times *t = &p->times;
    cJSON *o = base_json_object(json, json->root, "plan");
    base_json_text(json, o, "evaluation", p->e->name);
    base_json_real(json, o, "seconds", t->alone);
    base_json_real(json, o, "seconds_beside_others", t->total);
    base_json_real(json, o, "seconds_to_look", t->to_look);
    base_json_real(json, o, "seconds_layers", t->layers);
    base_json_real(json, o, "seconds_head", t->head);
    base_json_real(json, o, "seconds_rest", t->rest);
    base_json_real(json, o, "seconds_to_load", t->loading);
    base_json_real(json, o, "seconds_to_make", t->making);
    base_json_real(json, o, "seconds_disk", t->disk);
    base_json_real(json, o, "processor_seconds", t->processor);
    base_json_text(json, o, "limit", cli_plan_limits[t->limit]);
    base_json_real(json, o, "memory_bytes", p->e->memory.total);
    base_json_real(json, o, "read_bytes", t->n_read);
    base_json_real(json, o, "journal_bytes", p->journal_bytes);
    base_json_uint(json, o, "recording_bytes", p->outlook.n_recorded);
    base_json_real(json, o, "free_bytes", p->free_bytes);
}

static void add_work(struct base_json *json, const struct cli_plan *p)
{
    const struct cli_plan_work *w = &p->work;
    cJSON *o = base_json_object(json, json->root, "work");
    base_json_text(json, o, "unit", p->e->units->kind->name);
    base_json_uint(json, o, "n_units", p->e->units->n);
    base_json_uint(json, o, "n_resumed", p->e->units->n_resumed);
    base_json_uint(json, o, "n_tokens", w->n_tokens);
    base_json_uint(json, o, "n_scored", w->n_rows);
    base_json_uint(json, o, "n_passes", w->n_batches);
    base_json_uint(json, o, "batch_tokens", w->batch_tokens);
    base_json_real(json, o, "operations_layers", w->forward);
    base_json_real(json, o, "operations_head", w->head);
    base_json_real(json, o, "weight_bytes", w->weights);
}

static void add_trial(struct base_json *json, const struct cli_plan *p)
{
    cJSON *o = base_json_object(json, json->root, "trial");
    base_json_uint(json, o, "n_tokens", p->pace.n_tokens);
    base_json_flag(json, o, "whole_batch", p->pace.whole);
    base_json_real(json, o, "seconds", p->pace.seconds);
    base_json_real(json, o, "processors", p->pace.n_busy);
    base_json_uint(json, o, "n_threads", p->machine.n_threads);
    base_json_real(json, o, "operations_per_second", p->pace.forward);
    base_json_real(json, o, "disk_bytes_per_second", p->machine.disk);
    base_json_real(json, o, "memory_bytes_per_second", p->machine.bandwidth);
}

enum status cli_plan_write(const struct cli_plan *p, struct base_file **file,
                           struct status_why *why)
{
    struct base_json json;
    if (!*file)
        return STATUS_OK;
    doc_json_begin(&json, DOC_PLAN_SCHEMA);
    add_times(&json, p);
    add_work(&json, p);
    add_trial(&json, p);
    cJSON *ways = base_json_list(&json, json.root, "cheaper");
    for (size_t i = 0; i < p->n_ways; i++) {
        cJSON *o = base_json_object(&json, ways, NULL);
        base_json_text(&json, o, "options", p->ways[i].option);
        base_json_real(&json, o, "seconds", p->ways[i].seconds);
        base_json_real(&json, o, "error_factor", p->ways[i].wider);
    }
    return cli_output_commit(file, doc_json_end(&json, *file, why), why);
}
