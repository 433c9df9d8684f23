/* The document: figures of divergence are named as bounds, so that nobody takes them for more. */
#include <math.h>

#include "cli/kld/server/bounds.h"
#include "cli/output/json_parts.h"
#include "cli/process/version.h"

static void add_result(struct base_json *json, const struct cli_bounds *b)
{
    const struct probe_lists *l = b->base.lists;
    char tokens[512];
    cJSON *o = base_json_object(json, json->root, "result");
    cli_connection_tokens(tokens, sizeof tokens, l);
    base_json_uint(json, o, "n_predictions", l->n);
    base_json_uint(json, o, "n_texts", b->base.n_windows);
    base_json_real(json, o, "listed", b->results[0].p_mass);
    base_json_uint(json, o, "n_unusable", l->n_spoilt);
    base_json_text(json, o, "unusable", l->spoilt);
    base_json_uint(json, o, "n_unknown", l->n_unknown);
    base_json_uint(json, o, "n_of_first_halves", b->base.n_early);
    base_json_uint(json, o, "n_again", b->base.n_again);
    base_json_uint(json, o, "n_of_other_tokens", b->base.n_miscounted);
    base_json_text(json, o, "other_tokens", tokens);
    base_json_flag(json, o, "tail_twice", b->base.tail_twice);
    base_json_real(json, o, "noise", b->settings->base_url ? b->questions.noise : (double)NAN);
}

static void add_candidate(struct base_json *json, cJSON *list, const struct cli_model *model,
                          const struct probe_bounds *r)
{
    const struct base_estimate none = {(double)NAN, (double)NAN};
    struct base_estimate quantiles[EVAL_N_QUANTILES];
    for (size_t i = 0; i < EVAL_N_QUANTILES; i++)
        quantiles[i] = (struct base_estimate){.value = r->quantiles[i], .error = (double)NAN};
    cJSON *o = base_json_object(json, list, NULL);
    cli_json_add_model(json, o, "model", model, true);
    cli_json_distribution(json, o, "kld_at_least", r->least, quantiles);
    cli_json_estimate(json, o, "kld_at_most", r->most);
    base_json_uint(json, o, "n_top", r->n_top);
    cli_json_estimate(json, o, "same_top", r->n_top ? r->same_top : none);
    base_json_uint(json, o, "n_next", r->n_next);
    cli_json_estimate(json, o, "nll_difference", r->n_next ? r->nll_difference : none);
}

enum status cli_bounds_write(const struct cli_bounds *b, struct base_file *file,
                             struct status_why *why)
{
    const struct cli_kld_settings *s = b->settings;
    struct base_json json;
    struct cli_versions versions;
    cli_versions_read(&versions);
    doc_json_begin(&json, DOC_BOUNDS_SCHEMA);
    add_result(&json, b);
    cJSON *candidates = base_json_list(&json, json.root, "candidates");
    for (size_t i = 0; i < b->n_done; i++)
        add_candidate(&json, candidates, &b->models[i], &b->results[i]);
    cli_json_add_remarks(&json, json.root, s->evaluate.left_out);
    cli_connection_add_json(&json, &b->connection, s->base_url != NULL);
    cJSON *settings = base_json_object(&json, json.root, "settings");
    base_json_text(&json, settings, "text_sha256", b->text.sha256);
    base_json_uint(&json, settings, "n_ctx", b->n_ctx);
    base_json_int(&json, settings, "concurrency", s->connection.concurrency);
    base_json_int(&json, settings, "requests", s->connection.n_requests);
    base_json_text(&json, settings, "precision", cli_precision_name(s->evaluate.machine.precision));
    cJSON *run = base_json_object(&json, json.root, "run");
    base_json_text(&json, run, "assay", versions.assay);
    base_json_text(&json, run, "commit", versions.commit);
    base_json_text(&json, run, "base_file", s->base);
    return doc_json_end(&json, file, why);
}
