#include "evaluation.h"

#include "kernels/backend.h"
#include "tests/harness/cmocka.h"

struct setup setup_usual(const char *model, size_t n_ctx, size_t n_windows)
{
    return (struct setup){.model = model,
                          .text = ASSAY_SOURCE_DIR "/data/text.txt",
                          .plan = {.n_ctx = n_ctx, .max_windows = n_windows},
                          .cpu = {.isa_cap = KERN_ISA_COUNT - 1, .n_threads = 2}};
}

static void must(enum status status, const struct status_why *why)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), why->text);
}

static void open_model(struct model **out, const char *path, float soft_cap)
{
    struct status_why why = {0};
    struct gguf_file *file;
    struct model_options options = {0};
    must(gguf_open(&file, path, &why), &why);
    must(model_open(out, file, &options, &why), &why);
    if (soft_cap > 0)
        ((struct model_hparams *)(uintptr_t)model_hparams(*out))->logit_soft_cap = soft_cap;
}

void evaluation_open(struct evaluation *e, const struct setup *setup)
{
    *e = (struct evaluation){0};
    struct status_why why = {0};
    open_model(&e->model, setup->model, setup->soft_cap);
    e->n_candidates = setup->n_candidates;
    for (size_t i = 0; i < e->n_candidates; i++)
        open_model(&e->candidates[i], setup->candidates[i], setup->soft_cap);
    must(kern_cpu_open(&e->backend, &setup->cpu, &why), &why);
    kern_set_cancel(e->backend, setup->cancel);
    must(base_text_read(&e->text, setup->text, BASE_TEXT_MAX_BYTES, &why), &why);

    const struct model_tokenizer *tokenizer = model_tokenizer(e->model);
    struct eval_stream_options stream_options = {
        .bos_in_front = setup->plan.protocol != EVAL_PROTOCOL_FIXED,
        .split_lines = setup->split_lines,
    };
    must(eval_stream_make(&e->stream, tokenizer, &e->text, &stream_options, &why), &why);
    struct eval_plan_options plan_options = setup->plan;
    plan_options.bos = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1;
    must(eval_plan_make(&e->plan, &plan_options, e->stream.n, &why), &why);
    must(eval_table_make(&e->table, EVAL_N_COLUMNS, e->plan.n_windows, e->plan.n_scored, &why),
         &why);
    e->n_pairs = e->n_candidates + (setup->base ? 1 : 0);
    for (size_t i = 0; i < e->n_pairs; i++)
        must(eval_table_make(&e->candidate_tables[i], EVAL_N_PAIR_COLUMNS, e->plan.n_windows,
                             e->plan.n_scored, &why),
             &why);
}

enum status evaluation_run(struct evaluation *e, const struct setup *setup, struct status_why *why)
{
    struct eval_models models = {.model = e->model,
                                 .backends = setup->n_backends ? setup->backends : &e->backend,
                                 .n_backends = setup->n_backends ? setup->n_backends : 1,
                                 .candidates = (const struct model *const *)e->candidates,
                                 .n_candidates = e->n_candidates,
                                 .want_js = setup->want_js,
                                 .base = setup->base,
                                 .sink = setup->sink,
                                 .streams = setup->streams};
    struct cluster_rank_crew ranks = {0};
    if (setup->team)
        cluster_rank_crew_join(&ranks, setup->team, setup->n_shares ? setup->n_shares : 1, &models);
    /* The tables share their cells with those that stay. */
    struct eval_table tables[2 + MAX_CANDIDATES] = {e->table};
    for (size_t i = 0; i < e->n_pairs; i++)
        tables[1 + i] = e->candidate_tables[i];
    struct eval_windows windows = {.plan = &e->plan,
                                   .stream = &e->stream,
                                   .tables = tables,
                                   .n_tables = 1 + e->n_pairs,
                                   .sink = setup->sink};
    eval_windows_open(&windows);
    windows.units.n_look = setup->n_look;
    if (setup->link) {
        enum status served = cluster_serve(&windows.units, &models, setup->link, why);
        eval_windows_close(&windows);
        return served;
    }
    enum status status = eval_run_resume(&windows.units, setup->run.journal, why);
    if (!status)
        status = eval_run_prepare(&windows.units, &models, setup->batch_tokens, why);
    if (!status) {
        e->memory = eval_run_memory(&windows.units, &models, &setup->run);
        status = eval_run(&windows.units, &models, &setup->run, &e->stats, why);
    }
    eval_windows_close(&windows);
    eval_perplexity(&e->result, &e->plan, &e->stream, &e->table);
    return status;
}

void evaluate(struct evaluation *e, const struct setup *setup)
{
    struct status_why why = {0};
    evaluation_open(e, setup);
    must(evaluation_run(e, setup, &why), &why);
}

void evaluation_close(struct evaluation *e)
{
    eval_table_free(&e->table);
    for (size_t i = 0; i < e->n_pairs; i++)
        eval_table_free(&e->candidate_tables[i]);
    for (size_t i = 0; i < e->n_candidates; i++)
        model_close(e->candidates[i]);
    eval_stream_free(&e->stream);
    base_text_free(&e->text);
    kern_close(e->backend);
    model_close(e->model);
    *e = (struct evaluation){0};
}

struct eval_kld_tables evaluation_pair(const struct evaluation *e, size_t candidate)
{
    return (struct eval_kld_tables){.plan = &e->plan,
                                    .stream = &e->stream,
                                    .base = &e->table,
                                    .candidate = &e->candidate_tables[candidate]};
}
