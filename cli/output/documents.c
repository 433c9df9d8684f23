#include "cli/output/documents.h"

#include <math.h>
#include <stdio.h>

#include "base/text/escape.h"

#include "base/text/printable.h"
#include "cli/output/json_parts.h"

/* What figures are called in tables and documents. */
static const char *const names[EVAL_GROUP_N_OF_PAIR] = {"nll", "base_nll", "ln_ratio", "kld",
                                                        "same_top"};

/* A mean over no tokens, or the error of one token's, is undefined. */
static void print_figure(double x, int n_decimals)
{
    if (isnan(x))
        printf("\t-");
    else
        printf("\t%.*f", n_decimals, x);
}

static void print_figures(const char *name, size_t n_documents, size_t n_tokens,
                          const struct base_estimate *figures, size_t n)
{
    printf("%s\t%zu\t%zu", name, n_documents, n_tokens);
    print_figure(exp(figures[EVAL_GROUP_NLL].value), 4);
    for (size_t k = 0; k < n; k++) {
        print_figure(figures[k].value, 6);
        print_figure(base_estimate_error(figures[k]), 6);
    }
    putchar('\n');
}

static void print_group(const char *name, const struct eval_group *group, size_t n)
{
    struct base_estimate figures[EVAL_GROUP_N_OF_PAIR] = {0};
    for (size_t k = 0; k < n; k++)
        figures[k] = eval_group_estimate(group, (enum eval_group_figure)k);
    print_figures(name, group->n_documents, group->n_tokens, figures, n);
}

static void print_header(const char *of, size_t n)
{
    printf("\n%s\tdocuments\ttokens\tppl", of);
    for (size_t k = 0; k < n; k++)
        printf("\t%s\t%s_error", names[k], names[k]);
    putchar('\n');
}

/* A category's name; the group after them all has none. */
static struct base_string name_of(const struct eval_documents *d, size_t category)
{
    return category < d->categories.n ? d->categories.strings[category]
                                      : (struct base_string){"(none)", 6};
}

static void print_means(const struct eval_groups *g)
{
    print_header("mean", g->n_figures);
    print_group("micro", &g->all, g->n_figures);
    print_figures(g->n_categories ? "macro (categories)" : "macro (documents)", g->all.n_documents,
                  g->all.n_tokens, g->macro, g->n_figures);
}

void cli_groups_print(const struct eval_groups *g, const struct eval_documents *d)
{
    char name[BASE_PATH_BYTES];
    if (d->n_files > 1) {
        print_header("file", g->n_figures);
        for (size_t i = 0; i < d->n_files; i++)
            print_group(base_printable_text(name, sizeof name, d->paths[i]), &g->files[i],
                        g->n_figures);
    }
    if (g->n_categories) {
        print_header("category", g->n_figures);
        for (size_t i = 0; i < g->n_categories; i++) {
            struct base_string s = name_of(d, i);
            print_group(base_printable(name, sizeof name, s.data, s.n_bytes), &g->categories[i],
                        g->n_figures);
        }
    }
    print_means(g);
}

static void add_estimates(struct base_json *json, cJSON *o, const struct base_estimate *figures,
                          size_t n)
{
    const struct base_estimate nll = figures[EVAL_GROUP_NLL];
    double ppl = exp(nll.value);
    cli_json_estimate(json, o, "ppl",
                      (struct base_estimate){ppl, ppl * nll.error, ppl * nll.lot_error});
    for (size_t k = 0; k < n; k++)
        cli_json_estimate(json, o, names[k], figures[k]);
}

static void add_group(struct base_json *json, cJSON *o, const struct eval_group *group, size_t n)
{
    struct base_estimate figures[EVAL_GROUP_N_OF_PAIR] = {0};
    for (size_t k = 0; k < n; k++)
        figures[k] = eval_group_estimate(group, (enum eval_group_figure)k);
    base_json_uint(json, o, "n_windows", group->n_windows);
    base_json_uint(json, o, "n_tokens", group->n_tokens);
    base_json_real(json, o, "n_bytes", group->n_bytes);
    add_estimates(json, o, figures, n);
}

