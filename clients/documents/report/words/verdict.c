/* What the results say, in words: which model is nearest, which are as good within chance. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/report.h"
#include "clients/documents/results/texts.h"

enum { MOST_JUDGED = 40 /* each is a paired test */, FEW_WINDOWS = 20 };

/* Models that are compared with each other by one figure; a smaller value is better. */
struct field {
    struct doc_report *report;
    const struct doc_scoreboard *board;
    const struct doc_scoreboard_run *runs[MOST_JUDGED]; /* the best one first */
    double values[MOST_JUDGED];
    enum { BEST, EQUAL, WORSE, UNTESTED } found[MOST_JUDGED];
    size_t n, n_left_out;
    size_t metric;         /* of texts */
    struct status_why why; /* of the first that could not be tested */
};

static void add(struct field *f, const struct doc_scoreboard_run *run, double value)
{
    if (!isfinite(value))
        return;
    if (f->n == MOST_JUDGED) {
        f->n_left_out++;
        return;
    }
    size_t at = f->n++;
    for (; at > 0 && f->values[at - 1] > value; at--) {
        f->values[at] = f->values[at - 1];
        f->runs[at] = f->runs[at - 1];
    }
    f->values[at] = value;
    f->runs[at] = run;
}

/* Whether the paired test finds a difference from the best one. */
static void test_one(struct field *f, size_t i, struct doc_compare *c)
{
    struct status_why why = {""};
    enum status status = doc_report_compare(c, f->report, f->runs[0], f->runs[i], &why);
    f->report->no_memory |= status == STATUS_MEMORY;
    f->found[i] = UNTESTED;
    if (status) {
        f->why = *f->why.text ? f->why : why;
    } else if (f->board->of_tasks) {
        f->found[i] = c->tests[0].exact_p < 0.05 ? WORSE : EQUAL;
    } else {
        const char *key = f->metric == DOC_METRIC_KLD ? "kld" : "nll";
        for (size_t k = 0; k < c->n_figures; k++)
            if (strcmp(c->figures[k].key, key) == 0)
                f->found[i] = c->values[k].low > 0 ? WORSE : EQUAL;
    }
}

static void test_all(struct field *f)
{
    struct doc_compare *c = malloc(sizeof *c);
    f->report->no_memory |= !c;
    for (size_t i = 1; c && i < f->n; i++)
        test_one(f, i, c);
    free(c);
}

static size_t count(const struct field *f, int found)
{
    size_t n = 0;
    for (size_t i = 1; i < f->n; i++)
        n += (int)f->found[i] == found;
    return n;
}

/* How much worse a model is than the best one. */
static void put_distance(const struct field *f, size_t i)
{
    struct base_file *file = f->report->file;
    double ratio = f->values[i] / f->values[0];
    if (f->board->of_tasks)
        doc_html(file, " (%.2f)", f->values[i] - f->values[0]);
    else if (f->metric == DOC_METRIC_PPL)
        doc_html(file, " (%.2g %%)", 100 * (ratio - 1));
    else if (ratio < 9.95)
        doc_html(file, " (%.2g)", ratio);
    else
        doc_html(file, " (%.0f)", ratio);
}

/* The models of one kind, with "and" between the last two. */
static void put_names(const struct field *f, int found)
{
    size_t n = count(f, found), put = 0;
    for (size_t i = 1; i < f->n; i++) {
        if ((int)f->found[i] != found)
            continue;
        const char *separator = !put ? "" : put + 1 == n ? " and " : ", ";
        doc_html(f->report->file, "%s<bdi>%s</bdi>", separator, f->runs[i]->label);
        if (found == WORSE)
            put_distance(f, i);
        put++;
    }
}

static void put_chances(const struct field *f, const char *as_good, const char *worse)
{
    struct base_file *file = f->report->file;
    if (f->n > 1 && count(f, EQUAL)) {
        doc_html(file, "<li>Within chance, ");
        put_names(f, EQUAL);
        doc_html(file, " %s %s.</li>\n", count(f, EQUAL) > 1 ? "are" : "is", as_good);
    } else if (f->n > 1 && !count(f, UNTESTED)) {
        doc_html(file, "<li>No other model is %s within chance.</li>\n", as_good);
    }
    if (count(f, WORSE)) {
        doc_html(file, "<li>%s: ", worse);
        put_names(f, WORSE);
        doc_html(file, ".</li>\n");
    }
    if (count(f, UNTESTED)) {
        doc_html(file, "<li>Not tested for chance: ");
        put_names(f, UNTESTED);
        doc_html(file, " (<bdi>%s</bdi>).</li>\n", f->why.text);
    }
    if (f->n_left_out)
        doc_html(file, "<li>%zu further models were not judged.</li>\n", f->n_left_out);
}

