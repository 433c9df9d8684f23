#include "cli/kld/kld.h"

#include <stdlib.h>

#include "eval/reference/same_vocab.h"

enum { DEFAULT_CONTEXT = 512 };

static enum status allocate(struct cli_comparison *c, struct status_why *why)
{
    size_t n = c->settings->models.n;
    c->candidates = calloc(n, sizeof *c->candidates);
    c->models = calloc(n, sizeof *c->models);
    c->results = calloc(n, sizeof *c->results);
    c->tables = calloc(1 + n, sizeof *c->tables);
    if (!c->candidates || !c->models || !c->results || !c->tables)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu models", n);
    c->n_candidates = n;
    return STATUS_OK;
}

static enum status open_models(struct cli_comparison *c, struct status_why *why)
{
    const struct cli_kld *s = c->settings;
    bool hash = s->output.hash_model;
    struct cli_base_options base = {.load = &s->load, .hash = hash};
    enum status status = cli_base_open(&c->base, s->base, &base, why);
    for (size_t i = 0; i < c->n_candidates && status == STATUS_OK; i++) {
        struct cli_model *candidate = &c->candidates[i];
        status =
            cli_model_open(candidate, s->models.items[i], &s->load, s->llama_compat, hash, why);
        c->models[i] = candidate->model;
        if (status == STATUS_OK)
            status = cli_base_check(&c->base, candidate->model, why);
        if (status == STATUS_OK && i)
            status = eval_check_same_vocab(cli_comparison_reader(c), candidate->model, why);
    }
    return status;
}

/* The base's tokens, where it has them, else the text's. n_ctx: 0 for what is usual. */
static enum status take_tokens(struct cli_comparison *c, size_t *n_ctx, struct status_why *why)
{
    if (cli_base_has_tokens(&c->base)) {
        c->text = cli_base_text(&c->base);
        return cli_base_tokens(&c->base, &c->stream, n_ctx, why);
    }
    struct eval_stream_options options = {
        .bos_in_front = true,
        .parse_special = c->settings->text.parse_special,
    };
    *n_ctx = *n_ctx ? *n_ctx : DEFAULT_CONTEXT;
    enum status status = cli_text_open(&c->text, &c->settings->text, why);
    if (status == STATUS_OK)
        status = eval_stream_make(&c->stream, model_tokenizer(cli_comparison_reader(c)), &c->text,
                                  &options, why);
    return status;
}

static enum status make_tables(struct cli_comparison *c, struct status_why *why)
{
    size_t n_windows = c->plan.n_windows, n_scored = c->plan.n_scored;
    enum status status = eval_table_make(&c->tables[0], n_windows, n_scored, why);
    for (size_t i = 0; i < c->n_candidates && status == STATUS_OK; i++)
        status = eval_table_make_pair(&c->tables[1 + i], n_windows, n_scored, why);
    return status;
}

static enum status lay_windows(struct cli_comparison *c, struct status_why *why)
{
    const struct cli_kld *s = c->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(cli_comparison_reader(c));
    struct eval_plan_options plan = cli_plan_options(&s->windows, tokenizer);
    enum status status = take_tokens(c, &plan.n_ctx, why);
    if (status == STATUS_OK)
        status = cli_base_limit(&c->base, &plan, why);
    if (status == STATUS_OK)
        status = eval_plan_make(&c->plan, &plan, c->stream.n, why);
    if (status == STATUS_OK)
        status = cli_base_place(&c->base, &c->plan, s->llama_compat, why);
    if (status != STATUS_OK)
        return status;
    cli_print_remarks(c->plan.warning);
    cli_base_print_floor(&c->base, &s->machine);
    return make_tables(c, why);
}

enum status cli_comparison_open(struct cli_comparison *c, const struct cli_kld *settings,
                                struct status_why *why)
{
    *c = (struct cli_comparison){.settings = settings};
    enum status status = cli_job_open(&c->job, &settings->machine, &settings->output, why);
    if (status == STATUS_OK)
        status = allocate(c, why);
    if (status == STATUS_OK)
        status = open_models(c, why);
    if (status == STATUS_OK)
        status = lay_windows(c, why);
    if (status == STATUS_OK) {
        struct eval_task task = cli_comparison_task(c);
        status = cli_job_prepare(&c->job, &task, &c->run_options, why);
    }
    cli_job_loaded(&c->job);
    return status;
}

const struct model *cli_comparison_reader(const struct cli_comparison *c)
{
    return c->base.model.model ? c->base.model.model : c->models[0];
}

struct eval_task cli_comparison_task(const struct cli_comparison *c)
{
    struct eval_task task = {
        .model = c->base.model.model,
        .backends = c->job.backends.items,
        .n_backends = c->job.backends.n,
        .plan = &c->plan,
        .stream = &c->stream,
        .candidates = c->models,
        .n_candidates = c->n_candidates,
        .want_js = c->settings->js,
    };
    if (c->base.kind != CLI_BASE_MODEL) {
        task.base = &c->base.source;
        task.model = *task.candidates++;
        task.n_candidates--;
    }
    return task;
}

struct eval_kld_tables cli_comparison_tables(const struct cli_comparison *c, size_t i)
{
    return (struct eval_kld_tables){
        .plan = &c->plan,
        .stream = &c->stream,
        .base = &c->tables[0],
        .candidate = &c->tables[1 + i],
    };
}

void cli_comparison_close(struct cli_comparison *c)
{
    base_file_abandon(c->per_token_file);
    eval_journal_close(c->run_options.journal);
    for (size_t i = 0; i < c->n_candidates; i++) {
        eval_kld_free(&c->results[i]);
        eval_table_free(&c->tables[1 + i]);
        cli_model_close(&c->candidates[i]);
    }
    if (c->tables)
        eval_table_free(&c->tables[0]);
    free(c->results);
    free(c->tables);
    free(c->models);
    free(c->candidates);
    cli_base_close(&c->base);
    eval_stream_free(&c->stream);
    eval_text_free(&c->text);
    cli_job_close(&c->job);
}
