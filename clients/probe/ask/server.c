#include "clients/probe/ask/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "base/text/printable.h"
#include "base/text/words.h"
#include "clients/probe/api/about.h"
#include "clients/probe/ask/send.h"

enum { NEW_TOKENS = 64 }; /* room for what is written */

/** Nothing is known of a server that answers nothing else. failure: the request, and its answer. */
static enum status fail_busy(const struct probe_server *s, const char *failure,
                             struct status_why *why)
{
    return status_fail(why, STATUS_IO,
                       "%s: %s; it is busy, or loading: try again later, or wait longer "
                       "(--timeout)",
                       probe_http_base(s->http), failure);
}

static enum status get(struct probe_server *s, const char *path, cJSON **out,
                       struct probe_exchange *e, struct status_why *why)
{
    *out = NULL;
    *e = (struct probe_exchange){.path = path, .retry_after = -1};
    enum status status = probe_send(s, e, 1, why);
    if (!status && probe_send_is_busy(e->code)) {
        char failure[400], request[512];
        probe_send_failure(failure, sizeof failure, e);
        snprintf(request, sizeof request, "GET %.60s: %s", path, failure);
        status = fail_busy(s, request, why);
    }
    if (!status && e->code == 200 && e->bytes)
        (void)base_json_parse(out, e->bytes, e->n_bytes, NULL, NULL);
    return status;
}

/** Ask for what only one kind has. */
static enum status ask_about(struct probe_server *s, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < PROBE_N_APIS && !s->api && !status; i++) {
        struct probe_exchange e;
        cJSON *answer = NULL;
        if (!probe_apis[i].about)
            continue;
        status = get(s, probe_apis[i].about, &answer, &e, why);
        if (!status && base_json_member(answer, probe_apis[i].member))
            s->api = &probe_apis[i];
        cJSON_Delete(answer);
        probe_exchange_free(&e);
    }
    return status;
}

/** The context of a llama-server, or of ik_llama.cpp's, which also calls itself one. */
static enum status read_props(struct probe_server *s, struct status_why *why)
{
    struct probe_exchange e;
    cJSON *answer = NULL;
    struct probe_about about = {.n_ctx = s->n_ctx, .said = s->said};
    enum status status = get(s, "/props", &answer, &e, why);
    probe_about_props(&about, answer);
    s->n_ctx = about.n_ctx;
    s->said = about.said;
    s->api = about.api && !s->told ? about.api : s->api;
    cJSON_Delete(answer);
    probe_exchange_free(&e);
    return status;
}

enum status probe_server_identify(struct probe_server *s, const char *api, struct status_why *why)
{
    struct probe_exchange e;
    cJSON *models = NULL;
    char failure[400];
    struct probe_about about = {.n_ctx = -1,
                                .said = {.n_bytes = -1, .n_weights = -1, .n_text = -1}};
    enum status status = get(s, "/v1/models", &models, &e, why);
    probe_about_models(&about, models);
    s->n_ctx = about.n_ctx;
    s->said = about.said;
    memcpy(s->model, about.model, sizeof s->model);
    probe_send_failure(failure, sizeof failure, &e);
    long code = e.code;
    cJSON_Delete(models);
    probe_exchange_free(&e);
    if (status)
        return status;
    if (code == 0 || code == 401 || code == 403 || (code >= 300 && code < 400))
        return status_fail(why, STATUS_IO, "%s: GET /v1/models: %s%s", probe_http_base(s->http),
                           failure,
                           code == 401 || code == 403 ? "; give its key by --api-key-file" : "");
    int told = api ? base_words_index(PROBE_API_NAMES, api) : -1;
    s->told = told >= 0;
    s->api = told >= 0 ? &probe_apis[told] : about.api;
    if (!s->api)
        status = ask_about(s, why);
    if (!status && !s->api)
        s->api = &probe_apis[PROBE_API_OPENAI];
    if (!status && s->api->has_reuse)
        status = read_props(s, why);
    return status;
}

