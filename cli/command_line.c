#include "cli/command_line.h"

#include "cli/evaluate.h"
#include "cli/process/say.h"
#include "cli/ranks.h"
#include "cli/session/cluster.h"
#include "kernels/kernels.h"

static enum status ready(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    (void)host;
    return cli_cluster()->n_ranks > 1 ? cli_ranks_ready(e, why) : STATUS_OK;
}

/* How much memory the run takes at most. */
static void print_memory(const struct eval_memory *m, size_t n_models)
{
    const double megabyte = 1e6;
    if (m->on_device) {
        cli_say("assay: memory: on the device at most %.1f MB beside the weights; on the host "
                "model file%s %.1f, program %.1f, scores %.1f, and what CUDA takes\n",
                m->scorer / megabyte, n_models == 1 ? "" : "s", m->weights / megabyte,
                m->present / megabyte, m->scores / megabyte);
        return;
    }
    cli_say("assay: memory: at most %.1f MB: model file%s %.1f, program %.1f, batch %.1f, scores "
            "%.1f%s\n",
            m->total / megabyte, n_models == 1 ? "" : "s", m->weights / megabyte,
            m->present / megabyte, m->scorer / megabyte, m->scores / megabyte,
            m->total > m->before ? "" : "; reading the files took that much already");
}

/** What is going to happen, on standard error. */
static void beginning(struct cli_host *host, struct cli_evaluation *e)
{
    size_t n_devices = 0;
    (void)host;
    for (size_t i = 0; i < e->backends.n; i++)
        n_devices += kern_describe(e->backends.items[i]).own_memory;
    e->kind->lines->beginning(e);
    if (e->units->n_items)
        print_memory(&e->memory, 1 + e->models.n_candidates + e->n_sources);
    if (n_devices && e->units->n_items)
        cli_say("assay: uploading the weights to the device%s ...\n", status_plural(n_devices));
    cli_progress_begin(&e->progress);
}

static void progress(struct cli_host *host, struct cli_evaluation *e,
                     const struct eval_progress *now)
{
    (void)host;
    cli_progress_update(&e->progress, now);
}

static void unit(struct cli_host *host, struct cli_evaluation *e, size_t i)
{
    (void)host;
    cli_progress_clear(&e->progress);
    if (e->kind->lines->unit)
        e->kind->lines->unit(e, i);
}

static void computed(struct cli_host *host, struct cli_evaluation *e, bool failed)
{
    (void)host;
    cli_progress_clear(&e->progress);
    if (failed) /* else the figures end it */
        cli_progress_line_end(&e->progress);
}

static enum status figures(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    (void)host;
    e->kind->lines->end(e);
    return e->kind->finish ? e->kind->finish(e, why) : STATUS_OK;
}

static void describe(const struct cli_host *host, const struct cli_evaluation *e,
                     struct base_json *json, cJSON *run)
{
    (void)host, (void)e;
    base_json_uint(json, run, "n_ranks", cli_cluster()->n_ranks);
    base_json_uint(json, run, "n_shares", cli_cluster()->n_shares);
}

/** One run, by this process or with others. */
static enum status evaluate(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    enum status status = cli_evaluation_begin(e, host, why);
    if (!status)
        status = cli_evaluation_open(e, why);
    if (!status)
        status = cli_evaluation_check(e, why);
    if (!status)
        status = cli_evaluation_run(e, why);
    if (status)
        cli_ranks_end(status);
    cli_evaluation_close(e);
    return status;
}

const struct cli_host cli_command_line = {
    .evaluate = evaluate,
    .ready = ready,
    .beginning = beginning,
    .progress = progress,
    .unit = unit,
    .computed = computed,
    .figures = figures,
    .describe = describe,
};
