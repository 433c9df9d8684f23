#include "eval/metrics/perplexity.h"

#include <math.h>

/** Remember a score that is no number to reckon with. */
static void note_nonfinite(struct eval_nonfinite *nonfinite, size_t window, size_t position,
                           int32_t token)
{
    if (nonfinite->n++ > 0)
        return;
    nonfinite->window = window;
    nonfinite->position = position;
    nonfinite->token = token;
}

void eval_tally_add(struct eval_tally *tally, const struct eval_plan *plan,
                    const struct eval_stream *stream, const struct eval_table *table, size_t w)
{
    const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
    double window_sum = 0;
    for (size_t i = 0; i < table->n_scored; i++) {
        double nll = -log_prob[i];
        size_t position = plan->first_scored + i;
        size_t target = eval_plan_target(plan, w, position);
        if (isfinite(nll))
            tally->finite_sum += nll;
        else
            note_nonfinite(&tally->nonfinite, w, position, stream->ids[target]);
        tally->n_bytes += stream->n_text_bytes[target];
        tally->n_tokens++;
        window_sum += nll;
        double distance = nll - tally->mean;
        tally->mean += distance / (double)tally->n_tokens;
        tally->spread += distance * (nll - tally->mean);
        tally->nll_sum += nll;
    }
    tally->n_windows++;
    tally->window_means += window_sum / (double)table->n_scored;
}

struct eval_figures eval_tally_figures(const struct eval_tally *tally, enum eval_protocol protocol)
{
    /* Of no score there is no mean: a perplexity of 1 would be a perfect one. */
    struct eval_figures f = {(double)NAN, (double)NAN, (double)NAN, (double)NAN};
    if (tally->n_tokens == 0)
        return f;
    f.nll_error = 0;
    double n = (double)tally->n_tokens;
    f.nll = tally->nll_sum / n;
    if (protocol == EVAL_PROTOCOL_FIXED)
        f.nll = tally->window_means / (double)tally->n_windows;
    if (tally->n_tokens > 1)
        f.nll_error = sqrt(tally->spread / n / (n - 1));
    f.ppl = exp(f.nll);
    f.ppl_error = f.ppl * f.nll_error;
    return f;
}

struct eval_window_sums eval_window_sums(const struct eval_table *table, size_t w)
{
    struct eval_window_sums sums = {.n_tokens = table->n_scored};
    const double *log_prob = eval_table_row(table, EVAL_LOG_PROB, w);
    for (size_t i = 0; i < table->n_scored; i++) {
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
    size_t n_finite = tally.n_tokens - tally.nonfinite.n;
    *out = (struct eval_perplexity_result){
        .complete = tally.n_windows == plan->n_windows,
        .n_windows = tally.n_windows,
        .n_tokens = tally.n_tokens,
        .figures = eval_tally_figures(&tally, plan->options.protocol),
        .bits_per_byte = tally.n_bytes > 0 ? tally.nll_sum / log(2) / tally.n_bytes : (double)NAN,
        .n_bytes = tally.n_bytes,
        .nonfinite = tally.nonfinite,
        .finite_nll = n_finite ? tally.finite_sum / (double)n_finite : (double)NAN,
    };
    out->finite_ppl = exp(out->finite_nll);
}
