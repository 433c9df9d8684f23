/* The lines of assay kld. Those of llama-perplexity have its formats, because scripts read them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/number.h"
#include "base/text/printable.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/output/curve.h"
#include "cli/output/documents.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "eval/llama_compat.h"

static const double gibibyte = 1073741824.0;

/* A mean divergence from 16-bit codes can be below 0, which no script expects. */
static struct base_estimate not_negative(struct base_estimate kld)
{
    kld.value = kld.value < 0 ? 0 : kld.value;
    return kld;
}

static void print_beginning(const void *self)
{
    const struct cli_kld *k = self;
    const struct eval_plan *plan = &k->windows.plan;
    size_t batch = k->e.units->most.n_tokens;
    cli_say("kl_divergence: comparing %zu model%s with the base over %zu chunk%s, n_ctx=%zu, "
            "batch_size=%zu, n_seq=%zu\n",
            k->n_candidates, status_plural(k->n_candidates), plan->n_windows,
            status_plural(plan->n_windows), plan->window, batch, batch / plan->n_inputs);
}

static void print_header(void)
{
    puts("\nchunk             PPL               ln(PPL(Q)/PPL(base))          KL Divergence"
         "              Δp RMS            Same top p");
}

static void print_estimate(struct base_estimate x, struct doc_format as)
{
    int n = as.n_decimals;
    printf("    %*.*lf ± %*.*lf%s", as.width, n, base_shown(as.scale * x.value, n), as.error_width,
           n, base_shown(as.scale * x.error, n), as.unit);
}

static void print_row(const struct eval_kld_tally *tally, size_t w)
{
    const struct doc_format ppl = {1, 4, 9, 9, ""}, nats = {1, 5, 10, 10, ""},
                            shares = {100, 3, 6, 6, " %"};
    struct eval_kld_figures f = eval_kld_tally_figures(tally);
    printf("%4zu", w + 1);
    if (isinf(f.ppl.value))
        printf("    exp(%.4lf ± %.4lf)", f.nll.value, f.nll.error);
    else
        print_estimate(f.ppl, ppl);
    print_estimate(f.log_ratio, nats);
    print_estimate(not_negative(f.kld), nats);
    print_estimate(f.rms_dp, shares);
    print_estimate(f.same_top, shares);
    putchar('\n');
}

/* The mean divergence of each model so far. */
static void add_to_progress(struct cli_kld *k, size_t w)
{
    size_t used = (size_t)snprintf(k->figures, sizeof k->figures, "  KLD");
    for (size_t i = 0; i < k->n_candidates; i++) {
        struct eval_kld_tables tables = cli_kld_tables(k, i);
        struct eval_kld_sums sums = eval_kld_window_sums(&tables, w);
        struct cli_kld_seen *seen = &k->seen[i];
        char text[BASE_FIGURE_BYTES];
        seen->kld += sums.kld;
        seen->n_tokens += sums.n_tokens;
        double mean = seen->n_tokens ? seen->kld / (double)seen->n_tokens : (double)NAN;
        if (used < sizeof k->figures)
            used +=
                (size_t)snprintf(k->figures + used, sizeof k->figures - used, "%s %s %s",
                                 i ? " " : "", k->candidates[i].called, base_figure(text, mean, 2));
    }
    k->e.progress.figures = k->figures;
}

static void print_window(void *self, size_t w)
{
    struct cli_kld *k = self;
    if (k->n_candidates > 1)
        add_to_progress(k, w);
    if (k->n_candidates > 1 || !cli_kld_in_blocks(k))
        return;
    struct eval_kld_tables tables = cli_kld_tables(k, 0);
    if (k->tally.n_windows == 0)
        print_header();
    eval_kld_tally_add(&k->tally, &tables, w);
    print_row(&k->tally, w);
    cli_flush();
}

/* What print_window prints, after the run. */
static void print_rows(const struct cli_kld *k, size_t candidate)
{
    struct eval_kld_tables tables = cli_kld_tables(k, candidate);
    struct eval_kld_tally tally = {0};
    print_header();
    for (size_t w = 0; w < k->windows.plan.n_windows; w++) {
        if (!tables.candidate->done[w])
            continue;
        eval_kld_tally_add(&tally, &tables, w);
        print_row(&tally, w);
    }
}

