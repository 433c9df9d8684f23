#include "cli/evaluation.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "eval/clock.h"
#include "eval/identity.h"

enum {
    DEFAULT_CONTEXT = 512,
    DEFAULT_CONTEXT_FIXED = 4096,
    LLAMA_BATCH = 2048 /* llama-perplexity's -b where none is given */
};

static enum status open_backend(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    static const enum kern_isa isas[] = {
        [CLI_ISA_SCALAR] = KERN_ISA_SCALAR,
        [CLI_ISA_AVX2] = KERN_ISA_AVX2,
        [CLI_ISA_AVX512] = KERN_ISA_AVX512,
        [CLI_ISA_AUTO] = KERN_ISA_COUNT - 1,
    };
    int64_t n_threads = s->n_threads_batch ? s->n_threads_batch : s->n_threads;
    struct kern_cpu_options options = {
        .n_threads = n_threads > 0 ? (unsigned)n_threads : 0,
        .isa_cap = isas[s->isa],
        .gemm = s->gemm == CLI_GEMM_OPENBLAS ? KERN_GEMM_OPENBLAS : KERN_GEMM_OWN,
    };
    return kern_cpu_open(&e->backend, &options, why);
}

/* A number of the command line; the model takes 0 for "as the file says". */
static float given_or_zero(double value)
{
    return value > 0 ? (float)value : 0; /* 0 for NaN, too */
}

static enum status open_model(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    static const char *const scalings[] = {"none", "linear", "yarn"};
    double freq_scale = s->rope_scale > 0 ? 1 / s->rope_scale : s->rope_freq_scale;
    bool has_ext_factor = s->yarn_ext_factor >= 0; /* false for NaN, too */
    struct model_options options = {
        .tokenizer_pre = s->tokenizer_pre,
        .allow_unknown = s->allow_unknown,
        .ignore_sliding_window = s->llama_compat,
        .overrides = (const char *const *)s->overrides.items,
        .n_overrides = s->overrides.n,
        .rope_freq_base = given_or_zero(s->rope_freq_base),
        .rope_freq_scale = given_or_zero(freq_scale),
        .rope_scaling = s->rope_scaling >= 0 ? scalings[s->rope_scaling] : NULL,
        .has_yarn_ext_factor = has_ext_factor,
        .yarn_ext_factor = has_ext_factor ? (float)s->yarn_ext_factor : 0,
        .yarn_attn_factor = given_or_zero(s->yarn_attn_factor),
        .yarn_beta_fast = given_or_zero(s->yarn_beta_fast),
        .yarn_beta_slow = given_or_zero(s->yarn_beta_slow),
        .yarn_original_ctx = (uint32_t)s->yarn_original_ctx,
    };
    struct gguf_file *file;
    enum status status = gguf_open(&file, s->model, why);
    if (status == STATUS_OK)
        status = eval_model_id(e->model_id, file, why);
    if (status == STATUS_OK && s->hash_model)
        status = eval_file_hash(e->model_sha256, file, why);
    if (status != STATUS_OK) {
        gguf_close(file);
        return status;
    }
    return model_open(&e->model, file, &options, why);
}

static enum status read_text(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    if (s->prompt)
        return eval_text_copy(&e->text, s->prompt, strlen(s->prompt), why);
    if (s->binary_file)
        return eval_text_read_whole(&e->text, s->binary_file, EVAL_TEXT_MAX_BYTES, why);
    return eval_text_read(&e->text, s->text_file, EVAL_TEXT_MAX_BYTES, why);
}

static enum status lay_windows(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_perplexity *s = e->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(e->model);
    bool fixed = s->protocol == CLI_PROTOCOL_FIXED;
    struct eval_stream_options stream = {
        .bos_in_front = !fixed,
        .split_lines = s->split_lines,
        .parse_special = s->parse_special,
    };
    enum status status = eval_stream_make(&e->stream, tokenizer, &e->text, &stream, why);
    if (status != STATUS_OK)
        return status;
    int64_t n_ctx = s->n_ctx ? s->n_ctx : fixed ? DEFAULT_CONTEXT_FIXED : DEFAULT_CONTEXT;
    struct eval_plan_options plan = {
        .protocol = fixed       ? EVAL_PROTOCOL_FIXED
                    : s->stride ? EVAL_PROTOCOL_STRIDED
                                : EVAL_PROTOCOL_DEFAULT,
        .n_ctx = (size_t)n_ctx,
        .stride = (size_t)s->stride,
        .max_windows = s->n_chunks > 0 ? (size_t)s->n_chunks : 0,
        .bos = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1,
        .llama_compat = s->llama_compat,
        .compat_batch = s->n_batch ? (size_t)s->n_batch : LLAMA_BATCH,
    };
    status = eval_plan_make(&e->plan, &plan, e->stream.n, why);
    if (status == STATUS_OK)
        status = eval_table_make(&e->table, e->plan.n_windows, e->plan.n_scored, why);
    return status;
}

/* Each line of a text that is there, as a line of its own on standard error. */
static void print_remarks(const char *lines)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        fprintf(stderr, "assay: note: %.*s\n", (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

enum status cli_evaluation_open(struct cli_evaluation *e, const struct cli_perplexity *settings,
                                struct status_why *why)
{
    *e = (struct cli_evaluation){.settings = settings, .started = time(NULL)};
    double started = eval_clock_seconds();
    e->run_options.batch_tokens = (size_t)settings->n_batch;
    enum status status = open_backend(e, why);
    if (status == STATUS_OK)
        status = open_model(e, why);
    if (status == STATUS_OK)
        print_remarks(model_remarks(e->model));
    if (status == STATUS_OK)
        status = read_text(e, why);
    if (status == STATUS_OK)
        status = lay_windows(e, why);
    if (status == STATUS_OK) {
        print_remarks(e->plan.warning);
        struct eval_task task = cli_evaluation_task(e);
        e->memory = eval_run_memory(&task, &e->run_options);
    }
    e->seconds_to_load = eval_clock_seconds() - started;
    return status;
}

struct eval_task cli_evaluation_task(const struct cli_evaluation *e)
{
    return (struct eval_task){
        .model = e->model,
        .backend = e->backend,
        .plan = &e->plan,
        .stream = &e->stream,
    };
}

void cli_evaluation_close(struct cli_evaluation *e)
{
    eval_file_abandon(e->json_file);
    eval_file_abandon(e->per_token_file);
    eval_curve_free(&e->curve);
    eval_table_free(&e->table);
    eval_stream_free(&e->stream);
    eval_text_free(&e->text);
    model_close(e->model);
    kern_close(e->backend);
}
