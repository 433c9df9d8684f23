#include "eval/metrics/perplexity.h"

#include <math.h>

void eval_nonfinite_note(struct eval_nonfinite *nonfinite, const struct eval_plan *plan,
                         const struct eval_stream *stream, size_t w, size_t i)
{
    if (nonfinite->n++ > 0)
        return;
    nonfinite->window = w;
    nonfinite->position = eval_plan_position(plan, w, i);
    nonfinite->token = stream->ids[eval_plan_target(plan, w, nonfinite->position)];
}

void eval_tally_add(struct eval_tally *tally, const struct eval_plan *plan,
                    const struct eval_stream *stream, const struct eval_table *table, size_t w)
{
    const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
    double window_sum = 0;
    size_t n_scored = eval_table_n(table, w);
    base_moments_lot(&tally->nll, eval_table_lot(table, w));
    for (size_t i = 0; i < n_scored; i++) {
        double nll = -log_prob[i];
        if (isfinite(nll))
            tally->finite_sum += nll;
        else
            eval_nonfinite_note(&tally->nonfinite, plan, stream, w, i);
        size_t position = eval_plan_position(plan, w, i);
        tally->n_bytes += stream->n_text_bytes[eval_plan_target(plan, w, position)];
        window_sum += nll;
        base_moments_add(&tally->nll, nll);
    }
    tally->n_windows++;
    tally->window_means += window_sum / (double)n_scored;
}

struct eval_figures eval_tally_figures(const struct eval_tally *tally, enum eval_protocol protocol)
{
    /* No scores have no mean: a perplexity of 1 would be a perfect one. */
    const struct base_estimate none = {(double)NAN, (double)NAN, (double)NAN};
    double n = (double)tally->nll.n;
    if (n == 0)
        return (struct eval_figures){none, none};
    struct base_estimate nll = base_moments_estimate(&tally->nll);
    if (protocol == EVAL_PROTOCOL_FIXED)
        nll.value = tally->window_means / (double)tally->n_windows;
    nll.error = n > 1 ? sqrt(tally->nll.spread / n / (n - 1)) : 0;
    double ppl = exp(nll.value);
    return (struct eval_figures){nll, {ppl, ppl * nll.error, ppl * nll.lot_error}};
}

struct eval_window_sums eval_window_sums(const struct eval_table *table, size_t w)
{
    struct eval_window_sums sums = {.n_tokens = eval_table_n(table, w)};
    const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
    for (size_t i = 0; i < sums.n_tokens; i++) {
        sums.nll -= log_prob[i];
        sums.nll_squared += log_prob[i] * log_prob[i];
    }
    return sums;
}

void eval_perplexity(struct eval_perplexity_result *out, const struct eval_plan *plan,
                     const struct eval_stream *stream, const struct eval_table *table)
{
    struct eval_tally tally = {0};
    for (size_t w = 0; w < table->n_windows; w++)
        if (table->done[w])
            eval_tally_add(&tally, plan, stream, table, w);
    size_t n_finite = tally.nll.n - tally.nonfinite.n;
    *out = (struct eval_perplexity_result){
        .complete = tally.n_windows == plan->n_windows,
        .of_documents = eval_plan_lots_are_documents(plan),
        .n_windows = tally.n_windows,
        .n_tokens = tally.nll.n,
        .figures = eval_tally_figures(&tally, plan->options.protocol),
        .bits_per_byte = tally.n_bytes > 0 ? tally.nll.sum / log(2) / tally.n_bytes : (double)NAN,
        .n_bytes = tally.n_bytes,
        .nonfinite = tally.nonfinite,
        .finite_nll = n_finite ? tally.finite_sum / (double)n_finite : (double)NAN,
    };
    out->finite_ppl = exp(out->finite_nll);
}
