/*
 * The result of assay perplexity as JSON. Everything outside `run` is a function of the model,
 * the text and the settings: the same on every machine, for every batch and thread count.
 */
#include <math.h>
#include <string.h>
#include <sys/resource.h>

#include "cli/evaluation.h"
#include "cli/json.h"
#include "cli/versions.h"

enum { SCHEMA_VERSION = 1 };

static const char *const bos_names[] = {
    [EVAL_BOS_NONE] = "none",
    [EVAL_BOS_REPLACES] = "replaces",
    [EVAL_BOS_IN_FRONT] = "in-front",
};

/* A number of the command line; null where the file's is used. */
static void add_forced(struct cli_json *json, cJSON *object, const char *key, double value)
{
    cli_json_real(json, object, key, value >= 0 ? value : (double)NAN);
}

static void add_list(struct cli_json *json, cJSON *object, const char *key,
                     const struct cli_list *items)
{
    cJSON *list = cli_json_list(json, object, key);
    for (size_t i = 0; i < items->n; i++)
        cli_json_text(json, list, NULL, items->items[i]);
}

/* Everything that the command line can say and that can change a figure. */
static void add_settings(struct cli_json *json, const struct cli_evaluation *e)
{
    const struct cli_perplexity *s = e->settings;
    static const char *const scalings[] = {"none", "linear", "yarn"};
    cJSON *o = cli_json_object(json, json->root, "settings");
    cli_json_text(json, o, "protocol", eval_protocol_name(e->plan.options.protocol));
    cli_json_uint(json, o, "n_ctx", e->plan.options.n_ctx);
    cli_json_uint(json, o, "stride", e->plan.options.stride);
    cli_json_int(json, o, "chunks", s->n_chunks);
    cli_json_flag(json, o, "split_lines", s->split_lines);
    cli_json_flag(json, o, "parse_special", s->parse_special);
    cli_json_flag(json, o, "llama_compat", s->llama_compat);
    cli_json_text(json, o, "tokenizer_pre", s->tokenizer_pre);
    cli_json_flag(json, o, "allow_unknown", s->allow_unknown);
    add_list(json, o, "override_kv", &s->overrides);
    cli_json_text(json, o, "rope_scaling", s->rope_scaling >= 0 ? scalings[s->rope_scaling] : NULL);
    add_forced(json, o, "rope_scale", s->rope_scale);
    add_forced(json, o, "rope_freq_base", s->rope_freq_base);
    add_forced(json, o, "rope_freq_scale", s->rope_freq_scale);
    add_forced(json, o, "yarn_orig_ctx",
               s->yarn_original_ctx ? (double)s->yarn_original_ctx : (double)NAN);
    add_forced(json, o, "yarn_ext_factor", s->yarn_ext_factor);
    add_forced(json, o, "yarn_attn_factor", s->yarn_attn_factor);
    add_forced(json, o, "yarn_beta_fast", s->yarn_beta_fast);
    add_forced(json, o, "yarn_beta_slow", s->yarn_beta_slow);
    cli_json_text(json, o, "precision", "exact");
    cli_json_text(json, o, "gemm", s->gemm == CLI_GEMM_OPENBLAS ? "openblas" : "own");
    cli_json_flag(json, o, "bit_stable", s->gemm == CLI_GEMM_OWN);
}

