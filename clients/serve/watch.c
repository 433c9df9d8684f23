/* How a job is waited for: until it has ended, event by event, or by asking now and then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/buffer.h"
#include "clients/serve/serve.h"

static const double look_seconds = 0.25, silence_seconds = 5;

enum serve_waiting serve_waiting_read(struct base_field body)
{
    bool wait = base_field_flag_or(body, "wait", true);
    bool stream = base_field_flag_or(body, "stream", false);
    if (stream && !wait)
        base_field_fail(body, STATUS_USAGE, "stream: true goes with wait: true only");
    return stream ? SERVE_WATCH : wait ? SERVE_WAIT : SERVE_LEAVE;
}

static void add_progress(struct base_json *json, cJSON *parent, const char *key,
                         const struct eval_progress *at)
{
    cJSON *o = key ? base_json_object(json, parent, key) : parent;
    base_json_uint(json, o, "n_units_done", at->n_units_done);
    base_json_uint(json, o, "n_units", at->n_units);
    base_json_uint(json, o, "n_tokens_done", at->n_tokens_done);
    base_json_uint(json, o, "n_tokens", at->n_tokens);
    base_json_real(json, o, "fraction", at->fraction);
    base_json_real(json, o, "seconds", at->seconds);
    base_json_real(json, o, "seconds_left", at->seconds_left);
}

static void add_job(struct base_json *json, cJSON *o, const struct serve_job *job,
                    const struct serve_job_view *view)
{
    char asked[32] = "";
    struct tm utc;
    if (gmtime_r(&job->asked, &utc))
        strftime(asked, sizeof asked, "%Y-%m-%dT%H:%M:%SZ", &utc);
    base_json_uint(json, o, "id", job->id);
    base_json_text(json, o, "kind", job->kind->name);
    base_json_text(json, o, "state", serve_job_state_name(view->state));
    base_json_text(json, o, "asked", asked);
    add_progress(json, o, "progress", &view->at);
}

/* Events. */

struct events {
    struct serve *serve;
    struct serve_job *job;
    bool owns; /* it is cancelled where nobody listens any more */
    bool last;
    unsigned version;
    struct base_buffer text; /* of the event that is under way */
    size_t at;
};

/** "event: NAME\ndata: JSON\n\n"; the JSON has no newline. Ends it. */
static void put_event(struct events *e, const char *name, struct base_json *json, const char *text)
{
    char *own = json && !json->failed ? cJSON_PrintUnformatted(json->root) : NULL;
    const char *data = own ? own : text ? text : "{}";
    e->text.n = e->at = 0;
    base_buffer_format(&e->text, "event: %s\ndata: %s\n\n", name, data);
    cJSON_free(own);
    if (json)
        base_json_free(json);
}

static void next_event(struct events *e)
{
    unsigned before = e->version;
    struct serve_job_view view =
        serve_job_watch(e->serve->jobs, e->job, &e->version, silence_seconds);
    struct base_json json;
    e->last = view.state > SERVE_JOB_RUNNING;
    if (view.state == SERVE_JOB_DONE) {
        put_event(e, "result", NULL, e->job->result);
        return;
    }
    base_json_begin(&json);
    if (e->last) {
        serve_add_failure(&json, e->job);
        put_event(e, "error", &json, NULL);
    } else {
        add_job(&json, json.root, e->job, &view);
        put_event(e, before == e->version ? "silence" : "progress", &json, NULL);
    }
}

static size_t read_events(void *user, char *out, size_t capacity)
{
    struct events *e = user;
    if (e->at == e->text.n && !e->last)
        next_event(e);
    size_t n = base_min(capacity, e->text.n - e->at);
    if (n)
        memcpy(out, e->text.data + e->at, n);
    e->at += n;
    return n;
}

static void end_events(void *user)
{
    struct events *e = user;
    if (e->owns)
        serve_job_cancel(e->serve->jobs, e->job);
    serve_job_release(e->serve->jobs, e->job);
    base_buffer_free(&e->text);
    free(e);
}

/** The job is held, and released when the events end. */
static void reply_events(struct serve *serve, struct serve_http_reply *reply, struct serve_job *job,
                         bool owns)
{
    struct events *e = malloc(sizeof *e);
    if (!e) {
        serve_job_release(serve->jobs, job);
        serve_reply_error(reply, 500, "memory", "no memory for events");
        return;
    }
    *e = (struct events){.serve = serve, .job = job, .owns = owns, .version = (unsigned)-1};
    *reply = (struct serve_http_reply){
        .code = 200, .type = "text/event-stream", .stream = {read_events, end_events, e}};
}

/* Waiting and asking. */

static void reply_view(struct serve *serve, struct serve_http_reply *reply, unsigned code,
                       struct serve_job *job)
{
    struct base_json json;
    unsigned version = 0;
    struct serve_job_view view = serve_job_watch(serve->jobs, job, &version, 0);
    base_json_begin(&json);
    add_job(&json, json.root, job, &view);
    if (view.state == SERVE_JOB_DONE && job->result &&
        !cJSON_AddRawToObject(json.root, "result", job->result))
        json.failed = true;
    else if (view.state > SERVE_JOB_DONE)
        serve_add_failure(&json, job);
    serve_reply_json(reply, code, &json);
}

