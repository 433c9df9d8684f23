/* The document of assay imatrix. */
#include "cli/imatrix/command.h"
#include "cli/output/json_parts.h"

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_imatrix *im = self;
    const struct eval_perplexity_result *r = &im->result;
    bool complete = im->e.units->n_finished == im->windows.plan.n_windows;
    cJSON *o = base_json_object(json, json->root, "result");
    base_json_flag(json, o, "complete", complete);
    base_json_uint(json, o, "n_windows", im->e.units->n_finished);
    base_json_uint(json, o, "n_tensors", im->matrix.n);
    base_json_uint(json, o, "n_chunks", im->matrix.n_chunks);
    if (im->settings->no_ppl)
        return;
    base_json_real(json, o, "ppl", r->figures.ppl);
    base_json_real(json, o, "ppl_error", r->figures.ppl_error);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_imatrix *im = self;
    const struct cli_imatrix_settings *s = im->settings;
    cJSON *o = base_json_object(json, json->root, "settings");
    cli_json_add_window_settings(json, o, &s->windows, &im->windows.plan);
    base_json_flag(json, o, "process_output", s->process_output);
    base_json_flag(json, o, "no_ppl", s->no_ppl);
    cli_json_add_text_settings(json, o, &s->text);
    cli_json_add_computation(json, o, &im->e);
    cli_json_add_model(json, json->root, "model", &im->model, !for_journal);
    (void)cli_json_add_text(json, &im->windows, model_tokenizer(im->model.model));
    if (!for_journal)
        cli_json_add_doubts(json, &im->windows);
}

/** Matrices of a stack that have few rows. */
static void add_few(struct base_json *json, cJSON *parent, const struct imat_entry *e)
{
    cJSON *list = base_json_list(json, parent, "few");
    for (size_t i = 0; i < e->n_matrices; i++) {
        if (e->counts[i] >= CLI_IMATRIX_FEW_ROWS)
            continue;
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "matrix", i);
        base_json_uint(json, o, "n_rows", e->counts[i]);
    }
}

static void add_details(const void *self, struct base_json *json)
{
    const struct cli_imatrix *im = self;
    cJSON *list = base_json_list(json, json->root, "tensors");
    for (size_t i = 0; i < im->matrix.n; i++) {
        const struct imat_entry *e = &im->matrix.entries[i];
        struct cli_imatrix_rows rows = cli_imatrix_rows(e);
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "name", e->name);
        base_json_uint(json, o, "n_columns", e->n_columns);
        base_json_uint(json, o, "n_matrices", e->n_matrices);
        base_json_uint(json, o, "n_rows_least", rows.least);
        base_json_uint(json, o, "n_rows_most", rows.most);
        if (e->n_matrices > 1)
            add_few(json, o, e);
    }
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
