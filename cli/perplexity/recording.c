/* The evaluated model's rows into a file: assay perplexity --kl-divergence-base, assay record. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/json_parts.h"
#include "cli/perplexity/perplexity_evaluator.h"
#include "cli/process/say.h"

static const double megabyte = 1e6;

/* Whether the journal, which has not been read yet, has anything. */
static bool may_go_on(const struct cli_perplexity *p)
{
    const struct eval_journal *journal = p->e.journal;
    return journal && eval_journal_n_behind(journal) > 0;
}

static bool is_compact(const struct cli_perplexity *p)
{
    return p->settings->record_format == CLI_RECORD_COMPACT;
}

static enum status begin_logits(struct cli_perplexity *p, struct status_why *why)
{
    const struct cli_perplexity_settings *s = p->settings;
    struct eval_logits_recording recording = {
        .path = s->base_file,
        .plan = &p->windows.plan,
        .stream = &p->windows.stream,
        .n_vocab = model_head(p->model.model)->n_rows,
        .only_new = s->only_new,
        .force = s->evaluate.output.force,
        .resume = may_go_on(p),
        .journal = p->e.journal != NULL,
    };
    return eval_logits_writer_open(&p->recording.writer, &recording, why);
}

/** What the file says of itself; the caller frees *out. */
static enum status describe(char **out, const struct cli_perplexity *p, struct status_why *why)
{
    const struct cli_perplexity_settings *s = p->settings;
    struct base_json json;
    doc_json_begin(&json, "assay-base");
    cli_json_add_model(&json, json.root, "base", &p->model, false);
    cJSON *settings = base_json_object(&json, json.root, "settings");
    cli_json_add_text_settings(&json, settings, &s->text);
    cli_json_add_computation(&json, settings, &p->e);
    cli_json_add_text(&json, &p->windows, model_tokenizer(p->model.model));
    enum status status = base_json_text_of(&json, out, why);
    base_json_free(&json);
    return status;
}

/* A user of the file may stand in another folder. */
static enum status find_head(const struct cli_perplexity *p, char head_path[PATH_MAX],
                             struct status_why *why)
{
    if (realpath(p->model.path, head_path))
        return STATUS_OK;
    return status_fail(why, STATUS_IO, "%s: its absolute path cannot be found", p->model.path);
}

/** A compact base that is to be; the caller frees *description. */
static enum status lay_out_compact(struct eval_compact_recording *out,
                                   const struct cli_perplexity *p, char head_path[PATH_MAX],
                                   char **description, struct status_why *why)
{
    const struct cli_perplexity_settings *s = p->settings;
    enum status status = s->head_by_path ? find_head(p, head_path, why) : STATUS_OK;
    if (!status)
        status = describe(description, p, why);
    if (!status)
        *out = (struct eval_compact_recording){
            .path = s->base_file,
            .model = p->model.model,
            .model_id = p->model.id,
            .plan = &p->windows.plan,
            .stream = &p->windows.stream,
            .documents = p->windows.documents.n ? &p->windows.documents : NULL,
            .kind = (enum eval_compact_kind)s->hidden,
            .head_path = s->head_by_path ? head_path : NULL,
            .description = *description,
            .only_new = s->only_new,
            .force = s->evaluate.output.force,
            .resume = may_go_on(p),
        };
    return status;
}

static enum status begin_compact(struct cli_perplexity *p, struct status_why *why)
{
    char head_path[PATH_MAX], *description = NULL;
    struct eval_compact_recording recording;
    enum status status = lay_out_compact(&recording, p, head_path, &description, why);
    if (!status)
        status = eval_compact_writer_open(&p->recording.writer, &recording, why);
    cJSON_free(description);
    return status;
}

/** Bytes of the file. */
static enum status measure(uint64_t *n_bytes, const struct cli_perplexity *p,
                           struct status_why *why)
{
    const struct eval_plan *plan = &p->windows.plan;
    struct eval_logits_shape shape = {.n_ctx = plan->window,
                                      .n_vocab = model_head(p->model.model)->n_rows,
                                      .n_chunks = plan->n_windows};
    if (!is_compact(p)) {
        *n_bytes = eval_logits_file_bytes(&shape);
        return STATUS_OK;
    }
    char head_path[PATH_MAX], *description = NULL;
    struct eval_compact_recording recording;
    enum status status = lay_out_compact(&recording, p, head_path, &description, why);
    if (!status)
        status = eval_compact_recording_bytes(n_bytes, &recording, why);
    cJSON_free(description);
    return status;
}