static void add_model(struct cli_json *json, const struct cli_evaluation *e)
{
    const struct model_hparams *hparams = model_hparams(e->model);
    const struct gguf_file *file = model_file(e->model);
    uint64_t n_weights = 0, n_bytes = 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        n_weights += tensor->n_rows * tensor->ne[0];
        n_bytes += tensor->n_bytes;
    }
    cJSON *o = cli_json_object(json, json->root, "model");
    cli_json_text(json, o, "id", e->model_id);
    cli_json_text(json, o, "sha256", *e->model_sha256 ? e->model_sha256 : NULL);
    cli_json_text(json, o, "architecture", hparams->architecture);
    cli_json_text(json, o, "name", hparams->name);
    cli_json_uint(json, o, "n_weights", n_weights);
    cli_json_uint(json, o, "n_bytes", n_bytes);
    cli_json_uint(json, o, "n_vocab", hparams->n_vocab);
    cJSON *remarks = cli_json_list(json, o, "remarks");
    for (const char *line = model_remarks(e->model); *line;) {
        size_t n = strcspn(line, "\n");
        cli_json_bytes(json, remarks, NULL, line, n);
        line += n + (line[n] == '\n');
    }
}

static void add_text(struct cli_json *json, const struct cli_evaluation *e)
{
    cJSON *text = cli_json_object(json, json->root, "text");
    cli_json_text(json, text, "sha256", e->text.sha256);
    cli_json_uint(json, text, "n_bytes", e->text.file_bytes);
    cli_json_flag(json, text, "newline_dropped", e->text.newline_dropped);

    cJSON *tokens = cli_json_object(json, json->root, "tokens");
    const struct model_tokenizer *tokenizer = model_tokenizer(e->model);
    cli_json_text(json, tokens, "sha256", e->stream.sha256);
    cli_json_uint(json, tokens, "n", e->stream.n);
    cli_json_text(json, tokens, "tokenizer", model_tokenizer_kind(tokenizer));
    cli_json_text(json, tokens, "pre", model_tokenizer_pre(tokenizer));
    cli_json_int(json, tokens, "bos", e->plan.options.bos);
    cli_json_flag(json, tokens, "bos_before_text", e->stream.has_bos);
    cli_json_text(json, tokens, "bos_in_windows", bos_names[e->plan.bos_use]);
}

static void add_windows(struct cli_json *json, const struct cli_evaluation *e)
{
    cJSON *plan = cli_json_object(json, json->root, "windows");
    cli_json_uint(json, plan, "n", e->plan.n_windows);
    cli_json_uint(json, plan, "n_tokens", e->plan.window);
    cli_json_uint(json, plan, "step", e->plan.step);
    cli_json_uint(json, plan, "n_inputs", e->plan.n_inputs);
    cli_json_uint(json, plan, "first_scored", e->plan.first_scored);
    cJSON *sums = cli_json_list(json, plan, "sums");
    for (size_t w = 0; w < e->plan.n_windows; w++) {
        if (!e->table.done[w])
            continue;
        struct eval_window_sums s = eval_window_sums(&e->table, w);
        cJSON *o = cli_json_object(json, sums, NULL);
        cli_json_uint(json, o, "window", w);
        cli_json_uint(json, o, "n_tokens", s.n_tokens);
        cli_json_real(json, o, "nll", s.nll);
        cli_json_real(json, o, "nll_squared", s.nll_squared);
    }
}

static void add_curve(struct cli_json *json, const struct cli_evaluation *e)
{
    cJSON *list = cli_json_list(json, json->root, "context_curve");
    for (size_t i = 0; i < e->curve.n_positions; i++) {
        cJSON *o = cli_json_object(json, list, NULL);
        cli_json_uint(json, o, "position", e->plan.first_scored + i);
        cli_json_real(json, o, "nll", e->curve.nll[i]);
        cli_json_real(json, o, "nll_error", e->curve.nll_error[i]);
    }
}

