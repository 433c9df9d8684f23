#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/serve/serve.h"

void serve_reply_text(struct serve_http_reply *reply, unsigned code, const char *text)
{
    *reply = (struct serve_http_reply){.code = code, .n_body = strlen(text) + 1};
    reply->body = malloc(reply->n_body + 1);
    if (!reply->body) {
        *reply = (struct serve_http_reply){.code = 500};
        return;
    }
    memcpy(reply->body, text, reply->n_body - 1);
    memcpy(reply->body + reply->n_body - 1, "\n", 2);
}

void serve_reply_json(struct serve_http_reply *reply, unsigned code, struct base_json *json)
{
    char *text = json->failed ? NULL : cJSON_PrintUnformatted(json->root);
    base_json_free(json);
    serve_reply_text(reply, text ? code : 500, text ? text : "{\"error\": {\"type\": \"memory\"}}");
    cJSON_free(text);
}

static void add_error(struct base_json *json, unsigned code, const char *type, const char *message)
{
    cJSON *o = base_json_object(json, json->root, "error");
    base_json_uint(json, o, "code", code);
    base_json_text(json, o, "type", type);
    base_json_text(json, o, "message", message);
}

void serve_reply_error(struct serve_http_reply *reply, unsigned code, const char *type,
                       const char *message)
{
    struct base_json json;
    base_json_begin(&json);
    add_error(&json, code, type, message);
    serve_reply_json(reply, code, &json);
}

static unsigned code_of(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return 200;
    case STATUS_USAGE:
    case STATUS_IO:
    case STATUS_FORMAT:
    case STATUS_UNSUPPORTED:
    case STATUS_NONFINITE:
    case STATUS_EXCEEDED:
        return 422;
    case STATUS_CHANGED:
    case STATUS_CANCELLED:
        return 409;
    case STATUS_MEMORY:
    case STATUS_DEVICE:
        break;
    }
    return 500;
}

void serve_reply_failure(struct serve_http_reply *reply, enum status status,
                         const struct status_why *why)
{
    serve_reply_error(reply, code_of(status), status_name(status), why->text);
}

void serve_reply_busy(struct serve *serve, struct serve_http_reply *reply)
{
    static const char *const messages[] = {
        [SERVE_JOBS_OPENING] = "the model is being loaded",
        [SERVE_JOBS_READY] = "the queue is full",
        [SERVE_JOBS_BROKEN] = "the model could not be loaded",
        [SERVE_JOBS_ENDING] = "the server is ending",
    };
    struct serve_jobs_count count = serve_jobs_count(serve->jobs);
    serve_reply_error(reply, 503, "busy", messages[count.state]);
    double left = isfinite(count.seconds_left) ? ceil(count.seconds_left) : 1;
    reply->retry_after = (unsigned)fmin(fmax(left, 1), 60);
}

void serve_reply_no_room(struct serve_http_reply *reply, const struct serve_http_request *request,
                         size_t n_bytes)
{
    char message[200];
    size_t most = request->budget->most;
    bool alone = n_bytes > most;
    snprintf(message, sizeof message,
             alone ? "the request may take %zu MiB of memory, expected at most %zu; send less at a "
                     "time, or see --request-memory"
                   : "the request may take %zu MiB of memory, and others have what is missing of "
                     "%zu; try again later, or see --request-memory",
             (n_bytes >> 20) + 1, most >> 20);
    serve_reply_error(reply, alone ? 413 : 429, "size", message);
    reply->retry_after = !alone;
}

void serve_add_failure(struct base_json *json, const struct serve_job *job)
{
    add_error(json, code_of(job->status), status_name(job->status), job->why.text);
    if (job->result && !cJSON_AddRawToObject(json->root, "result", job->result))
        json->failed = true;
}

void serve_reply_job(struct serve_http_reply *reply, const struct serve_job *job)
{
    if (job->state == SERVE_JOB_DONE) {
        serve_reply_text(reply, 200, job->result ? job->result : "{}");
        return;
    }
    struct base_json json;
    base_json_begin(&json);
    serve_add_failure(&json, job);
    serve_reply_json(reply, code_of(job->status), &json);
}