enum status cli_recording_outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    const struct cli_perplexity *p = self;
    out->fewer = p->windows.documents.n ? NULL : "--chunks";
    out->n_fewer = p->windows.plan.n_windows;
    out->may_end = p->windows.units.stop;
    out->recorded_file = p->settings->base_file;
    out->recorded_kind = is_compact(p) ? EVAL_ROWS_HIDDEN : EVAL_ROWS_CODES;
    return out->recorded_file ? measure(&out->n_recorded, p, why) : STATUS_OK;
}

enum status cli_recording_begin(void *self, struct status_why *why)
{
    struct cli_perplexity *p = self;
    const char *path = p->settings->base_file;
    if (!path)
        return STATUS_OK;
    if (strcmp(path, "-") == 0)
        return status_fail(why, STATUS_USAGE,
                           "-: a recording cannot go to standard output; expected the name of a "
                           "file");
    enum status status = is_compact(p) ? begin_compact(p, why) : begin_logits(p, why);
    if (status)
        return status;
    status = measure(&p->recording.n_bytes, p, why);
    p->recording.sink = eval_writer_sink(p->recording.writer);
    p->e.models.sink = p->windows.units.sink = &p->recording.sink;
    return status;
}

enum status cli_recording_check_resumed(void *self, struct status_why *why)
{
    const struct cli_perplexity *p = self;
    const struct eval_journal *journal = p->e.journal;
    if (p->recording.writer && eval_writer_is_whole(p->recording.writer) &&
        eval_journal_n(journal) < p->windows.plan.n_windows)
        return status_fail(why, STATUS_USAGE,
                           "%s: exists, but does not match %s; --force replaces it",
                           p->settings->base_file, eval_journal_path(journal));
    return STATUS_OK;
}

static enum status finish_logits(struct cli_perplexity *p, struct status_why *why)
{
    struct eval_writer *recording = p->recording.writer;
    p->recording.writer = NULL;
    enum status status = eval_writer_commit(recording, why);
    struct eval_logits_file file = {0};
    if (!status)
        status = eval_logits_open(&file, p->settings->base_file, why);
    if (!status)
        status = eval_logits_id(p->recording.id, &file, why);
    p->recording.n_bytes = file.n_bytes;
    eval_logits_close(&file);
    return status;
}

static enum status finish_compact(struct cli_perplexity *p, struct status_why *why)
{
    struct eval_writer *recording = p->recording.writer;
    p->recording.writer = NULL;
    p->recording.error = eval_compact_writer_error(recording);
    p->recording.n_bytes = eval_compact_writer_n_bytes(recording);
    enum status status = eval_compact_writer_id(p->recording.id, recording, why);
    if (!status)
        return eval_writer_commit(recording, why);
    eval_writer_close(recording, true);
    return status;
}

static void report(const struct cli_perplexity *p)
{
    const struct eval_plan *plan = &p->windows.plan;
    double n_megabytes = (double)p->recording.n_bytes / megabyte;
    size_t n = p->windows.documents.n;
    if (n)
        cli_say("assay: %s: %zu window%s of %zu document%s recorded, %.1f MB\n",
                p->settings->base_file, plan->n_windows, status_plural(plan->n_windows), n,
                status_plural(n), n_megabytes);
    else
        cli_say("assay: %s: %zu chunk%s of %zu tokens recorded, %.1f MB\n", p->settings->base_file,
                plan->n_windows, status_plural(plan->n_windows), plan->window, n_megabytes);
}

enum status cli_recording_finish(void *self, struct status_why *why)
{
    struct cli_perplexity *p = self;
    if (!p->windows.units.sink || !p->result.complete)
        return STATUS_OK;
    const char *path = p->settings->base_file;
    if (p->result.nonfinite.n) {
        cli_complain("assay: %s is not written: not all of its rows are finite\n", path);
        return STATUS_OK;
    }
    enum status status = is_compact(p) ? finish_compact(p, why) : finish_logits(p, why);
    if (!status)
        report(p);
    return status;
}

void cli_recording_close(struct cli_perplexity *p)
{
    eval_writer_close(p->recording.writer, p->e.settings->state_file);
}
