#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "cli/kld/server/bounds.h"
#include "cli/process/signals.h"
#include "clients/documents/schema.h"
#include "eval/identity.h"
#include "kernels/kernels.h"

static enum status check_settings(const struct cli_kld_settings *s, struct status_why *why)
{
    if (s->evaluate.host)
        return status_fail(why, STATUS_USAGE,
                           "a base of recorded answers is compared by assay kld, not by a server");
    enum status status = STATUS_OK;
    if (cli_kv_count(&s->evaluate.load) > 1)
        status = status_fail(why, STATUS_USAGE,
                             "-ctk, -ctv: expected one type of each: of a server's base each model "
                             "is compared once");
    if (!status && s->base_url)
        status = cli_text_check_single(&s->text, "a comparison with a server", why);
    if (!status && s->base_url)
        status = cli_text_check(&s->text, why);
    if (!status && s->base_url && s->text.text_file)
        status = cli_window_check(&s->windows, false, why);
    if (!status)
        status = cli_connection_alone(&s->evaluate.machine, why);
    return status ? status : cli_model_check(&s->evaluate.load, why);
}

static enum status open_models(struct cli_bounds *b, struct status_why *why)
{
    const struct cli_kld_settings *s = b->settings;
    const struct cli_named_file outputs[] = {{"--json", s->evaluate.output.json_file},
                                             {"--state", s->evaluate.state_file}};
    const struct cli_named_file inputs[] = {{"--base", s->base},
                                            {"-f", s->text.text_file},
                                            {"-bf", s->text.binary_file},
                                            {"--api-key-file", s->connection.key_file}};
    enum status status = cli_outputs_check(outputs, 2, inputs, 4, why);
    if (!status)
        status = cli_outputs_check_list(outputs, 2, "-m", &s->models, why);
    if (!status)
        status = base_array_new(b->models, s->models.n, "models", why);
    if (!status)
        status = base_array_new(b->results, s->models.n, "models", why);
    for (size_t i = 0; i < s->models.n && !status; i++) {
        status = cli_model_open(&b->models[i], s->models.items[i], &s->evaluate, false, why);
        if (s->labels.n)
            b->models[i].label = s->labels.items[i];
        if (!status)
            status = cli_outputs_check_model(outputs, 2, "-m", model_file(b->models[i].model), why);
        if (!status && i)
            status = eval_check_same_vocab(b->models[0].model, b->models[i].model, why);
    }
    return status ? status : cli_models_label(b->models, s->models.n, NULL, why);
}

static enum status read_answers(struct cli_bounds *b, struct status_why *why)
{
    snprintf(b->connection.described, sizeof b->connection.described, "answers that were recorded");
    return cli_connection_read(&b->records, &b->text, b->settings->base,
                               model_tokenizer(b->models[0].model), b->names, why);
}

/** Keep what is compared, and see whether it is enough. */
static enum status settle(struct cli_bounds *b, struct status_why *why)
{
    const struct cli_kld_settings *s = b->settings;
    struct probe_lists *l = s->base_url ? &b->questions.lists : &b->records.lists;
    const char *what = s->base_url ? probe_http_base(b->connection.server.http) : s->base;
    char tokens[512];
    b->base = (struct probe_base){
        .lists = l, .windows = s->base_url ? b->questions.windows : b->records.windows};
    probe_base_settle(&b->base);
    cli_connection_tokens(tokens, sizeof tokens, l);
    if (l->n >= PROBE_LEAST_LISTS && l->n_spoilt * 4 <= l->n + l->n_spoilt &&
        b->base.n_miscounted <= l->n)
        return STATUS_OK;
    return status_fail(
        why, STATUS_FORMAT,
        "%s: no result: %zu lists can be used, %zu answers or lists cannot, %zu are "
        "of prompts with other tokens; expected at least %d lists and few others%s%s",
        what, l->n, l->n_spoilt, b->base.n_miscounted, PROBE_LEAST_LISTS,
        *tokens || *l->spoilt ? ": " : "", *tokens ? tokens : l->spoilt);
}

