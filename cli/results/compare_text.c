#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/output/json_parts.h"
#include "cli/process/say.h"
#include "cli/results/compare.h"

static void print_sides(const struct doc_compare *c)
{
    for (size_t side = 0; side < 2; side++) {
        char path[BASE_PATH_BYTES], name[96], id[16], kv[DOC_KV_LABEL];
        const struct doc_compared *s = &c->sides[side];
        printf("%c: %s (%s%s, %s, model id %.12s)\n", side ? 'B' : 'A',
               base_printable_text(path, sizeof path, s->document.json.file), s->label.text,
               base_printable_text(kv, sizeof kv, s->kv),
               base_printable_text(name, sizeof name, s->name),
               base_printable_text(id, sizeof id, s->id));
    }
}

enum { CELL_BYTES = 48 };

/* A figure, or its logarithm where that alone is finite. */
static const char *cell(char out[CELL_BYTES], const struct doc_figure *f, double value,
                        double logarithm)
{
    if (isfinite(value))
        snprintf(out, CELL_BYTES, "%.*f", f->n_decimals,
                 base_shown(f->scale * value, f->n_decimals));
    else if (isfinite(logarithm))
        snprintf(out, CELL_BYTES, "exp(%.3f)", logarithm);
    else
        snprintf(out, CELL_BYTES, "-");
    return out;
}

/* A difference that rounding may have made, where it can be seen. */
static void print_rounding(const struct doc_compare *c)
{
    double difference = c->values[DOC_FIGURE_KLD].difference;
    if (difference != 0 && c->kld_rounding >= 0.5e-6 && fabs(difference) <= c->kld_rounding)
        printf("\nThe difference of the mean KLDs is no larger than what rounding may have made, "
               "about %.6lf (see --precision)\n",
               c->kld_rounding);
}

static void print_windows(const struct doc_compare *c)
{
    printf("%zu windows, %zu tokens; intervals: 95 %%, from %lld resamples of windows, seed %lld\n",
           c->n_windows, c->n_tokens, (long long)c->settings.n_resamples,
           (long long)c->settings.seed);
    printf("\n%-14s %12s %12s %12s   interval\n", "", "A", "B", "B - A");
    for (size_t k = 0; k < c->n_figures; k++) {
        const struct doc_figure *f = &c->figures[k];
        const struct doc_pair_figure *v = &c->values[k];
        double none = (double)NAN, ln_a = k ? none : c->values[1].a,
               ln_b = k ? none : c->values[1].b;
        char a[CELL_BYTES], b[CELL_BYTES], difference[CELL_BYTES], low[CELL_BYTES],
            high[CELL_BYTES];
        int width = 14 + (strstr(f->name, "Δ") != NULL); /* a letter of two bytes */
        printf("%-*s %12s %12s %12s   [%s, %s]\n", width, f->name, cell(a, f, v->a, ln_a),
               cell(b, f, v->b, ln_b), cell(difference, f, v->difference, none),
               cell(low, f, v->low, none), cell(high, f, v->high, none));
    }
    print_rounding(c);
}

static double share(size_t n_right, size_t n)
{
    return (double)n_right / (double)n;
}

static void print_tasks(const struct doc_compare *c)
{
    char kind[32];
    printf("%s, %zu task%s\n", base_printable_text(kind, sizeof kind, c->task_kind), c->n_tasks,
           status_plural(c->n_tasks));
    printf("\n%-9s %9s %9s %21s %7s %7s %10s %11s %10s\n", "", "A %", "B %", "B - A %", "only A",
           "only B", "exact p", "chi-square", "p");
    for (size_t s = 0; s < DOC_N_TASK_SCORES; s++) {
        const struct doc_pair_counts *n = &c->counts[s];
        const struct doc_mcnemar *m = &c->tests[s];
        printf("%-9s %9.4f %9.4f %9.4f +/- %7.4f %7zu %7zu %10.3g %11.4f %10.3g\n",
               doc_task_scores[s], 100 * share(n->both + n->only_a, c->n_tasks),
               100 * share(n->both + n->only_b, c->n_tasks), base_shown(100 * m->difference, 4),
               100 * m->error, n->only_a, n->only_b, m->exact_p, m->chi_square, m->chi_square_p);
    }
}

