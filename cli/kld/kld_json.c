/*
 * The result of assay kld as JSON. Everything outside `run` is a function of the models, the
 * text and the settings; an element of `candidates` also of no other candidate.
 */
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/text/printable.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/options/width.h"
#include "cli/output/documents.h"
#include "cli/output/json_parts.h"
#include "cli/process/run.h"
#include "cli/results/results.h"
#include "clients/documents/results/scoreboard.h"

static void add_buckets(struct base_json *json, cJSON *parent, const struct eval_kld_result *r)
{
    cJSON *list = base_json_list(json, parent, "by_confidence");
    for (size_t i = 0; i < EVAL_N_BUCKETS; i++) {
        const struct eval_kld_bucket *b = &r->buckets[i];
        double n = b->kld.n ? (double)b->kld.n : 1;
        cJSON *o = base_json_object(json, list, NULL);
        base_json_real(json, o, "from", (double)i / EVAL_N_BUCKETS);
        base_json_real(json, o, "to", (double)(i + 1) / EVAL_N_BUCKETS);
        base_json_uint(json, o, "n_tokens", b->kld.n);
        cli_json_estimate(json, o, "kld", base_moments_estimate(&b->kld));
        base_json_real(json, o, "rms_dp", sqrt(b->dp_squared / n));
        base_json_real(json, o, "same_top", b->same_top / n);
    }
}

static void add_windows(struct base_json *json, cJSON *parent, const struct cli_kld *k,
                        size_t candidate)
{
    struct eval_kld_tables t = cli_kld_tables(k, candidate);
    cJSON *list = base_json_list(json, parent, "windows");
    for (size_t w = 0; w < k->windows.plan.n_windows; w++) {
        if (!t.candidate->done[w])
            continue;
        struct eval_kld_sums s = eval_kld_window_sums(&t, w);
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "window", w);
        if (k->windows.documents.n)
            base_json_uint(json, o, "document", eval_plan_document(&k->windows.plan, w));
        base_json_uint(json, o, "n_tokens", s.n_tokens);
        base_json_real(json, o, "nll", s.nll);
        base_json_real(json, o, "kld", s.kld);
        base_json_real(json, o, "dp", s.dp);
        base_json_real(json, o, "dp_squared", s.dp_squared);
        base_json_real(json, o, "same_top", s.same_top);
    }
}

static void add_worst(struct base_json *json, cJSON *parent, const struct cli_kld *k,
                      size_t candidate)
{
    const struct eval_kld_result *r = &k->results[candidate];
    struct eval_kld_tables t = cli_kld_tables(k, candidate);
    cJSON *list = base_json_list(json, parent, "worst");
    for (size_t n = 0; n < r->n_worst; n++) {
        struct cli_passage token = cli_kld_passage(k, &r->worst[n]);
        size_t w = token.place.window, i = token.place.index;
        cJSON *o = cli_json_add_passage(json, list, &token);
        cli_json_add_context(json, o, &token);
        base_json_real(json, o, "kld", eval_table_row(t.candidate, EVAL_KL, w)[i]);
        base_json_real(json, o, "base_logprob", eval_table_row(t.base, EVAL_LOG_PROB, w)[i]);
        base_json_real(json, o, "logprob", eval_table_row(t.candidate, EVAL_LOG_PROB, w)[i]);
    }
}

/* The model and its figures. Returns the candidate's object. */
static cJSON *add_figures(struct base_json *json, cJSON *list, const struct cli_kld *k, size_t i)
{
    struct cli_metrics figures = cli_kld_metrics(k, i);
    cJSON *o = base_json_object(json, list, NULL);
    cli_json_add_model(json, o, "model", &k->candidates[i], true);
    cli_json_metrics(json, o, &figures);
    return o;
}

static void add_candidate(struct base_json *json, cJSON *list, const struct cli_kld *k, size_t i)
{
    const struct eval_kld_result *r = &k->results[i];
    cJSON *o = add_figures(json, list, k, i);
    cli_kld_add_vocabulary(json, o, k, i);
    add_buckets(json, o, r);
    add_windows(json, o, k, i);
    if (k->settings->divergence.curve.wanted)
        cli_json_add_curve(json, o, &k->windows.plan, r->positions);
    if (k->settings->divergence.n_worst)
        add_worst(json, o, k, i);
    if (k->windows.documents.n)
        cli_json_add_groups(json, o, &k->groups[i], &k->windows.documents);
    cli_json_add_nonfinite(json, o, &r->nonfinite);
}

