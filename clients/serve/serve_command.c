/* assay serve: the life of the server, from its options to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json/parse.h"
#include "cli/input/windows.h"
#include "cli/options/value.h"
#include "cli/process/faults.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/reference/base.h"
#include "cli/session/cluster.h"
#include "clients/serve/serve.h"
#include "clients/serve/serve_command.h"
#include "eval/identity.h"

enum { ANY = INT32_MAX, MAX_KEY_BYTES = 4096, PLACES = 64, MAX_PORT = 65535, DEFAULT_PORT = 8080 };
static const double look_seconds = 0.1, drain_seconds = 2, patience_seconds = 10;

static enum status check_settings(const struct serve_settings *s, struct status_why *why)
{
    if (s->text_file && strcmp(s->text_file, "-") == 0)
        return status_fail(why, STATUS_USAGE,
                           "-f: expected the name of a file, which every job reads; found '-'");
    enum status status = cli_cluster_alone("a server", why);
    return status ? status : cli_model_check(&s->evaluate.load, why);
}

/** The key's digest: of --api-key-file, else of the environment. */
static enum status read_key(struct serve *serve, struct status_why *why)
{
    const struct serve_settings *s = serve->settings;
    const char *key = getenv("ASSAY_API_KEY");
    struct base_text text = {0};
    enum status status = STATUS_OK;
    if (s->key_file) {
        status = base_text_read(&text, s->key_file, MAX_KEY_BYTES, why);
        key = text.data;
    }
    size_t n = s->key_file ? text.n_bytes : key ? strlen(key) : 0;
    const char *from = s->key_file ? s->key_file : "ASSAY_API_KEY";
    while (n && memchr("\r\n", key[n - 1], 2))
        n--;
    if (!status && n && strcspn(key, "\r\n") < n)
        status = status_fail(why, STATUS_USAGE, "%s: the API key has more than one line", from);
    if (!status && n && (memchr(" \t", key[0], 2) || memchr(" \t", key[n - 1], 2)))
        status = status_fail(why, STATUS_USAGE,
                             "%s: the API key has a blank at an end, which no request can send; "
                             "take it away",
                             from);
    if (!status && n)
        status = base_sha256(serve->key_digest, key, n, why);
    base_text_free(&text);
    if (!status && !n && !serve_http_is_loopback(s->host))
        status = status_fail(why, STATUS_USAGE,
                             "--host %s can be reached from other machines; that takes an API key: "
                             "--api-key-file FILE, or ASSAY_API_KEY",
                             s->host);
    return status;
}

/* The thread of the jobs. */

static enum status open_model(struct serve *serve, const char *path, struct status_why *why)
{
    struct serve_resident *resident = &serve->resident;
    struct cli_evaluate_settings settings = serve->settings->evaluate;
    settings.watch.wanted = serve->hot;
    if (resident->n_models) /* the base */
        cli_model_plain(&settings.load);
    enum status status =
        cli_model_open(&resident->models[resident->n_models], path, &settings, false, why);
    resident->n_models += !status;
    return status;
}

/** A base that is no model is opened by each job; here it is only looked at. */
static enum status open_base(struct serve *serve, struct status_why *why)
{
    const struct serve_settings *s = serve->settings;
    const struct cli_model *models = serve->resident.models;
    const struct cli_base_kind *kind = cli_base_recognise(s->base);
    struct cli_base base;
    enum status status;
    if (kind == &cli_base_model) {
        status = open_model(serve, s->base, why);
        return status ? status : eval_check_same_vocab(models[1].model, models[0].model, why);
    }
    status = cli_base_open(&base, s->base, &s->evaluate, why);
    if (!status)
        status = kind->check(&base, models[0].model, NULL, why);
    if (!status)
        serve_show_base(serve, &base);
    cli_base_close(&base);
    return status;
}

static enum status open_all(void *user, struct status_why *why)
{
    struct serve *serve = user;
    const struct serve_settings *s = serve->settings;
    struct base_text text = {0};
    cli_mapping_fault_survive();
    enum status status = cli_backends_open(&serve->resident.backends, &s->evaluate.machine, why);
    if (!status)
        status = open_model(serve, s->model, why);
    serve->swaps.model = &serve->resident.models[0];
    if (!status && s->base)
        status = open_base(serve, why);
    if (!status && s->text_file)
        status = cli_text_read(&text, &(struct cli_text_settings){.text_file = s->text_file}, why);
    base_text_free(&text);
    if (!status)
        serve_show_models(serve);
    pthread_rwlock_wrlock(&serve->holding);
    serve->model = status ? NULL : serve->resident.models[0].model;
    serve->opened = time(NULL);
    pthread_rwlock_unlock(&serve->holding);
    return status;
}