void cli_compare_print(const struct doc_compare *c)
{
    bool tasks = c->sides[0].document.kind == DOC_TASKS;
    for (size_t side = 0; side < 2; side++)
        if (c->n_only[side])
            cli_say("assay: note: %s has %zu %s%s that %s lacks, left out here\n",
                    c->sides[side].document.json.file, c->n_only[side], tasks ? "task" : "window",
                    status_plural(c->n_only[side]), c->sides[!side].document.json.file);
    print_sides(c);
    if (tasks)
        print_tasks(c);
    else
        print_windows(c);
}

static void add_figures(struct base_json *json, const struct doc_compare *c)
{
    cJSON *list = base_json_list(json, json->root, "figures");
    for (size_t k = 0; k < c->n_figures; k++) {
        const struct doc_pair_figure *v = &c->values[k];
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "name", c->figures[k].key);
        base_json_real(json, o, "a", v->a);
        base_json_real(json, o, "b", v->b);
        base_json_real(json, o, "difference", v->difference);
        base_json_real(json, o, "difference_error", v->error);
        base_json_real(json, o, "low", v->low);
        base_json_real(json, o, "high", v->high);
    }
}

static void add_scores(struct base_json *json, const struct doc_compare *c)
{
    cJSON *list = base_json_list(json, json->root, "scores");
    for (size_t s = 0; s < DOC_N_TASK_SCORES; s++) {
        const struct doc_pair_counts *n = &c->counts[s];
        const struct doc_mcnemar *m = &c->tests[s];
        cJSON *o = base_json_object(json, list, NULL);
        base_json_text(json, o, "name", doc_task_scores[s]);
        base_json_uint(json, o, "n_both", n->both);
        base_json_uint(json, o, "n_only_a", n->only_a);
        base_json_uint(json, o, "n_only_b", n->only_b);
        base_json_uint(json, o, "n_neither", n->neither);
        base_json_real(json, o, "a", share(n->both + n->only_a, c->n_tasks));
        base_json_real(json, o, "b", share(n->both + n->only_b, c->n_tasks));
        base_json_real(json, o, "difference", m->difference);
        base_json_real(json, o, "difference_error", m->error);
        base_json_real(json, o, "exact_p", m->exact_p);
        base_json_real(json, o, "chi_square", m->chi_square);
        base_json_real(json, o, "chi_square_p", m->chi_square_p);
    }
}

static void add_side(struct base_json *json, const struct doc_compare *c, size_t side)
{
    const struct doc_compared *s = &c->sides[side];
    cJSON *o = base_json_object(json, json->root, side ? "b" : "a");
    base_json_text(json, o, "file", s->document.json.file);
    base_json_text(json, o, "model_file", s->file);
    base_json_text(json, o, "model_id", s->id);
    base_json_text(json, o, "model_name", s->name);
    if (s->document.kind == DOC_KLD)
        base_json_uint(json, o, "candidate", s->field.index + 1);
    base_json_uint(json, o, "n_left_out", c->n_only[side]);
}

enum status cli_compare_write_json(const struct doc_compare *c, struct base_file *file,
                                   struct status_why *why)
{
    struct base_json json;
    doc_json_begin(&json, DOC_COMPARE_SCHEMA);
    base_json_text(&json, json.root, "of", doc_schema(c->sides[0].document.kind));
    for (size_t side = 0; side < 2; side++)
        add_side(&json, c, side);
    if (c->sides[0].document.kind == DOC_TASKS) {
        base_json_text(&json, json.root, "kind", c->task_kind);
        base_json_uint(&json, json.root, "n_tasks", c->n_tasks);
        add_scores(&json, c);
    } else {
        base_json_uint(&json, json.root, "n_windows", c->n_windows);
        base_json_uint(&json, json.root, "n_tokens", c->n_tokens);
        base_json_int(&json, json.root, "resamples", c->settings.n_resamples);
        base_json_int(&json, json.root, "seed", c->settings.seed);
        add_figures(&json, c);
        if (c->sides[0].document.kind == DOC_KLD)
            base_json_real(&json, json.root, "kld_rounding", c->kld_rounding);
    }
    return doc_json_end(&json, file, why);
}
