#include "cli/output/json_parts.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/system/system.h"
#include "base/text/printable.h"
#include "cli/host.h"
#include "cli/options/common.h"
#include "cli/output/model_parts.h"
#include "cli/process/version.h"
#include "cli/session/swaps.h"
#include "clients/activations/rule.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"

static const char *const bos_names[] = {
    [EVAL_BOS_NONE] = "none",
    [EVAL_BOS_REPLACES] = "replaces",
    [EVAL_BOS_IN_FRONT] = "in-front",
};

/* A number of the command line; null where the file's is used. */
static void add_forced(struct base_json *json, cJSON *object, const char *key, double value)
{
    base_json_real(json, object, key, value >= 0 ? value : (double)NAN);
}

/* A number that is positive where it is given; else null. */
static void add_forced_positive(struct base_json *json, cJSON *object, const char *key,
                                double value)
{
    add_forced(json, object, key, value > 0 ? value : (double)NAN);
}

void cli_json_add_window_settings(struct base_json *json, cJSON *o,
                                  const struct cli_window_settings *s, const struct eval_plan *plan)
{
    base_json_uint(json, o, "n_ctx", plan->options.n_ctx);
    base_json_int(json, o, "chunks", s->n_chunks);
    base_json_int(json, o, "chunk_from", s->chunk_from);
}

void cli_json_add_text_settings(struct base_json *json, cJSON *o,
                                const struct cli_text_settings *text)
{
    base_json_flag(json, o, "parse_special", text->parse_special);
    base_json_flag(json, o, "escape", text->escape);
}

static void add_model_settings(struct base_json *json, cJSON *o, const struct cli_model_settings *s)
{
    static const char *const scalings[] = {"none", "linear", "yarn"};
    base_json_text(json, o, "tokenizer_pre", s->tokenizer_pre);
    if (s->tokenizer)
        base_json_text(json, o, "tokenizer", s->tokenizer);
    base_json_flag(json, o, "allow_unknown", s->allow_unknown);
    cJSON *overrides = base_json_list(json, o, "override_kv");
    for (size_t i = 0; i < s->overrides.n; i++)
        base_json_text(json, overrides, NULL, s->overrides.items[i]);
    base_json_text(json, o, "rope_scaling",
                   s->rope_scaling >= 0 ? scalings[s->rope_scaling] : NULL);
    add_forced(json, o, "rope_scale", s->rope_scale);
    add_forced_positive(json, o, "rope_freq_base", s->rope_freq_base);
    add_forced_positive(json, o, "rope_freq_scale", s->rope_freq_scale);
    add_forced_positive(json, o, "yarn_orig_ctx", (double)s->yarn_original_ctx);
    add_forced(json, o, "yarn_ext_factor", s->yarn_ext_factor);
    add_forced(json, o, "yarn_attn_factor", s->yarn_attn_factor);
    add_forced(json, o, "yarn_beta_fast", s->yarn_beta_fast);
    add_forced(json, o, "yarn_beta_slow", s->yarn_beta_slow);
    if (s->experts_used)
        base_json_int(json, o, "experts_used", s->experts_used);
    if (!s->cache_k.n && !s->cache_v.n)
        return;
    cJSON *k = base_json_list(json, o, "cache_type_k"),
          *v = base_json_list(json, o, "cache_type_v");
    for (size_t i = 0; i < cli_kv_count(s); i++) {
        struct model_kv_types types = cli_kv_types(s, i);
        char text[CLI_KV_SPELLING];
        base_json_text(json, k, NULL, cli_kv_spelling(text, types.k, &types.k_but));
        base_json_text(json, v, NULL, cli_kv_spelling(text, types.v, &types.v_but));
    }
    base_json_flag(json, o, "kv_rotation", !s->no_kv_rotation);
}

