/* GET /health and GET /metrics. */
#include <stdio.h>
#include <unistd.h>

#include "base/buffer.h"
#include "cli/output/json_parts.h"
#include "cli/serve/serve.h"

void cli_serve_show_model(struct cli_serve *serve)
{
    struct base_json json;
    base_json_begin(&json);
    cli_json_add_model(&json, json.root, "model", &serve->resident.models[0], true);
    char *text = json.failed ? NULL : cJSON_PrintUnformatted(json.root->child);
    base_json_free(&json);
    pthread_mutex_lock(&serve->lock);
    cJSON_free(serve->model_text);
    serve->model_text = text;
    pthread_mutex_unlock(&serve->lock);
}

/** Reload what changed, where nothing is being processed; the members that say so. */
static void add_reloaded(struct cli_serve *serve, struct base_json *json)
{
    struct cli_job *job = cli_jobs_add(serve->jobs, &cli_reloading, NULL, false);
    struct cli_job_view view = {.state = CLI_JOB_WAITING};
    for (unsigned version = 0; job && view.state <= CLI_JOB_RUNNING;)
        view = cli_job_watch(serve->jobs, job, &version, 1);
    if (!job)
        return;
    if (view.state != CLI_JOB_DONE)
        base_json_text(json, json->root, "reload_failed", job->why.text);
    else if (!cJSON_AddRawToObject(json->root, "reload", job->result))
        json->failed = true;
    cli_job_release(serve->jobs, job);
}

void cli_get_health(struct cli_serve *serve, const struct cli_http_request *request,
                    struct cli_http_reply *reply)
{
    struct cli_jobs_count count = cli_jobs_count(serve->jobs);
    bool busy = count.running || count.n_waiting, ready = count.state == CLI_JOBS_READY;
    struct base_json json;
    base_json_begin(&json);
    base_json_text(&json, json.root, "status",
                   ready                             ? "ok"
                   : count.state == CLI_JOBS_OPENING ? "loading"
                   : count.state == CLI_JOBS_ENDING  ? "ending"
                                                     : "error");
    base_json_text(&json, json.root, "state", !ready ? NULL : busy ? "busy" : "ready");
    base_json_uint(&json, json.root, "n_waiting", count.n_waiting);
    if (cli_serve_has_key(serve, request)) {
        if (ready && !busy && serve->hot)
            add_reloaded(serve, &json);
        pthread_mutex_lock(&serve->lock);
        if (serve->model_text && !cJSON_AddRawToObject(json.root, "model", serve->model_text))
            json.failed = true;
        pthread_mutex_unlock(&serve->lock);
    }
    cli_reply_json(reply, ready ? 200 : 503, &json);
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

static double resident_bytes(void)
{
    unsigned long long pages = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return 0;
    if (fscanf(file, "%llu %llu", &pages, &resident) != 2)
        resident = 0;
    fclose(file);
    return (double)resident * (double)sysconf(_SC_PAGESIZE);
}

void cli_get_metrics(struct cli_serve *serve, const struct cli_http_request *request,
                     struct cli_http_reply *reply)
{
    (void)request;
    struct cli_jobs_count count = cli_jobs_count(serve->jobs);
    struct base_buffer text = {0}, *t = &text;
    head(t, "replies_total", "counter", "Replies, by their status code.");
    for (unsigned code = 0; code < CLI_SERVE_CODES; code++) {
        unsigned long long n = atomic_load(&serve->n_replies[code]);
        if (n)
            base_buffer_format(t, "assay_replies_total{code=\"%u\"} %llu\n", code, n);
    }
    head(t, "jobs_total", "counter", "Jobs that have ended, by how.");
    for (int i = CLI_JOB_DONE; i < CLI_JOB_N_STATES; i++)
        base_buffer_format(t, "assay_jobs_total{state=\"%s\"} %llu\n",
                           cli_job_state_name((enum cli_job_state)i),
                           (unsigned long long)count.ended[i]);
    metric(t, "jobs_running", "gauge", "Jobs that run: 0 or 1.", count.running);
    metric(t, "jobs_waiting", "gauge", "Jobs that wait.", (double)count.n_waiting);
    metric(t, "jobs_seconds_total", "counter", "Time that jobs ran.", count.seconds);
    metric(t, "tokens_total", "counter", "Tokens that were evaluated.", (double)count.n_tokens);
    metric(t, "swaps_total", "counter", "Requests that swapped tensors.",
           (double)atomic_load(&serve->n_swaps));
    metric(t, "resident_bytes", "gauge", "Resident size of the process.", resident_bytes());
    size_t n = t->n;
    char *body = base_buffer_take(t);
    if (body)
        *reply = (struct cli_http_reply){.code = 200,
                                         .type = "text/plain; version=0.0.4; charset=utf-8",
                                         .body = body,
                                         .n_body = n};
    else
        cli_reply_error(reply, 500, "memory", "no memory for the metrics");
}
