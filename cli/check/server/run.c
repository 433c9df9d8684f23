#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/check/server/server.h"
#include "cli/process/signals.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"
#include "kernels/kernels.h"

static void on_evaluated(void *user, double fraction)
{
    cli_phase_show(user, fraction);
}

static enum status check_settings(const struct cli_server_settings *s, struct status_why *why)
{
    if (s->max_rms <= 0 || s->max_kld < 0)
        return status_fail(why, STATUS_USAGE, "%s: expected a limit above 0",
                           s->max_rms <= 0 ? "--max-rms" : "--max-kld");
    const struct cli_connection_settings *asked = &s->connection;
    if (s->n_times > 1 && s->n_times + CLI_ABOUT_THE_SERVER > asked->n_requests)
        return status_fail(why, STATUS_USAGE,
                           "--repeat %" PRId64 ": --requests %" PRId64
                           " does not reach for one prompt and %d requests about the server; "
                           "expected --requests %" PRId64 " or more",
                           s->n_times, asked->n_requests, CLI_ABOUT_THE_SERVER,
                           s->n_times + CLI_ABOUT_THE_SERVER);
    return STATUS_OK;
}

static enum status read_records(struct cli_server_check *c, struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(c->model.model);
    enum status status = base_array_new(c->records, 1, "records", why);
    snprintf(c->connection.described, sizeof c->connection.described, "answers that were recorded");
    return status
               ? status
               : cli_connection_read(c->records, &c->text, c->settings->records, t, c->names, why);
}

static enum status open_others(struct cli_server_check *c, struct status_why *why)
{
    const struct cli_list *others = &c->settings->others;
    size_t n_vocab = model_hparams(c->model.model)->n_vocab;
    struct probe_other *list;
    if (base_array_new(c->others, others->n, "models", why) ||
        base_array_new(list, others->n, "models", why))
        return STATUS_MEMORY;
    c->material.others = list;
    c->material.n_others = others->n;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < others->n && !status; i++) {
        status = cli_model_open(&c->others[i], others->items[i], c->evaluate, false, why);
        if (!status && model_hparams(c->others[i].model)->n_vocab != n_vocab)
            status =
                status_fail(why, STATUS_USAGE,
                            "--or %s: its vocabulary has %u tokens, that of -m %zu; expected "
                            "the same one",
                            others->items[i], model_hparams(c->others[i].model)->n_vocab, n_vocab);
        list[i] = (struct probe_other){others->items[i], c->others[i].model};
    }
    return status;
}

static enum status compare(struct cli_server_check *c, struct kern_backend *backend,
                           struct status_why *why)
{
    const struct probe_api *api = c->connection.server.api;
    struct probe_material *m = &c->material;
    if (c->settings->connection.api >= 0)
        api = &probe_apis[c->settings->connection.api];
    m->model = c->model.model;
    m->backend = backend;
    m->windows = c->records ? c->records->windows : c->questions.windows;
    m->n_windows = c->records ? c->records->n : c->questions.n_windows;
    m->lists = cli_server_lists(c);
    m->arithmetic = api                                  ? api->arithmetic
                    : c->records && c->records->of_llama ? PROBE_LIKE_LLAMA
                                                         : PROBE_LIKE_GPU;
    m->most_rms = c->settings->max_rms;
    m->n_passes = (size_t)c->settings->n_passes;
    m->progress = on_evaluated;
    m->user = &c->phase;
    cli_phase_begin(&c->phase);
    return probe_compare(&c->comparison, m, why);
}

/** Prompts that became other tokens, where that is what departs. */
static void judge_tokens(struct cli_server_check *c)
{
    struct probe_verdict *v = &c->comparison.verdict;
    const struct probe_lists *l = cli_server_lists(c);
    size_t n_wrong = l->n_fewer + l->n_more + l->n_other;
    if (v->outcome != PROBE_DIFFERS || v->finding <= PROBE_OTHER_FILE ||
        n_wrong * 2 < l->n_counted || n_wrong == 0)
        return;
    v->finding = PROBE_TOKENS;
    cli_connection_tokens(v->sentence, sizeof v->sentence, l);
}

