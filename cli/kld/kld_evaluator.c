#include "cli/kld/kld_evaluator.h"
#include "cli/calibrate.h"
#include "cli/input/tokens.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/printable.h"
#include "eval/metrics.h"
#include "kernels/kernels.h"

static enum status allocate(struct cli_kld *k, struct status_why *why)
{
    size_t n = k->settings->models.n * cli_kv_count(&k->settings->evaluate.load);
    if (base_array_new(k->candidates, n, "models", why) ||
        base_array_new(k->models, n, "models", why) || base_array_new(k->seen, n, "models", why) ||
        base_array_new(k->results, n, "models", why) || base_array_new(k->groups, n, "models", why))
        return STATUS_MEMORY;
    k->n_candidates = n;
    return STATUS_OK;
}

/* Candidates of one file differ in what their keys and values are rounded to: they share weights,
 * also with a base that is the same model. */
static enum status open_candidate(struct cli_kld *k, size_t i, struct status_why *why)
{
    const struct cli_kld_settings *s = k->settings;
    const struct cli_model_settings *load = &s->evaluate.load;
    size_t n_pairs = cli_kv_count(load), pair = i % n_pairs;
    const char *path = s->models.items[i / n_pairs];
    struct cli_evaluate_settings plain = s->evaluate;
    plain.load.cache_k = plain.load.cache_v = (struct cli_kv_list){0};
    bool rounds = s->evaluate.machine.activations; /* models are told apart by weights */
    bool has_caches = load->cache_k.n || load->cache_v.n;
    bool shares = has_caches && !plain.watch.wanted && !plain.host && !rounds;
    bool is_base =
        !cli_base_has_rows(&k->base) && strcmp(path, s->base) == 0 && !load->experts_used;
    struct cli_model *first = is_base ? &k->base.model : &k->candidates[i - pair];
    enum status status =
        shares && (is_base || pair)
            ? cli_model_share(&k->candidates[i], first, why)
            : cli_model_open(&k->candidates[i], path, &plain, s->llama_compat, why);
    if (s->labels.n)
        k->candidates[i].label = s->labels.items[i / n_pairs];
    return status ? status : cli_model_round(&k->candidates[i], &s->evaluate, pair, why);
}

/*
 * Whoever swaps base and model gets numbers that look right. A base is rarely the smaller one; a
 * hundredth is what other types of norms and biases make.
 */
static void remark_smaller_base(struct cli_kld *k)
{
    struct cli_model_size base = {0};
    if (k->base.kind->size)
        base = k->base.kind->size(&k->base);
    for (size_t i = 0; i < k->n_candidates && base.n_weights; i++)
        if (cli_remark_swapped(&k->e, k->settings->base, base, &k->candidates[i]))
            return;
}

enum status cli_kld_open_models(struct cli_kld *k, struct status_why *why)
{
    const struct cli_kld_settings *s = k->settings;
    enum status status = allocate(k, why);
    if (!status)
        status = cli_base_open(&k->base, s->base, &s->evaluate, why);
    for (size_t i = 0; i < k->n_candidates && !status; i++) {
        struct cli_model *candidate = &k->candidates[i];
        status = open_candidate(k, i, why);
        k->models[i] = candidate->model;
        if (!status)
            status = cli_kld_check_vocabulary(k, i, why);
    }
    if (!status) {
        remark_smaller_base(k);
        cli_kld_remark_optional(k);
    }
    const char *base = cli_base_has_rows(&k->base) ? NULL : s->base;
    return status ? status : cli_models_label(k->candidates, k->n_candidates, base, why);
}

/* What a sentence calls the option that a text is given by. */
static const char *text_option(const struct cli_text_settings *s)
{
    return s->prompt ? "-p" : s->binary_file ? "-bf" : "-f";
}

/* A text that is given beside a file of rows must begin with the tokens that were recorded. */
static enum status check_text(const struct cli_kld *k, const struct eval_stream_options *options,
                              struct status_why *why)
{
    const struct cli_text_settings *s = &k->settings->text;
    const struct eval_stream *recorded = &k->windows.stream;
    const char *option = text_option(s), *what = "a comparison with rows of one text";
    struct cli_windows given = {0};
    enum status status = cli_text_check_single(s, what, why);
    if (!status)
        status =
            cli_windows_read(&given, s, options, what, model_tokenizer(cli_kld_reader(k)), why);
    size_t n_recorded = base_min(recorded->n, k->base.n_windows * k->base.n_ctx);
    size_t i = 0, n = base_min(given.stream.n, n_recorded);
    while (!status && i < n && given.stream.ids[i] == recorded->ids[i])
        i++;
    if (!status && i < n)
        status =
            status_fail(why, STATUS_USAGE,
                        "%s is not the text that %s was recorded from: its token %zu is "
                        "%" PRId32 ", recorded is %" PRId32 "; leave %s out, or give that text",
                        option, k->base.path, i, given.stream.ids[i], recorded->ids[i], option);
    else if (!status && n < n_recorded)
        status = status_fail(why, STATUS_USAGE,
                             "%s is not the text that %s was recorded from: it has %zu tokens, "
                             "recorded are %zu; leave %s out, or give that text",
                             option, k->base.path, n, n_recorded, option);
    cli_windows_close(&given);
    return status;
}

