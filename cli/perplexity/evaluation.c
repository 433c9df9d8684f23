#include "cli/perplexity/evaluation.h"

enum {
    DEFAULT_CONTEXT = 512,
    DEFAULT_CONTEXT_FIXED = 4096,
    LLAMA_BATCH = 2048 /* llama-perplexity's -b where none is given */
};

static enum status lay_windows(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(e->model.model);
    bool fixed = s->protocol == CLI_PROTOCOL_FIXED;
    struct eval_stream_options stream = {
        .bos_in_front = !fixed,
        .split_lines = s->split_lines,
        .parse_special = s->text.parse_special,
    };
    enum status status = eval_stream_make(&e->stream, tokenizer, &e->text, &stream, why);
    if (status != STATUS_OK)
        return status;
    struct eval_plan_options plan = cli_plan_options(&s->windows, tokenizer);
    if (plan.n_ctx == 0)
        plan.n_ctx = fixed ? DEFAULT_CONTEXT_FIXED : DEFAULT_CONTEXT;
    if (fixed)
        plan.protocol = EVAL_PROTOCOL_FIXED;
    else if (s->stride)
        plan.protocol = EVAL_PROTOCOL_STRIDED;
    plan.stride = (size_t)s->stride;
    plan.llama_compat = s->llama_compat;
    plan.compat_batch = s->machine.n_batch ? (size_t)s->machine.n_batch : LLAMA_BATCH;
    status = eval_plan_make(&e->plan, &plan, e->stream.n, why);
    if (status == STATUS_OK)
        status = eval_table_make(&e->table, e->plan.n_windows, e->plan.n_scored, why);
    return status;
}

enum status cli_evaluation_open(struct cli_evaluation *e, const struct cli_perplexity *settings,
                                struct status_why *why)
{
    *e = (struct cli_evaluation){.settings = settings};
    enum status status = cli_job_open(&e->job, &settings->machine, &settings->output, why);
    if (status == STATUS_OK)
        status = cli_model_open(&e->model, settings->model, &settings->load, settings->llama_compat,
                                settings->output.hash_model, why);
    if (status == STATUS_OK)
        status = cli_text_open(&e->text, &settings->text, why);
    if (status == STATUS_OK)
        status = lay_windows(e, why);
    /* From here on there may be files that an interruption must not leave behind. */
    if (status == STATUS_OK) {
        cli_job_catch_interrupts(&e->job);
        status = cli_evaluation_open_journal(e, why);
    }
    if (status == STATUS_OK)
        status = cli_recording_begin(e, why);
    if (status == STATUS_OK) {
        cli_print_remarks(e->plan.warning);
        struct eval_task task = cli_evaluation_task(e);
        status = cli_job_prepare(&e->job, &task, &e->run_options, why);
    }
    cli_job_loaded(&e->job);
    return status;
}

struct eval_task cli_evaluation_task(const struct cli_evaluation *e)
{
    return (struct eval_task){
        .model = e->model.model,
        .backends = e->job.backends.items,
        .n_backends = e->job.backends.n,
        .plan = &e->plan,
        .stream = &e->stream,
        .sink = cli_recording_runs(e) ? &e->sink : NULL,
    };
}

void cli_evaluation_close(struct cli_evaluation *e)
{
    base_file_abandon(e->per_token_file);
    eval_journal_close(e->run_options.journal);
    cli_recording_close(e);
    eval_curve_free(&e->curve);
    eval_table_free(&e->table);
    eval_stream_free(&e->stream);
    eval_text_free(&e->text);
    cli_model_close(&e->model);
    cli_job_close(&e->job);
}
