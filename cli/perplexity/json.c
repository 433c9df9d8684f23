/*
 * The result of assay perplexity as JSON. Everything outside `run` is a function of the model,
 * the text and the settings: the same on every machine, for every batch and thread count.
 */
#include "cli/output/json_parts.h"
#include "cli/perplexity/evaluation.h"
#include "cli/session/state.h"

/* Everything that the command line can say and that can change a figure. */
static void add_settings(struct base_json *json, const struct cli_evaluation *e)
{
    const struct cli_perplexity *s = e->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    base_json_text(json, o, "protocol", eval_protocol_name(e->plan.options.protocol));
    cli_json_add_window_settings(json, o, &s->windows, &e->plan);
    base_json_uint(json, o, "stride", e->plan.options.stride);
    base_json_flag(json, o, "split_lines", s->split_lines);
    base_json_flag(json, o, "llama_compat", s->llama_compat);
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_model_settings(json, o, &s->load);
    cli_json_add_arithmetic(json, o, &s->machine, e->job.backend);
}

static void add_window_sums(struct base_json *json, cJSON *windows, const struct cli_evaluation *e)
{
    cJSON *sums = base_json_list(json, windows, "sums");
    for (size_t w = 0; w < e->plan.n_windows; w++) {
        if (!e->table.done[w])
            continue;
        struct eval_window_sums s = eval_window_sums(&e->table, w);
        cJSON *o = base_json_object(json, sums, NULL);
        base_json_uint(json, o, "window", w);
        base_json_uint(json, o, "n_tokens", s.n_tokens);
        base_json_real(json, o, "nll", s.nll);
        base_json_real(json, o, "nll_squared", s.nll_squared);
    }
}

static void add_curve(struct base_json *json, const struct cli_evaluation *e)
{
    cJSON *list = base_json_list(json, json->root, "context_curve");
    for (size_t i = 0; i < e->curve.n_positions; i++) {
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "position", e->plan.first_scored + i);
        base_json_real(json, o, "nll", e->curve.nll[i]);
        base_json_real(json, o, "nll_error", e->curve.nll_error[i]);
    }
}

static void add_result(struct base_json *json, const struct cli_evaluation *e)
{
    const struct eval_perplexity_result *r = &e->result;
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_flag(json, o, "complete", r->complete);
    base_json_uint(json, o, "n_windows", r->n_windows);
    base_json_uint(json, o, "n_tokens", r->n_tokens);
    base_json_real(json, o, "ppl", r->figures.ppl);
    base_json_real(json, o, "ppl_error", r->figures.ppl_error);
    base_json_real(json, o, "nll", r->figures.nll);
    base_json_real(json, o, "nll_error", r->figures.nll_error);
    base_json_real(json, o, "n_bytes", r->n_bytes);
    base_json_real(json, o, "bits_per_byte", r->bits_per_byte);
    cJSON *nonfinite = cli_json_add_nonfinite(json, o, &r->nonfinite);
    if (r->nonfinite.n)
        base_json_real(json, nonfinite, "finite_nll", r->finite_nll);
}

static void add_recorded(struct base_json *json, const struct cli_evaluation *e)
{
    const struct cli_perplexity *s = e->settings;
    bool compact = s->record_format == CLI_RECORD_COMPACT;
    cJSON *o = base_json_object(json, json->root, "recorded");
    base_json_text(json, o, "kind", compact ? "compact" : "logits");
    base_json_text(json, o, "id", e->recorded.id);
    base_json_uint(json, o, "n_bytes", e->recorded.n_bytes);
    if (compact) {
        base_json_text(json, o, "rows", eval_compact_kind_name((enum eval_compact_kind)s->hidden));
        base_json_real(json, o, "error_rms", eval_compact_error_rms(&e->recorded.error));
        base_json_real(json, o, "error_max", e->recorded.error.largest);
        base_json_flag(json, o, "head_by_path", s->head_by_path);
    }
}

/* The document without figures and `run`: what was evaluated and how. Returns `windows`. */
static cJSON *add_subject(struct base_json *json, const struct cli_evaluation *e)
{
    add_settings(json, e);
    cli_json_add_model(json, json->root, "model", &e->model);
    return cli_json_add_text(json, &e->text, &e->stream, &e->plan, model_tokenizer(e->model.model));
}

/* What is recorded beside: a journal vouches for the file, too. */
static void add_recording(struct base_json *json, const struct cli_perplexity *s)
{
    cJSON *o = base_json_object(json, json->root, "recording");
    bool records = s->base_file, compact = s->record_format == CLI_RECORD_COMPACT;
    base_json_text(json, o, "format", !records ? NULL : compact ? "compact" : "logits");
    base_json_text(json, o, "hidden",
                   records && compact ? eval_compact_kind_name((enum eval_compact_kind)s->hidden)
                                      : NULL);
    base_json_flag(json, o, "head_by_path", s->head_by_path);
}

enum status cli_evaluation_open_journal(struct cli_evaluation *e, struct status_why *why)
{
    struct base_json json;
    cli_state_begin(&json, "perplexity");
    add_subject(&json, e);
    add_recording(&json, e->settings);
    return cli_state_open(&e->run_options.journal, e->settings->state_file, &json, why);
}

enum status cli_report_json(const struct cli_evaluation *e, struct base_file *file,
                            struct status_why *why)
{
    struct base_json json;
    base_json_begin_document(&json, "assay-perplexity");
    add_result(&json, e);
    add_window_sums(&json, add_subject(&json, e), e);
    if (e->settings->context_curve)
        add_curve(&json, e);
    if (*e->recorded.id)
        add_recorded(&json, e);
    cJSON *run = cli_json_add_run(&json, &e->job, &e->settings->text, e->run_options.journal);
    base_json_text(&json, run, "model_file", e->model.path);
    if (*e->recorded.id)
        base_json_text(&json, run, "recorded_file", e->settings->base_file);
    return cli_json_end_document(&json, file, why);
}