void cli_json_add_computation(struct base_json *json, cJSON *o, const struct cli_evaluation *e)
{
    add_model_settings(json, o, &e->settings->load);
    const struct cli_machine_settings *s = &e->settings->machine;
    if (s->activations)
        base_json_text(json, o, "activations", act_rule_name(s->activations));
    base_json_text(json, o, "precision", cli_precision_name(s->precision));
    base_json_text(json, o, "gemm", s->gemm == CLI_GEMM_OPENBLAS ? "openblas" : "own");
    base_json_text(json, o, "products", kern_describe(e->backends.items[0]).products);
    base_json_flag(json, o, "bit_stable", s->gemm == CLI_GEMM_OWN);
}

/* A text of the file's metadata, or null. */
static void add_metadata(struct base_json *json, cJSON *object, const char *key,
                         const struct gguf_file *file, const char *metadata_key)
{
    struct base_string text;
    bool found = false;
    if (!gguf_get_string(file, metadata_key, &text, &found, NULL) && found)
        base_json_bytes(json, object, key, text.data, text.n_bytes);
    else
        base_json_text(json, object, key, NULL);
}

/* What was in force beside what was opened. */
static void add_swapped(struct base_json *json, cJSON *model, const struct cli_shards *shards)
{
    cJSON *list = base_json_list(json, model, "swapped");
    struct cli_swapped tensor;
    for (size_t at = 0; cli_shards_next(shards, &at, &tensor);) {
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "name", tensor.name);
        base_json_text(json, o, "type", tensor.type);
        base_json_uint(json, o, "n_bytes", tensor.n_bytes);
        base_json_text(json, o, "sha256", tensor.sha256);
    }
}

void cli_json_add_remarks(struct base_json *json, cJSON *parent, const char *lines)
{
    cJSON *remarks = base_json_list(json, parent, "remarks");
    for (const char *line = lines; *line;) {
        size_t n = strcspn(line, "\n");
        base_json_bytes(json, remarks, NULL, line, n);
        line += n + (line[n] == '\n');
    }
}

cJSON *cli_json_add_model(struct base_json *json, cJSON *parent, const char *key,
                          const struct cli_model *model, bool with_file)
{
    const struct model_hparams *hparams = model_hparams(model->model);
    struct cli_model_size size = cli_model_size(model);
    cJSON *o = base_json_object(json, parent, key);
    if (with_file)
        base_json_text(json, o, "file", base_file_name(model->path));
    if (with_file && model->label)
        base_json_text(json, o, "label", model->label);
    base_json_text(json, o, "id", model->id);
    base_json_text(json, o, "sha256", *model->sha256 ? model->sha256 : NULL);
    base_json_text(json, o, "architecture", hparams->architecture);
    base_json_text(json, o, "name", hparams->name);
    const struct gguf_file *file = model_file(model->model);
    struct gguf_quantisation quantisation = gguf_quantisation(file);
    base_json_text(json, o, "quantisation", quantisation.name);
    if (quantisation.types_of)
        base_json_text(json, o, "types_of", quantisation.types_of);
    add_metadata(json, o, "imatrix_file", file, "quantize.imatrix.file");
    add_metadata(json, o, "imatrix_dataset", file, "quantize.imatrix.dataset");
    base_json_uint(json, o, "n_weights", size.n_weights);
    base_json_uint(json, o, "n_bytes", size.n_bytes);
    base_json_real(json, o, "bits_per_weight", size.bits_per_weight);
    base_json_uint(json, o, "n_vocab", hparams->n_vocab);
    if (model->shards)
        add_swapped(json, o, model->shards);
    else if (model->swaps)
        cli_swaps_add_json(json, o, model->swaps);
    cli_json_add_kv_types(json, o, hparams);
    if (hparams->experts.n_used_chosen)
        base_json_uint(json, o, "experts_used", hparams->experts.n_used);
    if (with_file) { /* they follow from the file */
        cli_json_add_origins(json, o, file);
        cli_json_add_types(json, o, model->model);
        cli_json_add_cache(json, o, hparams);
    }
    cli_json_add_remarks(json, o, model_remarks(model->model));
    return o;
}

