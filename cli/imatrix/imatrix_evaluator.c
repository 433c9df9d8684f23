#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/digest.h"
#include "base/text/printable.h"
#include "cli/imatrix/imatrix_command.h"
#include "cli/input/tokens.h"
#include "cli/output/json_parts.h"
#include "cli/process/say.h"
#include "cli/process/version.h"
#include "cli/session/cluster.h"
#include "clients/imatrix/file/write.h"
#include "clients/imatrix/windows/documents.h"

/* Sums of layers that other processes have do not come here. */
static enum status check_whole(struct status_why *why)
{
    if (cli_cluster()->n_shares <= 1)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "--split: assay imatrix needs the inputs of all layers in each process; "
                       "expected it without --split");
}

static enum status lay_windows(struct cli_imatrix *im, struct status_why *why)
{
    const struct cli_imatrix_settings *s = im->settings;
    struct cli_windows *w = &im->windows;
    struct eval_plan_options plan =
        cli_plan_options(&s->windows, im->model.model, CLI_DEFAULT_CONTEXT);
    plan.apart = true;
    plan.whole = !cli_imatrix_masked(im);
    enum status status = cli_windows_lay(w, &plan, why);
    if (!status && !w->documents.n)
        imat_units_widen(&w->plan);
    return status;
}

static enum status open_windows(struct cli_imatrix *im, struct status_why *why)
{
    const struct cli_imatrix_settings *s = im->settings;
    const struct model_tokenizer *tokenizer = model_tokenizer(im->model.model);
    const struct eval_stream_options stream = {.bos_in_front = true,
                                               .parse_special = s->text.parse_special};
    enum status status = cli_windows_read(
        &im->windows, &s->text, &stream, s->llama_compat ? "--llama-compat" : NULL, tokenizer, why);
    const struct cli_tokens_given given = {&im->windows, &stream, tokenizer,
                                           s->evaluate.load.tokenizer};
    if (!status && given.from)
        status = cli_tokens_compare(&given, s->model, why);
    if (!status)
        status = lay_windows(im, why);
    cli_evaluation_take_documents(&im->e, &im->windows.documents);
    return status ? status : cli_windows_make_tables(&im->windows, 0, why);
}

/** Rows of experts, by the documents' categories, if there are both. */
static void tell_apart(struct cli_imatrix *im)
{
    const struct eval_documents *d = &im->windows.documents;
    size_t n = imat_n_categories(d);
    if (n > IMAT_MOST_CATEGORIES)
        cli_say("assay: note: the documents have %zu categories; the use of experts is told apart "
                "by %d at most, so it is not\n",
                n, IMAT_MOST_CATEGORIES);
    else if (n && imat_collector_categorise(im->collector, n))
        im->units.categories = d;
}