/** A line for each job: when it came, from whom, what it was, how long it took, how it ended. */
static void log_job(void *user, const struct serve_job *job)
{
    (void)user;
    if (job->kind == &serve_reloading && job->result && !strcmp(job->result, "{\"reloaded\":[]}"))
        return; /* of each GET /health with hot-swap */
    char asked[32] = "", ran[64] = "not begun";
    struct tm utc;
    bool failed = job->state != SERVE_JOB_DONE;
    double waited = job->began > 0 ? job->waited : base_clock_seconds() - job->waits_since;
    if (gmtime_r(&job->asked, &utc))
        strftime(asked, sizeof asked, "%Y-%m-%dT%H:%M:%SZ", &utc);
    if (job->began > 0)
        snprintf(ran, sizeof ran, "ran %.2f s, %zu token%s", job->seconds, job->at.n_tokens_done,
                 status_plural(job->at.n_tokens_done));
    cli_say("assay: %s job %llu: %s from %s, waited %.2f s, %s: %s%s%s\n", asked,
            (unsigned long long)job->id, job->kind->name, job->client, waited, ran,
            serve_job_state_name(job->state), failed ? ": " : "", failed ? job->why.text : "");
}

static void close_all(void *user)
{
    struct serve *serve = user;
    pthread_rwlock_wrlock(&serve->holding); /* until nobody holds it */
    serve->model = NULL;
    pthread_rwlock_unlock(&serve->holding);
    cli_swaps_close(&serve->swaps);
    for (size_t i = 0; i < serve->resident.n_models; i++)
        cli_model_close(&serve->resident.models[i]);
    cli_backends_close(&serve->resident.backends);
    cJSON_free(serve->state.settings);
}

/* The main thread. */

/** Until a signal, or a failure to load. */
static enum status wait_for_end(struct serve *serve, struct status_why *why)
{
    enum serve_jobs_state said = SERVE_JOBS_OPENING;
    for (;;) {
        enum serve_jobs_state state = serve_jobs_count(serve->jobs).state;
        if (state == SERVE_JOBS_BROKEN)
            return serve_jobs_why(serve->jobs, why);
        if (state != said)
            cli_say("assay: %s is loaded\n", serve->settings->model);
        said = state;
        serve_jobs_limit(serve->jobs);
        if (cli_signal_next(look_seconds))
            return STATUS_OK;
    }
}

/** A second signal ends the program at once. */
static void end(struct serve *serve)
{
    cli_signals_release();
    if (!serve_jobs_end(serve->jobs, (double)serve->settings->grace, patience_seconds)) {
        cli_complain("assay: what runs does not end within %g seconds; the program ends\n",
                     patience_seconds);
        _exit(CLI_EXIT_FAILED);
    }
    if (serve->http)
        serve_http_drain(serve->http, drain_seconds);
    serve_http_close(serve->http);
    serve_jobs_close(serve->jobs);
}

static enum status serve(struct serve *serve, struct status_why *why)
{
    const struct serve_settings *s = serve->settings;
    const struct serve_jobs_options jobs = {.n_waiting = (size_t)s->n_waiting,
                                            .budget = &serve->budget,
                                            .seconds = (double)s->job_seconds,
                                            .server = serve,
                                            .open = open_all,
                                            .close = close_all,
                                            .ended = log_job};
    const struct serve_http_options http = {
        .host = s->host,
        .port = (unsigned)s->port,
        .max_body = (size_t)s->max_body << 20,
        .budget = &serve->budget,
        .seconds = (double)s->seconds,
        .places = PLACES,
        .refuse = serve_refuse,
        .answer = serve_answer,
        .user = serve,
    };
    cli_signals_hold();
    enum status status = serve_jobs_open(&serve->jobs, &jobs, why);
    if (status)
        return status;
    status = serve_http_open(&serve->http, &http, why);
    if (!status) {
        cli_say("assay: listening on %s\n", serve_http_address(serve->http));
        status = wait_for_end(serve, why);
    }
    if (!status)
        cli_say("assay: ending\n");
    end(serve);
    return status;
}

static enum status run_serve(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    struct serve *s = calloc(1, sizeof *s);
    cJSON *unused = NULL;
    if (!s || base_json_parse(&unused, "{}", 2, NULL, why)) { /* while there is one thread */
        free(s);
        return status_fail(why, STATUS_MEMORY, "no memory for a server");
    }
    cJSON_Delete(unused);
    s->settings = settings;
    s->budget.most = (size_t)s->settings->max_memory << 20;
    s->hot = s->settings->hot_swap || getenv("LLAMA_HOTSWAP_ENABLED");
    pthread_mutex_init(&s->lock, NULL);
    pthread_rwlock_init(&s->holding, NULL);
    enum status status = check_settings(s->settings, why);
    if (!status)
        status = read_key(s, why);
    if (!status)
        status = serve_find_folders(&s->folders, s->settings, why);
    if (!status)
        status = serve(s, why);
    cli_list_clear(&s->folders);
    cJSON_free(s->model_text);
    cJSON_free(s->base_text);
    pthread_rwlock_destroy(&s->holding);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return status;
}