cJSON *cli_json_add_input(struct base_json *json, const struct base_text *input)
{
    cJSON *o = base_json_object(json, json->root, "text");
    base_json_text(json, o, "sha256", input->sha256);
    base_json_uint(json, o, "n_bytes", input->file_bytes);
    return o;
}

/* All files as one text. */
static void add_files(struct base_json *json, const struct eval_documents *d)
{
    cJSON *o = base_json_object(json, json->root, "text");
    uint64_t n_bytes = 0;
    for (size_t i = 0; i < d->n_files; i++)
        n_bytes += d->files[i].n_bytes;
    base_json_text(json, o, "sha256", d->text_sha256);
    base_json_uint(json, o, "n_bytes", n_bytes);
    base_json_uint(json, o, "n_files", d->n_files);
}

static void add_documents(struct base_json *json, cJSON *tokens, const struct cli_windows *w)
{
    const struct eval_documents *d = &w->documents;
    cJSON *o = base_json_object(json, tokens, "documents");
    base_json_uint(json, o, "n", d->n);
    base_json_uint(json, o, "n_scored", d->n_scored);
    base_json_uint(json, o, "n_windows", w->plan.n_of_text);
    base_json_text(json, o, "sha256", d->sha256);
    if (!d->n_conversations)
        return;
    cJSON *chats = base_json_object(json, o, "conversations");
    base_json_uint(json, chats, "n", d->n_conversations);
    base_json_uint(json, chats, "n_refused", d->refused.n);
    base_json_text(json, chats, "mask", cli_mask_name(d->mask));
    base_json_text(json, chats, "template_sha256", *d->template_sha256 ? d->template_sha256 : NULL);
}

cJSON *cli_json_add_text(struct base_json *json, const struct cli_windows *w,
                         const struct model_tokenizer *tokenizer)
{
    const struct eval_stream *stream = &w->stream;
    const struct eval_plan *plan = &w->plan;
    if (w->documents.n)
        add_files(json, &w->documents);
    else if (*w->text.sha256) {
        cJSON *o = cli_json_add_input(json, &w->text);
        base_json_flag(json, o, "newline_dropped", w->text.newline_dropped);
        if (w->text.converted_from)
            base_json_text(json, o, "converted_from", w->text.converted_from);
    } else
        base_json_text(json, json->root, "text", NULL);

    cJSON *tokens = base_json_object(json, json->root, "tokens");
    base_json_text(json, tokens, "sha256", stream->sha256);
    base_json_uint(json, tokens, "n", stream->n);
    base_json_text(json, tokens, "tokenizer", model_tokenizer_kind(tokenizer));
    base_json_text(json, tokens, "pre", model_tokenizer_pre(tokenizer));
    base_json_int(json, tokens, "bos", plan->options.bos);
    base_json_flag(json, tokens, "bos_before_text", stream->has_bos);
    base_json_text(json, tokens, "bos_in_windows", bos_names[plan->bos_use]);

    if (w->documents.n)
        add_documents(json, tokens, w);
    cJSON *windows = base_json_object(json, json->root, "windows");
    base_json_uint(json, windows, "n", plan->n_windows);
    base_json_uint(json, windows, "first", plan->options.skip_windows);
    base_json_uint(json, windows, "n_tokens", plan->window);
    base_json_uint(json, windows, "step", plan->step);
    base_json_uint(json, windows, "n_inputs", plan->n_inputs);
    base_json_uint(json, windows, "first_scored", plan->first_scored);
    return windows;
}

/* Tokens that a chat template writes and the vocabulary lacks; NULL: there are none. */
static cJSON *missing_tokens(struct base_json *json, const struct model_chat_markers *markers)
{
    cJSON *list = NULL;
    for (size_t i = 0; i < markers->names.n; i++) {
        struct base_string name = markers->names.strings[i];
        if (!markers->items[i].missing)
            continue;
        list = list ? list : cJSON_CreateArray();
        json->failed |= !list;
        base_json_bytes(json, list, NULL, name.data, name.n_bytes);
    }
    return list;
}