/* The blocks of llama-perplexity. */
static void print_blocks(const struct cli_kld *k, size_t candidate)
{
    struct cli_metrics figures = cli_kld_metrics(k, candidate);
    puts("\n====== Perplexity statistics ======");
    cli_print_metrics(&figures, DOC_PERPLEXITIES, false);
    puts("\n====== KL divergence statistics ======");
    cli_print_metrics(&figures, DOC_DIVERGENCES, false);
    puts("\n====== Token probability statistics ======");
    cli_print_metrics(&figures, DOC_PROBABILITIES, false);
}

static void print_ranks(const char *whose, const struct eval_ranks *ranks)
{
    printf("Right token, %s: rank 1 for %.3lf %%, median rank %.1lf, mean rank %.3lf, mean 1/rank "
           "%.6lf\n",
           whose, 100 * ranks->first, ranks->median, ranks->mean, ranks->reciprocal);
}

static void print_size(const char *whose, struct cli_model_size size)
{
    if (!size.n_weights)
        return;
    printf("Size, %s: %.4lf GiB, %.4lf bits per weight\n", whose, (double)size.n_bytes / gibibyte,
           size.bits_per_weight);
}

/* Where the last digit of the mean is not certain. */
static void print_rounding(const struct cli_kld *k, size_t candidate)
{
    double rounding = k->results[candidate].rounding;
    if (rounding >= 0.5e-6) /* half of that digit */
        printf("Rounding       :   %.6lf (about how far --precision %s may have moved the mean "
               "divergence)\n",
               rounding, cli_precision_name(k->settings->evaluate.machine.precision));
}

/* Where the lines above, as llama-perplexity, take tokens for independent. */
static void print_lot_errors(const struct eval_kld_result *r)
{
    const struct eval_kld_figures *f = &r->figures;
    bool large = isinf(f->ppl.value);
    if (f->nll.lot_error == 0)
        return;
    printf("± if %s, not tokens, are independent: %s(Q) %.6lf, ln(PPL(Q)/PPL(base)) %.6lf,\n"
           "    divergence %.6lf, RMS Δp %.3lf %%, same top %.3lf %%\n",
           r->of_documents ? "documents" : "windows", large ? "NLL" : "PPL",
           base_shown((large ? f->nll : f->ppl).lot_error, 6),
           base_shown(f->log_ratio.lot_error, 6), base_shown(f->kld.lot_error, 6),
           base_shown(100 * f->rms_dp.lot_error, 3), base_shown(100 * f->same_top.lot_error, 3));
}

/* What llama-perplexity does not have. No line of it holds both "Mean" and "KLD": scripts count
 * on there being one. */
static void print_more(const struct cli_kld *k, size_t candidate)
{
    const struct eval_kld_result *r = &k->results[candidate];
    puts("\n====== Further statistics ======");
    print_lot_errors(r);
    print_rounding(k, candidate);
    cli_kld_print_vocabulary(k, candidate);
    struct cli_metrics figures = cli_kld_metrics(k, candidate);
    cli_print_metrics(&figures, DOC_FURTHER, true);
    print_ranks("Q", &r->ranks);
    print_ranks("base", &r->base_ranks);
    if (!isnan(r->bits_per_byte))
        printf("Bits per byte: %.6lf, base %.6lf\n", r->bits_per_byte, r->base_bits_per_byte);
    print_size("Q", cli_model_size(&k->candidates[candidate]));
    if (k->base.kind->size)
        print_size("base", k->base.kind->size(&k->base));
    puts("Base's top p    tokens   divergence    RMS Δp   same top");
    for (size_t i = 0; i < EVAL_N_BUCKETS; i++) {
        const struct eval_kld_bucket *b = &r->buckets[i];
        if (b->kld.n)
            printf("%3zu %% - %3zu %%  %8zu   %10.6lf  %6.3lf %%  %7.3lf %%\n",
                   100 / EVAL_N_BUCKETS * i, 100 / EVAL_N_BUCKETS * (i + 1), b->kld.n,
                   base_shown(base_moments_mean(&b->kld), 6),
                   100 * sqrt(b->dp_squared / (double)b->kld.n),
                   100 * b->same_top / (double)b->kld.n);
    }
}

