/* GET /health and GET /metrics. */
#include "base/buffer.h"
#include "base/system/system.h"
#include "clients/serve/serve.h"

/** Reload what changed, where nothing is being processed; the members that say so. */
static void add_reloaded(struct serve *serve, const struct serve_http_request *request,
                         struct base_json *json)
{
    char client[SERVE_CLIENT_BYTES];
    serve_http_client(request, client);
    struct serve_job *job = serve_jobs_add(
        serve->jobs, &(struct serve_job_order){.kind = &serve_reloading, .client = client});
    struct serve_job_view view = {.state = SERVE_JOB_WAITING};
    for (unsigned version = 0; job && view.state <= SERVE_JOB_RUNNING;)
        view = serve_job_watch(serve->jobs, job, &version, 1);
    if (!job)
        return;
    if (view.state != SERVE_JOB_DONE)
        base_json_text(json, json->root, "reload_failed", job->why.text);
    else if (!cJSON_AddRawToObject(json->root, "reload", job->result))
        json->failed = true;
    serve_job_release(serve->jobs, job);
}

void serve_get_health(struct serve *serve, const struct serve_http_request *request,
                      struct serve_http_reply *reply)
{
    struct serve_jobs_count count = serve_jobs_count(serve->jobs);
    bool busy = count.running || count.n_waiting, ready = count.state == SERVE_JOBS_READY;
    struct base_json json;
    base_json_begin(&json);
    base_json_text(&json, json.root, "status",
                   ready                               ? "ok"
                   : count.state == SERVE_JOBS_OPENING ? "loading"
                   : count.state == SERVE_JOBS_ENDING  ? "ending"
                                                       : "error");
    base_json_text(&json, json.root, "state", !ready ? NULL : busy ? "busy" : "ready");
    base_json_uint(&json, json.root, "n_waiting", count.n_waiting);
    if (serve_has_key(serve, request)) {
        if (ready && !busy && serve->hot)
            add_reloaded(serve, request, &json);
        pthread_mutex_lock(&serve->lock);
        if (serve->model_text && !cJSON_AddRawToObject(json.root, "model", serve->model_text))
            json.failed = true;
        if (serve->base_text && !cJSON_AddRawToObject(json.root, "base", serve->base_text))
            json.failed = true;
        pthread_mutex_unlock(&serve->lock);
    }
    serve_reply_json(reply, ready ? 200 : 503, &json);
    reply->retry_after = !ready;
}

/* Metrics, in Prometheus's text format. */

static void head(struct base_buffer *t, const char *name, const char *type, const char *help)
{
    base_buffer_format(t, "# HELP assay_%s %s\n# TYPE assay_%s %s\n", name, help, name, type);
}

static void metric(struct base_buffer *t, const char *name, const char *type, const char *help,
                   double value)
{
    head(t, name, type, help);
    base_buffer_format(t, "assay_%s %.17g\n", name, value);
}

void serve_get_metrics(struct serve *serve, const struct serve_http_request *request,
                       struct serve_http_reply *reply)
{
    (void)request;
    struct serve_jobs_count count = serve_jobs_count(serve->jobs);
    struct base_buffer text = {0}, *t = &text;
    head(t, "replies_total", "counter", "Replies, by their status code.");
    for (unsigned code = 0; code < SERVE_CODES; code++) {
        unsigned long long n = atomic_load(&serve->n_replies[code]);
        if (n)
            base_buffer_format(t, "assay_replies_total{code=\"%u\"} %llu\n", code, n);
    }
    head(t, "jobs_total", "counter", "Jobs that have ended, by how.");
    for (int i = SERVE_JOB_DONE; i < SERVE_JOB_N_STATES; i++)
        base_buffer_format(t, "assay_jobs_total{state=\"%s\"} %llu\n",
                           serve_job_state_name((enum serve_job_state)i),
                           (unsigned long long)count.ended[i]);
    metric(t, "jobs_running", "gauge", "Jobs that run: 0 or 1.", count.running);
    metric(t, "jobs_waiting", "gauge", "Jobs that wait.", (double)count.n_waiting);
    metric(t, "jobs_seconds_total", "counter", "Time that jobs ran.", count.seconds);
    metric(t, "tokens_total", "counter", "Tokens that were evaluated.", (double)count.n_tokens);
    metric(t, "swaps_total", "counter", "Requests that swapped tensors.",
           (double)atomic_load(&serve->n_swaps));
    metric(t, "resident_bytes", "gauge", "Resident size of the process.", base_system_resident());
    size_t n = t->n;
    char *body = base_buffer_take(t);
    if (body)
        *reply = (struct serve_http_reply){.code = 200,
                                           .type = "text/plain; version=0.0.4; charset=utf-8",
                                           .body = body,
                                           .n_body = n};
    else
        serve_reply_error(reply, 500, "memory", "no memory for the metrics");
}
