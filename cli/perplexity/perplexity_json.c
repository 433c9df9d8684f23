/*
 * The result of assay perplexity as JSON. Everything outside `run` is a function of the model,
 * the text and the settings: the same on every machine, for every batch and thread count.
 */
#include "cli/output/documents.h"
#include "cli/output/json_parts.h"
#include "cli/perplexity/perplexity_evaluator.h"

/* Everything that the command line can say and that can change a figure. */
static void add_settings(struct base_json *json, const struct cli_perplexity *p)
{
    const struct cli_perplexity_settings *s = p->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    base_json_text(json, o, "protocol", eval_protocol_name(p->windows.plan.options.protocol));
    cli_json_add_window_settings(json, o, &s->windows, &p->windows.plan);
    base_json_uint(json, o, "stride", p->windows.plan.options.stride);
    base_json_flag(json, o, "split_lines", s->split_lines);
    base_json_flag(json, o, "llama_compat", s->llama_compat);
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_computation(json, o, &p->e);
}

static void add_window_sums(struct base_json *json, cJSON *windows, const struct cli_perplexity *p)
{
    cJSON *sums = base_json_list(json, windows, "sums");
    for (size_t w = 0; w < p->windows.plan.n_windows; w++) {
        if (!p->windows.tables[0].done[w])
            continue;
        struct eval_window_sums s = eval_window_sums(&p->windows.tables[0], w);
        cJSON *o = base_json_object(json, sums, NULL);
        base_json_uint(json, o, "window", w);
        if (p->windows.documents.n)
            base_json_uint(json, o, "document", eval_plan_document(&p->windows.plan, w));
        base_json_uint(json, o, "n_tokens", s.n_tokens);
        base_json_real(json, o, "nll", s.nll);
        base_json_real(json, o, "nll_squared", s.nll_squared);
    }
}

static void add_curve(struct base_json *json, const struct cli_perplexity *p)
{
    cJSON *list = base_json_list(json, json->root, "context_curve");
    for (size_t i = 0; i < p->curve.n_positions; i++) {
        if (!p->curve.n[i])
            continue;
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "position", p->windows.plan.first_scored + i);
        if (p->windows.documents.n)
            base_json_uint(json, o, "n_tokens", p->curve.n[i]);
        cli_json_estimate(json, o, "nll", p->curve.nll[i]);
    }
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_perplexity *p = self;
    const struct eval_perplexity_result *r = &p->result;
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_flag(json, o, "complete", r->complete);
    base_json_uint(json, o, "n_windows", r->n_windows);
    base_json_uint(json, o, "n_tokens", r->n_tokens);
    base_json_text(json, o, "lots", r->of_documents ? "documents" : "windows");
    cli_json_estimate(json, o, "ppl", r->figures.ppl);
    cli_json_estimate(json, o, "nll", r->figures.nll);
    base_json_real(json, o, "n_bytes", r->n_bytes);
    base_json_real(json, o, "bits_per_byte", r->bits_per_byte);
    cJSON *nonfinite = cli_json_add_nonfinite(json, o, &r->nonfinite);
    if (r->nonfinite.n)
        base_json_real(json, nonfinite, "finite_nll", r->finite_nll);
    cli_json_add_stop(json, o, &p->windows);
}

static void add_recorded(struct base_json *json, const struct cli_perplexity *p)
{
    const struct cli_perplexity_settings *s = p->settings;
    bool compact = s->record_format == CLI_RECORD_COMPACT;
    cJSON *o = base_json_object(json, json->root, "recorded");
    base_json_text(json, o, "kind", compact ? "compact" : "logits");
    base_json_text(json, o, "id", p->recording.id);
    base_json_uint(json, o, "n_bytes", p->recording.n_bytes);
    if (compact) {
        base_json_text(json, o, "rows", eval_compact_kind_name((enum eval_compact_kind)s->hidden));
        base_json_real(json, o, "error_rms", eval_compact_error_rms(&p->recording.error));
        base_json_real(json, o, "error_max", p->recording.error.largest);
        base_json_flag(json, o, "head_by_path", s->head_by_path);
    }
}

/* What is recorded beside: a journal vouches for the file, too. */
static void add_recording(struct base_json *json, const struct cli_perplexity_settings *s)
{
    cJSON *o = base_json_object(json, json->root, "recording");
    bool records = s->base_file, compact = s->record_format == CLI_RECORD_COMPACT;
    base_json_text(json, o, "format", !records ? NULL : compact ? "compact" : "logits");
    base_json_text(json, o, "hidden",
                   records && compact ? eval_compact_kind_name((enum eval_compact_kind)s->hidden)
                                      : NULL);
    base_json_flag(json, o, "head_by_path", s->head_by_path);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_perplexity *p = self;
    add_settings(json, p);
    cli_json_add_model(json, json->root, "model", &p->model, !for_journal);
    cJSON *windows = cli_json_add_text(json, &p->windows, model_tokenizer(p->model.model));
    if (for_journal)
        add_recording(json, p->settings);
    else
        add_window_sums(json, windows, p);
    if (!for_journal)
        cli_json_add_doubts(json, &p->windows);
}

static void add_details(const void *self, struct base_json *json)
{
    const struct cli_perplexity *p = self;
    if (p->windows.documents.n)
        cli_json_add_groups(json, json->root, &p->groups, &p->windows.documents);
    if (p->settings->curve.wanted)
        add_curve(json, p);
    if (*p->recording.id)
        add_recorded(json, p);
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_perplexity *p = self;
    if (*p->recording.id)
        base_json_text(json, run, "recorded_file", p->settings->base_file);
}

const struct cli_members cli_perplexity_members = {"assay-perplexity", add_result, describe,
                                                   add_details, add_files};