/* Where documents differ from those that were recorded; NULL: nowhere. */
static const char *difference(const struct cli_windows *given, const struct cli_windows *recorded,
                              size_t *document)
{
    const struct eval_documents *a = &given->documents, *b = &recorded->documents;
    size_t n = base_min(a->n, b->n);
    for (*document = 0; *document < n; ++*document) {
        const struct eval_document *x = &a->items[*document], *y = &b->items[*document];
        if (x->n_tokens != y->n_tokens ||
            memcmp(given->stream.ids + x->first, recorded->stream.ids + y->first,
                   x->n_tokens * sizeof *given->stream.ids) != 0)
            return "has other tokens";
        if (memcmp(a->scored + x->first, b->scored + y->first, x->n_tokens) != 0)
            return "has other tokens that are scored (--mask)";
    }
    if (a->n != b->n)
        return a->n < b->n ? "is missing" : "was not recorded";
    *document = 0;
    return strcmp(a->sha256, b->sha256) == 0 ? NULL : "or a later one has another category";
}

/* Documents that are given beside a recording must be those of it; they know more of themselves. */
static enum status take_documents(struct cli_kld *k, const struct eval_stream_options *options,
                                  struct status_why *why)
{
    const struct cli_text_settings *s = &k->settings->text;
    struct cli_windows given = {0};
    enum status status =
        cli_windows_read(&given, s, options, NULL, model_tokenizer(cli_kld_reader(k)), why);
    size_t i = 0, n = k->windows.documents.n;
    const char *differs = NULL;
    if (!status && !given.documents.n)
        status = status_fail(why, STATUS_USAGE,
                             "%s is one text, and %s was recorded of %zu document%s; leave %s out, "
                             "or give these",
                             text_option(s), k->base.path, n, status_plural(n), text_option(s));
    if (!status)
        differs = difference(&given, &k->windows, &i);
    if (differs)
        status = status_fail(why, STATUS_USAGE,
                             "%s has not the documents that %s was recorded from: number %zu, "
                             "counted from 1, %s; leave %s out, or give those",
                             text_option(s), k->base.path, i + 1, differs, text_option(s));
    if (status) {
        cli_windows_close(&given);
        return status;
    }
    cli_windows_close(&k->windows);
    k->windows = given;
    return STATUS_OK;
}

/* What llama-perplexity does not look at, where a file has the windows. */
static void take_all_windows(struct cli_kld *k, struct eval_plan_options *plan)
{
    const struct cli_base *base = &k->base;
    if (plan->n_ctx > base->n_ctx) {
        cli_remark(&k->e, "-c %zu is not used: the windows of %s have %zu tokens", plan->n_ctx,
                   base->path, base->n_ctx);
        plan->n_ctx = base->n_ctx;
    }
    int64_t chunks = k->settings->unused_chunks;
    if (chunks > 0 && (size_t)chunks != base->n_windows)
        cli_remark(&k->e,
                   "--chunks %" PRId64 " is not used: --kl-divergence compares the whole of %s, "
                   "%zu window%s, as llama-perplexity does; assay kld --base compares the first "
                   "%" PRId64,
                   chunks, base->path, base->n_windows, status_plural(base->n_windows), chunks);
}

/* Without a text: what is scored was recorded. */
static enum status check_chat(const struct cli_kld *k, struct status_why *why)
{
    const struct cli_chat_settings *s = &k->settings->text.chat;
    if (!s->chat_template && s->mask < 0)
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE,
                       "%s says how conversations of -f are read, and tokens and what is scored "
                       "are those of %s; leave it out, or give -f",
                       s->chat_template ? "--chat-template" : "--mask", k->base.path);
}

/* The base's tokens, where it has them, else the text's. */
static enum status take_tokens(struct cli_kld *k, struct eval_plan_options *plan,
                               struct status_why *why)
{
    struct cli_windows *w = &k->windows;
    struct eval_stream_options options = {
        .bos_in_front = true,
        .parse_special = k->settings->text.parse_special,
    };
    if (cli_base_has_rows(&k->base)) {
        if (k->settings->as_peer)
            take_all_windows(k, plan);
        enum status status = cli_base_tokens(&k->base, w, plan, why);
        if (status || !cli_text_given(&k->settings->text))
            return status ? status : check_chat(k, why);
        return w->documents.n ? take_documents(k, &options, why) : check_text(k, &options, why);
    }
    const struct cli_tokens_given given = {w, &options, model_tokenizer(cli_kld_reader(k)),
                                           k->settings->evaluate.load.tokenizer};
    enum status status =
        cli_windows_read(w, &k->settings->text, &options, NULL, given.tokenizer, why);
    if (!status && given.from)
        status = cli_tokens_compare(&given, k->settings->base, why);
    for (size_t i = 0; i < k->settings->models.n && given.from && !status; i++)
        status = cli_tokens_compare(&given, k->settings->models.items[i], why);
    return status;
}

