/* The plan as a host of the driver: open, count, try, scale, say; nothing of the run is written. */
#include <libgen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/clock.h"
#include "cli/plan/plan.h"
#include "cli/process/signals.h"
#include "clients/documents/schema.h"
#include "eval/reference.h"

const struct cli_plan_settings cli_plan_defaults = {.seconds = 8};

/** Rows that a run would write: computing them is a part of it. */
static enum status drop_rows(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                             const void *from, struct status_why *why)
{
    (void)user, (void)backend, (void)first, (void)n_rows, (void)from, (void)why;
    return STATUS_OK;
}

/** What a journal that is there has need not be evaluated. One that is not there is not begun. */
static enum status resume(struct cli_plan *p, const char *settings, struct status_why *why)
{
    struct cli_evaluation *e = p->e;
    const char *path = e->settings->state_file;
    if (!path || access(path, F_OK) || p->outlook.n_recorded)
        return STATUS_OK;
    enum status status = eval_journal_open(&e->journal, path, settings, why);
    return status ? status : eval_run_resume(e->units, e->journal, why);
}

/** Free bytes of the disk on which the journal or the recording is to be. */
static double free_bytes(const struct cli_plan *p)
{
    const char *path =
        p->outlook.recorded_file ? p->outlook.recorded_file : p->e->settings->state_file;
    char *copy = path ? strdup(path) : NULL;
    struct statvfs fs;
    bool known = copy && statvfs(dirname(copy), &fs) == 0;
    free(copy);
    return known ? (double)fs.f_bavail * (double)fs.f_frsize : (double)NAN;
}

/** What the run would leave on the disk, and where it would go on. */
static enum status look_at_outputs(struct cli_plan *p, struct status_why *why)
{
    struct cli_evaluation *e = p->e;
    char *settings = NULL;
    if (!e->settings->state_file) {
        p->free_bytes = free_bytes(p);
        return STATUS_OK;
    }
    enum status status = cli_evaluation_identify(&settings, e, 0, why);
    if (!status)
        status = resume(p, settings, why);
    if (!status)
        p->journal_bytes = (double)eval_journal_head_bytes(strlen(settings));
    cJSON_free(settings);
    const struct eval_units *units = e->units;
    for (size_t i = 0; i < units->n && !status; i++)
        p->journal_bytes += (double)eval_journal_entry_bytes(units->kind->n_values(units, i));
    p->free_bytes = free_bytes(p);
    return status;
}

/** As the run would begin; the batch is the run's. */
static enum status count(struct cli_plan *p, struct status_why *why)
{
    struct cli_evaluation *e = p->e;
    size_t n_batch = (size_t)e->settings->machine.n_batch;
    enum status status = eval_run_prepare(e->units, &e->models, n_batch, why);
    if (status)
        return status;
    struct eval_run_options options = {0};
    e->memory = eval_run_memory(e->units, &e->models, &options);
    p->pace.loading = base_clock_seconds() - e->clock_started;
    p->pace.processor_loading = base_clock_process_seconds();
    cli_plan_count(&p->work, e->units, &e->models, SIZE_MAX);
    double more = p->work.n_left ? (double)p->outlook.n_again / (double)p->work.n_left : 0;
    p->work.forward *= 1 + more;
    p->work.head *= 1 + more;
    p->work.weights = e->memory.weights;
    p->work.memory = e->memory.total;
    p->work.moved *= e->memory.weights;
    return STATUS_OK;
}

/** What is left until the first look of a race, in seconds; NaN where it is over. */
static double seconds_to_look(const struct cli_plan *p)
{
    const struct eval_units *units = p->e->units;
    size_t n_look = p->outlook.n_look;
    if (n_look <= units->n_resumed || n_look >= units->n)
        return (double)NAN;
    double share = (double)(n_look - units->n_resumed) / (double)(units->n - units->n_resumed);
    return p->times.loading_alone + share * (p->times.alone - p->times.loading_alone);
}

static enum status make(struct cli_plan *p, struct status_why *why)
{
    struct cli_evaluation *e = p->e;
    enum status status = STATUS_OK;
    if (e->kind->outlook)
        status = e->kind->outlook(e, &p->outlook, why);
    if (p->outlook.n_recorded) {
        p->sink = (struct eval_row_sink){.kind = p->outlook.recorded_kind, .write = drop_rows};
        e->models.sink = &p->sink;
    }
    if (!status)
        status = look_at_outputs(p, why);
    if (!status)
        status = count(p, why);
    if (status)
        return status;
    cli_plan_look(&p->machine, e);
    if (p->work.n_batches)
        status = cli_plan_try(p, why);
    if (!status && atomic_load(cli_interrupt_catch()))
        status = status_fail(why, STATUS_CANCELLED, "interrupted: there is no plan");
    p->times = cli_plan_scale(&p->work, &p->pace, &p->machine, &p->outlook);
    p->times.to_look = seconds_to_look(p);
    p->n_ways = cli_plan_ways(p->ways, &p->times, &p->work, &p->outlook);
    p->made = !status;
    return status;
}

static enum status evaluate(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    struct cli_plan *p = (struct cli_plan *)host;
    p->e = e;
    if (e->settings->machine.split) {
        cli_evaluation_close(e);
        return status_fail(why, STATUS_USAGE,
                           "--split: a plan is made by one process; leave --split out, and divide "
                           "the time by the processes");
    }
    enum status status = cli_evaluation_begin(e, host, why);
    if (!status)
        status = cli_evaluation_open(e, why);
    if (!status)
        status = cli_evaluation_check(e, why);
    struct base_file *json = NULL;
    if (!status)
        status = cli_output_create(&json, p->settings->json_file,
                                   p->settings->force ? NULL : DOC_PLAN_SCHEMA, why);
    if (!status)
        status = make(p, why);
    if (!status) {
        cli_plan_print(p);
        status = cli_plan_write(p, &json, why);
    }
    base_file_abandon(json);
    cli_evaluation_close(e);
    return status;
}

void cli_plan_make(struct cli_plan *plan, const struct cli_plan_settings *settings)
{
    *plan = (struct cli_plan){
        .host = {.evaluate = evaluate},
        .settings = settings,
        .free_bytes = (double)NAN,
    };
}
