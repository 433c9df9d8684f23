/* assay perplexity --kl-divergence-base FILE: the model's log-probabilities into a file. */
#include <stdio.h>

#include "cli/evaluation.h"

static const double megabyte = 1e6;

enum status cli_recording_begin(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    if (!s->base_file)
        return STATUS_OK;
    struct eval_logits_recording recording = {
        .path = s->base_file,
        .plan = &e->plan,
        .stream = &e->stream,
        .n_vocab = model_head(e->model.model)->n_rows,
        .replace = s->force,
        .resume = s->state_file != NULL,
    };
    enum status status = eval_logits_writer_open(&e->recording, &recording, why);
    if (status == STATUS_OK)
        e->sink = eval_logits_writer_sink(e->recording);
    return status;
}

enum status cli_recording_check_resumed(const struct cli_evaluation *e, struct status_why *why)
{
    const struct eval_journal *journal = e->run_options.journal;
    if (!e->recording || !journal)
        return STATUS_OK;
    size_t n_kept = eval_logits_writer_n_kept(e->recording);
    size_t n_done = (size_t)eval_journal_n(journal);
    if (n_done > n_kept)
        return status_fail(why, STATUS_FORMAT,
                           "%s: has %zu windows, of which %s.part holds %zu; remove the journal to "
                           "begin anew",
                           eval_journal_path(journal), n_done, e->settings->base_file, n_kept);
    return STATUS_OK;
}

enum status cli_recording_finish(struct cli_evaluation *e, struct status_why *why)
{
    if (!e->recording || !e->result.complete)
        return STATUS_OK;
    const char *path = e->settings->base_file;
    if (e->result.nonfinite.n) {
        fprintf(stderr, "assay: %s is not written: not all of its records would be finite\n", path);
        return STATUS_OK;
    }
    struct eval_logits_writer *recording = e->recording;
    e->recording = NULL;
    enum status status = eval_logits_writer_commit(recording, why);
    struct eval_logits_file file = {0};
    if (status == STATUS_OK)
        status = eval_logits_open(&file, path, why);
    if (status == STATUS_OK)
        status = eval_logits_id(e->recorded_id, &file, why);
    if (status == STATUS_OK)
        fprintf(stderr, "assay: %s: %zu chunks of %zu tokens recorded, %.1f MB\n", path,
                file.shape.n_chunks, file.shape.n_ctx, (double)file.n_bytes / megabyte);
    eval_logits_close(&file);
    return status;
}
