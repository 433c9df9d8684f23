/* The evaluated model's rows into a file: assay perplexity --kl-divergence-base, assay record. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/perplexity/evaluation.h"
#include "cli/reference/description.h"
#include "eval/reference/compact_file.h"

static const double megabyte = 1e6;

bool cli_recording_runs(const struct cli_evaluation *e)
{
    return e->recording || e->compact;
}

/* Whether the journal, which has not been read yet, has anything. */
static bool may_go_on(const struct cli_evaluation *e)
{
    const struct eval_journal *journal = e->run_options.journal;
    return journal && eval_journal_n_behind(journal) > 0;
}

static enum status begin_logits(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    struct eval_logits_recording recording = {
        .path = s->base_file,
        .plan = &e->plan,
        .stream = &e->stream,
        .n_vocab = model_head(e->model.model)->n_rows,
        .replace = s->force,
        .resume = may_go_on(e),
        .journal = e->run_options.journal != NULL,
    };
    enum status status = eval_logits_writer_open(&e->recording, &recording, why);
    if (status == STATUS_OK)
        e->sink = eval_logits_writer_sink(e->recording);
    return status;
}

/* Whoever uses the file may stand in another folder. */
static enum status find_head(const struct cli_evaluation *e, char head_path[PATH_MAX],
                             struct status_why *why)
{
    if (realpath(e->model.path, head_path))
        return STATUS_OK;
    return status_fail(why, STATUS_IO, "%s: its absolute path cannot be found", e->model.path);
}

static enum status begin_compact(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    char head_path[PATH_MAX], *description = NULL;
    enum status status = s->head_by_path ? find_head(e, head_path, why) : STATUS_OK;
    if (status == STATUS_OK)
        status = cli_description_make(&description, e, why);
    if (status != STATUS_OK)
        return status;
    struct eval_compact_recording recording = {
        .path = s->base_file,
        .model = e->model.model,
        .model_id = e->model.id,
        .plan = &e->plan,
        .stream = &e->stream,
        .kind = (enum eval_compact_kind)s->hidden,
        .head_path = s->head_by_path ? head_path : NULL,
        .description = description,
        .replace = s->force,
        .resume = may_go_on(e),
    };
    status = eval_compact_writer_open(&e->compact, &recording, why);
    if (status == STATUS_OK)
        e->sink = eval_compact_writer_sink(e->compact);
    cJSON_free(description);
    return status;
}

enum status cli_recording_begin(struct cli_evaluation *e, struct status_why *why)
{
    const char *path = e->settings->base_file;
    if (!path)
        return STATUS_OK;
    if (strcmp(path, "-") == 0)
        return status_fail(why, STATUS_USAGE,
                           "-: a recording is written in any order, not to standard output; "
                           "expected the name of a file");
    return e->settings->record_format == CLI_RECORD_COMPACT ? begin_compact(e, why)
                                                            : begin_logits(e, why);
}

enum status cli_recording_check_resumed(const struct cli_evaluation *e, struct status_why *why)
{
    const struct eval_journal *journal = e->run_options.journal;
    bool is_whole = (e->compact && eval_compact_writer_is_whole(e->compact)) ||
                    (e->recording && eval_logits_writer_is_whole(e->recording));
    if (is_whole && eval_journal_n(journal) < e->plan.n_windows)
        return status_fail(why, STATUS_USAGE,
                           "%s: exists, and is not what %s tells of; --force replaces it",
                           e->settings->base_file, eval_journal_path(journal));
    return STATUS_OK;
}

static enum status finish_logits(struct cli_evaluation *e, struct status_why *why)
{
    struct eval_logits_writer *recording = e->recording;
    e->recording = NULL;
    enum status status = eval_logits_writer_commit(recording, why);
    struct eval_logits_file file = {0};
    if (status == STATUS_OK)
        status = eval_logits_open(&file, e->settings->base_file, why);
    if (status == STATUS_OK)
        status = eval_logits_id(e->recorded.id, &file, why);
    e->recorded.n_bytes = file.n_bytes;
    eval_logits_close(&file);
    return status;
}

static enum status finish_compact(struct cli_evaluation *e, struct status_why *why)
{
    struct eval_compact_writer *recording = e->compact;
    e->compact = NULL;
    e->recorded.error = eval_compact_writer_error(recording);
    e->recorded.n_bytes = eval_compact_writer_n_bytes(recording);
    enum status status = eval_compact_writer_id(e->recorded.id, recording, why);
    if (status == STATUS_OK)
        return eval_compact_writer_commit(recording, why);
    eval_compact_writer_close(recording, true);
    return status;
}

enum status cli_recording_finish(struct cli_evaluation *e, struct status_why *why)
{
    if (!cli_recording_runs(e) || !e->result.complete)
        return STATUS_OK;
    const char *path = e->settings->base_file;
    if (e->result.nonfinite.n) {
        fprintf(stderr, "assay: %s is not written: not all of its records would be finite\n", path);
        return STATUS_OK;
    }
    enum status status = e->compact ? finish_compact(e, why) : finish_logits(e, why);
    if (status == STATUS_OK)
        fprintf(stderr, "assay: %s: %zu chunk%s of %zu tokens recorded, %.1f MB\n", path,
                e->plan.n_windows, status_plural(e->plan.n_windows), e->plan.window,
                (double)e->recorded.n_bytes / megabyte);
    return status;
}

void cli_recording_close(struct cli_evaluation *e)
{
    bool keep = e->settings && e->settings->state_file;
    eval_logits_writer_close(e->recording, keep);
    eval_compact_writer_close(e->compact, keep);
}
