#include "cli/evaluate.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/text/printable.h"
#include "cli/host.h"
#include "cli/output/json_parts.h"
#include "cli/process/faults.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/process/version.h"
#include "cli/session/journal.h"
#include "eval/input.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"

enum { N_OTHERS = 2 + CLI_MAX_GUARDED, N_FILES = CLI_MAX_OUTPUTS + N_OTHERS };

/** Everything that the command writes or removes. */
static void list_outputs(const struct cli_evaluation *e, struct cli_named_file out[N_FILES])
{
    out[0] = (struct cli_named_file){"--json", e->settings->output.json_file};
    out[1] = (struct cli_named_file){"--state", e->settings->state_file};
    for (size_t i = 0; i < CLI_MAX_GUARDED; i++)
        out[2 + i] = e->guarded[i];
    for (size_t i = 0; i < CLI_MAX_OUTPUTS; i++)
        out[N_OTHERS + i] = (struct cli_named_file){e->outputs[i].option, e->outputs[i].path};
}

/** No output may be a file that is read, or another output. */
static enum status check_outputs(const struct cli_evaluation *e, struct status_why *why)
{
    struct cli_named_file outputs[N_FILES];
    const struct cli_text_settings none = {0}, *text = e->text ? e->text : &none;
    const struct cli_named_file texts[] = {{"-f", text->text_file}, {"-bf", text->binary_file}};
    list_outputs(e, outputs);
    enum status status = cli_outputs_check(outputs, N_FILES, e->inputs, CLI_MAX_INPUTS, why);
    if (!status)
        status = cli_outputs_check(outputs, N_FILES, texts, 2, why);
    const char *option = e->model_option ? e->model_option : "-m";
    if (!status)
        status = cli_outputs_check_list(outputs, N_FILES, option, &e->model_paths, why);
    return status ? status
                  : cli_outputs_check_list(outputs, N_FILES, e->more_option, &e->more_inputs, why);
}

/** Nor a part of an open model, whose path names only one of them. */
enum status cli_evaluation_check(const struct cli_evaluation *e, struct status_why *why)
{
    struct cli_named_file outputs[N_FILES];
    const struct eval_models *m = &e->models;
    bool is_base = m->n_candidates && !m->base;
    list_outputs(e, outputs);
    enum status status = cli_outputs_check_model(outputs, N_FILES, is_base ? "--base" : "-m",
                                                 model_file(m->model), why);
    if (!status && e->head_model)
        status =
            cli_outputs_check_model(outputs, N_FILES, "--base", model_file(e->head_model), why);
    for (size_t i = 0; i < m->n_candidates && !status; i++)
        status = cli_outputs_check_model(outputs, N_FILES, e->n_sources ? "--around" : "-m",
                                         model_file(m->candidates[i]), why);
    for (size_t i = 0; i < e->n_sources && !status; i++)
        status = cli_outputs_check_model(outputs, N_FILES, "--from",
                                         model_file(e->sources[i].model), why);
    return status ? status : cli_outputs_check_list(outputs, N_FILES, "-f", &e->text_paths, why);
}

/** Before the computation, so that a file that cannot be written costs no hours. */
static enum status create_outputs(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_output_settings *s = &e->settings->output;
    const char *schema = s->force ? NULL : e->kind->members->schema;
    enum status status = cli_output_create(&e->json_file, s->json_file, schema, why);
    for (size_t i = 0; i < CLI_MAX_OUTPUTS && !status; i++) {
        struct cli_output *out = &e->outputs[i];
        assert(out->kind || !out->write);
        if (out->write)
            status = cli_output_create(&out->file, out->path, s->force ? NULL : out->kind, why);
    }
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
    base_printable_text(name, sizeof name, base_file_name(gguf_path(model_file(model))));
    cli_remark(
        e,
        "contexts of up to %zu tokens, but %s was trained on %" PRIu32
        ": predictions at later positions are worse, and they count in the figures; a context "
        "of at most %" PRIu32 " has none of them",
        longest, name, model_hparams(model)->n_ctx_train, model_hparams(model)->n_ctx_train);
}

enum status cli_evaluation_identify(char **out, const struct cli_evaluation *e, size_t split,
                                    struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    cli_versions_read(&versions);
    base_json_begin(&json);
    base_json_text(&json, json.root, "evaluator", e->name);
    base_json_text(&json, json.root, "assay", versions.assay);
    e->kind->members->description(e, &json, true);
    if (split)
        base_json_uint(&json, json.root, "split", split);
    enum status status = base_json_text_of(&json, out, why);
    base_json_free(&json);
    return status;
}