/* The best model that is no larger than another one and no worse, or NULL. */
static const struct doc_scoreboard_run *instead_of(const struct field *f, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (f->runs[k]->n_bytes <= f->runs[i]->n_bytes &&
            (f->values[k] < f->values[i] || f->runs[k]->n_bytes < f->runs[i]->n_bytes))
            return f->runs[k];
    return NULL;
}

/* Sizes that gain nothing: a model that is at most as large is better. */
static void put_sizes(const struct field *f, const char *better)
{
    struct base_file *file = f->report->file;
    const char *separator = "<li>These sizes gain nothing: ";
    bool any = false;
    for (size_t i = 1; i < f->n; i++) {
        const struct doc_scoreboard_run *other = instead_of(f, i);
        if (!other)
            continue;
        base_file_write(file, separator, strlen(separator));
        doc_html(file, "<bdi>%s</bdi>", f->runs[i]->label);
        doc_html(file, " (<bdi>%s</bdi> is no larger)", other->label);
        separator = ", ";
        any = true;
    }
    if (any)
        doc_html(file, ".</li>\n");
    else if (f->n > 1)
        doc_html(file, "<li>Each size gains something: every larger model is %s.</li>\n", better);
    size_t smallest = 0;
    for (size_t i = 1; i < f->n; i++)
        if (f->found[i] == EQUAL && f->runs[i]->n_bytes < f->runs[smallest]->n_bytes)
            smallest = i;
    if (smallest) {
        doc_html(file, "<li>What <bdi>%s</bdi> gains ", f->runs[0]->label);
        doc_html(file, "over the smaller <bdi>%s</bdi> may be chance.</li>\n",
                 f->runs[smallest]->label);
    }
}

/* Which perplexities are not the base's. */
static void put_perplexities(const struct field *f, const char *base)
{
    struct base_file *file = f->report->file;
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        double ln = base_field_real_or_null(f->runs[i]->from, "ppl.ln_ratio");
        double error = doc_error(f->runs[i]->from, "ppl.ln_ratio_error");
        if (!(fabs(ln) > 1.96 * error))
            continue;
        if (n++)
            doc_html(file, ", ");
        else
            doc_html(
                file,
                "<li>Perplexity differs from that of <bdi>%s</bdi> by more than chance: ", base);
        doc_html(file, "<bdi>%s</bdi> (%s%.2g %%)", f->runs[i]->label, ln > 0 ? "+" : "−",
                 100 * fabs(expm1(ln)));
    }
    if (n)
        doc_html(file, ".</li>\n");
    else
        doc_html(file,
                 "<li>No perplexity differs from that of <bdi>%s</bdi> by more than chance.</li>\n",
                 base);
}

static const char *base_of(const struct doc_scoreboard *board, const struct doc_scoreboard_run *of)
{
    for (size_t i = 0; i < board->n; i++)
        if (board->runs[i].is_base && doc_runs_comparable(&board->runs[i], of, DOC_METRIC_KLD))
            return board->runs[i].label;
    return "the base";
}

static void judge_divergence(struct field *f)
{
    struct base_file *file = f->report->file;
    const struct doc_scoreboard_run *best = f->runs[0];
    const struct doc_metric_value *kld = &best->values[DOC_METRIC_KLD];
    const char *base = base_of(f->board, best);
    char value[DOC_NUMBER_TEXT], error[DOC_NUMBER_TEXT];
    doc_html(file, "<li><strong><bdi>%s</bdi></strong> is nearest to <bdi>%s</bdi>: ", best->label,
             base);
    doc_html(
        file,
        "its mean KLD is %s ± %s nats, and after %.2f %% of the tokens both have the same most "
        "likely next one.</li>\n",
        doc_number(value, kld->value, 6), doc_number(error, kld->error, 6),
        100 * base_field_real_or_null(best->from, "same_top"));
    put_chances(f, "as near", "Further away, in multiples of its divergence");
    put_perplexities(f, base);
    put_sizes(f, "nearer to the base");
}

