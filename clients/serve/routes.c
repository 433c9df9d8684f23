/* What is answered, and what is refused before it is looked at. */
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "clients/serve/serve.h"

/** `*` at the end of a path, or within one, stands for digits. */
static const struct route {
    const char *method, *path;
    serve_handler *answer;
    const struct serve_post *post; /* instead: it becomes a job */
    bool always;                   /* also without a key, and while the model is loading */
} routes[] = {
    {"GET", "/health", serve_get_health, .always = true},
    {"GET", "/metrics", serve_get_metrics},
    {"GET", "/v1/jobs", serve_get_jobs},
    {"GET", "/v1/jobs/*", serve_get_job},
    {"DELETE", "/v1/jobs/*", serve_delete_job},
    {"GET", "/v1/jobs/*/events", serve_get_events},
    {"POST", "/v1/swap", .post = &serve_swapping},
    {"POST", "/v1/evaluate", .post = &serve_evaluating},
    {"POST", "/v1/completions", .post = &serve_completing},
    {"POST", "/v1/score", .post = &serve_scoring},
    {"GET", "/v1/models", serve_get_models},
    {"GET", "/tokenizer_info", serve_get_tokenizer_info},
    {"POST", "/tokenize", serve_post_tokenize},
    {"POST", "/detokenize", serve_post_detokenize},
    {"POST", "/apply-template", .post = &serve_templating},
    {"POST", "/perplexity", .post = &serve_adding},
    {"GET", "/perplexity/state", serve_get_state},
    {"POST", "/perplexity/save", .post = &serve_saving},
    {"POST", "/perplexity/load", .post = &serve_loading},
    {"POST", "/perplexity/reset", .post = &serve_resetting},
};
enum { N_ROUTES = sizeof routes / sizeof routes[0] };

static bool matches(const char *pattern, const char *path)
{
    for (; *pattern; pattern++) {
        size_t n = *pattern == '*' ? strspn(path, "0123456789") : *path == *pattern;
        if (!n)
            return false;
        path += n;
    }
    return *path == '\0';
}

static bool has_method(const struct route *route, const char *method)
{
    return strcmp(route->method, method) == 0 ||
           (strcmp(method, "HEAD") == 0 && strcmp(route->method, "GET") == 0);
}

/** The route of a request, or NULL; allow: methods that its path has. */
static const struct route *find(const struct serve_http_request *r, const char **allow)
{
    const struct route *found = NULL;
    *allow = NULL;
    for (size_t i = 0; i < N_ROUTES; i++) {
        if (!matches(routes[i].path, r->path))
            continue;
        *allow = *allow ? "GET, HEAD, DELETE" : routes[i].method;
        if (strcmp(*allow, "GET") == 0)
            *allow = "GET, HEAD";
        if (has_method(&routes[i], r->method))
            found = &routes[i];
    }
    return found;
}

/** Forms and plain texts are what a page may send anywhere; what is sent here is JSON. */
static bool is_json(const struct serve_http_request *r)
{
    const char *type = serve_http_header(r, "Content-Type");
    return type && strncasecmp(type, "application/json", 16) == 0 && strchr("; \t", type[16]);
}

static void count(struct serve *serve, const struct serve_http_reply *reply)
{
    if (reply->code < SERVE_CODES)
        atomic_fetch_add(&serve->n_replies[reply->code], 1);
}

static bool refuse(struct serve *serve, const struct serve_http_request *r,
                   struct serve_http_reply *reply)
{
    const char *allow;
    char message[160];
    const struct route *route = find(r, &allow);
    size_t max_body = (size_t)serve->settings->max_body << 20;
    if (r->fault) {
        serve_reply_error(reply, 400, "format", r->fault);
    } else if (!*serve->key_digest && serve_is_from_a_page(serve, r)) {
        serve_reply_error(reply, 403, "forbidden",
                          "without an API key, requests of web pages and for other names than "
                          "localhost are refused");
    } else if (!(route && route->always) && !serve_has_key(serve, r)) {
        serve_reply_error(reply, 401, "key",
                          "the API key is missing or wrong; expected a header "
                          "Authorization: Bearer KEY");
    } else if (!allow) {
        serve_reply_error(reply, 404, "path", "there is no such path; docs/serve.md lists them");
    } else if (!route) {
        snprintf(message, sizeof message, "this path takes %s", allow);
        serve_reply_error(reply, 405, "method", message);
        reply->allow = allow;
    } else if (r->has_body && !is_json(r)) {
        serve_reply_error(reply, 415, "type", "expected a header Content-Type: application/json");
    } else if (r->n_announced > max_body) {
        snprintf(message, sizeof message,
                 "the body has %zu bytes, expected at most %zu; see --max-body", r->n_announced,
                 max_body);
        serve_reply_error(reply, 413, "size", message);
    } else if (!route->always && serve_jobs_count(serve->jobs).state != SERVE_JOBS_READY) {
        serve_reply_busy(serve, reply);
    } else if (!route->always && !serve_http_take_place(r)) {
        serve_reply_error(reply, 503, "busy", "as many requests as can be served are being served");
        reply->retry_after = 1;
    }
    return reply->code != 0;
}

bool serve_refuse(void *user, const struct serve_http_request *r, struct serve_http_reply *reply)
{
    bool refused = refuse(user, r, reply);
    if (refused)
        count(user, reply);
    return refused;
}

void serve_answer(void *user, const struct serve_http_request *r, struct serve_http_reply *reply)
{
    struct serve *serve = user;
    const char *allow;
    const struct route *route = find(r, &allow);
    if (r->kept == SERVE_BODY_TOO_LONG)
        serve_reply_error(reply, 413, "size", "the body is too long; see --max-body");
    else if (r->kept == SERVE_BODY_NO_ROOM)
        serve_reply_no_room(reply, r, r->n_announced);
    else if (route->post)
        serve_post(serve, r, reply, route->post);
    else
        route->answer(serve, r, reply);
    count(serve, reply);
}