static void add_result(struct cli_json *json, const struct cli_evaluation *e)
{
    const struct eval_perplexity_result *r = &e->result;
    cJSON *o = cli_json_object(json, json->root, "result");
    cli_json_flag(json, o, "complete", r->complete);
    cli_json_uint(json, o, "n_windows", r->n_windows);
    cli_json_uint(json, o, "n_tokens", r->n_tokens);
    cli_json_real(json, o, "ppl", r->figures.ppl);
    cli_json_real(json, o, "ppl_error", r->figures.ppl_error);
    cli_json_real(json, o, "nll", r->figures.nll);
    cli_json_real(json, o, "nll_error", r->figures.nll_error);
    cli_json_real(json, o, "n_bytes", r->n_bytes);
    cli_json_real(json, o, "bits_per_byte", r->bits_per_byte);
    cJSON *nonfinite = cli_json_object(json, o, "nonfinite");
    cli_json_uint(json, nonfinite, "n", r->nonfinite.n);
    if (r->nonfinite.n) {
        cli_json_uint(json, nonfinite, "first_window", r->nonfinite.window);
        cli_json_uint(json, nonfinite, "first_position", r->nonfinite.position);
        cli_json_int(json, nonfinite, "first_token_id", r->nonfinite.token);
        cli_json_real(json, nonfinite, "finite_nll", r->finite_nll);
    }
}

static void add_versions(struct cli_json *json, cJSON *run)
{
    struct cli_versions versions;
    cli_versions_read(&versions);
    cJSON *o = cli_json_object(json, run, "versions");
    cli_json_text(json, o, "assay", versions.assay);
    cli_json_text(json, o, "compiler", versions.compiler);
    cli_json_text(json, o, "build", versions.build);
    cli_json_text(json, o, "pcre2", versions.pcre2);
    cli_json_text(json, o, "cjson", versions.cjson);
    cli_json_text(json, o, "openssl", versions.openssl);
    cli_json_text(json, o, "openblas", *versions.openblas ? versions.openblas : NULL);
}

/* Whatever may differ from run to run and machine to machine. */
static void add_run(struct cli_json *json, const struct cli_evaluation *e)
{
    const struct cli_perplexity *s = e->settings;
    char started[32] = "";
    struct tm utc;
    if (gmtime_r(&e->started, &utc))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);
    struct rusage usage = {0};
    getrusage(RUSAGE_SELF, &usage);

    cJSON *run = cli_json_object(json, json->root, "run");
    cli_json_text(json, run, "model_file", s->model);
    cli_json_text(json, run, "text_file", s->binary_file ? s->binary_file : s->text_file);
    cli_json_text(json, run, "started", started);
    cli_json_real(json, run, "seconds_to_load", e->seconds_to_load);
    cli_json_real(json, run, "seconds", e->stats.seconds);
    cli_json_real(json, run, "seconds_forward", e->stats.times.forward);
    cli_json_real(json, run, "seconds_head", e->stats.times.head);
    cli_json_uint(json, run, "n_inputs", e->stats.n_inputs);
    cli_json_real(json, run, "tokens_per_second", (double)e->stats.n_inputs / e->stats.seconds);
    cli_json_uint(json, run, "n_batches", e->stats.n_batches);
    cli_json_uint(json, run, "max_batch_tokens", e->stats.max_batch_tokens);
    cli_json_text(json, run, "isa", kern_isa_name(kern_cpu_isa(e->backend)));
    cli_json_uint(json, run, "n_threads", kern_cpu_n_threads(e->backend));
    cli_json_real(json, run, "memory_bound_bytes", e->memory.total);
    cli_json_int(json, run, "memory_peak_bytes", usage.ru_maxrss * INT64_C(1024));
    add_versions(json, run);
}

enum status cli_report_json(const struct cli_evaluation *e, struct eval_file *file,
                            struct status_why *why)
{
    struct cli_json json;
    cli_json_begin(&json);
    cli_json_text(&json, json.root, "schema", "assay-perplexity");
    cli_json_int(&json, json.root, "schema_version", SCHEMA_VERSION);
    add_result(&json, e);
    add_settings(&json, e);
    add_model(&json, e);
    add_text(&json, e);
    add_windows(&json, e);
    if (e->settings->context_curve)
        add_curve(&json, e);
    add_run(&json, e);
    enum status status = cli_json_write(&json, file, why);
    cli_json_free(&json);
    return status;
}
