#include "cli/server/connection.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/content/text.h"
#include "base/text/words.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/session/cluster.h"
#include "clients/probe/ask/journal.h"
#include "clients/probe/ask/records.h"

enum { MAX_ANSWER = 64 << 20, MAX_KEY = 4096, TRIES = 5, SECONDS = 120 };

#define AT(member) offsetof(struct cli_connection_settings, member)

const struct cli_option cli_connection_options[] = {
    {"--api", CLI_CHOICE, "KIND",
     "the kind of server, instead of finding out: llama-server, ik, vllm, sglang, ollama, mlx, "
     "openai",
     AT(api), .choices = PROBE_API_NAMES},
    {"--api-key-file", CLI_TEXT, "FILE", "the first line is sent as a bearer token", AT(key_file)},
    {"--timeout", CLI_COUNT, "SECONDS",
     "wait so long for the answer to each request (default: 120)", AT(seconds), 1, 86400},
    {0},
};

void cli_connection_defaults(struct cli_connection_settings *s)
{
    *s = (struct cli_connection_settings){.api = -1, .seconds = SECONDS, .concurrency = 1};
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

enum status cli_connection_alone(const struct cli_machine_settings *machine, struct status_why *why)
{
    enum status status = cli_cluster_join(machine, why);
    if (!status && cli_cluster()->n_ranks > 1)
        status =
            status_fail(why, STATUS_USAGE, "one process compares this; start it without mpirun");
    return status;
}

/** A line now and then, not one for each request. */
static void say_wait(void *user, const char *failure, double seconds)
{
    const double often = 5, short_wait = 1;
    struct cli_connection *c = user;
    double now = base_clock_seconds();
    if (seconds < short_wait || (c->said > 0 && now - c->said < often))
        return;
    c->said = now;
    cli_say("assay: the server: %s; it is asked again in %.0f s, for %.0f s in all (--timeout)\n",
            failure, seconds, c->server.patience);
}

enum status cli_connection_open(struct cli_connection *c, const char *url,
                                const struct cli_connection_settings *s, int32_t plain,
                                struct status_why *why)
{
    char key[MAX_KEY] = "";
    enum status status = s->key_file ? read_key(key, s->key_file, why) : STATUS_OK;
    const struct probe_http_options options = {.api_key = *key ? key : NULL,
                                               .seconds = (double)s->seconds,
                                               .max_bytes = MAX_ANSWER,
                                               .cancel = cli_interrupt_catch()};
    if (!status)
        status = probe_http_open(&c->server.http, url, &options, why);
    explicit_bzero(key, sizeof key);
    c->server.n_tries = TRIES;
    c->server.patience = (double)s->seconds;
    c->server.waits = say_wait;
    c->server.user = c;
    c->server.plain = plain;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->server.run = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
    return status;
}

enum status cli_connection_keep(struct cli_connection *c, const char *path, const char *of,
                                struct status_why *why)
{
    char settings[1024];
    if (!path)
        return STATUS_OK;
    if (strcmp(path, "-") == 0)
        return status_fail(why, STATUS_USAGE, "--state: expected the name of a file, found '-'");
    snprintf(settings, sizeof settings, "%.600s, %s", probe_http_base(c->server.http), of);
    enum status status = probe_journal_open(&c->server.journal, path, settings, why);
    c->n_resumed = status ? 0 : probe_journal_n(c->server.journal);
    if (c->n_resumed)
        cli_say("assay: %s: %zu answer%s from before\n", path, c->n_resumed,
                status_plural(c->n_resumed));
    return status;
}

enum status cli_connection_identify(struct cli_connection *c,
                                    const struct cli_connection_settings *s, struct status_why *why)
{
    const char *names = PROBE_API_NAMES, *word = NULL;
    char api[32] = "";
    size_t n_word = 0;
    for (int i = 0; i <= s->api; i++)
        names = base_words_next(names, &word, &n_word);
    snprintf(api, sizeof api, "%.*s", (int)n_word, word ? word : "");
    return probe_server_identify(&c->server, *api ? api : NULL, why);
}

enum status cli_connection_try(struct cli_connection *c, const struct probe_window *window,
                               size_t length, struct status_why *why)
{
    enum status status = probe_server_try(&c->server, window, length, why);
    if (!status)
        probe_server_describe(c->described, sizeof c->described, &c->server);
    return status;
}

void cli_connection_close(struct cli_connection *c)
{
    probe_journal_close(c->server.journal);
    probe_said_free(&c->server.said);
    probe_http_close(c->server.http);
}

void cli_connection_add_json(struct base_json *json, const struct cli_connection *c, bool asked)
{
    const struct probe_server *s = &c->server;
    cJSON *o = base_json_object(json, json->root, "server");
    base_json_text(json, o, "description", c->described);
    base_json_text(json, o, "url", asked ? probe_http_base(s->http) : NULL);
    base_json_text(json, o, "kind", s->api ? s->api->name : NULL);
    base_json_bytes(json, o, "model", s->model, strlen(s->model));
    base_json_flag(json, o, "takes_ids", s->as_ids);
    base_json_flag(json, o, "lists_prompts", s->prompt_lists);
    base_json_uint(json, o, "n_log_probs", s->k);
    base_json_int(json, o, "n_ctx", s->n_ctx);
    base_json_uint(json, o, "n_requests", s->n_requests);
    base_json_uint(json, o, "n_resumed", c->n_resumed);
}

void cli_connection_tokens(char *out, size_t capacity, const struct probe_lists *l)
{
    size_t n_wrong = l->n_fewer + l->n_more + l->n_other;
    *out = '\0';
    if (n_wrong)
        snprintf(out, capacity,
                 "The server makes other tokens of the prompts: it counts %" PRId64
                 " where %" PRId64 " were sent (%zu of %zu prompts).%s",
                 l->counted, l->sent, n_wrong, l->n_counted,
                 l->counted < l->sent ? " Is its context shorter, or its pre-tokeniser another?"
                                      : " Does it take special tokens as text, put a template "
                                        "around them, or is its pre-tokeniser another?");
}

enum status cli_connection_read(struct probe_records *out, struct base_text *text, const char *path,
                                const struct model_tokenizer *tokenizer,
                                const struct probe_names *names, struct status_why *why)
{
    enum status status = base_text_read(text, path, BASE_TEXT_MAX_BYTES, why);
    if (!status)
        status = probe_records_read(out, text->data, text->n_bytes, tokenizer, names, why);
    if (status)
        status_context(why, "%s", path);
    return status;
}

void cli_connection_print_noise(const struct probe_questions *q)
{
    if (q->is_noisy && isnan(q->noise))
        puts("The same request gave other tokens: the server is not deterministic.");
    else if (q->is_noisy)
        printf("The same request gave other values, %.1e apart: the server is not "
               "deterministic.\n",
               q->noise);
}