static enum status open_journal(struct cli_evaluation *e, struct status_why *why)
{
    const char *path = e->settings->state_file;
    char *settings = NULL;
    enum status status = STATUS_OK;
    if (path && strcmp(path, "-") == 0)
        return status_fail(why, STATUS_USAGE, "--state: expected the name of a file, found '-'");
    if (path)
        status = cli_evaluation_identify(&settings, e, 0, why);
    if (path && !status && e->extends)
        status = cli_journal_extend(path, settings, why);
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

const atomic_bool *cli_evaluation_cancel(const struct cli_evaluation *e)
{
    return e->host->cancel ? e->host->cancel(e->host) : cli_interrupt_catch();
}

/** The models are set: add what they are evaluated with. */
static enum status ready(struct cli_evaluation *e, struct status_why *why)
{
    const atomic_bool *cancel = cli_evaluation_cancel(e);
    for (size_t i = 0; i < e->backends.n; i++)
        kern_set_cancel(e->backends.items[i], cancel);
    e->models.backends = e->backends.items;
    e->models.n_backends = e->backends.n;
    remark_on_context(e);
    return e->host->ready ? e->host->ready(e->host, e, why) : STATUS_OK;
}

static void begin_remarks(struct cli_evaluation *e)
{
    const char *line = e->settings->left_out;
    snprintf(e->remarks, sizeof e->remarks, "%s%s", line, *line ? "\n" : "");
}

enum status cli_evaluation_begin(struct cli_evaluation *e, struct cli_host *host,
                                 struct status_why *why)
{
    e->host = host;
    if (e->text)
        e->text_file = e->text->binary_file ? e->text->binary_file : e->text->text_file;
    e->memory.total = (double)NAN;
    e->started = time(NULL);
    e->clock_started = base_clock_seconds();
    begin_remarks(e);
    enum status status = cli_model_check(&e->settings->load, why);
    return status ? status : check_outputs(e, why);
}

enum status cli_evaluation_open(struct cli_evaluation *e, struct status_why *why)
{
    e->owns_backends = e->backends.n == 0;
    enum status status =
        e->owns_backends ? cli_backends_open(&e->backends, &e->settings->machine, why) : STATUS_OK;
    if (status)
        return status;
    e->n_faults = cli_mapping_faults();
    cli_backends_times(&e->backends, &e->phases_before);
    status = e->kind->open(e, why);
    return status ? status : ready(e, why);
}

void cli_evaluation_take_documents(struct cli_evaluation *e, const struct eval_documents *d)
{
    if (d->n)
        e->text_file = NULL; /* it is among the documents' */
    e->text_paths = (struct cli_list){d->paths, d->n_files};
}

/** As if it had just been opened. What the run before wrote is gone until this one ends. */
static enum status begin_again(struct cli_evaluation *e, struct status_why *why)
{
    e->started = time(NULL);
    e->clock_started = base_clock_seconds();
    begin_remarks(e);
    cli_output_remove(e->settings->output.json_file, e->kind->members->schema);
    for (size_t i = 0; i < CLI_MAX_OUTPUTS; i++)
        cli_output_remove(e->outputs[i].path, e->outputs[i].kind);
    cli_backends_times(&e->backends, &e->phases_before);
    enum status status = e->kind->again(e, why);
    return status ? status : ready(e, why);
}

/** From what is open to a run that can begin. */
static enum status prepare(struct cli_evaluation *e, struct status_why *why)
{
    enum status status = e->n_runs++ ? begin_again(e, why) : STATUS_OK;
    if (!status)
        status = create_outputs(e, why);
    if (!status)
        status = open_journal(e, why);
    size_t n_batch = (size_t)e->settings->machine.n_batch;
    return status ? status : eval_run_prepare(e->units, &e->models, n_batch, why);
}

static void on_unit(void *user, size_t unit)
{
    struct cli_evaluation *e = user;
    if (e->kind->unit_done)
        e->kind->unit_done(e, unit);
    if (e->host->unit)
        e->host->unit(e->host, e, unit);
}

static void on_progress(void *user, const struct eval_progress *now)
{
    struct cli_evaluation *e = user;
    e->host->progress(e->host, e, now);
}

static enum status run(struct cli_evaluation *e, struct status_why *why)
{
    struct eval_run_options options = {
        .unit_done = on_unit,
        .progress = on_progress,
        .user = e,
        .journal = e->journal,
    };
    e->memory = eval_run_memory(e->units, &e->models, &options);
    e->seconds_to_load = base_clock_seconds() - e->clock_started;
    if (e->host->beginning)
        e->host->beginning(e->host, e);
    enum status status = eval_run(e->units, &e->models, &options, &e->stats, why);
    if (e->host->computed)
        e->host->computed(e->host, e, status && status != STATUS_CANCELLED);
    return status;
}

static void fill_document(const struct cli_evaluation *e, struct base_json *json)
{
    const struct cli_members *members = e->kind->members;
    doc_json_begin(json, members->schema);
    members->result(e, json);
    members->description(e, json, false);
    cli_json_add_remarks(json, json->root, e->remarks);
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
    return doc_json_end(&json, file, why);
}

/** To the host. */
static enum status deliver_document(const struct cli_evaluation *e, struct status_why *why)
{
    struct base_json json;
    fill_document(e, &json);
    enum status status = e->host->deliver(e->host, &json, why);
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
    if (!status && e->host->deliver)
        status = deliver_document(e, why);
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
    if (e->host->figures)
        status = e->host->figures(e->host, e, why);
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
    if (!status) {
        status = run(e, why);
        if (!status || status == STATUS_CANCELLED)
            status = report(e, status, why);
    }
    abandon_outputs(e);
    return status;
}

void cli_evaluation_close(struct cli_evaluation *e)
{
    eval_journal_close(e->journal);
    e->kind->close(e);
    if (e->owns_backends)
        cli_backends_close(&e->backends);
}