void probe_reply_free(struct probe_reply *r)
{
    probe_answer_free(&r->answer);
}

/** Take an answer, or say why it is none. */
static enum status take(struct probe_reply *r, struct probe_exchange *e, struct status_why *why)
{
    char failure[400];
    struct status_why of_answer = {""};
    enum status status = STATUS_OK;
    r->ok = e->code == 200;
    r->code = e->code;
    if (r->ok) {
        status = probe_answer_read(&r->answer, e->bytes ? e->bytes : "", e->n_bytes, &of_answer);
        r->ok = !status;
        snprintf(failure, sizeof failure, "%.399s", of_answer.text);
    } else
        probe_send_failure(failure, sizeof failure, e);
    if (!r->ok)
        snprintf(r->failure, sizeof r->failure, "POST %.60s, a prompt of %zu token%s: %s", e->path,
                 r->length, status_plural(r->length), failure);
    return status == STATUS_MEMORY ? status_fail(why, status, "%s", of_answer.text) : STATUS_OK;
}

static enum status body_of(char **out, const struct probe_server *s, const struct probe_reply *r,
                           uint64_t run, struct status_why *why)
{
    const struct probe_window *w = r->window;
    const struct probe_ask ask = {
        .model = *s->model ? s->model : NULL,
        .ids = w->tokens.ids,
        .n = r->length,
        .text = {w->text, w->text ? w->ends[r->length] : 0},
        .as_ids = s->as_ids,
        .k = s->k,
        .n_ctx = s->longest + NEW_TOKENS,
        .n_new = r->n_new,
        .prompt_lists = s->prompt_lists,
        .reuse = r->reuse,
        .time = r->time,
        .run = run,
        .plain = s->plain,
    };
    return probe_api_body(out, s->api, &ask, why);
}

enum status probe_server_ask(struct probe_server *s, struct probe_reply *replies, size_t n,
                             struct status_why *why)
{
    struct probe_exchange *all;
    char **bodies; /* what is sent, then the keys */
    enum status status = base_array_new(all, n, "requests", why);
    if (status || (status = base_array_new(bodies, 2 * n, "requests", why))) {
        free(all);
        return status;
    }
    for (size_t i = 0; i < n && !status; i++) {
        status = body_of(&bodies[i], s, &replies[i], s->run, why);
        if (!status)
            status = body_of(&bodies[n + i], s, &replies[i], 0, why);
        all[i] = (struct probe_exchange){
            .path = s->api->path, .body = bodies[i], .key = bodies[n + i], .retry_after = -1};
    }
    if (!status)
        status = probe_send(s, all, n, why);
    for (size_t i = 0; i < n; i++) {
        if (!status)
            status = take(&replies[i], &all[i], why);
        probe_exchange_free(&all[i]);
        cJSON_free(bodies[i]);
        cJSON_free(bodies[n + i]);
    }
    free(bodies);
    free(all);
    return status;
}

/** What became of asking in one way. */
struct trial {
    bool works; /* it gave a list */
    bool broke; /* the server does not take this form of a prompt, and did not expect it */
    char failure[512];
};

