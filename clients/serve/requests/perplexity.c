/*
 * /perplexity: an evaluation in pieces. Each request adds the windows of a text to a sum, which
 * can be read, kept in a file, and continued. All but reading are jobs, in their order.
 */
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/content/text.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "cli/output/json_parts.h"
#include "clients/serve/serve.h"

static const char schema[] = "assay-perplexity-state";
enum { MAX_STATE_BYTES = 1 << 20 };

static void add_state(struct base_json *json, cJSON *o, const struct serve_perplexity_state *s)
{
    double n = (double)s->n_tokens, mean = s->nll / n;
    double variance = (s->nll_squared / n - mean * mean) / (n - 1);
    base_json_real(json, o, "nll", s->nll);
    base_json_real(json, o, "nll_squared", s->nll_squared);
    base_json_uint(json, o, "n_tokens", s->n_tokens);
    base_json_uint(json, o, "n_windows", s->n_windows);
    base_json_real(json, o, "perplexity", exp(mean)); /* of no tokens: null */
    base_json_real(json, o, "perplexity_error", exp(mean) * sqrt(fmax(variance, 0)));
    base_json_text(json, o, "model_id", *s->model_id ? s->model_id : NULL);
}

static void set_state(struct serve *serve, struct serve_perplexity_state state)
{
    cJSON_free(serve->state.settings);
    serve->state = state;
}

/** Let the other threads see it. On the thread of the jobs. */
static void show(struct serve *serve)
{
    pthread_mutex_lock(&serve->lock);
    serve->at = serve->state;
    serve->at.settings = NULL;
    pthread_mutex_unlock(&serve->lock);
}

/** The state is the job's result; of an evaluation, its document beside it. */
static enum status give_state(struct serve *serve, struct serve_job *job, struct status_why *why)
{
    struct base_json json;
    base_json_begin(&json);
    add_state(&json, base_json_object(&json, json.root, "state"), &serve->state);
    if (job->result && !cJSON_AddRawToObject(json.root, "document", job->result))
        json.failed = true;
    cJSON_free(job->result);
    enum status status = base_json_text_of(&json, &job->result, why);
    base_json_free(&json);
    show(serve);
    return status;
}

static double number(const cJSON *object, const char *member)
{
    const cJSON *item = base_json_member(object, member);
    return cJSON_IsNumber(item) ? item->valuedouble : (double)NAN;
}

/* Adding a text. */

/** Sums are of one model and one way to evaluate. */
static enum status check_same(const struct serve *serve, const char *settings,
                              struct status_why *why)
{
    const struct serve_perplexity_state *s = &serve->state;
    bool other = *s->model_id && strcmp(s->model_id, serve->resident.models[0].id) != 0;
    if (!other && !(settings && s->settings && strcmp(settings, s->settings) != 0))
        return STATUS_OK;
    return status_fail(why, STATUS_CHANGED,
                       "the state is of %s; POST /perplexity/reset begins a new one",
                       other ? "another model, or of other tensors in it" : "other settings");
}

/** The settings of a document as a text, without those that say which windows. */
static char *settings_of(const cJSON *document)
{
    cJSON *all = cJSON_Duplicate(base_json_member(document, "settings"), true);
    cJSON_DeleteItemFromObjectCaseSensitive(all, "chunks");
    cJSON_DeleteItemFromObjectCaseSensitive(all, "chunk_from");
    char *text = all ? cJSON_PrintUnformatted(all) : NULL;
    cJSON_Delete(all);
    return text;
}

/** Add the windows of a document. settings: given away. */
static void add(struct serve *serve, const cJSON *document, char *settings)
{
    struct serve_perplexity_state *s = &serve->state;
    const cJSON *windows = base_json_member(document, "windows"), *sums;
    cJSON_ArrayForEach(sums, base_json_member(windows, "sums"))
    {
        s->nll += number(sums, "nll");
        s->nll_squared += number(sums, "nll_squared");
        s->n_tokens += (uint64_t)number(sums, "n_tokens");
        s->n_windows++;
    }
    memcpy(s->model_id, serve->resident.models[0].id, sizeof s->model_id);
    cJSON_free(s->settings);
    s->settings = settings;
}

enum status serve_perplexity_check(const struct serve *serve, struct status_why *why)
{
    return check_same(serve, NULL, why);
}

enum status serve_perplexity_add(struct serve *serve, struct serve_job *job, struct status_why *why)
{
    cJSON *document = NULL;
    enum status status = base_json_parse(&document, job->result, strlen(job->result), NULL, why);
    char *settings = document ? settings_of(document) : NULL;
    if (!settings)
        status = status_fail(why, STATUS_MEMORY, "no memory for the result");
    if (!status)
        status = check_same(serve, settings, why);
    if (!status) {
        add(serve, document, settings);
        settings = NULL;
        status = give_state(serve, job, why);
    }
    cJSON_free(settings);
    cJSON_Delete(document);
    return status;
}

void serve_get_state(struct serve *serve, const struct serve_http_request *request,
                     struct serve_http_reply *reply)
{
    (void)request;
    struct base_json json;
    pthread_mutex_lock(&serve->lock);
    const struct serve_perplexity_state now = serve->at;
    pthread_mutex_unlock(&serve->lock);
    base_json_begin(&json);
    add_state(&json, json.root, &now);
    serve_reply_json(reply, 200, &json);
}

