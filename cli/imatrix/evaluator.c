#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/digest.h"
#include "cli/imatrix/command.h"
#include "cli/input/tokens.h"
#include "cli/output/json_parts.h"
#include "cli/process/version.h"
#include "cli/session/cluster.h"
#include "imatrix/file/write.h"

/* Sums of other processes do not come here. */
static enum status check_alone(struct status_why *why)
{
    if (cli_cluster()->n_ranks <= 1)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "assay imatrix runs in one process, and %zu were started; give each process "
                       "a range of the windows (--mpi off, --chunk-from, --chunks) and a file of "
                       "its own; assay merge adds them up",
                       cli_cluster()->n_ranks);
}

static enum status open_windows(struct cli_imatrix *im, struct status_why *why)
{
    const struct cli_imatrix_settings *s = im->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(im->model.model);
    const struct eval_stream_options stream = {.bos_in_front = true,
                                               .parse_special = s->text.parse_special};
    const struct eval_plan_options plan =
        cli_plan_options(&s->windows, im->model.model, CLI_DEFAULT_CONTEXT);
    enum status status =
        cli_windows_read(&im->windows, &s->text, &stream, "an importance matrix", tokenizer, why);
    const struct cli_tokens_given given = {&im->windows, &stream, tokenizer,
                                           s->evaluate.load.tokenizer};
    if (!status && given.from)
        status = cli_tokens_compare(&given, s->model, why);
    if (!status)
        status = cli_windows_lay(&im->windows, &plan, why);
    if (!status)
        imat_units_widen(&im->windows.plan);
    return status ? status : cli_windows_make_tables(&im->windows, 0, why);
}

static enum status open_collector(struct cli_imatrix *im, struct status_why *why)
{
    const struct cli_imatrix_settings *s = im->settings;
    enum imat_scored scored = s->process_output ? IMAT_SCORED_ALL
                              : s->no_ppl       ? IMAT_SCORED_NONE
                                                : IMAT_SCORED_PLAN;
    enum status status =
        imat_collector_open(&im->collector, model_file(im->model.model), s->process_output, why);
    if (!status)
        status = imat_collector_attach(im->collector, im->e.backends.items, im->e.backends.n, why);
    if (!status)
        imat_units_begin(&im->units, &im->windows.units, im->collector, scored);
    return status;
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_imatrix *im = self;
    const struct cli_imatrix_settings *s = im->settings;
    enum status status = check_alone(why);
    if (!status)
        status = cli_model_open(&im->model, s->model, &s->evaluate, false, why);
    if (!status)
        status = open_windows(im, why);
    if (!status)
        status = open_collector(im, why);
    im->e.models.model = im->model.model;
    im->e.units = &im->windows.units.units;
    return status;
}

/** What computed: parts of one run have the same. The caller frees *out. */
static enum status name_computation(char **out, const struct cli_imatrix *im,
                                    struct status_why *why)
{
    struct base_json json;
    struct cli_versions versions;
    char *text = NULL, hex[BASE_HEX] = "";
    cli_versions_read(&versions);
    base_json_begin(&json);
    base_json_text(&json, json.root, "assay", versions.assay);
    base_json_flag(&json, json.root, "process_output", im->settings->process_output);
    cli_json_add_computation(&json, json.root, &im->e);
    cli_json_add_model(&json, json.root, "model", &im->model, false);
    enum status status = base_json_text_of(&json, &text, why);
    base_json_free(&json);
    struct base_digest *digest = status ? NULL : base_digest_open();
    base_digest_add(digest, text ? text : "", text ? strlen(text) : 0);
    if (!status)
        status = base_digest_close(digest, hex, why);
    cJSON_free(text);
    *out = status ? NULL : strdup(hex);
    return status || *out ? status : status_fail(why, STATUS_MEMORY, "no memory for an id");
}

/** The text, which windows of it, and what computed, as a file of importance matrices has them. */
static enum status name_parts(struct cli_imatrix *im, struct status_why *why)
{
    struct imat_matrix *m = &im->matrix;
    const struct eval_plan *plan = &im->windows.plan;
    enum status status = base_array_new(m->datasets, 1, "texts", why);
    if (!status)
        status = base_array_new(m->texts, 1, "texts", why);
    if (!status)
        status = base_array_new(m->ranges, 1, "ranges", why);
    if (status)
        return status;
    m->n_datasets = m->n_ranges = 1;
    m->datasets[0] = strdup(im->e.text_file ? im->e.text_file : "");
    if (asprintf(&m->texts[0], "%s %zu %" PRId32, im->windows.stream.sha256, plan->window,
                 plan->bos_use == EVAL_BOS_NONE ? -1 : plan->options.bos) < 0)
        m->texts[0] = NULL;
    m->ranges[0].begin = plan->options.skip_windows;
    m->ranges[0].end = m->ranges[0].begin + plan->n_windows;
    if (!m->datasets[0] || !m->texts[0])
        return status_fail(why, STATUS_MEMORY, "no memory for the name of the text");
    return name_computation(&m->model, im, why);
}

static enum status summarise(void *self, struct status_why *why)
{
    struct cli_imatrix *im = self;
    struct imat_matrix *m = &im->matrix;
    imat_collector_take(im->collector, m);
    m->chunk_size = im->windows.plan.window;
    m->n_chunks = imat_most_rows(m) / m->chunk_size;
    if (!im->settings->no_ppl)
        eval_perplexity(&im->result, &im->windows.plan, &im->windows.stream, im->windows.tables);
    return name_parts(im, why);
}

static enum status verdict(const void *self, struct status_why *why)
{
    const struct cli_imatrix *im = self;
    if (im->result.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE,
                           "the perplexity is not finite: the model's head is broken, or its last "
                           "layer; the inputs of its layers are finite");
    return STATUS_OK;
}

static void close(void *self)
{
    struct cli_imatrix *im = self;
    imat_collector_close(im->collector);
    imat_free(&im->matrix);
    cli_windows_close(&im->windows);
    cli_model_close(&im->model);
}

static enum status outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    const struct cli_imatrix *im = self;
    (void)why;
    out->fewer = "--chunks";
    out->n_fewer = im->windows.plan.n_windows;
    return STATUS_OK;
}

static enum status write_matrix(const void *self, struct base_file *file, struct status_why *why)
{
    const struct cli_imatrix *im = self;
    return im->settings->format == CLI_IMATRIX_DAT ? imat_write_dat(&im->matrix, file, why)
                                                   : imat_write_gguf(&im->matrix, file, why);
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_imatrix_lines,
    .members = &cli_imatrix_members,
    .open = open,
    .summarise = summarise,
    .verdict = verdict,
    .close = close,
    .outlook = outlook,
};

enum status cli_imatrix_run(const struct cli_imatrix_settings *s, struct status_why *why)
{
    struct cli_imatrix im = {
        .settings = s,
        .e = {.kind = &evaluator,
              .settings = &s->evaluate,
              .name = "imatrix",
              .model_file = s->model,
              .inputs = {{"-m", s->model}, {"-f", s->text.text_file}, {"-bf", s->text.binary_file}},
              .text_file = s->text.binary_file ? s->text.binary_file : s->text.text_file,
              .outputs = {{"-o", s->out_file, .write = write_matrix, .only_whole = true}}}};
    return cli_evaluate(&im.e, why);
}
