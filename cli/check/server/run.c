#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/text/words.h"
#include "cli/check/server/server.h"
#include "cli/input/text.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/session/outputs.h"
#include "kernels/backend.h"
#include "probe/ask/journal.h"

enum {
    MAX_ANSWER = 64 << 20,
    MAX_KEY = 4096,
    MOST_LENGTHS = 1000,
    TRIES = 5,
    ABOUT_THE_SERVER = 8
};

const struct probe_lists *cli_server_lists(const struct cli_server_check *c)
{
    return c->records ? &c->records->lists : &c->questions.lists;
}

static void show(struct cli_server_check *c, double fraction)
{
    double seconds = base_clock_seconds() - c->begun;
    const struct eval_progress now = {
        .fraction = fraction,
        .seconds = seconds,
        .seconds_left = fraction > 0 ? seconds * (1 - fraction) / fraction : (double)NAN,
    };
    cli_progress_update(&c->progress, &now);
}

static void on_asked(void *user, size_t done, size_t n)
{
    show(user, n ? (double)done / (double)n : 0);
}

static void on_evaluated(void *user, double fraction)
{
    show(user, fraction);
}

static void begin_phase(struct cli_server_check *c)
{
    c->begun = base_clock_seconds();
    cli_progress_clear(&c->progress);
    cli_progress_begin(&c->progress);
}

static enum status check_settings(const struct cli_server_settings *s, struct status_why *why)
{
    if (s->url && s->records)
        return status_fail(why, STATUS_USAGE,
                           "--url asks a server, --logprobs reads what was recorded; expected one "
                           "of them");
    if (s->records && (s->text_file || s->lengths.n || s->concurrency > 1 || s->key_file))
        return status_fail(why, STATUS_USAGE,
                           "-f, --lengths, --concurrency and --api-key-file are for --url: "
                           "--logprobs has its prompts");
    return STATUS_OK;
}

