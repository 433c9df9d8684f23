/* The document of assay imatrix. */
#include <math.h>

#include "cli/imatrix/imatrix_command.h"
#include "cli/output/json_parts.h"

/** When the run could end early. */
static void add_stop(struct base_json *json, cJSON *parent, const struct cli_imatrix *im)
{
    const struct imat_stop *stop = &im->units.stop;
    cJSON *o = base_json_object(json, parent, "stop");
    base_json_flag(json, o, "stopped", im->e.units->n_enough > 0);
    base_json_uint(json, o, "of_windows", im->windows.n_laid);
    if (!isnan(stop->change)) {
        base_json_real(json, o, "change_wanted", stop->change);
        base_json_real(json, o, "change", stop->last_change);
    }
    if (stop->rows) {
        base_json_uint(json, o, "rows_wanted", stop->rows);
        base_json_uint(json, o, "least_rows", stop->least_rows);
    }
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_imatrix *im = self;
    const struct eval_perplexity_result *r = &im->result;
    const struct imat_stop *stop = &im->units.stop;
    size_t n = cli_imatrix_n_windows(im);
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_flag(json, o, "complete", n == im->windows.plan.n_windows);
    base_json_uint(json, o, "n_windows", n);
    base_json_uint(json, o, "n_tensors", im->matrix.n);
    base_json_uint(json, o, "n_chunks", im->matrix.n_chunks);
    if (!isnan(stop->change) || stop->rows)
        add_stop(json, o, im);
    if (im->settings->no_ppl)
        return;
    cli_json_estimate(json, o, "ppl", r->figures.ppl);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_imatrix *im = self;
    const struct cli_imatrix_settings *s = im->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    cli_json_add_window_settings(json, o, &s->windows, &im->windows.plan);
    base_json_flag(json, o, "process_output", s->process_output);
    base_json_flag(json, o, "nextn", im->nextn.model != NULL);
    base_json_flag(json, o, "no_ppl", s->no_ppl);
    base_json_flag(json, o, "masked", cli_imatrix_masked(im));
    base_json_real(json, o, "stop_when_change", s->stop_change);
    base_json_int(json, o, "stop_when_rows", s->stop_rows);
    if (s->llama_compat) {
        struct imat_llama llama = cli_imatrix_llama(s);
        cJSON *compat = base_json_object(json, o, "llama_compat");
        base_json_uint(json, compat, "batch", llama.batch);
        base_json_uint(json, compat, "ubatch", llama.ubatch);
    }
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_computation(json, o, &im->e);
    cli_json_add_model(json, json->root, "model", &im->model, !for_journal);
    (void)cli_json_add_text(json, &im->windows, model_tokenizer(im->model.model));
    if (for_journal) /* assay merge puts scores together, no sums */
        base_json_flag(json, json->root, "sums_apart", true);
    else
        cli_json_add_doubts(json, &im->windows);
}

/** Matrices of a stack that have few rows. */
static void add_few(struct base_json *json, cJSON *parent, const struct imat_entry *e, uint64_t few)
{
    cJSON *list = base_json_list(json, parent, "few");
    for (size_t i = 0; i < e->n_matrices; i++) {
        if (e->counts[i] >= few)
            continue;
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "matrix", i);
        base_json_uint(json, o, "n_rows", e->counts[i]);
    }
}

static void add_missing(struct base_json *json, const struct cli_imatrix *im)
{
    static const char *const words[] = {
        [IMAT_STOPPED] = "stops", [IMAT_ALIKE] = "alike", [IMAT_KEPT] = "kept"};
    const struct imat_missing_list *missing = im->missing.items ? &im->missing : &im->foreseen;
    cJSON *list = base_json_list(json, json->root, "without_entry");
    for (size_t i = 0; i < missing->n; i++) {
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "name", missing->items[i].name);
        base_json_text(json, o, "llama_quantize", words[missing->items[i].treatment]);
    }
}

static void add_details(const void *self, struct base_json *json)
{
    const struct cli_imatrix *im = self;
    cJSON *list = base_json_list(json, json->root, "tensors");
    for (size_t i = 0; i < im->matrix.n; i++) {
        const struct imat_entry *e = &im->matrix.entries[i];
        struct cli_imatrix_rows rows = cli_imatrix_rows(e, 0);
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "name", e->name);
        base_json_uint(json, o, "n_columns", e->n_columns);
        base_json_uint(json, o, "n_matrices", e->n_matrices);
        base_json_uint(json, o, "n_rows_least", rows.least);
        base_json_uint(json, o, "n_rows_most", rows.most);
        if (e->n_matrices > 1)
            add_few(json, o, e, cli_imatrix_few_rows(im));
    }
    add_missing(json, im);
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_imatrix *im = self;
    base_json_text(json, run, "imatrix_file", im->settings->out_file);
    base_json_text(json, run, "imatrix_format",
                   im->settings->format == CLI_IMATRIX_DAT ? "dat" : "gguf");
}

const struct cli_members cli_imatrix_members = {"assay-imatrix", add_result, describe, add_details,
                                                add_files};