static void add_category(struct base_json *json, cJSON *o, const struct eval_documents *d,
                         size_t category)
{
    struct base_string s = name_of(d, category);
    if (category < d->categories.n)
        base_json_bytes(json, o, "category", s.data, s.n_bytes);
    else
        base_json_text(json, o, "category", NULL);
}

static void add_documents(struct base_json *json, cJSON *parent, const struct eval_groups *g,
                          const struct eval_documents *d)
{
    cJSON *list = base_json_list(json, parent, "documents");
    for (size_t i = 0; i < d->n; i++) {
        const struct eval_document *item = &d->items[i];
        cJSON *o = base_json_object(json, list, NULL);
        base_json_uint(json, o, "file", item->file);
        if (item->line)
            base_json_uint(json, o, "line", item->line);
        if (item->id)
            base_json_text(json, o, "id", item->id);
        if (g->n_categories)
            add_category(json, o, d,
                         item->category == EVAL_NO_CATEGORY ? d->categories.n
                                                            : (size_t)item->category);
        add_group(json, o, &g->documents[i], g->n_figures);
    }
}

void cli_json_add_groups(struct base_json *json, cJSON *parent, const struct eval_groups *g,
                         const struct eval_documents *d)
{
    cJSON *files = base_json_list(json, parent, "files");
    for (size_t i = 0; i < d->n_files; i++) {
        cJSON *o = base_json_object(json, files, NULL);
        base_json_text(json, o, "name", base_file_name(d->paths[i]));
        base_json_text(json, o, "sha256", d->files[i].sha256);
        base_json_text(json, o, "converted_from", d->files[i].converted_from);
        base_json_uint(json, o, "n_documents", d->files[i].n);
        add_group(json, o, &g->files[i], g->n_figures);
    }
    cJSON *categories = base_json_list(json, parent, "categories");
    for (size_t i = 0; i < g->n_categories; i++) {
        cJSON *o = base_json_object(json, categories, NULL);
        add_category(json, o, d, i);
        base_json_uint(json, o, "n_documents", g->categories[i].n_documents);
        add_group(json, o, &g->categories[i], g->n_figures);
    }
    add_documents(json, parent, g, d);
    cJSON *macro = base_json_object(json, parent, "macro");
    base_json_text(json, macro, "over", g->n_categories ? "categories" : "documents");
    base_json_uint(json, macro, "n", g->n_macro);
    add_estimates(json, macro, g->macro, g->n_figures);
}

static bool may_stop(const struct cli_windows *w)
{
    return w->units.stop != NULL;
}

void cli_stop_print(const struct cli_windows *w)
{
    if (!may_stop(w))
        return;
    size_t n = w->units.units.n_enough;
    const char *of = w->stop.paired ? "ln(PPL(Q)/PPL(base))" : "the mean NLL";
    if (n)
        printf("Stopped after %zu of %zu windows: the standard error of %s is %.6f, %g was "
               "wanted\n",
               n, w->n_laid, of, w->stop.error, w->stop.wanted);
    else
        printf("Not stopped: the standard error of %s is %.6f, %g was wanted (after %d windows and "
               "%d tokens at least)\n",
               of, base_unsigned_nan(w->stop.error), w->stop.wanted, EVAL_STOP_LEAST_WINDOWS,
               EVAL_STOP_LEAST_TOKENS);
}

void cli_json_add_stop(struct base_json *json, cJSON *parent, const struct cli_windows *w)
{
    if (!may_stop(w))
        return;
    cJSON *o = base_json_object(json, parent, "stop");
    base_json_real(json, o, "wanted", w->stop.wanted);
    base_json_real(json, o, "reached", w->stop.error);
    base_json_flag(json, o, "stopped", w->units.units.n_enough > 0);
    base_json_uint(json, o, "of_windows", w->n_laid);
}