/** What is evaluated at work. */
struct share {
    struct cli_bounds *b;
    size_t n_done, n; /* windows of all models */
};

static void on_progress(void *user, size_t done, size_t total)
{
    struct share *share = user;
    double part = total ? (double)done / (double)total : 0;
    cli_phase_show(&share->b->phase, ((double)share->n_done + part) / (double)share->n);
}

static void on_window(void *user)
{
    struct share *share = user;
    share->n_done++;
}

static enum status compare(struct cli_bounds *b, struct kern_backend *backend,
                           struct status_why *why)
{
    size_t n = b->settings->models.n;
    struct share share = {b, 0, n * b->base.n_windows};
    enum status status = STATUS_OK;
    cli_phase_begin(&b->phase);
    for (size_t i = 0; i < n && !status; i++) {
        const struct probe_pass pass = {.model = b->models[i].model,
                                        .backend = backend,
                                        .windows = b->base.windows,
                                        .lists = b->base.lists,
                                        .progress = on_progress,
                                        .window_done = on_window,
                                        .user = &share};
        status = probe_base_compare(&b->results[i], &pass, why);
        if (!status)
            status = gguf_check_unchanged(model_file(b->models[i].model), why);
        if (status)
            status_context(why, "%s", b->models[i].path);
        b->n_done += !status;
    }
    return status;
}

static enum status open_backend(struct cli_backends *backends, const struct cli_bounds *b,
                                struct status_why *why)
{
    enum status status = cli_backends_open(backends, &b->settings->evaluate.machine, why);
    if (!status && kern_describe(backends->items[0]).own_memory)
        status = status_fail(why, STATUS_USAGE,
                             "a base that is a server, or its answers, is compared on a CPU; "
                             "expected --device cpu");
    if (!status)
        kern_set_cancel(backends->items[0], cli_interrupt_catch());
    return status;
}

/** Everything between the outputs' creation and their end. */
static enum status run(struct cli_bounds *b, struct kern_backend *backend, struct status_why *why)
{
    enum status status = probe_names_make(&b->names, model_tokenizer(b->models[0].model), why);
    if (!status)
        status = b->settings->base_url ? cli_bounds_ask(b, why) : read_answers(b, why);
    cli_phase_end(&b->phase);
    if (!status)
        status = settle(b, why);
    if (!status)
        status = compare(b, backend, why);
    cli_phase_end(&b->phase);
    return status;
}

static void close_all(struct cli_bounds *b)
{
    probe_questions_free(&b->questions);
    probe_records_free(&b->records);
    cli_connection_close(&b->connection);
    probe_names_free(b->names);
    base_text_free(&b->text);
    for (size_t i = 0; b->models && i < b->settings->models.n; i++)
        cli_model_close(&b->models[i]);
    free(b->models);
    free(b->results);
}

enum status cli_bounds_run(const struct cli_kld_settings *settings, struct status_why *why)
{
    struct cli_kld_settings s = *settings;
    struct cli_bounds b = {.settings = &s};
    struct cli_backends backends = {.n = 0};
    struct base_file *file = NULL;
    const struct cli_output_settings *output = &s.evaluate.output;
    cli_text_settle(&s.text);
    enum status status = check_settings(&s, why);
    if (!status)
        status = open_models(&b, why);
    if (!status)
        status = open_backend(&backends, &b, why);
    if (!status)
        status = cli_output_create(&file, output->json_file,
                                   output->force ? NULL : DOC_BOUNDS_SCHEMA, why);
    if (!status)
        status = run(&b, backends.items[0], why);
    if (!status)
        status = cli_bounds_print(&b, why);
    if (!status && file)
        status = cli_output_commit(&file, cli_bounds_write(&b, file, why), why);
    base_file_abandon(file);
    if (status == STATUS_CANCELLED && b.connection.server.journal)
        status = status_fail(why, status,
                             "interrupted: there is no result; the same command goes on from %s",
                             s.evaluate.state_file);
    close_all(&b);
    cli_backends_close(&backends);
    return status;
}
