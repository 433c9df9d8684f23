/*
 * The run of assay best: that of assay kld, with windows in random order, models that leave it when
 * they are not needed any more, and an end when all is clear.
 */
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/random.h"
#include "cli/best/best.h"
#include "cli/session/cluster.h"

/* Looks are at multiples of 4 windows: of 512 tokens, so many make a batch. */
enum { DEFAULT_BATCH = 2048, SEED = 1 };

static struct cli_best *of(const struct eval_units *units)
{
    return (struct cli_best *)((char *)(uintptr_t)units -
                               offsetof(struct cli_best, k.windows.units.units));
}

static void lay(const struct eval_units *units, size_t item, struct eval_batch *batch)
{
    const struct cli_best *b = of(units);
    const struct cli_windows *w = &b->k.windows;
    eval_window_lay(&w->plan, &w->stream, b->order[w->units.left[item]], batch);
}

/** The pass of candidate i in the run. */
static size_t pass_of(const struct cli_best *b, size_t i)
{
    return i + !cli_base_has_rows(&b->k.base);
}

static bool enough(struct eval_units *units, size_t w)
{
    struct cli_best *b = of(units);
    for (size_t i = 0; i < b->k.n_candidates; i++) {
        const struct eval_table *table = &b->k.windows.tables[1 + i];
        const double *kl = eval_table_row(table, EVAL_KL, w);
        size_t n = eval_table_n(table, w);
        double sum = 0;
        for (size_t t = 0; t < n; t++)
            sum += kl[t];
        b->divergences[i] = sum / (double)n;
    }
    bool over = eval_race_add(&b->race, b->divergences);
    size_t n_idle = 0;
    for (size_t i = 0; i < b->k.n_candidates; i++) {
        atomic_store(&b->idle[pass_of(b, i)], !b->race.running[i]);
        n_idle += !b->race.running[i];
    }
    if (b->k.e.models.streams == &b->streams)
        units->idle = (double)n_idle / (double)pass_of(b, b->k.n_candidates);
    units->n_look = eval_race_look(&b->rules, b->race.n_looks);
    return over;
}

/** Any window is then as likely as another to be among the first ones. */
static enum status shuffle(struct cli_best *b, struct status_why *why)
{
    size_t n = b->k.windows.plan.n_windows;
    struct base_twister twister;
    if (n > UINT32_MAX || base_array_new(b->order, n, "windows", why))
        return status_fail(why, STATUS_MEMORY, "no memory for an order of %zu windows", n);
    base_twister_seed(&twister, SEED);
    for (size_t i = 0; i < n; i++) {
        size_t k = base_twister_below(&twister, (uint32_t)(i + 1));
        b->order[i] = b->order[k];
        b->order[k] = i;
    }
    return STATUS_OK;
}

/** What the runner is to do otherwise than for assay kld. */
static enum status enter_race(struct cli_best *b, struct status_why *why)
{
    struct cli_kld *k = &b->k;
    struct eval_units *units = &k->windows.units.units;
    size_t n = k->n_candidates;
    b->rules.n = n;
    b->rules.n_windows = units->n;
    enum status status = eval_race_make(&b->race, &b->rules, why);
    if (!status)
        status = shuffle(b, why);
    if (!status)
        status = base_array_new(b->divergences, n, "models", why);
    b->idle = status ? NULL : calloc(n + 1, sizeof *b->idle);
    if (!status && !b->idle)
        status = status_fail(why, STATUS_MEMORY, "no memory for %zu models", n);
    if (status)
        return status;
    b->kind = *units->kind;
    b->kind.lay = lay;
    b->kind.enough = enough;
    units->kind = &b->kind;
    units->n_look = eval_race_look(&b->rules, 0);
    b->idling = (struct eval_idle){b->idle};
    b->streams = eval_idle_source(&b->idling);
    if (cli_cluster()->n_shares <
        2) /* else all that there is to know of streams is the cluster's */
        k->e.models.streams = &b->streams;
    return STATUS_OK;
}

static enum status refuse_documents(const struct cli_best *b, struct status_why *why)
{
    if (cli_base_has_rows(&b->k.base))
        return status_fail(why, STATUS_USAGE,
                           "%s was recorded of documents; assay best takes one text: expected a "
                           "recording of one",
                           b->k.base.path);
    return status_fail(why, STATUS_USAGE,
                       "-f: %s has JSON documents; assay best takes one text: --force-text "
                       "evaluates the bytes as they stand",
                       b->settings->kld.text.text_file);
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_best *b = self;
    enum status status = cli_best_read_speeds(b, why);
    if (!status)
        status = cli_kld_open_models(&b->k, why);
    if (!status)
        status = cli_best_fit(b, why);
    if (!status)
        status = cli_kld_make_units(&b->k, why);
    if (!status && b->k.windows.documents.n)
        status = refuse_documents(b, why);
    return status ? status : enter_race(b, why);
}

/** Windows after a candidate has left the race have no scores of it. */
static enum status summarise(void *self, struct status_why *why)
{
    struct cli_best *b = self;
    struct cli_kld *k = &b->k;
    const struct eval_units *units = &k->windows.units.units;
    bool complete = units->n_enough || units->n_finished == units->n;
    for (size_t i = 0; i < k->n_candidates; i++) {
        struct eval_table *table = &k->windows.tables[1 + i];
        for (size_t w = b->race.means[i].n + b->race.broken[i]; w < table->n_windows; w++)
            table->done[w] = false;
    }
    enum status status = cli_kld_evaluator.summarise(k, why);
    for (size_t i = 0; i < k->n_candidates && complete; i++)
        k->results[i].complete = true;
    return status;
}

static void close(void *self)
{
    struct cli_best *b = self;
    cli_kld_close(&b->k);
    eval_race_free(&b->race);
    cli_best_close_speeds(b);
    free(b->files);
    free(b->order);
    free(b->divergences);
    free(b->idle);
}

static enum status outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    const struct cli_best *b = self;
    (void)why;
    out->fewer = "--chunks";
    out->n_fewer = b->k.windows.plan.n_windows;
    out->may_end = true; /* candidates drop out */
    out->n_look = eval_race_look(&b->rules, 0);
    return STATUS_OK;
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_best_lines,
    .members = &cli_best_members,
    .open = open,
    .summarise = summarise,
    .verdict = cli_kld_verdict,
    .close = close,
    .outlook = outlook,
};

enum status cli_best_run(const struct cli_best_settings *settings, struct status_why *why)
{
    struct cli_best_settings own = *settings;
    struct cli_kld_settings *s = &own.kld;
    struct cli_best b = {.settings = &own,
                         .k = {.settings = s,
                               .e = {.kind = &evaluator,
                                     .settings = &s->evaluate,
                                     .name = "best",
                                     .inputs = {{"--base", s->base}},
                                     .model_paths = s->models,
                                     .more_inputs = own.benches,
                                     .more_option = "--bench",
                                     .text = &s->text,
                                     .outputs = {{"--report", own.report_file, BASE_PAGE,
                                                  .write = cli_best_write_report}}}}};
    struct cli_machine_settings *machine = &s->evaluate.machine;
    if (!machine->n_batch && !machine->device && !machine->gpu_layers)
        machine->n_batch = DEFAULT_BATCH;
    enum status status = cli_best_read(&b, why);
    return status ? status : cli_evaluate(&b.k.e, why);
}