static enum status make_tables(struct cli_kld *k, struct status_why *why)
{
    k->windows.is_cut = k->is_cut;
    enum status status = cli_windows_make_tables(&k->windows, k->n_candidates, why);
    return status ? status : cli_windows_stop_at(&k->windows, k->settings->windows.stop_se, why);
}

static enum status lay_windows(struct cli_kld *k, struct status_why *why)
{
    const struct cli_kld_settings *s = k->settings;
    struct eval_plan_options plan = cli_plan_options(
        &s->windows, cli_kld_reader(k), cli_base_has_rows(&k->base) ? 0 : CLI_DEFAULT_CONTEXT);
    enum status status = take_tokens(k, &plan, why);
    if (!status)
        status = cli_kld_check_ids(k, why);
    if (!status)
        status = cli_windows_lay(&k->windows, &plan, why);
    if (!status && k->base.kind->use)
        status = k->base.kind->use(&k->base, &k->windows.plan, s->llama_compat, why);
    if (!status && k->base.kind->print_limits)
        k->base.kind->print_limits(&k->base, &s->evaluate.machine);
    return status ? status : make_tables(k, why);
}

/** Where the base is a file of rows, the first of the candidates is the model. */
static struct eval_models models_of(const struct cli_kld *k)
{
    struct eval_models models = {
        .model = k->base.model.model,
        .candidates = k->models,
        .n_candidates = k->n_candidates,
        .n_common = k->is_cut ? k->n_common : 0,
        .want_js = k->settings->js,
    };
    if (cli_base_has_rows(&k->base)) {
        models.base = &k->base.source;
        models.model = *models.candidates++;
        models.n_candidates--;
    }
    return models;
}

enum status cli_kld_make_units(struct cli_kld *k, struct status_why *why)
{
    enum status status = lay_windows(k, why);
    for (size_t i = 0; i < k->n_candidates && !status; i++)
        status = cli_calibrate(&k->e, &k->candidates[i], &k->windows, why);
    if (status)
        return status;
    k->e.units = &k->windows.units.units;
    bool are_read = !cli_base_has_rows(&k->base) || cli_text_given(&k->settings->text);
    if (k->windows.documents.n && are_read)
        cli_evaluation_take_documents(&k->e, &k->windows.documents);
    k->e.models = models_of(k);
    k->e.head_model = k->e.models.base ? k->base.model.model : NULL;
    return STATUS_OK;
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_kld *k = self;
    enum status status = cli_kld_open_models(k, why);
    for (size_t i = 0; i < k->n_candidates && !status; i++)
        status = cli_backends_round(&k->e.backends, model_file(k->candidates[i].model), why);
    return status ? status : cli_kld_make_units(k, why);
}

/* A file of rows is read again from its beginning; it may have become another one of its kind. */
static enum status reopen_rows(struct cli_kld *k, struct status_why *why)
{
    const struct cli_base_kind *kind = k->base.kind;
    cli_windows_close(&k->windows);
    if (kind->close)
        kind->close(&k->base);
    cli_model_close(&k->base.model);
    k->base = (struct cli_base){.kind = kind, .path = k->settings->base};
    enum status status = kind->open(&k->base, &k->settings->evaluate, why);
    for (size_t i = 0; i < k->n_candidates && !status; i++)
        status = kind->check(&k->base, k->models[i], &(size_t){0}, why);
    return status ? status : cli_kld_make_units(k, why);
}

static enum status again(void *self, struct status_why *why)
{
    struct cli_kld *k = self;
    for (size_t i = 0; i < k->n_candidates; i++) {
        eval_kld_free(&k->results[i]);
        eval_groups_free(&k->groups[i]);
        k->seen[i].kld = 0;
        k->seen[i].n_tokens = 0;
    }
    k->figures[0] = '\0';
    k->tally = (struct eval_kld_tally){0};
    return cli_base_has_rows(&k->base) ? reopen_rows(k, why) : make_tables(k, why);
}

static enum status summarise(void *self, struct status_why *why)
{
    struct cli_kld *k = self;
    enum status status = STATUS_OK;
    cli_windows_close_plan(&k->windows);
    for (size_t i = 0; i < k->n_candidates && !status; i++) {
        struct eval_kld_tables tables = cli_kld_tables(k, i);
        status = eval_kld(&k->results[i], &tables, (size_t)k->settings->divergence.n_worst, why);
        if (!status && k->windows.documents.n)
            status = eval_groups_make(&k->groups[i], &k->windows.documents, &tables, why);
        k->results[i].rounding = cli_kld_rounding(k, i);
    }
    return status;
}

