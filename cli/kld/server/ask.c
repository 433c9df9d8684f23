/* The server is asked: which windows, how many requests, and what is said of them beforehand. */
#include <stdio.h>

#include "base/arithmetic.h"
#include "cli/input/input_text.h"
#include "cli/kld/server/bounds.h"
#include "cli/process/say.h"

enum { LEAST_WINDOW = 16, MOST_LISTS = 1 << 17, ASKED_AGAIN = 2 };

static enum status read_text(struct cli_bounds *b, struct status_why *why)
{
    const struct cli_text_settings *s = &b->settings->text;
    bool documents = false;
    enum status status = cli_text_open(&b->text, s, why);
    if (!status && cli_text_is_doubtful(s))
        status = cli_text_recognise(&documents, &b->text, s->text_file, s, why);
    if (!status && documents)
        status = status_fail(why, STATUS_USAGE,
                             "%s: it has documents; a comparison with a server takes one text",
                             s->text_file);
    return status;
}

/** How long windows are: as -c says, or less where a model has other positions further on. */
static size_t window_tokens(const struct cli_bounds *b)
{
    int64_t asked = b->settings->windows.n_ctx.value;
    const struct model *first = b->models[0].model;
    size_t n = asked > 0    ? (size_t)asked
               : asked == 0 ? (size_t)model_hparams(first)->n_ctx_train
                            : CLI_DEFAULT_CONTEXT;
    for (size_t i = 0; i < b->settings->models.n; i++) {
        size_t boundary = model_rope_boundary(b->models[i].model);
        if (n > boundary)
            cli_say("assay: note: windows have %zu tokens: %s has other positions further on\n",
                    boundary, b->models[i].path);
        n = base_min(n, boundary);
    }
    return n;
}

static enum status make_windows(struct cli_bounds *b, struct status_why *why)
{
    struct probe_questions *q = &b->questions;
    const struct base_string text = {b->text.data, b->text.n_bytes};
    b->n_ctx = window_tokens(b);
    enum status status = probe_cut_windows(q, text, b->n_ctx, why);
    size_t n = status ? 0 : q->windows[0].n_prompt;
    if (!status && n < LEAST_WINDOW)
        status = status_fail(why, STATUS_USAGE, "%s: a window has %zu tokens; expected at least %d",
                             b->settings->text.text_file ? b->settings->text.text_file : "-c", n,
                             LEAST_WINDOW);
    if (!status && n < b->n_ctx) {
        cli_say("assay: note: the text has %zu tokens: its only window is shorter than %zu\n", n,
                b->n_ctx);
        b->n_ctx = n;
    }
    return status;
}

/** What the requests come to, before they are made. */
static void say_plan(const struct cli_bounds *b)
{
    const struct probe_questions *q = &b->questions;
    size_t n_tokens = 0, n_windows = 0, n_again = 1 + b->connection.server.api->counts_tail;
    size_t longest = 0;
    for (size_t i = 0; i < q->n_prompts; i++) {
        n_tokens += q->prompts[i].length;
        longest = q->prompts[i].window == 0 ? base_max(longest, q->prompts[i].length) : longest;
        n_windows += i == 0 || q->prompts[i].window != q->prompts[i - 1].window;
    }
    n_tokens += n_again * longest;
    cli_say("assay: %s: %s\n", probe_http_base(b->connection.server.http), b->connection.described);
    cli_say("assay: %zu request%s with %zu tokens in all, from %zu window%s of %zu tokens\n",
            q->n_prompts + n_again, status_plural(q->n_prompts + n_again), n_tokens, n_windows,
            status_plural(n_windows), b->n_ctx);
}

static enum status open(struct cli_bounds *b, struct status_why *why)
{
    const struct cli_connection_settings *s = &b->settings->connection;
    char of[256];
    snprintf(of, sizeof of, "text %s, windows of %zu tokens", b->text.sha256, b->n_ctx);
    enum status status = cli_connection_open(&b->connection, b->settings->base_url, s,
                                             probe_names_plain(b->names), why);
    if (!status)
        status = cli_connection_keep(&b->connection, b->settings->evaluate.state_file, of, why);
    if (!status)
        cli_say("assay: %s: it is asked by %lld requests at most (--requests)\n",
                probe_http_base(b->connection.server.http), (long long)s->n_requests);
    return status;
}

enum status cli_bounds_ask(struct cli_bounds *b, struct status_why *why)
{
    const struct cli_connection_settings *s = &b->settings->connection;
    struct probe_questions *q = &b->questions;
    struct probe_server *server = &b->connection.server;
    size_t longest = 0;
    *q = (struct probe_questions){.server = server,
                                  .tokenizer = model_tokenizer(b->models[0].model),
                                  .names = b->names,
                                  .concurrency = (size_t)s->concurrency,
                                  .most = (size_t)s->n_requests,
                                  .most_lists = MOST_LISTS,
                                  .progress = cli_phase_on_count,
                                  .user = &b->phase};
    enum status status = read_text(b, why);
    if (!status)
        status = make_windows(b, why);
    if (!status)
        status = open(b, why);
    server->longest = b->n_ctx;
    if (!status)
        status = cli_connection_identify(&b->connection, s, why);
    if (!status)
        status = probe_plan_longest(&longest, q, 0, why);
    if (!status)
        status = cli_connection_try(&b->connection, &q->windows[0], base_max(longest, 1), why);
    q->tokens_matter = !server->as_ids;
    q->most -= base_min(server->n_asked + ASKED_AGAIN, q->most - 1);
    if (!status)
        status = probe_plan_halves(q, why);
    if (status)
        return status;
    say_plan(b);
    cli_phase_begin(&b->phase);
    status = probe_ask_all(q, why);
    return status || !server->api->counts_tail ? status : probe_ask_short(q, why);
}