void cli_json_add_doubts(struct base_json *json, const struct cli_windows *w)
{
    const struct eval_documents *d = &w->documents;
    size_t n_crlf = w->text.data ? base_count_crlf(w->text.data, w->text.n_bytes) : 0;
    size_t n_marks = w->text.data && base_text_has_mark(&w->text);
    for (size_t i = 0; i < d->n_files; i++) {
        n_crlf += d->files[i].n_crlf;
        n_marks += d->files[i].n_marks;
    }
    cJSON *missing = missing_tokens(json, &d->markers);
    if (!n_crlf && !n_marks && !w->stream.n_dropped && !missing)
        return;
    cJSON *o = base_json_object(json, json->root, "doubts");
    base_json_uint(json, o, "crlf_lines", n_crlf);
    base_json_uint(json, o, "byte_order_marks", n_marks);
    if (w->stream.n_dropped)
        base_json_uint(json, o, "bytes_without_token", w->stream.n_dropped);
    if (missing && !cJSON_AddItemToObject(o, "missing_tokens", missing)) {
        cJSON_Delete(missing);
        json->failed = true;
    }
}

static void add_versions(struct base_json *json, cJSON *run)
{
    struct cli_versions versions;
    cli_versions_read(&versions);
    cJSON *o = base_json_object(json, run, "versions");
    base_json_text(json, o, "assay", versions.assay);
    base_json_text(json, o, "commit", *versions.commit ? versions.commit : NULL);
    base_json_text(json, o, "compiler", versions.compiler);
    base_json_text(json, o, "build", versions.build);
    base_json_text(json, o, "pcre2", versions.pcre2);
    base_json_text(json, o, "cjson", versions.cjson);
    base_json_text(json, o, "openssl", versions.openssl);
    base_json_text(json, o, "openblas", *versions.openblas ? versions.openblas : NULL);
}

static void add_phases(struct base_json *json, cJSON *run, const struct cli_evaluation *e)
{
    struct kern_times times;
    cli_backends_times(&e->backends, &times);
    cJSON *o = base_json_object(json, run, "phases");
    for (int i = 0; i < KERN_N_PHASES; i++)
        base_json_real(json, o, kern_phase_name((enum kern_phase)i),
                       times.seconds[i] - e->phases_before.seconds[i]);
}

static void add_devices(struct base_json *json, cJSON *run, const struct cli_backends *backends)
{
    struct kern_description first = kern_describe(backends->items[0]);
    base_json_text(json, run, "device", first.device);
    cJSON *devices = base_json_list(json, run, "devices");
    for (size_t i = 0; i < backends->n; i++)
        base_json_text(json, devices, NULL, kern_describe(backends->items[i]).device);
    base_json_text(json, run, "isa", first.isa);
    base_json_uint(json, run, "n_threads", first.n_threads);
}

/* What the command line asked for, beside what became of it. */
static void add_asked(struct base_json *json, cJSON *run, const struct cli_machine_settings *s)
{
    static const char *const isas[] = {
#ifdef __aarch64__
        [CLI_ISA_NEON] = "neon",     [CLI_ISA_DOTPROD] = "dotprod", [CLI_ISA_I8MM] = "i8mm",
#else
        [CLI_ISA_AVX2] = "avx2",     [CLI_ISA_AVX512] = "avx512", [CLI_ISA_AMX] = "amx",
#endif
        [CLI_ISA_SCALAR] = "scalar", [CLI_ISA_AUTO] = "auto",
    };
    base_json_int(json, run, "asked_batch_tokens", s->n_batch);
    base_json_int(json, run, "asked_threads",
                  s->n_threads_batch ? s->n_threads_batch : s->n_threads);
    base_json_text(json, run, "asked_isa", isas[s->isa]);
}

