#include "cli/evaluate.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/output/json_parts.h"
#include "cli/output/printable.h"
#include "cli/output/say.h"
#include "cli/ranks.h"
#include "cli/session/cluster.h"
#include "cli/session/faults.h"
#include "cli/session/resident.h"
#include "cli/session/signals.h"
#include "cli/watch/caches.h"
#include "cli/watch/watch.h"
#include "kernels/backend.h"

void cli_remark(struct cli_evaluation *e, const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    cli_print_notes(line);
    size_t used = strlen(e->remarks);
    snprintf(e->remarks + used, sizeof e->remarks - used, "%s\n", line);
}

void cli_print_speed(const struct cli_evaluation *e)
{
    size_t n = e->stats.n_inputs;
    double seconds = e->stats.seconds;
    cli_say("assay: %zu token%s evaluated in %.1f s, %.1f tokens/s\n", n, status_plural(n), seconds,
            seconds > 0 ? (double)n / seconds : 0);
}

enum { N_OTHERS = 4, N_FILES = CLI_MAX_OUTPUTS + N_OTHERS };

/** Everything that the command writes, and what it takes commands from: that is removed. */
static void list_outputs(const struct cli_evaluation *e, struct cli_named_file out[N_FILES])
{
    out[0] = (struct cli_named_file){"--json", e->settings->output.json_file};
    out[1] = (struct cli_named_file){"--state", e->settings->state_file};
    out[2] = (struct cli_named_file){"--watch", e->settings->watch.control};
    out[3] = (struct cli_named_file){"--watch-status", e->settings->watch.status};
    for (size_t i = 0; i < CLI_MAX_OUTPUTS; i++)
        out[N_OTHERS + i] = (struct cli_named_file){e->outputs[i].option, e->outputs[i].path};
}

/** No output may be a file that is read, or another output. */
static enum status check_outputs(const struct cli_evaluation *e, struct status_why *why)
{
    struct cli_named_file outputs[N_FILES];
    list_outputs(e, outputs);
    enum status status = cli_outputs_check(outputs, N_FILES, e->inputs, CLI_MAX_INPUTS, why);
    const char *option = e->model_option ? e->model_option : "-m";
    return status ? status : cli_outputs_check_list(outputs, N_FILES, option, &e->model_paths, why);
}

/** Nor a part of an open model, whose path names only one of them. */
static enum status check_outputs_opened(const struct cli_evaluation *e, struct status_why *why)
{
    struct cli_named_file outputs[N_FILES];
    const struct eval_models *m = &e->models;
    bool is_base = m->n_candidates && !m->base;
    list_outputs(e, outputs);
    enum status status =
        cli_outputs_check_model(outputs, N_FILES, is_base ? "--base" : "-m", m->model, why);
    if (!status && e->head_model)
        status = cli_outputs_check_model(outputs, N_FILES, "--base", e->head_model, why);
    for (size_t i = 0; i < m->n_candidates && !status; i++)
        status = cli_outputs_check_model(outputs, N_FILES, m->variants ? "--around" : "-m",
                                         m->candidates[i], why);
    for (size_t i = 0; i < e->n_sources && !status; i++)
        status = cli_outputs_check_model(outputs, N_FILES, "--from", e->sources[i].model, why);
    return status ? status : cli_outputs_check_list(outputs, N_FILES, "-f", &e->text_paths, why);
}

/** Before the computation, so that a file that cannot be written costs no hours. */
static enum status create_outputs(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = cli_output_create(&e->json_file, e->settings->output.json_file, why);
    for (size_t i = 0; i < CLI_MAX_OUTPUTS && !status; i++)
        if (e->outputs[i].write)
            status = cli_output_create(&e->outputs[i].file, e->outputs[i].path, why);
    return status;
}