static enum status open_collector(struct cli_imatrix *im, struct status_why *why)
{
    const struct cli_imatrix_settings *s = im->settings;
    struct imat_units *u = &im->units;
    enum status status =
        imat_collector_open(&im->collector, model_file(im->model.model), s->process_output, why);
    if (!status)
        status = imat_collector_attach(im->collector, im->e.backends.items, im->e.backends.n, why);
    if (status)
        return status;
    *u = (struct imat_units){.collector = im->collector,
                             .scored = s->process_output ? IMAT_SCORED_ALL
                                       : s->no_ppl       ? IMAT_SCORED_NONE
                                                         : IMAT_SCORED_PLAN,
                             .masked = cli_imatrix_masked(im),
                             .n_packed = !isnan(s->stop_change) + (im->sums_file != NULL) +
                                         (cli_cluster()->n_ranks > 1),
                             .least_positions = imat_least_positions(im->model.model),
                             .llama = cli_imatrix_llama(s),
                             .stop.change = s->stop_change,
                             .stop.rows = (uint64_t)s->stop_rows};
    im->e.units = &im->windows.units.units;
    if (model_hparams(im->model.model)->n_bound) {
        im->nextn = (struct imat_nextn){im->model.model, im->e.units, im->collector};
        im->streams = imat_nextn_source(&im->nextn);
        im->e.models.streams = &im->streams;
    }
    tell_apart(im);
    if (u->masked)
        imat_collector_mask(im->collector);
    if (s->llama_compat)
        imat_collector_mask_dense(im->collector);
    imat_units_begin(u, &im->windows.units);
    return STATUS_OK;
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_imatrix *im = self;
    const struct cli_imatrix_settings *s = im->settings;
    enum status status = check_whole(why);
    if (!status)
        status = cli_model_open(&im->model, s->model, &s->evaluate, false, why);
    if (!status)
        status = open_windows(im, why);
    if (!status)
        status = open_collector(im, why);
    im->e.models.model = im->model.model;
    if (!status)
        status = imat_missing_foresee(&im->foreseen, im->model.model, s->process_output, why);
    if (!status)
        cli_imatrix_say_missing(im);
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
    base_json_flag(&json, json.root, "nextn", im->nextn.model != NULL);
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

/** What is evaluated: equal ids have the same windows. The caller frees it; NULL: no memory. */
static char *name_text(const struct cli_imatrix *im)
{
    const struct eval_plan *plan = &im->windows.plan;
    const struct eval_documents *d = &im->windows.documents;
    int32_t bos = plan->bos_use == EVAL_BOS_NONE ? -1 : plan->options.bos;
    char *name = NULL;
    int n = d->n ? asprintf(&name, "%s %zu %" PRId32 " %s %s", im->windows.stream.sha256,
                            plan->window, bos, d->sha256, im->units.masked ? "masked" : "all")
                 : asprintf(&name, "%s %zu %" PRId32, im->windows.stream.sha256, plan->window, bos);
    return n < 0 ? NULL : name;
}

/** The texts, which windows of them, and what computed, as a file of importance matrices has them.
 */
static enum status name_parts(struct cli_imatrix *im, struct status_why *why)
{
    struct imat_matrix *m = &im->matrix;
    const struct eval_plan *plan = &im->windows.plan;
    const struct eval_documents *d = &im->windows.documents;
    size_t n = d->n ? d->n_files : 1;
    enum status status = base_array_new(m->datasets, n, "texts", why);
    if (!status)
        status = base_array_new(m->texts, n, "texts", why);
    if (!status)
        status = base_array_new(m->hashes, n, "texts", why);
    if (!status)
        status = base_array_new(m->ranges, 1, "ranges", why);
    if (status)
        return status;
    m->n_datasets = n;
    m->n_ranges = 1;
    m->ranges[0].begin = plan->options.skip_windows;
    m->ranges[0].end = m->ranges[0].begin + plan->n_windows;
    for (size_t i = 0; i < n; i++) {
        const char *file = d->n ? d->paths[i] : im->e.text_file;
        m->datasets[i] = strdup(file ? base_file_name(file) : "");
        m->texts[i] = name_text(im);
        m->hashes[i] = strdup(d->n ? d->files[i].sha256 : im->windows.text.sha256);
        if (!m->datasets[i] || !m->texts[i] || !m->hashes[i])
            return status_fail(why, STATUS_MEMORY, "no memory for the name of the text");
    }
    enum status named = im->units.categories ? imat_name_categories(m, d, why) : STATUS_OK;
    return named ? named : name_computation(&m->model, im, why);
}

static enum status summarise(void *self, struct status_why *why)
{
    struct cli_imatrix *im = self;
    struct imat_matrix *m = &im->matrix;
    enum status status = cli_imatrix_keep_last(im, why);
    if (status)
        return status;
    im->units.stop.least_rows = imat_collector_least_rows(im->collector);
    cli_windows_close_plan(&im->windows);
    imat_collector_take(im->collector, m);
    if (cli_imatrix_n_windows(im) == im->windows.plan.n_windows &&
        imat_missing_find(&im->missing, im->model.model, m, why))
        return STATUS_MEMORY;
    if (im->settings->llama_compat && imat_round(m, why))
        return STATUS_MEMORY;
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
    imat_units_free(&im->units);
    imat_free(&im->matrix);
    free(im->foreseen.items);
    free(im->missing.items);
    free(im->sums_id);
    cli_windows_close(&im->windows);
    cli_model_close(&im->model);
}

static enum status outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    const struct cli_imatrix *im = self;
    (void)why;
    out->fewer = "--chunks";
    out->n_fewer = im->windows.plan.n_windows;
    out->may_end = !isnan(im->settings->stop_change) || im->settings->stop_rows;
    return STATUS_OK;
}

static enum status write_matrix(const void *self, struct base_file *file, struct status_why *why)
{
    const struct cli_imatrix *im = self;
    return im->settings->format == CLI_IMATRIX_DAT ? imat_write_dat(&im->matrix, file, why)
                                                   : imat_write_gguf(&im->matrix, file, why);
}

static const char *matrix_kind(const struct cli_imatrix_settings *s)
{
    return s->format == CLI_IMATRIX_DAT ? BASE_MATRIX_DAT : BASE_MATRIX;
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_imatrix_lines,
    .members = &cli_imatrix_members,
    .open = open,
    .start = cli_imatrix_load,
    .resumed = cli_imatrix_check_loaded,
    .unit_done = cli_imatrix_keep,
    .summarise = summarise,
    .verdict = verdict,
    .close = close,
    .outlook = outlook,
};

enum status cli_imatrix_run(const struct cli_imatrix_settings *s, struct status_why *why)
{
    const char *state = s->evaluate.state_file;
    char *sums = NULL;
    if (state && asprintf(&sums, "%s.sums", state) < 0)
        return status_fail(why, STATUS_MEMORY, "no memory for the name of a file");
    struct cli_imatrix im = {.settings = s,
                             .sums_file = sums,
                             .e = {.kind = &evaluator,
                                   .settings = &s->evaluate,
                                   .name = "imatrix",
                                   .model_file = s->model,
                                   .inputs = {{"-m", s->model}},
                                   .text = &s->text,
                                   .outputs = {{"-o", s->out_file, matrix_kind(s),
                                                .write = write_matrix, .only_whole = true},
                                               {"--state", sums, BASE_SUMS}}}};
    enum status status = cli_evaluate(&im.e, why);
    free(sums);
    return status;
}
