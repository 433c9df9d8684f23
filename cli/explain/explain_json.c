/* The document of assay explain. */
#include <math.h>

#include "cli/explain/explain.h"
#include "cli/output/json_parts.h"

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_explain *x = self;
    const struct eval_kld_result *r = &x->k.results[0];
    cJSON *result = base_json_object(json, json->root, "result");
    base_json_flag(json, result, "complete", r->complete);
    base_json_uint(json, result, "n_windows", r->n_windows);
    base_json_uint(json, result, "n_tokens", r->n_tokens);
    double share = x->settings->recorded ? x->recorded.share : (double)NAN;
    base_json_real(json, result, "format_share", share);
    if (x->settings->recorded)
        cli_budget_add_json(json, json->root, &x->budget);
    cJSON *parts = base_json_list(json, json->root, "parts");
    for (size_t i = 0; i < cli_explain_n_parts(x); i++) {
        cJSON *o = base_json_object(json, parts, NULL);
        base_json_text(json, o, "part", cli_explain_names[i]);
        cli_json_estimate(json, o, "kld", base_moments_estimate(&x->parts[i]));
    }
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_explain *x = self;
    const struct cli_kld *k = &x->k;
    const struct cli_kld_settings *s = k->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    cli_json_add_window_settings(json, o, &s->windows, &k->windows.plan);
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_computation(json, o, &k->e);
    cli_base_add_json(json, json->root, &k->base, !for_journal);
    cli_json_add_model(json, json->root, "model", &k->candidates[CLI_EXPLAIN_PLAIN], !for_journal);
    (void)cli_json_add_text(json, &k->windows, model_tokenizer(cli_kld_reader(k)));
    if (!for_journal)
        cli_json_add_doubts(json, &k->windows);
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_explain *x = self;
    base_json_text(json, run, "base_file", x->k.settings->base);
    base_json_text(json, run, "recorded_file", x->settings->recorded);
}

const struct cli_members cli_explain_members = {"assay-explain", add_result, describe, NULL,
                                                add_files};