/* Take what the journal has, and say on standard error what that is. */
static enum status resume(struct eval_journal *journal, struct eval_units *units,
                          struct status_why *why)
{
    enum status status = eval_run_resume(units, journal, why);
    if (status)
        return status;
    uint64_t n = eval_journal_n(journal), n_behind = eval_journal_n_behind(journal);
    const char *path = eval_journal_path(journal);
    if (n)
        cli_say("assay: %s: %" PRIu64 " of %zu %s%s %s finished before\n", path, n, units->n,
                units->kind->name, status_plural(units->n), n == 1 ? "was" : "were");
    if (n_behind && n < units->n)
        cli_say("assay: note: %s: its last %" PRIu64 " bytes cannot be used and are cut off\n",
                path, n_behind);
    return STATUS_OK;
}

/* The model that was trained on the shortest context; NULL where no file says. */
static const struct model *least_trained(const struct eval_models *models)
{
    const struct model *least = NULL;
    for (size_t i = 0; i <= models->n_candidates; i++) {
        const struct model *model = i ? models->candidates[i - 1] : models->model;
        uint32_t n = model_hparams(model)->n_ctx_train;
        if (n && (!least || n < model_hparams(least)->n_ctx_train))
            least = model;
    }
    return least;
}

/* Beyond the context of their training models predict badly, and nothing fails. */
static void remark_on_context(struct cli_evaluation *e)
{
    size_t n, longest = e->units->kind->longest(e->units, &n).longest;
    const struct model *model = least_trained(&e->models);
    if (!model || longest <= model_hparams(model)->n_ctx_train)
        return;
    char name[96];
    cli_printable(name, sizeof name, cli_file_name(gguf_path(model_file(model))));
    cli_remark(e,
               "contexts of up to %zu tokens, but %s was trained on %" PRIu32
               ": predictions beyond that are worse, and the figures have them",
               longest, name, model_hparams(model)->n_ctx_train);
}

static enum status open_journal(struct cli_evaluation *e, struct status_why *why)
{
    const char *path = e->settings->state_file;
    char *settings = NULL;
    enum status status = STATUS_OK;
    if (path && strcmp(path, "-") == 0)
        return status_fail(why, STATUS_USAGE, "--state: expected the name of a file, found '-'");
    if (path)
        status = cli_ranks_settings(&settings, e, false, why);
    if (path && !status)
        status = eval_journal_open(&e->journal, path, settings, why);
    cJSON_free(settings);
    if (!status && e->kind->start)
        status = e->kind->start(e, why);
    if (!status && e->journal)
        status = resume(e->journal, e->units, why);
    if (!status && e->kind->resumed)
        status = e->kind->resumed(e, why);
    return status;
}

static enum status use_backends(struct cli_evaluation *e, struct status_why *why)
{
    /* From here on there may be files that an interruption must not leave behind. */
    const struct cli_resident *resident = e->settings->resident;
    const atomic_bool *interrupted = resident ? resident->cancel : cli_interrupt_catch();
    for (size_t i = 0; i < e->backends.n; i++)
        kern_set_cancel(e->backends.items[i], interrupted);
    e->models.backends = e->backends.items;
    e->models.n_backends = e->backends.n;
    return cli_ranks_divide(e, why);
}

static enum status open_backends(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_resident *resident = e->settings->resident;
    if (!resident)
        return cli_backends_open(&e->backends, &e->settings->machine, why);
    e->backends = resident->backends;
    e->n_faults = cli_mapping_faults();
    cli_backends_times(&e->backends, &e->phases_before);
    return cli_resident_check(resident, why);
}

enum status cli_evaluation_open(struct cli_evaluation *e, struct status_why *why)
{
    e->memory.total = (double)NAN;
    e->started = time(NULL);
    e->clock_started = base_clock_seconds();
    enum status status = cli_model_check(&e->settings->load, why);
    if (!status && cli_cluster()->rank == 0)
        status = check_outputs(e, why);
    if (!status)
        status = open_backends(e, why);
    if (!status)
        status = e->kind->open(e, why);
    if (status)
        return status;
    remark_on_context(e);
    status = use_backends(e, why);
    return status || cli_cluster()->rank ? status : check_outputs_opened(e, why);
}

