#include "cli/watch/watch.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/command_line.h"
#include "cli/process/faults.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/session/cluster.h"
#include "cli/watch/caches.h"
#include "cli/watch/watch_command.h"

enum { POLL_MS = 50, TELL_SECONDS = 10 };

struct watch {
    struct cli_host host; /* the command line's, but for the functions below */
    struct cli_caches caches;
    struct cli_evaluation *e;
    int64_t command; /* the number of the last one; 0: none was given */
    const struct cli_watch_settings *settings;
    size_t n_failed;         /* evaluations */
    struct status_why first; /* why the first of them did */
    enum status status;      /* of it */
};

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000L};
    nanosleep(&time, NULL);
}

/** Each evaluation writes its outputs anew: they are files of their own. */
static enum status check(const struct cli_evaluation *e, struct status_why *why)
{
    if (cli_cluster()->n_ranks > 1)
        return status_fail(why, STATUS_USAGE, "tensors are replaced on one machine only");
    if (!e->kind->again || !e->kind->model)
        return status_fail(why, STATUS_USAGE, "tensors cannot be replaced in this command");
    struct cli_named_file outputs[CLI_MAX_OUTPUTS + 1] = {
        {"--json", e->settings->output.json_file}};
    for (size_t i = 0; i < CLI_MAX_OUTPUTS; i++)
        outputs[1 + i] = (struct cli_named_file){e->outputs[i].option, e->outputs[i].path};
    for (size_t i = 0; i <= CLI_MAX_OUTPUTS; i++) {
        const struct cli_named_file *out = &outputs[i];
        if (!out->path)
            continue;
        if (i && !e->outputs[i - 1].write)
            return status_fail(why, STATUS_USAGE,
                               "%s: a base is recorded once, not while tensors are replaced",
                               out->option);
        if (base_file_stream(out->path) >= 0)
            return status_fail(why, STATUS_USAGE,
                               "%s %s: each evaluation writes it anew, expected a file's name",
                               out->option, out->path);
    }
    return STATUS_OK;
}

/** Say how far it is. Nothing else would tell the other side, so it is tried until it succeeds. */
static void tell(const struct watch *w, const char *state, size_t iteration)
{
    struct status_why why;
    for (long waited = 0; w->settings->status &&
                          cli_watch_tell(w->settings->status, state, iteration, w->command, &why) &&
                          !cli_interrupted();
         waited += POLL_MS) {
        if (waited % (TELL_SECONDS * 1000L) == 0)
            cli_complain("assay: %s; trying on\n", why.text);
        pause_ms(POLL_MS);
    }
}

/** What is in force, where it is not what was opened. */
static void print_in_force(const struct cli_model *model)
{
    enum { SHOWN = 4 };
    char line[1024] = "";
    size_t n = 0, at = 0, used = 0;
    struct cli_swapped tensor;
    for (; cli_shards_next(model->shards, &at, &tensor); n++)
        if (n < SHOWN && used < sizeof line)
            used += (size_t)snprintf(line + used, sizeof line - used, "%s %s %s sha256:%.12s",
                                     n ? "," : ":", tensor.name, tensor.type, tensor.sha256);
    if (n)
        cli_say("assay: hot-swap: %zu tensor%s of %s differ%s from what was opened%s%s\n", n,
                status_plural(n), model->path, n == 1 ? "s" : "", line, n > SHOWN ? ", ..." : "");
}

/** Take what has changed of all models. Returns the number of tensors. */
static size_t reload(struct watch *w)
{
    struct cli_evaluation *e = w->e;
    struct cli_model *model;
    bool several = e->kind->model(e, 1);
    size_t n = 0;
    for (size_t i = 0; (model = e->kind->model(e, i)); i++) {
        char whose[512] = "";
        if (several)
            snprintf(whose, sizeof whose, " of %s", model->path);
        n += cli_shards_reload(model->shards, &e->backends, whose);
        print_in_force(model);
    }
    return n;
}

static bool is_lost(const struct watch *w)
{
    const struct cli_model *model;
    for (size_t i = 0; (model = w->e->kind->model(w->e, i)); i++)
        if (cli_shards_lost(model->shards))
            return true;
    return false;
}

/** One evaluation. What became of it is told; only what ends all of them is a failure. */
static enum status evaluate(struct watch *w, struct status_why *why)
{
    if (is_lost(w))
        reload(w);
    if (!is_lost(w)) /* else it counts as a fault of this run */
        w->e->n_faults = cli_mapping_faults();
    struct status_why own;
    enum status status = cli_evaluation_run(w->e, &own);
    if (status) /* what was kept may be of a file that changed */
        cli_caches_drop(&w->caches);
    bool is_last = status == STATUS_CANCELLED || status == STATUS_DEVICE;
    if (is_last)
        return status_fail(why, status, "%s", own.text);
    cli_flush();
    if (status) {
        cli_complain("assay: hot-swap: evaluation %zu has no result: %s\n", w->e->n_runs, own.text);
        if (!w->n_failed++) {
            w->first = own;
            w->status = status;
        }
    }
    fflush(stderr);
    return STATUS_OK;
}

/** The next command that counts. false: interrupted. */
static bool wait_for_command(struct watch *w, struct cli_watch_command *out)
{
    for (; !cli_interrupted(); pause_ms(POLL_MS)) {
        bool removed;
        if (!cli_watch_take(out, w->settings->control, &removed))
            continue;
        if (out->number >= 0 && out->number <= w->command) {
            if (removed)
                cli_say("assay: hot-swap: '%s %" PRId64 "' is ignored: %" PRId64 " was before\n",
                        out->word, out->number, w->command);
            continue;
        }
        if (out->number >= 0)
            w->command = out->number;
        if (removed || out->number >= 0)
            return true;
        cli_complain("assay: hot-swap: %s: cannot be removed: a command without a number would be "
                     "carried out again and again; it is not\n",
                     w->settings->control);
        pause_ms(900);
    }
    return false;
}