enum status cli_kld_verdict(const void *self, struct status_why *why)
{
    const struct cli_kld *k = self;
    for (size_t i = 0; i < k->n_candidates; i++) {
        const struct eval_kld_figures *f = &k->results[i].figures;
        bool of_base = isinf(f->base_ppl.value);
        if (k->results[i].nonfinite.n)
            return status_fail(why, STATUS_NONFINITE, "%s%s: the divergence is not finite",
                               k->candidates[i].path, k->candidates[i].kv);
        if (of_base || isinf(f->ppl.value))
            return status_fail(why, STATUS_NONFINITE,
                               "%s%s: the perplexity, exp(%.4f), is larger than the largest number",
                               of_base ? k->settings->base : k->candidates[i].path,
                               of_base ? "" : k->candidates[i].kv,
                               of_base ? f->base_nll.value : f->nll.value);
    }
    return STATUS_OK;
}

/* The candidates, and a base that is a model. */
static struct cli_model *model(void *self, size_t i)
{
    struct cli_kld *k = self;
    if (i < k->n_candidates)
        return &k->candidates[i];
    return i == k->n_candidates && !cli_base_has_rows(&k->base) ? &k->base.model : NULL;
}

void cli_kld_close(void *self)
{
    struct cli_kld *k = self;
    for (size_t i = k->n_candidates; i-- > 0;) {
        eval_kld_free(&k->results[i]);
        eval_groups_free(&k->groups[i]);
        cli_model_close(&k->candidates[i]);
    }
    cli_windows_close(&k->windows);
    free(k->groups);
    free(k->results);
    free(k->seen);
    free(k->models);
    free(k->candidates);
    cli_base_close(&k->base);
}

static enum status write_per_token(const void *self, struct base_file *file, struct status_why *why)
{
    const struct cli_kld *k = self;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < k->n_candidates && !status; i++) {
        struct eval_kld_tables tables = cli_kld_tables(k, i);
        status = eval_pair_per_token_write(file, &tables, i, k->settings->js,
                                           model_tokenizer(cli_kld_reader(k)), why);
    }
    return status;
}

/* Rows of the table of several contexts. */
static void add_rows(const struct cli_kld *k)
{
    for (size_t i = 0; k->settings->rows && i < k->n_candidates; i++) {
        const struct eval_kld_result *r = &k->results[i];
        char name[2 * CLI_CALLED_BYTES];
        if (r->complete)
            base_buffer_format(
                k->settings->rows, "| %zu | %s | %.6f ± %.6f | %.6f ± %.6f | %.3f ± %.3f |\n",
                k->windows.plan.options.n_ctx,
                base_markdown(name, sizeof name, k->candidates[i].called), r->figures.ppl.value,
                base_estimate_error(r->figures.ppl), r->figures.kld.value,
                base_estimate_error(r->figures.kld), 100 * r->figures.same_top.value,
                100 * base_estimate_error(r->figures.same_top));
    }
}

/* Several models end in the table that their document would give. */
static enum status finish(void *self, struct status_why *why)
{
    const struct cli_kld *k = self;
    add_rows(k);
    bool wanted = k->n_candidates > 1 || !cli_kld_in_blocks(k);
    return wanted && k->results[0].n_windows ? cli_kld_print_table(k, why) : STATUS_OK;
}

enum status cli_kld_outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    const struct cli_kld *k = self;
    (void)why;
    out->fewer = k->windows.documents.n ? NULL : "--chunks";
    out->n_fewer = k->windows.plan.n_windows;
    out->may_end = k->windows.units.stop;
    return STATUS_OK;
}

const struct cli_evaluator cli_kld_evaluator = {
    .lines = &cli_kld_lines,
    .members = &cli_kld_members,
    .open = open,
    .summarise = summarise,
    .finish = finish,
    .verdict = cli_kld_verdict,
    .close = cli_kld_close,
    .outlook = cli_kld_outlook,
    .again = again,
    .model = model,
};

enum status cli_kld_run(const struct cli_kld_settings *s, struct status_why *why)
{
    struct cli_kld k = {.settings = s,
                        .e = {.kind = &cli_kld_evaluator,
                              .settings = &s->evaluate,
                              .name = "kld",
                              .extends = true,
                              .inputs = {{"--base", s->base}},
                              .model_paths = s->models,
                              .text = &s->text,
                              .outputs = {{"--per-token", s->per_token_file, BASE_TOKENS,
                                           .write = write_per_token}}}};
    return cli_evaluate(&k.e, why);
}
