/* The server is asked: what is sent, to whom, and where answers are kept. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "cli/check/server/server.h"
#include "cli/input/documents.h"
#include "cli/process/say.h"

enum { MOST_LENGTHS = 1000 };

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

/** A model's positions may change with the length of what follows: then prompts are shorter. */
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

static enum status open_server(struct cli_server_check *c, struct status_why *why)
{
    char of[256];
    snprintf(of, sizeof of, "model %s, text %s", c->model.id, c->text.sha256);
    enum status status =
        cli_connection_open(&c->connection, c->settings->url, &c->settings->connection,
                            probe_names_plain(c->names), why);
    return status ? status : cli_connection_keep(&c->connection, c->evaluate->state_file, of, why);
}

static enum status read_text(struct cli_server_check *c, struct status_why *why)
{
    const char *path = c->settings->text_file;
    const struct cli_text_settings as_it_is = {.text_file = path};
    enum status status =
        path ? base_text_read_utf8(&c->text, path, BASE_TEXT_MAX_BYTES, cli_text_remedy, why)
             : base_text_copy(&c->text, cli_server_text, strlen(cli_server_text), why);
    if (!status && path)
        cli_text_note(&c->text, path);
    if (!status && path)
        status = cli_text_recognise(&c->has_documents, &c->text, path, &as_it_is, why);
    return status || c->has_documents ? status : cli_chat_check(&c->settings->chat, 0, why);
}

/** The two longest documents of JSON objects: conversations, as a template writes them. */
static enum status make_documents(struct cli_server_check *c, size_t longest,
                                  struct status_why *why)
{
    struct probe_questions *q = &c->questions;
    const struct model_tokenizer *t = model_tokenizer(c->model.model);
    const struct cli_text_settings text = {
        .text_file = c->settings->text_file, .lines = true, .chat = c->settings->chat};
    struct eval_documents d;
    enum status status = cli_documents_read(&d, &text, &c->text, t, MODEL_CHAT_ALL, why);
    if (!status)
        status = base_array_new(q->windows, PROBE_MAX_WINDOWS, "windows", why);
    size_t taken = SIZE_MAX;
    for (size_t w = 0; w < PROBE_MAX_PASSAGES && w < d.n && !status; w++) {
        size_t best = taken == 0; /* not the one that is taken */
        for (size_t i = 0; i < d.n; i++)
            if (i != taken && d.items[i].n_tokens > d.items[best].n_tokens)
                best = i;
        const struct eval_document *item = &d.items[best];
        size_t n = item->n_tokens < longest ? item->n_tokens : longest;
        status = probe_window_of_ids(&q->windows[w], t, d.stream.ids + item->first, n, why);
        q->n_windows = w + 1;
        taken = best;
    }
    eval_documents_free(&d);
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

/** The first beginning of `from` tokens or more that can be sent as ids and as a text; 0: none. */
static enum status find_beginning(size_t *out, const struct cli_server_check *c, size_t from,
                                  struct status_why *why)
{
    const struct probe_window *w = &c->questions.windows[0];
    enum status status = STATUS_OK;
    bool survives = false;
    *out = 0;
    for (size_t n = from; w->text && n <= w->n_prompt && !status && !survives; n++) {
        status = probe_window_survives(&survives, w, model_tokenizer(c->model.model), n, why);
        *out = survives ? n : 0;
    }
    return status;
}

/** Find out what the server can; does a text become the same tokens, where it takes ids? */
static enum status try_server(struct cli_server_check *c, struct status_why *why)
{
    enum { FIRST = 4, OF_TEXT = 16 };
    const struct probe_window *w = &c->questions.windows[0];
    size_t first, n_text;
    bool ends = false, found;
    enum status status = find_beginning(&first, c, FIRST, why);
    if (!status && first == 0)
        first = w->n_prompt < FIRST ? w->n_prompt : FIRST;
    if (!status)
        status = cli_connection_try(&c->connection, w, first, why);
    if (!status)
        status = gguf_get_bool(model_file(c->model.model), "tokenizer.ggml.add_eos_token", &ends,
                               &found, why);
    if (status || ends || !c->connection.server.as_ids)
        return status;
    status = find_beginning(&n_text, c, OF_TEXT, why);
    return status || !n_text ? status : probe_server_count(&c->connection.server, w, n_text, why);
}

static enum status ask_all(struct cli_server_check *c, struct status_why *why)
{
    const struct cli_connection_settings *s = &c->settings->connection;
    struct probe_questions *q = &c->questions;
    struct probe_server *server = &c->connection.server;
    size_t n_lengths, longest = 1;
    int64_t *lengths = NULL;
    enum status status = read_lengths(&lengths, &n_lengths, c->settings, why);
    if (!status)
        limit_lengths(c, lengths, &n_lengths);
    for (size_t i = 0; !status && i < n_lengths; i++)
        longest = (size_t)lengths[i] > longest ? (size_t)lengths[i] : longest;
    server->longest = longest;
    if (!status)
        status = (c->has_documents ? make_documents : make_windows)(c, longest, why);
    if (!status)
        status = cli_connection_identify(&c->connection, s, why);
    if (!status)
        status = try_server(c, why);
    q->server = server;
    q->tokenizer = model_tokenizer(c->model.model);
    q->names = c->names;
    q->concurrency = (size_t)s->concurrency;
    q->n_times = (size_t)c->settings->n_times;
    q->most = base_max(((size_t)s->n_requests - CLI_ABOUT_THE_SERVER) / q->n_times, 1);
    q->spread = c->settings->lengths.n == 0;
    q->tokens_matter = !server->as_ids;
    q->progress = cli_phase_on_count;
    q->user = &c->phase;
    if (!status)
        status = probe_plan(q, lengths, n_lengths, why);
    free(lengths);
    if (status)
        return status;
    char times[48] = "";
    if (q->n_times > 1)
        snprintf(times, sizeof times, ", each %zu times", q->n_times);
    cli_say("assay: %s: %s; %zu prompts%s\n", probe_http_base(server->http),
            c->connection.described, q->n_prompts, times);
    if (q->n_left_out)
        cli_say("assay: note: %zu prompts are left out, beyond --requests %" PRId64 "\n",
                q->n_left_out, s->n_requests);
    cli_phase_begin(&c->phase);
    return probe_ask_all(q, why);
}

enum status cli_server_ask(struct cli_server_check *c, struct status_why *why)
{
    enum status status = read_text(c, why);
    if (!status)
        status = open_server(c, why);
    return status ? status : ask_all(c, why);
}