/** Wait until there is something to evaluate. false: this is the end. */
static bool wait_for_work(struct watch *w)
{
    struct cli_watch_command command;
    while (wait_for_command(w, &command)) {
        const char *word = command.word;
        cli_say("assay: hot-swap: command: %s\n", word);
        if (strcmp(word, "compute") == 0)
            return true;
        if (strcmp(word, "exit") == 0 || strcmp(word, "quit") == 0 || strcmp(word, "stop") == 0)
            return false;
        if (strcmp(word, "reload") != 0) {
            cli_say("assay: hot-swap: '%s' is not a command: reload, compute, exit are\n", word);
            continue;
        }
        if (reload(w))
            return true;
        cli_say("assay: hot-swap: no tensor has been replaced\n");
        tell(w, "reload_failed", w->e->n_runs);
    }
    return false;
}

/** Driven by commands. */
static enum status follow(struct watch *w, struct status_why *why)
{
    struct cli_evaluation *e = w->e;
    const char *control = w->settings->control;
    if (unlink(control) != 0 && errno != ENOENT)
        return status_fail(why, STATUS_IO, "%s: cannot be removed: %s", control, strerror(errno));
    enum status status = cli_watch_tell(w->settings->status, "computing", 1, 0, why);
    while (!status) {
        status = evaluate(w, why);
        if (status)
            break;
        cli_say("assay: hot-swap: evaluation %zu is over; waiting for a command in %s\n", e->n_runs,
                control);
        tell(w, "done", e->n_runs);
        if (!wait_for_work(w))
            break;
        tell(w, "computing", e->n_runs + 1);
    }
    if (e->n_runs)
        tell(w, "exiting", e->n_runs);
    return !status && cli_interrupted() ? status_fail(why, STATUS_CANCELLED, "interrupted")
                                        : status;
}

/** Run it, and pass on what it prints on standard output. */
static void run_script(const char *script)
{
    cli_say("main: executing pre-reload script: %s\n", script);
    signal(SIGPIPE, SIG_DFL); /* a child would inherit that it is ignored */
    FILE *out = popen(script, "r");
    signal(SIGPIPE, SIG_IGN);
    if (!out) {
        cli_complain("assay: hot-swap: %s: cannot be run: %s\n", script, strerror(errno));
        return;
    }
    char *line = NULL;
    size_t capacity = 0;
    while (getline(&line, &capacity, out) > 0)
        cli_say("main: [pre-reload] %.*s\n", (int)strcspn(line, "\n"), line);
    free(line);
    int code = pclose(out);
    if (code)
        cli_complain("assay: hot-swap: %s: exit code %d\n", script,
                     WIFEXITED(code) ? WEXITSTATUS(code) : -1);
}

/** Waits for what a script leaves. */
static enum status repeat(struct watch *w, struct status_why *why)
{
    enum status status = STATUS_OK;
    do {
        status = evaluate(w, why);
        if (!status && w->settings->script)
            run_script(w->settings->script);
    } while (!status && !cli_interrupted() && reload(w));
    if (!status && w->n_failed)
        return status_fail(why, w->status, "%zu of %zu evaluations had no result; of the first: %s",
                           w->n_failed, w->e->n_runs, w->first.text);
    return !status && cli_interrupted() ? status_fail(why, STATUS_CANCELLED, "interrupted")
                                        : status;
}

static enum status ready(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    struct watch *w = (struct watch *)host;
    (void)why;
    cli_caches_use(&w->caches, e);
    return STATUS_OK;
}

static void describe(const struct cli_host *host, const struct cli_evaluation *e,
                     struct base_json *json, cJSON *run)
{
    const struct watch *w = (const struct watch *)host;
    base_json_uint(json, run, "iteration", e->n_runs);
    base_json_int(json, run, "command", w->command);
    cli_command_line.describe(host, e, json, run);
}

/** The files between both sides: one is removed at the beginning, the other is replaced. */
static enum status check_files(const struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_watch_settings *s = &e->settings->watch;
    bool force = e->settings->output.force;
    enum status status =
        s->control ? base_written_check(s->control, force ? NULL : BASE_COMMAND, why) : STATUS_OK;
    if (!status && s->status)
        status = base_written_check(s->status, force ? NULL : BASE_WATCHED, why);
    return status;
}

enum status cli_watch(struct cli_evaluation *e, struct status_why *why)
{
    struct watch w = {.host = cli_command_line, .e = e, .settings = &e->settings->watch};
    w.host.ready = ready;
    w.host.describe = describe;
    e->guarded[0] = (struct cli_named_file){"--watch", w.settings->control};
    e->guarded[1] = (struct cli_named_file){"--watch-status", w.settings->status};
    enum status status = check(e, why);
    if (!status)
        status = cli_caches_check(w.settings, why);
    if (!status)
        status = cli_evaluation_begin(e, &w.host, why);
    cli_mapping_fault_survive();
    if (!status)
        status = cli_evaluation_open(e, why);
    if (!status)
        status = cli_evaluation_check(e, why);
    if (!status)
        status = check_files(e, why);
    if (!status) {
        const struct cli_model *model;
        (void)cli_interrupt_catch();
        for (size_t i = 0; (model = e->kind->model(e, i)); i++)
            cli_shards_print_unused(model->shards);
        reload(&w);
        status = w.settings->control ? follow(&w, why) : repeat(&w, why);
    }
    cli_caches_drop(&w.caches);
    cli_evaluation_close(e);
    return status;
}
