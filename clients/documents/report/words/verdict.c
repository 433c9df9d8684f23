/* What the tests say: which models are as good within chance, how far the others are from that. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "clients/documents/report/html.h"
#include "clients/documents/report/words/ranking.h"

void doc_put_percent(struct base_file *file, double share)
{
    char text[DOC_NUMBER_TEXT];
    double percent = 100 * fabs(share);
    const char *sign = share > 0 ? "+" : share < 0 ? "−" : "";
    if (percent < 9.95)
        doc_html(file, "%s%.2g %%", sign, percent);
    else
        doc_html(file, "%s%s %%", sign, doc_number(text, percent, 0));
}

/* How much worse a model is than the best one. */
static void put_distance(const struct doc_ranking *f, size_t i)
{
    struct base_file *file = f->report->file;
    char text[DOC_NUMBER_TEXT];
    double ratio = f->values[i] / f->values[0];
    doc_html(file, " (");
    if (f->board->of_tasks)
        doc_html(file, "%.2f", f->values[i] - f->values[0]);
    else if (f->metric == DOC_METRIC_PPL)
        doc_put_percent(file, ratio - 1);
    else if (ratio < 9.95)
        doc_html(file, "%.2g", ratio);
    else
        doc_html(file, "%s", doc_number(text, ratio, 0));
    doc_html(file, ")");
}

void doc_put_found(const struct doc_ranking *f, enum doc_found found)
{
    size_t n = doc_ranking_count(f, found), put = 0;
    for (size_t i = 1; i < f->n; i++) {
        if (f->found[i] != found)
            continue;
        const char *separator = !put ? "" : put + 1 == n ? " and " : ", ";
        doc_html(f->report->file, "%s<bdi>%s</bdi>", separator, f->runs[i]->label);
        if (found == DOC_WORSE)
            put_distance(f, i);
        put++;
    }
}

static void put_chances(const struct doc_ranking *f)
{
    struct base_file *file = f->report->file;
    const char *worse = f->board->of_tasks ? "Right less often, by points of a hundred"
                        : f->metric == DOC_METRIC_KLD
                            ? "Further away, in multiples of its divergence"
                            : "Higher, by";
    if (f->n > 1 && !doc_ranking_count(f, DOC_EQUAL) && !doc_ranking_count(f, DOC_UNTESTED))
        doc_html(file, "<li>No other model is as good within chance.</li>\n");
    if (doc_ranking_count(f, DOC_WORSE)) {
        doc_html(file, "<li>%s: ", worse);
        doc_put_found(f, DOC_WORSE);
        doc_html(file, ".</li>\n");
    }
    if (doc_ranking_count(f, DOC_UNTESTED)) {
        doc_html(file, "<li>Not tested for chance: ");
        doc_put_found(f, DOC_UNTESTED);
        doc_html(file, " (<bdi>%s</bdi>).</li>\n", f->why.text);
    }
    if (f->n_left_out)
        doc_html(file, "<li>%zu further models were not judged.</li>\n", f->n_left_out);
}

/* Sizes that gain nothing: a model that is at most as large is better. */
static void put_sizes(const struct doc_ranking *f)
{
    struct base_file *file = f->report->file;
    const char *before = "<li>These sizes gain nothing: ";
    bool any = false;
    for (size_t i = 1; i < f->n; i++) {
        const struct doc_scoreboard_run *other = doc_ranking_instead_of(f, i);
        if (!other)
            continue;
        base_file_write(file, before, strlen(before));
        doc_html(file, "<bdi>%s</bdi>", f->runs[i]->label);
        doc_html(file, " (<bdi>%s</bdi> is no larger)", other->label);
        before = ", ";
        any = true;
    }
    doc_html(file, any ? ".</li>\n" : "");
    size_t smallest = 0;
    for (size_t i = 1; i < f->n; i++)
        if (f->found[i] == DOC_EQUAL && f->runs[i]->n_bytes < f->runs[smallest]->n_bytes)
            smallest = i;
    if (smallest) {
        doc_html(file, "<li>What <bdi>%s</bdi> gains ", f->runs[0]->label);
        doc_html(file, "over the smaller <bdi>%s</bdi> may be chance.</li>\n",
                 f->runs[smallest]->label);
    }
}

/* Which perplexities are not the base's. */
static void put_perplexities(const struct doc_ranking *f, const char *base)
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
        doc_html(file, "<bdi>%s</bdi> (", f->runs[i]->label);
        doc_put_percent(file, expm1(ln));
        doc_html(file, ")");
    }
    if (n)
        doc_html(file, ".</li>\n");
    else
        doc_html(file,
                 "<li>No perplexity differs from that of <bdi>%s</bdi> by more than chance.</li>\n",
                 base);
}

void doc_put_verdict(const struct doc_ranking *f, const char *base)
{
    doc_html(f->report->file, "<ul class=\"verdict\">\n");
    put_chances(f);
    if (!f->board->of_tasks && f->metric == DOC_METRIC_KLD)
        put_perplexities(f, base);
    if (!f->board->of_tasks)
        put_sizes(f);
    doc_html(f->report->file,
             "</ul>\n<p class=\"faint\">Whether a difference is more than chance is judged by "
             "paired tests on the same windows or tasks, each at 95 %%; a perplexity's by the "
             "standard error of its ratio. &#177; is one standard error over windows, or over "
             "documents, where there are 11 or more; tokens of a window hang together, so that an "
             "error that takes them as independent is too small.</p>\n");
}