static void add_settings(struct base_json *json, const struct cli_kld *k)
{
    const struct cli_kld_settings *s = k->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    cli_json_add_window_settings(json, o, &s->windows, &k->windows.plan);
    base_json_flag(json, o, "js", s->js);
    base_json_flag(json, o, "llama_compat", s->llama_compat);
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_computation(json, o, &k->e);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_kld *k = self;
    if (for_journal)
        add_settings(json, k);
    cli_base_add_json(json, json->root, &k->base, !for_journal);
    if (!for_journal)
        add_settings(json, k);
    cJSON *candidates = for_journal ? base_json_list(json, json->root, "candidates") : NULL;
    for (size_t i = 0; i < k->n_candidates && candidates; i++)
        cli_json_add_model(json, base_json_object(json, candidates, NULL), "model",
                           &k->candidates[i], false);
    cli_json_add_text(json, &k->windows, model_tokenizer(cli_kld_reader(k)));
    if (!for_journal)
        cli_json_add_doubts(json, &k->windows);
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_kld *k = self;
    cJSON *result = base_json_object(json, json->root, "result");
    base_json_flag(json, result, "complete", k->results[0].complete);
    base_json_uint(json, result, "n_windows", k->results[0].n_windows);
    base_json_uint(json, result, "n_tokens", k->results[0].n_tokens);
    base_json_text(json, result, "lots", k->results[0].of_documents ? "documents" : "windows");
    cli_json_add_stop(json, result, &k->windows);
    cJSON *candidates = base_json_list(json, json->root, "candidates");
    for (size_t i = 0; i < k->n_candidates; i++)
        add_candidate(json, candidates, k, i);
}

/* What is independent where errors are told. */
static const char *errors_of(const struct eval_kld_result *r)
{
    if (r->figures.nll.lot_error == 0)
        return " if tokens were independent, and too small: there are too few windows to tell";
    return r->of_documents ? " of documents" : " of windows";
}

enum status cli_kld_print_table(const struct cli_kld *k, struct status_why *why)
{
    char base[BASE_PATH_BYTES];
    struct base_json json;
    doc_json_begin(&json, cli_kld_members.schema);
    cli_base_add_json(&json, json.root, &k->base, true);
    cJSON *candidates = base_json_list(&json, json.root, "candidates");
    for (size_t i = 0; i < k->n_candidates; i++)
        add_figures(&json, candidates, k, i);
    struct doc_document document = {.json = {.file = "the result", .root = json.root},
                                    .kind = DOC_KLD};
    struct doc_scoreboard table = {.new_type = k->settings->new_type};
    enum status status = json.failed ? status_fail(why, STATUS_MEMORY, "no memory for a table")
                                     : doc_scoreboard_add(&table, &document, why);
    if (!status)
        status = doc_scoreboard_label(&table, why);
    bool blocks = cli_kld_in_blocks(k),
         markdown = blocks || table.new_type || k->settings->markdown;
    if (!status && (blocks || cli_kld_has_lists(k)))
        putchar('\n');
    if (!status)
        status = markdown ? cli_scoreboard_print(&table, false, false, why)
                          : cli_scoreboard_print_fitted(&table, cli_width(STDOUT_FILENO), why);
    if (!status && !blocks)
        printf("\n%zu token%s in %zu window%s of %zu; ± is one standard error%s; base: %s\n",
               k->results[0].n_tokens, status_plural(k->results[0].n_tokens),
               k->results[0].n_windows, status_plural(k->results[0].n_windows),
               k->windows.plan.window, errors_of(&k->results[0]),
               (markdown ? base_markdown : base_printable_text)(base, sizeof base,
                                                                base_file_name(k->base.path)));
    cli_flush();
    doc_scoreboard_free(&table);
    base_json_free(&json);
    return status;
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_kld *k = self;
    base_json_text(json, run, "base_file", k->base.path);
    cJSON *files = base_json_list(json, run, "model_files");
    for (size_t i = 0; i < k->n_candidates; i++)
        base_json_text(json, files, NULL, k->candidates[i].path);
}

const struct cli_members cli_kld_members = {"assay-kld", add_result, describe, NULL, add_files};