/** As if it had just been opened. What the run before wrote is gone until this one ends. */
static enum status begin_again(struct cli_evaluation *e, struct status_why *why)
{
    e->started = time(NULL);
    e->clock_started = base_clock_seconds();
    e->remarks[0] = '\0';
    cli_output_remove(e->settings->output.json_file);
    for (size_t i = 0; i < CLI_MAX_OUTPUTS; i++)
        cli_output_remove(e->outputs[i].path);
    cli_backends_times(&e->backends, &e->phases_before);
    enum status status = e->kind->again(e, why);
    if (status)
        return status;
    remark_on_context(e);
    return use_backends(e, why);
}

/** From what is open to a run that can begin. */
static enum status prepare(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = e->n_runs++ ? begin_again(e, why) : STATUS_OK;
    if (!status && e->models.n_ranks > 1)
        status = cli_ranks_agree(e, why);
    if (!status)
        status = create_outputs(e, why);
    if (!status)
        status = open_journal(e, why);
    size_t n_batch = (size_t)e->settings->machine.n_batch;
    if (!status)
        status = eval_run_prepare(e->units, &e->models, n_batch, why);
    return status ? status : cli_caches_open(e, why);
}

static void on_unit(void *user, size_t unit)
{
    struct cli_evaluation *e = user;
    cli_progress_clear(&e->progress);
    if (e->kind->unit_done)
        e->kind->unit_done(e, unit);
    if (e->kind->lines->unit && !e->settings->resident)
        e->kind->lines->unit(e, unit);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_evaluation *e = user;
    const struct cli_resident *resident = e->settings->resident;
    if (resident)
        resident->progress(resident->user, now);
    else
        cli_progress_update(&e->progress, now);
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
static void print_beginning(struct cli_evaluation *e)
{
    size_t n_devices = 0;
    for (size_t i = 0; i < e->backends.n; i++)
        n_devices += kern_describe(e->backends.items[i]).own_memory;
    e->kind->lines->beginning(e);
    if (e->units->n_items)
        print_memory(&e->memory, 1 + e->models.n_candidates + e->n_sources);
    if (n_devices && e->units->n_items)
        cli_say("assay: uploading the weights to the device%s ...\n", status_plural(n_devices));
    cli_progress_begin(&e->progress);
}

static enum status run(struct cli_evaluation *e, struct status_why *why)
{
    struct eval_run_options options = {
        .unit_done = on_unit,
        .progress = on_progress,
        .user = e,
        .journal = e->journal,
        .team = e->models.n_ranks > 1 ? &cli_cluster()->team : NULL,
    };
    e->memory = eval_run_memory(e->units, &e->models, &options);
    e->seconds_to_load = base_clock_seconds() - e->clock_started;
    if (!e->settings->resident)
        print_beginning(e);
    enum status status = eval_run(e->units, &e->models, &options, &e->stats, why);
    cli_progress_clear(&e->progress);
    if (status && status != STATUS_CANCELLED) /* else the report ends it */
        cli_progress_line_end(&e->progress);
    return status;
}

static void fill_document(const struct cli_evaluation *e, struct base_json *json)
{
    const struct cli_members *members = e->kind->members;
    cli_json_begin_document(json, members->schema);
    members->result(e, json);
    members->description(e, json, false);
    cJSON *remarks = base_json_list(json, json->root, "remarks");
    for (const char *line = e->remarks; *line;) {
        size_t n = strcspn(line, "\n");
        base_json_bytes(json, remarks, NULL, line, n);
        line += n + (line[n] == '\n');
    }
    if (members->details)
        members->details(e, json);
    cJSON *files = cli_json_add_run(json, e);
    if (e->model_file)
        base_json_text(json, files, "model_file", e->model_file);
    if (members->files)
        members->files(e, json, files);
}

static enum status write_document(const struct cli_evaluation *e, struct base_file *file,
                                  struct status_why *why)
{
    struct base_json json;
    fill_document(e, &json);
    return cli_json_end_document(&json, file, why);
}

static enum status hand_over_document(const struct cli_evaluation *e, struct status_why *why)
{
    struct base_json json;
    fill_document(e, &json);
    enum status status = base_json_text_of(&json, &e->settings->resident->document, why);
    base_json_free(&json);
    return status;
}

/** What was written is good as long as the files stayed what they were: it has texts of theirs. */
static enum status filled(const struct cli_evaluation *e, enum status written,
                          struct status_why *why)
{
    enum status status = written ? written : eval_models_check_unchanged(&e->models, why);
    if (!status && cli_mapping_faults() != e->n_faults)
        status = status_fail(why, STATUS_CHANGED,
                             "a part of a file could not be read: it became shorter, or its disk "
                             "failed");
    return status;
}

static enum status write_outputs(struct cli_evaluation *e, bool whole, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < CLI_MAX_OUTPUTS && !status; i++) {
        struct cli_output *out = &e->outputs[i];
        if (out->file && (whole || !out->only_whole))
            status =
                cli_output_commit(&out->file, filled(e, out->write(e, out->file, why), why), why);
    }
    if (!status && e->settings->resident)
        status = hand_over_document(e, why);
    if (!status && e->json_file)
        status = cli_output_commit(&e->json_file,
                                   filled(e, write_document(e, e->json_file, why), why), why);
    return status;
}

