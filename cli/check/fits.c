/* assay check --or: which of several models a recording fits best. */
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "cli/check/check_evaluator.h"
#include "cli/output/json_parts.h"

enum status cli_fits_open(struct cli_check *c, struct status_why *why)
{
    const struct cli_check_settings *s = c->settings;
    size_t n = 1 + s->others.n;
    if (base_array_new(c->fits, n, "models", why) || base_array_new(c->models, n, "models", why))
        return STATUS_MEMORY;
    c->n_fits = n;
    c->fits[0].model = &c->model;
    c->models[0] = c->model.model;
    enum status status = STATUS_OK;
    for (size_t i = 1; i < n && !status; i++) {
        struct cli_model *model = &c->fits[i].opened;
        status = cli_model_open(model, s->others.items[i - 1], &s->evaluate, false, why);
        if (!status)
            status = c->recorded.kind->check(&c->recorded, model->model, NULL, why);
        if (!status)
            status = eval_check_same_vocab(c->model.model, model->model, why);
        if (!status)
            status = cli_backends_round(&c->e.backends, model_file(model->model), why);
        c->fits[i].model = model;
        c->models[i] = model->model;
    }
    return status;
}

void cli_fits_close(struct cli_check *c)
{
    for (size_t i = 1; i < c->n_fits; i++)
        cli_model_close(&c->fits[i].opened);
    free(c->fits);
    free(c->models);
}

static double mean_of(const struct eval_table *table)
{
    struct base_moments kld = {0};
    for (size_t w = 0; w < table->n_windows; w++)
        for (size_t i = 0; table->done[w] && i < table->n_scored; i++)
            base_moments_add(&kld, eval_table_row(table, EVAL_KL, w)[i]);
    return base_moments_mean(&kld);
}

/* The best one is the first of the nearest. */
enum status cli_fits_summarise(struct cli_check *c, struct status_why *why)
{
    const struct eval_table *pairs = c->windows.tables + 1;
    double *x;
    if (base_array_new(x, pairs->n_windows, "windows", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < c->n_fits; i++) {
        c->fits[i].kld = mean_of(&pairs[i]);
        if (c->fits[i].kld < c->fits[c->best].kld)
            c->best = i;
    }
    for (size_t i = 0; i < c->n_fits; i++) {
        size_t n;
        eval_against_windows(x, &n, &pairs[i], &pairs[c->best], EVAL_KL);
        c->fits[i].beyond_best = eval_paired_over(x, n);
    }
    free(x);
    return STATUS_OK;
}

/* The best of the others. */
static const struct cli_check_fit *next_best(const struct cli_check *c)
{
    const struct cli_check_fit *next = NULL;
    for (size_t i = 0; i < c->n_fits; i++)
        if (i != c->best && (!next || c->fits[i].kld < next->kld))
            next = &c->fits[i];
    return next;
}

/* Whether the next best is further away by more than chance. */
static bool is_decided(const struct cli_check *c)
{
    const struct eval_paired *next = &next_best(c)->beyond_best;
    return next->value > next->half_width;
}

void cli_fits_print(const struct cli_check *c)
{
    if (c->n_fits < 2)
        return;
    const struct cli_check_fit *best = &c->fits[c->best], *next = next_best(c);
    const struct eval_paired *d = &next->beyond_best;
    char recorded[BASE_PATH_BYTES], first[BASE_PATH_BYTES], second[BASE_PATH_BYTES];
    base_printable_text(recorded, sizeof recorded, c->recorded.path);
    base_printable_text(first, sizeof first, best->model->path);
    base_printable_text(second, sizeof second, next->model->path);
    puts("\n====== Which model was recorded ======");
    if (is_decided(c))
        printf("%s fits %s best, %.4e nats from it; the next of %zu models is %s, further by %.4e "
               "± %.1e (z %.1f)\n",
               recorded, first, best->kld, c->n_fits, second, d->value, d->error, d->z);
    else
        printf("Not decided: %s is %.4e nats from %s and %.4e from %s, which is no difference in "
               "%zu window%s\n",
               recorded, best->kld, first, next->kld, second, d->n, status_plural(d->n));
    puts("KL(model || recorded)\tbeyond the best\terror\tmodel");
    for (size_t i = 0; i < c->n_fits; i++) {
        const struct cli_check_fit *fit = &c->fits[i];
        printf("%.4e\t%.4e\t%.1e\t%s\n", fit->kld, fit->beyond_best.value,
               base_unsigned_nan(fit->beyond_best.error),
               base_printable_text(first, sizeof first, fit->model->path));
    }
}

void cli_fits_add_json(struct base_json *json, const struct cli_check *c)
{
    if (c->n_fits < 2)
        return;
    cJSON *o = base_json_object(json, json->root, "fits");
    base_json_text(json, o, "best", base_file_name(c->fits[c->best].model->path));
    base_json_flag(json, o, "decided", is_decided(c));
    cJSON *list = base_json_list(json, o, "models");
    for (size_t i = 0; i < c->n_fits; i++) {
        const struct cli_check_fit *fit = &c->fits[i];
        cJSON *item = base_json_object(json, list, NULL);
        base_json_text(json, item, "file", base_file_name(fit->model->path));
        base_json_text(json, item, "id", fit->model->id);
        base_json_real(json, item, "kld", fit->kld);
        base_json_real(json, item, "beyond_best", fit->beyond_best.value);
        base_json_real(json, item, "beyond_best_error", fit->beyond_best.error);
    }
}