static void defaults(void *settings)
{
    struct serve_settings *s = settings;
    *s = (struct serve_settings){.host = "127.0.0.1",
                                 .port = DEFAULT_PORT,
                                 .max_body = 16,
                                 .max_memory = 512,
                                 .n_waiting = 16,
                                 .seconds = 30,
                                 .grace = 5};
    cli_evaluate_defaults(&s->evaluate);
}

#define AT(member) offsetof(struct serve_settings, member)

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "What is resident"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {"--base", CLI_TEXT, "FILE",
     "what divergences are measured from: a model, or a file that assay record, assay perplexity "
     "--kl-divergence-base or llama-perplexity wrote",
     AT(base), .usual = true},
    {"-f --file", CLI_TEXT, "FILE",
     "the text of requests that bring none, without its last newline; each job reads it",
     AT(text_file), .usual = true},
    {"-c --ctx-size --chunks", CLI_REFUSED, "N",
     "each request says its windows: {\"kind\": \"kld\", \"ctx_size\": 512, \"chunks\": 20}"},
    {"--hot-swap", CLI_ON, NULL,
     "while no job runs, GET /health reads replaced files of the models again; also where "
     "LLAMA_HOTSWAP_ENABLED is set. /v1/swap is then refused",
     AT(hot_swap)},
    {"--hash-model", CLI_ON, NULL, "results have the SHA-256 of the whole files",
     AT(evaluate.output.hash_model)},

    {.type = CLI_HEADING, .help = "Server"},
    {"--host", CLI_TEXT, "NAME",
     "the address to listen on (default: 127.0.0.1, this machine alone); any other needs a key",
     AT(host)},
    {"--port", CLI_COUNT, "N", "the port (default: 8080; 0: any that is free)", AT(port), 0,
     MAX_PORT},
    {"--api-key-file", CLI_TEXT, "FILE",
     "a file with one line, the key that requests must have in a header Authorization: Bearer KEY "
     "(default: the variable ASSAY_API_KEY; without either, no key is asked for)",
     AT(key_file)},
    {"--max-body", CLI_COUNT, "N", "the most MiB that the body of a request may have (default: 16)",
     AT(max_body), 1, 1024},
    {"--request-memory", CLI_COUNT, "N",
     "the most MiB of memory that all requests together may take, reckoned beforehand (default: "
     "512)",
     AT(max_memory), 1, 1 << 20},
    {"--timeout", CLI_COUNT, "N",
     "seconds in which a request must have come, and its reply be taken (default: 30)", AT(seconds),
     1, ANY},
    {"--queue", CLI_COUNT, "N", "jobs that may wait while one runs (default: 16)", AT(n_waiting), 0,
     1024},
    {"--job-timeout", CLI_COUNT, "N", "seconds that a job may run (default: 0, any time)",
     AT(job_seconds), 0, ANY},
    {"--grace", CLI_COUNT, "N",
     "seconds that the job which runs may take when the server is told to end (default: 5)",
     AT(grace), 0, ANY},
    {"--state-dir", CLI_TEXT, "DIR", "the folder of /perplexity/save and load (default: none)",
     AT(state_folder)},
    {"--files-from", CLI_EACH, "DIR",
     "a folder whose files /v1/swap may read, with the folders in it, besides those of the models; "
     "may be given again",
     AT(files_from)},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(evaluate.load)},
    {.type = CLI_GROUP, .group = cli_process_options, .offset = AT(evaluate.machine)},
    {.type = CLI_HEADING, .help = "Output"},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error"},
    {0},
};

const struct cli_command serve_command = {
    .name = "serve",
    .usage = "[-m] MODEL [--base MODEL|FILE] [-f TEXT] [options]",
    .summary = "Keep a model open, and evaluate on request over HTTP.",
    .description =
        "The server answers GET /health, /metrics, /v1/jobs, /v1/models, /tokenizer_info,\n"
        "/perplexity/state, and POST /v1/evaluate (perplexity, kld, tasks), /v1/swap (a tensor\n"
        "of another file), /v1/score (requests of a harness), /v1/completions (scores of\n"
        "prompts), /tokenize, /detokenize, /apply-template, /perplexity (in pieces). Bodies and\n"
        "replies are JSON; docs/serve.md describes them.\n\n"
        "One job runs at a time; short ones are served between the batches of a long one. Each\n"
        "job leaves a line on standard error when it has ended. SIGINT, SIGTERM or SIGHUP ends\n"
        "the server, with exit code 0.",
    .examples = "assay serve q4.gguf --base f16.gguf -f wiki.test.raw --port 8080\n"
                "Keeps both models open; requests over HTTP evaluate, swap tensors, score prompts.",
    .options = options,
    .settings_bytes = sizeof(struct serve_settings),
    .defaults = defaults,
    .run = run_serve,
};