static void judge_perplexity(struct field *f)
{
    const struct doc_metric_value *ppl = &f->runs[0]->values[DOC_METRIC_PPL];
    doc_html(f->report->file,
             "<li><strong><bdi>%s</bdi></strong> has the lowest perplexity: %.6g ± %.2g.</li>\n",
             f->runs[0]->label, ppl->value, ppl->error);
    put_chances(f, "as good", "Higher, by");
    put_sizes(f, "better");
}

/* Intervals from few windows are too narrow. */
static void put_few(const struct field *f)
{
    struct base_field root = doc_root(doc_of(f->runs[0]->from));
    size_t n = doc_count(root, "result.n_windows");
    for (size_t i = 0; i < f->n; i++)
        if (f->runs[i]->n_windows && f->runs[i]->n_windows < n)
            n = f->runs[i]->n_windows;
    if (f->n > 1 && n < FEW_WINDOWS)
        doc_html(
            f->report->file,
            "<li>There are only %zu windows: the tests may take chance for a difference.</li>\n",
            n);
}

/* The field of those that are comparable with a run; false: it has none but bases. */
static bool gather(struct field *f, const struct doc_scoreboard_run *head, size_t metric)
{
    f->metric = metric;
    for (size_t i = 0; i < f->board->n; i++) {
        const struct doc_scoreboard_run *run = &f->board->runs[i];
        if (!run->values[metric].known || !doc_runs_comparable(head, run, metric))
            continue;
        if (metric == DOC_METRIC_PPL && doc_run_diverges(run))
            return false; /* judged by its divergence */
        if (metric == DOC_METRIC_PPL || run->number != SIZE_MAX)
            add(f, run, run->values[metric].value);
    }
    return f->n > 0;
}

static void judge_texts(struct doc_report *r, size_t metric)
{
    const struct doc_scoreboard *board = &r->results->of_texts;
    char text[DOC_TEXT_NAME];
    for (size_t i = 0; i < board->n && !r->no_memory; i++) {
        if (!doc_run_is_head(board, i, metric))
            continue;
        struct field f = {.report = r, .board = board};
        if (!gather(&f, &board->runs[i], metric))
            continue;
        test_all(&f);
        doc_html(r->file, "<h3><bdi>%s</bdi></h3>\n<ul class=\"verdict\">\n",
                 doc_text_name(text, doc_of(f.runs[0]->from)));
        if (metric == DOC_METRIC_KLD)
            judge_divergence(&f);
        else
            judge_perplexity(&f);
        put_few(&f);
        doc_html(r->file, "</ul>\n");
    }
}

static void judge_tasks(struct doc_report *r)
{
    const struct doc_scoreboard *board = &r->results->of_tasks;
    for (size_t i = 0, n; i < board->n; i += n) {
        struct field f = {.report = r, .board = board};
        for (n = 0; i + n < board->n && !strcmp(board->runs[i + n].task, board->runs[i].task); n++)
            add(&f, &board->runs[i + n],
                -100 * base_field_real_or_null(board->runs[i + n].from, "result.score.share"));
        if (!f.n)
            continue;
        test_all(&f);
        doc_html(r->file,
                 "<h3>%s</h3>\n<ul class=\"verdict\">\n<li><strong><bdi>%s</bdi></strong> is right "
                 "most often, in %.2f %% of the tasks.</li>\n",
                 board->runs[i].task, f.runs[0]->label, -f.values[0]);
        put_chances(&f, "as good", "Right less often, by points of a hundred");
        doc_html(r->file, "</ul>\n");
    }
}

void doc_report_verdict(struct doc_report *r)
{
    if (!r->results->of_texts.n && !r->results->of_tasks.n)
        return;
    judge_texts(r, DOC_METRIC_KLD);
    judge_texts(r, DOC_METRIC_PPL);
    judge_tasks(r);
    doc_html(r->file,
             "<p class=\"faint\">Whether a difference is more than chance is judged by "
             "paired tests on the same windows or tasks, each at 95 %%; a perplexity's by "
             "the standard error of its ratio. &#177; is one standard error over windows, or over "
             "documents, where there are 11 or more; tokens of a window hang together, "
             "so that an error that takes them as independent is too small.</p>\n");
}