cJSON *cli_json_add_run(struct base_json *json, const struct cli_evaluation *e)
{
    const struct eval_run_stats *stats = &e->stats;
    char started[32] = "";
    struct tm utc;
    if (gmtime_r(&e->started, &utc))
        strftime(started, sizeof started, "%Y-%m-%dT%H:%M:%SZ", &utc);

    cJSON *run = base_json_object(json, json->root, "run");
    base_json_text(json, run, "text_file", e->text_file);
    cJSON *texts = e->text_paths.n ? base_json_list(json, run, "text_files") : NULL;
    for (size_t i = 0; i < e->text_paths.n; i++)
        base_json_text(json, texts, NULL, e->text_paths.items[i]);
    base_json_text(json, run, "state_file", e->journal ? eval_journal_path(e->journal) : NULL);
    base_json_uint(json, run, "n_resumed", stats->n_resumed);
    base_json_text(json, run, "started", started);
    base_json_real(json, run, "seconds_to_load", e->seconds_to_load + stats->seconds_to_open);
    base_json_real(json, run, "seconds", stats->seconds);
    base_json_real(json, run, "seconds_forward", stats->times.forward);
    base_json_real(json, run, "seconds_head", stats->times.head);
    add_phases(json, run, e);
    base_json_uint(json, run, "n_inputs", stats->n_inputs);
    base_json_real(json, run, "tokens_per_second", (double)stats->n_inputs / stats->seconds);
    base_json_uint(json, run, "n_batches", stats->n_batches);
    e->host->describe(e->host, e, json, run);
    add_asked(json, run, &e->settings->machine);
    base_json_uint(json, run, "max_batch_tokens", stats->max_batch_tokens);
    add_devices(json, run, &e->backends);
    base_json_real(json, run, "memory_bound_bytes", e->memory.total);
    base_json_real(json, run, "memory_peak_bytes", base_system_peak());
    add_versions(json, run);
    return run;
}

cJSON *cli_json_add_nonfinite(struct base_json *json, cJSON *parent,
                              const struct eval_nonfinite *nonfinite)
{
    cJSON *o = base_json_object(json, parent, "nonfinite");
    base_json_uint(json, o, "n", nonfinite->n);
    if (nonfinite->n) {
        base_json_uint(json, o, "first_window", nonfinite->window);
        base_json_uint(json, o, "first_position", nonfinite->position);
        base_json_int(json, o, "first_token_id", nonfinite->token);
    }
    return o;
}

void cli_json_estimate(struct base_json *json, cJSON *parent, const char *key,
                       struct base_estimate estimate)
{
    char error_key[64];
    base_json_real(json, parent, key, estimate.value);
    snprintf(error_key, sizeof error_key, "%s_error", key);
    base_json_real(json, parent, error_key, estimate.error);
    snprintf(error_key, sizeof error_key, "%s_lot_error", key);
    base_json_real(json, parent, error_key, base_estimate_lot_error(estimate));
}

cJSON *cli_json_distribution(struct base_json *json, cJSON *parent, const char *key,
                             struct base_estimate mean,
                             const struct base_estimate quantiles[EVAL_N_QUANTILES])
{
    static const char *const keys[EVAL_N_QUANTILES] = {"max", "p99_9",  "p99", "p95", "p90",
                                                       "p75", "median", "p25", "p10", "p5",
                                                       "p1",  "p0_1",   "min"};
    cJSON *o = base_json_object(json, parent, key);
    cli_json_estimate(json, o, "mean", mean);
    for (size_t k = 0; k < EVAL_N_QUANTILES; k++)
        if (isnan(quantiles[k].error)) /* it has none */
            base_json_real(json, o, keys[k], quantiles[k].value);
        else
            cli_json_estimate(json, o, keys[k], quantiles[k]);
    return o;
}

void cli_json_add_curve(struct base_json *json, cJSON *parent, const struct eval_plan *plan,
                        const struct base_moments *positions)
{
    cJSON *list = base_json_list(json, parent, "context_curve");
    for (size_t i = 0; i < plan->n_scored; i++) {
        if (!positions[i].n && plan->windows)
            continue;
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "position", plan->first_scored + i);
        if (plan->windows)
            base_json_uint(json, o, "n_tokens", positions[i].n);
        cli_json_estimate(json, o, "kld", base_moments_estimate(&positions[i]));
    }
}