/* A line each: the figures, then the text before the token and the token in angle brackets. */
static void print_worst(const struct cli_kld *k, size_t candidate)
{
    const struct eval_kld_result *r = &k->results[candidate];
    struct eval_kld_tables t = cli_kld_tables(k, candidate);
    puts("\nwindow\tposition\tkld\tp_base\tp\ttext");
    for (size_t n = 0; n < r->n_worst; n++) {
        struct cli_passage token = cli_kld_passage(k, &r->worst[n]);
        size_t w = token.place.window, i = token.place.index;
        printf("%zu\t%zu\t%.6f\t%.6f\t%.6f\t", w, cli_passage_position(&token),
               eval_table_row(t.candidate, EVAL_KL, w)[i],
               exp(eval_table_row(t.base, EVAL_LOG_PROB, w)[i]),
               exp(eval_table_row(t.candidate, EVAL_LOG_PROB, w)[i]));
        cli_print_passage(&token);
    }
}

static void print_nonfinite(const struct cli_kld *k, size_t candidate)
{
    const struct eval_nonfinite *n = &k->results[candidate].nonfinite;
    if (n->n)
        cli_complain(
            "assay: %s%s: %zu of %zu divergence%s %s not finite; the first is at window %zu, "
            "position %zu\n",
            k->candidates[candidate].path, k->candidates[candidate].kv, n->n,
            k->results[candidate].n_tokens, status_plural(k->results[candidate].n_tokens),
            n->n == 1 ? "is" : "are", n->window, n->position);
}

/* What the table of several models does not have, and was asked for. */
static void print_asked(const struct cli_kld *k, size_t i)
{
    bool lists = cli_kld_has_lists(k), worst = lists && k->results[i].n_worst,
         curve = lists && k->settings->divergence.curve.wanted && k->results[i].n_windows;
    bool cut = cli_kld_has_others(k, i) && !cli_kld_in_blocks(k) && !k->settings->markdown;
    if ((curve || worst || cut) && !cli_kld_in_blocks(k))
        printf("%s%s\n", i ? "\n" : "", k->candidates[i].called);
    if (cut)
        cli_kld_print_vocabulary(k, i);
    if (curve)
        cli_curve_print(&k->settings->divergence.curve, &k->windows.plan,
                        cli_kld_tables(k, i).candidate, true);
    if (worst)
        print_worst(k, i);
    print_nonfinite(k, i);
}

static void print_candidate(const struct cli_kld *k, size_t i)
{
    const struct eval_kld_result *r = &k->results[i];
    if (k->n_candidates > 1) {
        printf("%sModel %zu of %zu: %s\n", i ? "\n" : "", i + 1, k->n_candidates,
               k->candidates[i].called);
        print_rows(k, i);
    }
    if (r->n_windows == 0) {
        printf("Incomplete: none of %zu window%s is finished\n", k->windows.plan.n_windows,
               status_plural(k->windows.plan.n_windows));
        return;
    }
    if (!k->settings->llama_compat || r->n_tokens >= EVAL_COMPAT_LEAST_TOKENS)
        print_blocks(k, i);
    print_more(k, i);
    print_asked(k, i);
    bool large = isinf(r->figures.ppl.value);
    struct base_estimate last = large ? r->figures.nll : r->figures.ppl;
    printf("\n%s estimate: %s = %.4lf +/- %.5lf", r->complete ? "Final" : "Incomplete",
           large ? "mean NLL" : "PPL", base_shown(last.value, 4), base_shown(last.error, 5));
    if (!r->complete)
        printf(" (%zu of %zu window%s)", r->n_windows, k->windows.plan.n_windows,
               status_plural(k->windows.plan.n_windows));
    putchar('\n');
    if (k->windows.documents.n)
        cli_groups_print(&k->groups[i], &k->windows.documents);
}

static void print_end(void *self)
{
    const struct cli_kld *k = self;
    bool blocks = cli_kld_in_blocks(k);
    for (size_t i = 0; i < k->n_candidates && !k->settings->new_type; i++)
        (blocks ? print_candidate : print_asked)(k, i);
    const struct eval_kld_result *r = &k->results[0];
    if (!blocks && !r->complete)
        printf("Incomplete: %zu of %zu window%s\n\n", r->n_windows, k->windows.plan.n_windows,
               status_plural(k->windows.plan.n_windows));
    cli_stop_print(&k->windows);
    cli_flush();
    size_t n_tokens = k->e.stats.n_inputs;
    size_t n_models = k->n_candidates + !cli_base_has_rows(&k->base);
    cli_say("assay: %zu token%s evaluated by %zu model%s in %.1f s\n", n_tokens,
            status_plural(n_tokens), n_models, status_plural(n_models), k->e.stats.seconds);
}

const struct cli_lines cli_kld_lines = {print_beginning, print_window, print_end};