/* Keeping it. */

/** Only a file of the folder itself is read or replaced: no link leads out of it, no pipe waits. */
static enum status check_file(const char *path, struct status_why *why)
{
    struct stat about;
    return lstat(path, &about) != 0 || S_ISREG(about.st_mode)
               ? STATUS_OK
               : status_fail(why, STATUS_IO,
                             "%s: is not a regular file, expected a state as /perplexity/save "
                             "writes it",
                             path);
}

static enum status run_save(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    struct base_file *file = NULL;
    struct base_json json;
    doc_json_begin(&json, schema);
    add_state(&json, base_json_object(&json, json.root, "state"), &serve->state);
    base_json_text(&json, json.root, "settings", serve->state.settings);
    enum status status = check_file(job->input, why);
    if (!status)
        status = base_file_create(&file, job->input, schema, why);
    if (!status)
        status = cli_output_commit(&file, base_json_write(&json, file, why), why);
    base_json_free(&json);
    return status ? status : give_state(serve, job, why);
}

/** A file that somebody else may have written. */
static enum status read_state(struct serve_perplexity_state *out, const cJSON *root,
                              struct status_why *why)
{
    const char *settings = cJSON_GetStringValue(base_json_member(root, "settings"));
    const cJSON *o = base_json_member(root, "state");
    const char *named = cJSON_GetStringValue(base_json_member(root, "schema"));
    const char *id = cJSON_GetStringValue(base_json_member(o, "model_id"));
    double n_tokens = number(o, "n_tokens"), n_windows = number(o, "n_windows");
    double version = number(root, "schema_version");
    *out = (struct serve_perplexity_state){.nll = number(o, "nll"),
                                           .nll_squared = number(o, "nll_squared")};
    bool whole = named && strcmp(named, schema) == 0 && isfinite(out->nll) &&
                 isfinite(out->nll_squared) && n_tokens >= 0 && n_tokens < 0x1p53 &&
                 n_windows >= 0 && n_windows < 0x1p53;
    if (whole && !(version >= DOC_SCHEMA_VERSION && version <= DOC_SCHEMA_VERSION))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "schema_version is %g, expected %d; evaluate the texts again", version,
                           (int)DOC_SCHEMA_VERSION);
    if (!whole || (id && strlen(id) + 1 != sizeof out->model_id))
        return status_fail(why, STATUS_FORMAT,
                           "no state of a perplexity, as /perplexity/save "
                           "writes it");
    out->n_tokens = (uint64_t)n_tokens;
    out->n_windows = (uint64_t)n_windows;
    if (id)
        memcpy(out->model_id, id, sizeof out->model_id);
    out->settings = settings ? strdup(settings) : NULL;
    return settings && !out->settings ? status_fail(why, STATUS_MEMORY, "no memory for a state")
                                      : STATUS_OK;
}

static enum status run_load(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    struct base_text text = {0};
    struct serve_perplexity_state state = {0};
    cJSON *root = NULL;
    enum status status = check_file(job->input, why);
    if (status)
        return status;
    status = base_text_read_whole(&text, job->input, MAX_STATE_BYTES, why);
    if (!status && base_json_parse(&root, text.data, text.n_bytes, NULL, why))
        status = status_fail(why, STATUS_FORMAT, "no JSON");
    if (!status)
        status = read_state(&state, root, why);
    if (status)
        status_context(why, "%s", (const char *)job->input);
    cJSON_Delete(root);
    base_text_free(&text);
    if (status)
        return status;
    set_state(serve, state);
    return give_state(serve, job, why);
}

static enum status run_reset(void *server, struct serve_job *job, struct status_why *why)
{
    struct serve *serve = server;
    set_state(serve, (struct serve_perplexity_state){0});
    return give_state(serve, job, why);
}

/** The path of a name's file in the server's folder: letters, digits, `-`, `_` and `.` within. */
static void fill_path(void *path, const struct serve *serve, struct base_field body)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    const char *folder = serve->settings->state_folder;
    serve_body_only(body, "name");
    const char *name = base_field_text_or(body, "name", "");
    if (!folder)
        base_field_fail(body, STATUS_USAGE,
                        "the server keeps no states; start it with --state-dir");
    if (!*name || *name == '.' || strlen(name) > 64 || strspn(name, letters) != strlen(name))
        base_field_fail(body, STATUS_USAGE,
                        "name: expected at most 64 letters, digits, -, _ and ., the first not .");
    if (folder && snprintf(path, PATH_MAX, "%s/%.64s.json", folder, name) >= PATH_MAX)
        base_field_fail(body, STATUS_USAGE, "--state-dir: expected a path of at most %d bytes",
                        PATH_MAX);
}

static void fill_nothing(void *input, const struct serve *serve, struct base_field body)
{
    (void)input, (void)serve;
    serve_body_only(body, "");
}

const struct serve_post serve_saving = {{"save", run_save, free}, PATH_MAX, fill_path};
const struct serve_post serve_loading = {{"load", run_load, free}, PATH_MAX, fill_path};
const struct serve_post serve_resetting = {{"reset", run_reset, free}, 1, fill_nothing};