static enum status verdict(const struct cli_server_check *c, struct status_why *why)
{
    const struct probe_verdict *v = &c->comparison.verdict;
    const char *what =
        c->records ? c->settings->records : probe_http_base(c->connection.server.http);
    bool strict = c->settings->strict && v->outcome == PROBE_COARSELY;
    if (v->outcome == PROBE_NO_RESULT)
        return status_fail(why, STATUS_FORMAT, "%s: no result%s%s", what,
                           *cli_server_lists(c)->spoilt ? ": " : "", cli_server_lists(c)->spoilt);
    if (v->outcome == PROBE_DIFFERS || strict)
        return status_fail(why, STATUS_EXCEEDED, "%s: %s%s%s", what, probe_outcome_name(v->outcome),
                           strict ? "" : ": ", strict ? "" : probe_finding_name(v->finding));
    if (v->bound > c->settings->max_kld) /* false without a limit */
        return status_fail(why, STATUS_EXCEEDED,
                           "%s: the mean divergence is at least %.4e, above --max-kld %g", what,
                           v->bound, c->settings->max_kld);
    return STATUS_OK;
}

/** Everything between the outputs' creation and their end. */
static enum status run(struct cli_server_check *c, struct kern_backend *backend,
                       struct status_why *why)
{
    enum status status = probe_names_make(&c->names, model_tokenizer(c->model.model), why);
    if (!status)
        status = open_others(c, why);
    if (!status && c->settings->records)
        status = read_records(c, why);
    if (!status && c->settings->url)
        status = cli_server_ask(c, why);
    if (!status)
        status = compare(c, backend, why);
    cli_phase_end(&c->phase);
    if (!status)
        judge_tokens(c);
    if (!status && !c->records)
        status = cli_server_judge_said(c, why);
    return status ? status : gguf_check_unchanged(model_file(c->model.model), why);
}

static void close_all(struct cli_server_check *c)
{
    probe_comparison_free(&c->comparison);
    probe_questions_free(&c->questions);
    if (c->records)
        probe_records_free(c->records);
    free(c->records);
    cli_connection_close(&c->connection);
    probe_names_free(c->names);
    base_text_free(&c->text);
    for (size_t i = 0; c->others && i < c->settings->others.n; i++)
        cli_model_close(&c->others[i]);
    free(c->others);
    free((void *)(uintptr_t)c->material.others);
    cli_model_close(&c->model);
}

static enum status open_model(struct cli_server_check *c, const char *model,
                              struct cli_backends *backends, struct status_why *why)
{
    const struct cli_named_file outputs[] = {{"--json", c->evaluate->output.json_file},
                                             {"--state", c->evaluate->state_file}};
    const struct cli_named_file inputs[] = {{"-m", model},
                                            {"-f", c->settings->text_file},
                                            {"--logprobs", c->settings->records},
                                            {"--api-key-file", c->settings->connection.key_file}};
    enum status status = cli_outputs_check(outputs, 2, inputs, 4, why);
    if (!status)
        status = cli_outputs_check_list(outputs, 2, "--or", &c->settings->others, why);
    if (!status)
        status = cli_model_open(&c->model, model, c->evaluate, false, why);
    if (!status)
        status = cli_outputs_check_model(outputs, 2, "-m", model_file(c->model.model), why);
    if (!status)
        status = cli_backends_open(backends, &c->evaluate->machine, why);
    if (!status && kern_describe(backends->items[0]).own_memory)
        status = status_fail(why, STATUS_USAGE,
                             "--url and --logprobs are evaluated on a CPU; expected --device cpu");
    if (!status)
        kern_set_cancel(backends->items[0], cli_interrupt_catch());
    return status;
}

enum status cli_server_check(const char *model, const struct cli_server_settings *settings,
                             const struct cli_evaluate_settings *evaluate, struct status_why *why)
{
    struct cli_server_check c = {.settings = settings, .evaluate = evaluate};
    struct cli_backends backends = {.n = 0};
    struct base_file *file = NULL;
    enum status status = check_settings(settings, why);
    if (!status)
        status = cli_connection_alone(&evaluate->machine, why);
    if (!status)
        status = cli_model_check(&evaluate->load, why);
    if (!status)
        status = open_model(&c, model, &backends, why);
    if (!status)
        status = cli_output_create(&file, evaluate->output.json_file,
                                   evaluate->output.force ? NULL : DOC_SERVER_SCHEMA, why);
    if (!status)
        status = run(&c, backends.items[0], why);
    if (!status) {
        cli_server_print(&c);
        if (file)
            status = cli_output_commit(&file, cli_server_write(&c, file, why), why);
    }
    base_file_abandon(file);
    if (!status)
        status = verdict(&c, why);
    if (status == STATUS_CANCELLED && evaluate->state_file && c.connection.server.journal)
        status = status_fail(why, status,
                             "interrupted: there is no result; the same command goes on from %s",
                             evaluate->state_file);
    cli_phase_end(&c.phase);
    close_all(&c);
    cli_backends_close(&backends);
    return status;
}