/** One way to ask. Fails: also STATUS_IO, where another way is no help. */
static enum status try_once(struct probe_server *s, const struct probe_window *w, size_t length,
                            struct trial *trial, struct status_why *why)
{
    struct probe_reply r = {.window = w, .length = length, .n_new = 1};
    enum status status = probe_server_ask(s, &r, 1, why);
    size_t longest = 0, n_prompt = 0;
    for (size_t i = 0; !status && i < r.answer.n_places; i++) {
        longest = r.answer.places[i].n > longest ? r.answer.places[i].n : longest;
        n_prompt += !r.answer.places[i].generated;
    }
    if (!status && probe_send_is_busy(r.code))
        status = fail_busy(s, r.failure, why);
    bool another_may = r.code == 200 ||
                       (r.code >= 400 && r.code < 500 && r.code != 401 && r.code != 403) ||
                       (r.code == 500 && s->as_ids && w->text);
    if (!status && !r.ok && !another_may)
        status = status_fail(why, STATUS_IO, "%s: %s", probe_http_base(s->http), r.failure);
    trial->works = r.ok && longest > 0;
    trial->broke = r.code == 500;
    if (trial->works)
        s->prompt_lists = s->prompt_lists && n_prompt > 0;
    else if (!status)
        snprintf(trial->failure, sizeof trial->failure, "%s",
                 !r.ok              ? r.failure
                 : *r.answer.spoilt ? r.answer.spoilt
                                    : "its answer has no log-probabilities");
    probe_reply_free(&r);
    return status;
}

/** All ways of a kind, the best first. first: what became of the best. */
static enum status try_kind(struct probe_server *s, const struct probe_window *window,
                            size_t length, bool *works, char first[512], struct status_why *why)
{
    struct trial trial = {.works = false};
    enum status status = STATUS_OK;
    *first = '\0';
    for (int ids = s->api->takes_ids; ids >= !window->text && !trial.works && !status; ids--) {
        trial.broke = false;
        for (size_t i = 0; i < 3 && s->api->most[i] && !trial.works && !trial.broke && !status;
             i++) {
            s->as_ids = ids;
            s->k = s->api->most[i];
            s->prompt_lists = s->api->has_prompt_lists;
            status = try_once(s, window, length, &trial, why);
            if (!*first)
                snprintf(first, 512, "%s", trial.failure);
        }
    }
    *works = trial.works;
    return status;
}

enum status probe_server_try(struct probe_server *s, const struct probe_window *window,
                             size_t length, struct status_why *why)
{
    char first[512], second[512];
    bool works = false;
    const struct probe_api *last = &probe_apis[PROBE_API_OPENAI];
    enum status status = try_kind(s, window, length, &works, first, why);
    if (!status && !works && s->api == last && !s->told) {
        s->api = &probe_apis[PROBE_API_MLX]; /* says nothing of itself, and takes other values */
        status = try_kind(s, window, length, &works, second, why);
        s->api = works ? s->api : last;
    }
    if (!status && !works && !window->text)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: taken for %s, it takes no token ids (%.300s), and control tokens "
                           "of a conversation do not survive as text; expected a plain text by -f",
                           probe_http_base(s->http), s->api->label, *first ? first : "texts alone");
    if (!status && !works)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: taken for %s, it gives no log-probabilities to compare: %.400s; "
                           "is it another kind (--api)?",
                           probe_http_base(s->http), s->api->label, first);
    return status;
}

enum status probe_server_count(struct probe_server *s, const struct probe_window *window,
                               size_t length, struct status_why *why)
{
    struct probe_reply r = {.window = window, .length = length, .n_new = 1};
    bool as_ids = s->as_ids;
    s->as_ids = false;
    enum status status = probe_server_ask(s, &r, 1, why);
    s->as_ids = as_ids;
    if (!status && r.ok)
        s->said.n_text = r.answer.n_prompt;
    s->said.n_sent = (int64_t)length;
    probe_reply_free(&r);
    return status;
}

void probe_server_describe(char *out, size_t capacity, const struct probe_server *s)
{
    char name[128], context[64] = "";
    base_printable_text(name, sizeof name, s->model);
    if (s->n_ctx > 0)
        snprintf(context, sizeof context, ", a context of %lld tokens", (long long)s->n_ctx);
    snprintf(out, capacity, "%s%s%s%s: takes %s, lists %zu log-probabilities of %s%s",
             s->api->label, s->told ? " (as told)" : "", *name ? " with " : "", name,
             s->as_ids ? "token ids" : "texts", s->k,
             s->prompt_lists ? "each token of a prompt" : "the next token", context);
}
