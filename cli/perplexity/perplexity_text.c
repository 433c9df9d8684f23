/* The lines of assay perplexity. Their formats are llama-perplexity's, because scripts read them.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/printable.h"
#include "cli/output/curve.h"
#include "cli/output/documents.h"
#include "cli/perplexity/perplexity_evaluator.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "eval/input.h"

static void print_beginning(const void *self)
{
    const struct cli_perplexity *p = self;
    const struct eval_plan *plan = &p->windows.plan;
    size_t batch = p->e.units->most.n_tokens;
    cli_say("perplexity: calculating perplexity over %zu chunks, n_ctx=%zu, batch_size=%zu, "
            "n_seq=%zu\n",
            plan->n_windows, plan->window, batch, batch / plan->n_inputs);
    if (p->recording.writer)
        cli_say("assay: %s: recording %.1f MB\n", p->settings->base_file,
                (double)p->recording.n_bytes / 1e6);
}

static void print_window(void *self, size_t w)
{
    struct cli_perplexity *p = self;
    const struct eval_plan *plan = &p->windows.plan;
    eval_tally_add(&p->tally, plan, &p->windows.stream, p->windows.tables, w);
    struct eval_figures f = eval_tally_figures(&p->tally, plan->options.protocol);
    double shown = base_unsigned_nan(isinf(f.ppl.value) ? f.nll.value : f.ppl.value);
    if (p->settings->output_type == 0) {
        printf(isinf(f.ppl.value) ? "[%zu]exp(%.4lf)," : "[%zu]%.4lf,", w + 1, shown);
        cli_progress_line_open(&p->e.progress);
    } else {
        printf(isinf(f.ppl.value) ? "%8zu  exp(%.4lf)  %4lf  %4lf\n" : "%8zu  %.4lf  %4lf  %4lf\n",
               eval_plan_offset(plan, w), shown, base_unsigned_nan(f.nll.value),
               base_unsigned_nan(f.nll.error));
    }
    cli_flush();
}

/* The first score that is not finite, by name. */
static void print_nonfinite(const struct cli_perplexity *p)
{
    const struct eval_nonfinite *n = &p->result.nonfinite;
    char *text;
    eval_spell_all(&text, model_tokenizer(p->model.model), &n->token, 1, NULL);
    cli_complain("assay: %zu of %zu score%s %s not finite; the first is that of token %" PRId32
                 " '%s' at window %zu, position %zu\n",
                 n->n, p->result.n_tokens, status_plural(p->result.n_tokens),
                 n->n == 1 ? "is" : "are", n->token, text ? text : "", n->window, n->position);
    free(text);
    bool large = isinf(p->result.finite_ppl);
    printf("Finite scores alone: %s %.4lf over %zu of %zu token%s, no perplexity of the text\n",
           large ? "mean NLL" : "exp(mean NLL)",
           base_unsigned_nan(large ? p->result.finite_nll : p->result.finite_ppl),
           p->result.n_tokens - n->n, p->result.n_tokens, status_plural(p->result.n_tokens));
}

static void print_estimate(FILE *to, const struct cli_perplexity *p)
{
    const struct eval_figures *f = &p->result.figures;
    size_t n_windows = p->windows.plan.n_windows;
    if (!p->result.n_windows) {
        fprintf(to, "Incomplete: none of %zu window%s is finished\n", n_windows,
                status_plural(n_windows));
        return;
    }
    fprintf(to, "%s estimate: ", p->result.complete ? "Final" : "Incomplete");
    if (isinf(f->ppl.value))
        fprintf(to, "mean NLL = %.4lf +/- %.5lf", base_unsigned_nan(f->nll.value),
                base_unsigned_nan(f->nll.error));
    else
        fprintf(to, "PPL = %.4lf +/- %.5lf", base_unsigned_nan(f->ppl.value),
                base_unsigned_nan(f->ppl.error));
    if (!p->result.complete)
        fprintf(to, " (%zu of %zu window%s)", p->result.n_windows, n_windows,
                status_plural(n_windows));
    fputc('\n', to);
}

/* The lines of the estimate, as llama-perplexity's, take tokens for independent. */
static void print_lot_error(const struct eval_perplexity_result *r)
{
    bool large = isinf(r->figures.ppl.value);
    double error = (large ? r->figures.nll : r->figures.ppl).lot_error;
    if (error > 0)
        printf("Standard error if %s, not tokens, are independent: %.5lf\n",
               r->of_documents ? "documents" : "windows", error);
}

static void print_end(void *self)
{
    const struct cli_perplexity *p = self;
    const struct eval_perplexity_result *r = &p->result;
    if (p->settings->output_type == 0 && r->n_windows &&
        !(p->e.progress.shared && !p->e.progress.line_open))
        putchar('\n');
    if (p->settings->curve.wanted && r->n_windows)
        cli_curve_print(&p->settings->curve, &p->windows.plan, p->windows.tables, false);
    printf("Tokens scored: %zu in %zu window%s\n", r->n_tokens, r->n_windows,
           status_plural(r->n_windows));
    if (r->n_bytes > 0)
        printf("Bits per byte: %.6f over %.0f bytes\n", base_unsigned_nan(r->bits_per_byte),
               r->n_bytes);
    if (r->nonfinite.n)
        print_nonfinite(p);
    print_lot_error(r);
    print_estimate(stdout, p);
    cli_stop_print(&p->windows);
    if (p->windows.documents.n && r->n_windows)
        cli_groups_print(&p->groups, &p->windows.documents);
    cli_flush();
    cli_print_speed(&p->e);
    if (!cli_same_stream() && !cli_is_quiet())
        print_estimate(stderr, p);
}

const struct cli_lines cli_perplexity_lines = {print_beginning, print_window, print_end};
