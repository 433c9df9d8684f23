/* The lines of assay perplexity. Their formats are llama-perplexity's, because scripts read them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/escape.h"
#include "cli/output/printable.h"
#include "cli/perplexity/evaluation.h"
#include "cli/run.h"

void cli_report_beginning(const struct cli_evaluation *e)
{
    struct eval_task task = cli_evaluation_task(e);
    size_t batch = eval_run_batch_tokens(&task, &e->run_options);
    fprintf(stderr,
            "perplexity: calculating perplexity over %zu chunks, n_ctx=%zu, batch_size=%zu, "
            "n_seq=%zu\n",
            e->plan.n_windows, e->plan.window, batch, batch / e->plan.n_inputs);
    cli_print_memory(&e->job.memory, 1);
}

void cli_report_window(struct cli_evaluation *e, size_t w)
{
    eval_tally_add(&e->tally, &e->plan, &e->stream, &e->table, w);
    struct eval_figures f = eval_tally_figures(&e->tally, e->plan.options.protocol);
    cli_progress_clear(&e->job.progress);
    if (e->settings->output_type == 0) {
        printf("[%zu]%.4lf,", w + 1, cli_unsigned_nan(f.ppl));
        cli_progress_line_open(&e->job.progress);
    } else {
        printf("%8zu  %.4lf  %4lf  %4lf\n", eval_plan_offset(&e->plan, w), cli_unsigned_nan(f.ppl),
               cli_unsigned_nan(f.nll), cli_unsigned_nan(f.nll_error));
    }
    cli_flush();
}

static void print_curve(const struct cli_evaluation *e)
{
    puts("position\tnll\tnll_error");
    for (size_t i = 0; i < e->curve.n_positions; i++)
        printf("%zu\t%.6f\t%.6f\n", e->plan.first_scored + i, cli_unsigned_nan(e->curve.nll[i]),
               cli_unsigned_nan(e->curve.nll_error[i]));
}

/* The first score that is not finite, by name. */
static void print_nonfinite(const struct cli_evaluation *e)
{
    const struct eval_nonfinite *n = &e->result.nonfinite;
    char bytes[64], text[4 * sizeof bytes + 1];
    size_t n_bytes =
        model_token_bytes(model_tokenizer(e->model.model), n->token, bytes, sizeof bytes);
    size_t n_text =
        base_escape(text, sizeof text - 1, bytes, n_bytes < sizeof bytes ? n_bytes : sizeof bytes);
    text[n_text] = '\0';
    fprintf(stderr,
            "assay: %zu of %zu score%s %s not finite; the first is that of token %" PRId32
            " '%s' at window %zu, position %zu\n",
            n->n, e->result.n_tokens, status_plural(e->result.n_tokens), n->n == 1 ? "is" : "are",
            n->token, text, n->window, n->position);
    printf("Finite scores alone: exp(mean NLL) %.4lf over %zu of %zu token%s, no perplexity of the "
           "text\n",
           cli_unsigned_nan(e->result.finite_ppl), e->result.n_tokens - n->n, e->result.n_tokens,
           status_plural(e->result.n_tokens));
}

static void print_estimate(FILE *to, const struct cli_evaluation *e)
{
    const struct eval_figures *f = &e->result.figures;
    if (e->result.complete)
        fprintf(to, "Final estimate: PPL = %.4lf +/- %.5lf\n", cli_unsigned_nan(f->ppl),
                cli_unsigned_nan(f->ppl_error));
    else if (e->result.n_windows)
        fprintf(to, "Incomplete estimate: PPL = %.4lf +/- %.5lf (%zu of %zu window%s)\n",
                cli_unsigned_nan(f->ppl), cli_unsigned_nan(f->ppl_error), e->result.n_windows,
                e->plan.n_windows, status_plural(e->plan.n_windows));
    else
        fprintf(to, "Incomplete: not one of %zu window%s\n", e->plan.n_windows,
                status_plural(e->plan.n_windows));
}

void cli_report_end(struct cli_evaluation *e)
{
    const struct eval_perplexity_result *r = &e->result;
    cli_progress_clear(&e->job.progress);
    if (e->settings->output_type == 0 && r->n_windows &&
        !(e->job.progress.shared && !e->job.progress.line_open))
        putchar('\n');
    if (e->curve.n_positions)
        print_curve(e);
    printf("Tokens scored: %zu in %zu window%s\n", r->n_tokens, r->n_windows,
           status_plural(r->n_windows));
    if (r->n_bytes > 0)
        printf("Bits per byte: %.6f over %.0f bytes\n", cli_unsigned_nan(r->bits_per_byte),
               r->n_bytes);
    if (r->nonfinite.n)
        print_nonfinite(e);
    print_estimate(stdout, e);
    cli_flush();

    cli_job_print_speed(&e->job);
    if (!cli_same_stream())
        print_estimate(stderr, e);
}