static enum status read_lengths(int64_t **out, size_t *n, const struct cli_server_settings *s,
                                struct status_why *why)
{
    const char *words[MOST_LENGTHS];
    char defaults[] = PROBE_LENGTHS, *rest = defaults, *word;
    *n = 0;
    for (size_t i = 0; i < s->lengths.n && *n < MOST_LENGTHS; i++)
        words[(*n)++] = s->lengths.items[i];
    while (s->lengths.n == 0 && (word = strsep(&rest, ",")) != NULL)
        words[(*n)++] = word;
    if (base_array_new(*out, *n, "lengths", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < *n; i++) {
        char *end;
        long long value = strtoll(words[i], &end, 10);
        if (end == words[i] || *end || value < 1 || value > 1 << 24)
            return status_fail(why, STATUS_USAGE,
                               "--lengths: expected numbers of tokens from 1 on, found '%s'",
                               words[i]);
        (*out)[i] = value;
    }
    return STATUS_OK;
}

/** Of a model whose positions change with the length of what follows, only shorter prompts. */
static void limit_lengths(const struct cli_server_check *c, int64_t *lengths, size_t *n)
{
    size_t boundary = model_rope_boundary(c->model.model), kept = 0;
    for (size_t i = 0; i < *n; i++)
        if ((uint64_t)lengths[i] <= boundary)
            lengths[kept++] = lengths[i];
    if (kept < *n)
        cli_say("assay: note: prompts of more than %zu tokens are left out: this model has other "
                "positions there\n",
                boundary);
    *n = kept;
}

static enum status read_key(char key[MAX_KEY], const char *path, struct status_why *why)
{
    struct base_text text = {0};
    enum status status = base_text_read(&text, path, MAX_KEY - 1, why);
    size_t n = status ? 0 : strcspn(text.data, "\r\n");
    n = n < text.n_bytes ? n : text.n_bytes;
    for (size_t i = 0; i < n && !status; i++)
        if (text.data[i] <= ' ' || text.data[i] == 0x7f)
            status = status_fail(why, STATUS_FORMAT,
                                 "--api-key-file: %s: a blank or a control character in its first "
                                 "line",
                                 path);
    if (!status)
        snprintf(key, MAX_KEY, "%.*s", (int)n, text.data);
    if (!status && n == 0)
        status =
            status_fail(why, STATUS_FORMAT, "--api-key-file: %s: its first line is empty", path);
    base_text_free(&text);
    return status;
}

static enum status open_server(struct cli_server_check *c, struct status_why *why)
{
    const struct cli_server_settings *s = c->settings;
    char key[MAX_KEY] = "";
    enum status status = s->key_file ? read_key(key, s->key_file, why) : STATUS_OK;
    const struct probe_http_options options = {.api_key = *key ? key : NULL,
                                               .seconds = (double)s->seconds,
                                               .max_bytes = MAX_ANSWER,
                                               .cancel = cli_interrupt_catch()};
    if (!status)
        status = probe_http_open(&c->server.http, s->url, &options, why);
    explicit_bzero(key, sizeof key);
    c->server.n_tries = TRIES;
    c->server.plain = probe_names_plain(c->names);
    return status;
}

static enum status open_journal(struct cli_server_check *c, struct status_why *why)
{
    const char *path = c->evaluate->state_file;
    char settings[1024];
    if (!path)
        return STATUS_OK;
    if (strcmp(path, "-") == 0)
        return status_fail(why, STATUS_USAGE, "--state: expected the name of a file, found '-'");
    snprintf(settings, sizeof settings, "%.600s, model %s, text %s",
             probe_http_base(c->server.http), c->model.id, c->text.sha256);
    enum status status = probe_journal_open(&c->server.journal, path, settings, why);
    c->n_resumed = status ? 0 : probe_journal_n(c->server.journal);
    if (c->n_resumed)
        cli_say("assay: %s: %zu answer%s from before\n", path, c->n_resumed,
                status_plural(c->n_resumed));
    return status;
}

static enum status read_text(struct cli_server_check *c, struct status_why *why)
{
    const char *path = c->settings->text_file;
    if (!path)
        return base_text_copy(&c->text, cli_server_text, strlen(cli_server_text), why);
    enum status status =
        base_text_read_utf8(&c->text, path, BASE_TEXT_MAX_BYTES, cli_text_remedy, why);
    if (!status)
        cli_text_note(&c->text, path);
    return status;
}

/** Two windows: from the text's beginning, and from a line or word in its middle. */
static enum status make_windows(struct cli_server_check *c, size_t longest, struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(c->model.model);
    struct probe_questions *q = &c->questions;
    const size_t most_bytes = 64; /* of a token, in the mean: longer texts are not looked at */
    const char *half = c->text.data + c->text.n_bytes / 2, *end = c->text.data + c->text.n_bytes;
    const char *line = memchr(half, '\n', (size_t)(end - half));
    const char *word = memchr(half, ' ', (size_t)(end - half));
    const char *from = line ? line + 1 : word;
    size_t n_first = c->text.n_bytes, n_second = from ? (size_t)(end - from) : 0;
    if (base_array_new(q->windows, PROBE_MAX_WINDOWS, "windows", why))
        return STATUS_MEMORY;
    n_first = n_first < longest * most_bytes ? n_first : longest * most_bytes;
    n_second = n_second < longest * most_bytes ? n_second : longest * most_bytes;
    enum status status = probe_window_make(&q->windows[0], t, c->text.data, n_first, longest, why);
    q->n_windows = 1;
    if (!status && n_second) {
        q->n_windows = 2;
        status = probe_window_make(&q->windows[1], t, from, n_second, longest, why);
    }
    if (!status && q->windows[0].n_prompt < longest)
        cli_say("assay: note: the text has %zu tokens: longer prompts are not asked about%s\n",
                q->windows[0].n_prompt, c->settings->text_file ? "" : "; give a longer one by -f");
    return status;
}

static enum status ask(struct cli_server_check *c, struct status_why *why)
{
    struct probe_questions *q = &c->questions;
    const char *names = PROBE_API_NAMES, *word = NULL;
    char api[32] = "";
    size_t n_word = 0, n_lengths, longest = 1;
    int64_t *lengths = NULL;
    for (int i = 0; i <= c->settings->api; i++)
        names = base_words_next(names, &word, &n_word);
    snprintf(api, sizeof api, "%.*s", (int)n_word, word ? word : "");
    enum status status = read_lengths(&lengths, &n_lengths, c->settings, why);
    if (!status)
        limit_lengths(c, lengths, &n_lengths);
    for (size_t i = 0; !status && i < n_lengths; i++)
        longest = (size_t)lengths[i] > longest ? (size_t)lengths[i] : longest;
    if (!status)
        status = make_windows(c, longest, why);
    if (!status)
        status = probe_server_identify(&c->server, *api ? api : NULL, why);
    size_t first = q->windows && q->windows[0].n_prompt < 4 ? q->windows[0].n_prompt : 4;
    if (!status)
        status = probe_server_try(&c->server, &q->windows[0], first, why);
    q->server = &c->server;
    q->tokenizer = model_tokenizer(c->model.model);
    q->names = c->names;
    q->concurrency = (size_t)c->settings->concurrency;
    q->most = (size_t)c->settings->n_requests - ABOUT_THE_SERVER;
    q->tokens_matter = !c->server.as_ids;
    q->progress = on_asked;
    q->user = c;
    if (!status)
        status = probe_plan(q, lengths, n_lengths, why);
    free(lengths);
    if (status)
        return status;
    probe_server_describe(c->described, sizeof c->described, &c->server);
    cli_say("assay: %s: %s; %zu prompts\n", probe_http_base(c->server.http), c->described,
            q->n_prompts);
    if (q->n_left_out)
        cli_say("assay: note: %zu prompts are left out, beyond --requests %" PRId64 "\n",
                q->n_left_out, c->settings->n_requests);
    begin_phase(c);
    return probe_ask_all(q, why);
}

static enum status read_records(struct cli_server_check *c, struct status_why *why)
{
    const struct model_tokenizer *t = model_tokenizer(c->model.model);
    const char *path = c->settings->records;
    enum status status = base_text_read(&c->text, path, BASE_TEXT_MAX_BYTES, why);
    if (!status)
        status = base_array_new(c->records, 1, "records", why);
    if (!status)
        status = probe_records_read(c->records, c->text.data, c->text.n_bytes, t, c->names, why);
    if (status)
        status_context(why, "%s", path);
    snprintf(c->described, sizeof c->described, "answers that were recorded");
    return status;
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
    const struct probe_api *api = c->server.api;
    struct probe_material *m = &c->material;
    if (c->settings->api >= 0)
        api = &probe_apis[c->settings->api];
    m->model = c->model.model;
    m->backend = backend;
    m->windows = c->records ? c->records->windows : c->questions.windows;
    m->n_windows = c->records ? c->records->n : c->questions.n_windows;
    m->lists = cli_server_lists(c);
    m->arithmetic = api                                  ? api->arithmetic
                    : c->records && c->records->of_llama ? PROBE_LIKE_LLAMA
                                                         : PROBE_LIKE_GPU;
    m->n_passes = (size_t)c->settings->n_passes;
    m->progress = on_evaluated;
    m->user = c;
    begin_phase(c);
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
    snprintf(v->sentence, sizeof v->sentence,
             "The server makes other tokens of the prompts: it counts %" PRId64 " where %" PRId64
             " were sent (%zu of %zu prompts).%s",
             l->counted, l->sent, n_wrong, l->n_counted,
             l->counted < l->sent ? " Is its context shorter, or its pre-tokeniser another?"
                                  : " Does it take special tokens as text, or put a template "
                                    "around them?");
}

static enum status verdict(const struct cli_server_check *c, struct status_why *why)
{
    const struct probe_verdict *v = &c->comparison.verdict;
    const char *what = c->records ? c->settings->records : probe_http_base(c->server.http);
    bool strict = c->settings->strict && v->outcome == PROBE_COARSELY;
    if (v->outcome == PROBE_NO_RESULT)
        return status_fail(why, STATUS_FORMAT, "%s: no result%s%s", what,
                           *cli_server_lists(c)->spoilt ? ": " : "", cli_server_lists(c)->spoilt);
    if (v->outcome == PROBE_DIFFERS || strict)
        return status_fail(why, STATUS_EXCEEDED, "%s: %s%s%s", what, probe_outcome_name(v->outcome),
                           strict ? "" : ": ", strict ? "" : probe_finding_name(v->finding));
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
        status = read_text(c, why);
    if (!status && c->settings->url)
        status = open_server(c, why);
    if (!status && c->settings->url)
        status = open_journal(c, why);
    if (!status && c->settings->url)
        status = ask(c, why);
    if (!status)
        status = compare(c, backend, why);
    cli_progress_clear(&c->progress);
    if (!status)
        judge_tokens(c);
    return status ? status : gguf_check_unchanged(model_file(c->model.model), why);
}

static void close_all(struct cli_server_check *c)
{
    probe_comparison_free(&c->comparison);
    probe_questions_free(&c->questions);
    if (c->records)
        probe_records_free(c->records);
    free(c->records);
    probe_journal_close(c->server.journal);
    probe_http_close(c->server.http);
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
                                            {"--api-key-file", c->settings->key_file}};
    enum status status = cli_outputs_check(outputs, 2, inputs, 4, why);
    if (!status)
        status = cli_outputs_check_list(outputs, 2, "--or", &c->settings->others, why);
    if (!status)
        status = cli_model_open(&c->model, model, c->evaluate, false, why);
    if (!status)
        status = cli_outputs_check_model(outputs, 2, "-m", c->model.model, why);
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
        status = cli_model_check(&evaluate->load, why);
    if (!status)
        status = open_model(&c, model, &backends, why);
    if (!status)
        status = cli_output_create(&file, evaluate->output.json_file, why);
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
    if (status == STATUS_CANCELLED && evaluate->state_file && c.server.journal)
        status = status_fail(why, status,
                             "interrupted: there is no result; the same command goes on from %s",
                             evaluate->state_file);
    cli_progress_clear(&c.progress);
    close_all(&c);
    cli_backends_close(&backends);
    return status;
}