static void queue(struct serve *serve, const struct serve_http_request *request,
                  struct serve_http_reply *reply, struct serve_job_order *order,
                  enum serve_waiting waiting)
{
    char client[SERVE_CLIENT_BYTES];
    serve_http_client(request, client);
    order->listed = waiting != SERVE_WAIT;
    order->client = client;
    struct serve_job *job = serve_jobs_add(serve->jobs, order);
    if (!job) {
        serve_reply_busy(serve, reply);
        return;
    }
    if (waiting == SERVE_WATCH) {
        reply_events(serve, reply, job, true);
        return;
    }
    if (waiting == SERVE_LEAVE) {
        reply_view(serve, reply, 202, job);
        snprintf(reply->location, sizeof reply->location, "/v1/jobs/%llu",
                 (unsigned long long)job->id);
    }
    struct serve_job_view view = {.state = SERVE_JOB_WAITING};
    for (unsigned version = 0; waiting == SERVE_WAIT && view.state <= SERVE_JOB_RUNNING;) {
        view = serve_job_watch(serve->jobs, job, &version, look_seconds);
        if (serve_http_is_gone(request))
            serve_job_cancel(serve->jobs, job);
    }
    if (waiting == SERVE_WAIT)
        serve_reply_job(reply, job);
    serve_job_release(serve->jobs, job);
}

enum status serve_post_parse(void **out, const struct serve_post *post, const struct serve *serve,
                             struct base_field body, struct status_why *why)
{
    *out = NULL;
    void *input = calloc(1, post->input_bytes);
    if (!input)
        return status_fail(why, STATUS_MEMORY, "no memory for a request");
    post->fill(input, serve, body);
    enum status status = base_json_status(body.reader, why);
    if (status)
        post->job.free_input(input);
    else
        *out = input;
    return status;
}

void serve_post(struct serve *serve, const struct serve_http_request *request,
                struct serve_http_reply *reply, const struct serve_post *post)
{
    struct status_why why = {""};
    void *input = NULL;
    size_t n_taken;
    cJSON *body = serve_body_read(&n_taken, request, reply);
    if (!body) {
        serve_budget_give(&serve->budget, n_taken);
        return;
    }
    struct base_json_reader reader = serve_body_reader(body);
    struct base_field root = base_json_root(&reader);
    enum serve_waiting waiting = post->waits ? serve_waiting_read(root) : SERVE_WAIT;
    enum status status = serve_post_parse(&input, post, serve, root, &why);
    base_json_close(&reader);
    if (status)
        serve_reply_failure(reply, status, &why);
    bool fits = !status &&
                serve_body_take(&n_taken, post->n_bytes ? post->n_bytes(input) : 0, request, reply);
    if (fits) {
        queue(serve, request, reply, &(struct serve_job_order){&post->job, input, n_taken},
              waiting);
        return;
    }
    if (input)
        post->job.free_input(input);
    serve_budget_give(&serve->budget, n_taken);
}

/** The job that a path names; NULL: the reply says that there is none. */
static struct serve_job *find(struct serve *serve, const struct serve_http_request *request,
                              struct serve_http_reply *reply)
{
    uint64_t id = strtoull(request->path + strlen("/v1/jobs/"), NULL, 10);
    struct serve_job *job = serve_jobs_find(serve->jobs, id);
    if (!job)
        serve_reply_error(reply, 404, "job", "there is no such job, or it ended long ago");
    return job;
}

void serve_get_job(struct serve *serve, const struct serve_http_request *request,
                   struct serve_http_reply *reply)
{
    struct serve_job *job = find(serve, request, reply);
    if (!job)
        return;
    reply_view(serve, reply, 200, job);
    serve_job_release(serve->jobs, job);
}

void serve_get_events(struct serve *serve, const struct serve_http_request *request,
                      struct serve_http_reply *reply)
{
    struct serve_job *job = find(serve, request, reply);
    if (job)
        reply_events(serve, reply, job, false);
}

void serve_delete_job(struct serve *serve, const struct serve_http_request *request,
                      struct serve_http_reply *reply)
{
    struct serve_job *job = find(serve, request, reply);
    if (!job)
        return;
    if (serve_job_cancel(serve->jobs, job))
        reply_view(serve, reply, 202, job);
    else
        serve_reply_error(reply, 409, "ended", "the job has ended already");
    serve_job_release(serve->jobs, job);
}

static void add_listed(void *user, const struct serve_job *job)
{
    struct base_json *json = user;
    const struct serve_job_view view = {job->state, job->at};
    add_job(json, base_json_object(json, json->root->child, NULL), job, &view);
}

void serve_get_jobs(struct serve *serve, const struct serve_http_request *request,
                    struct serve_http_reply *reply)
{
    (void)request;
    struct base_json json;
    base_json_begin(&json);
    if (base_json_list(&json, json.root, "jobs"))
        serve_jobs_walk(serve->jobs, add_listed, &json);
    serve_reply_json(reply, 200, &json);
}