/** Units that are finished are reported whether or not all of them are. */
static enum status report(struct cli_evaluation *e, enum status run_status, struct status_why *why)
{
    enum status status = filled(e, STATUS_OK, why);
    if (!status && e->kind->summarise)
        status = e->kind->summarise(e, why);
    if (status)
        return status;
    if (!e->settings->resident)
        e->kind->lines->end(e);
    if (e->kind->finish && !e->settings->resident)
        status = e->kind->finish(e, why);
    if (!status)
        status = write_outputs(e, !run_status, why);
    if (!status && run_status)
        status = status_fail(why, STATUS_CANCELLED, "interrupted: the result is incomplete%s%s",
                             e->journal ? "; the same command goes on from " : "",
                             e->journal ? e->settings->state_file : "");
    return status ? status : e->kind->verdict(e, why);
}

static void abandon_outputs(struct cli_evaluation *e)
{
    for (size_t i = 0; i < CLI_MAX_OUTPUTS; i++) {
        base_file_abandon(e->outputs[i].file);
        e->outputs[i].file = NULL;
    }
    base_file_abandon(e->json_file);
    e->json_file = NULL;
}

enum status cli_evaluation_run(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = prepare(e, why);
    if (status)
        eval_team_end(&cli_cluster()->team, status);
    if (!status) {
        status = run(e, why);
        if (!status || status == STATUS_CANCELLED)
            status = report(e, status, why);
    }
    if (status) /* what it kept may be of a file that changed */
        cli_caches_drop(e);
    abandon_outputs(e);
    return status;
}

/* Models live on the backends, which are closed last. */
void cli_evaluation_close(struct cli_evaluation *e)
{
    cli_caches_drop(e);
    eval_journal_close(e->journal);
    e->kind->close(e);
    if (!e->settings->resident)
        cli_backends_close(&e->backends);
}

static enum status evaluate(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = cli_evaluation_open(e, why);
    if (!status)
        return cli_evaluation_run(e, why);
    eval_team_end(&cli_cluster()->team, status);
    return status;
}

enum status cli_evaluate(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = cli_cluster_join(e->settings->machine.mpi, why);
    if (!status && e->settings->watch.wanted && !e->settings->resident)
        return cli_watch(e, why);
    if (!status)
        status = cli_cluster()->rank ? cli_ranks_serve(e, why) : evaluate(e, why);
    else if (cli_cluster()->n_ranks > 1)
        status_context(why, "rank %zu", cli_cluster()->rank);
    cli_evaluation_close(e);
    return status;
}
