/* What is told of a divergence: members of a candidate of an assay-kld document, in their order and
 * in that of columns; the lines are llama-perplexity's up to DOC_FURTHER. */
#include "clients/documents/results/metric.h"
#include "clients/documents/results/scoreboard.h"
#include "eval/metrics.h"

const struct doc_format doc_as_number = {1, 6, 10, 10, ""}, doc_as_percent = {100, 3, 6, 5, "%"};
static const struct doc_format correlation = {100, 2, 6, 0, "%"}, speed = {1, 2, 0, 0, ""};

#define AT(member) offsetof(struct eval_kld_result, member)

static const struct doc_metric metrics[] = {
    [DOC_METRIC_PPL] = {"ppl.value", DOC_ESTIMATE, AT(figures.ppl), &doc_as_number, "PPL", "ppl",
                        DOC_ON_BOARD | DOC_OF_NEW_TYPE | DOC_PPL_FINITE, DOC_PERPLEXITIES,
                        "Mean PPL(Q)                   : "},
    {"ppl.base", DOC_ESTIMATE, AT(figures.base_ppl), &doc_as_number, "PPL(base)", "ppl_base",
     DOC_BASE_FINITE, DOC_PERPLEXITIES, "Mean PPL(base)                : ", .nth_line = 1},
    {"ppl.difference", DOC_ESTIMATE, AT(figures.difference), &doc_as_number, "ΔPPL", "delta_ppl",
     DOC_ON_BOARD | DOC_PPL_FINITE | DOC_BASE_FINITE, DOC_PERPLEXITIES,
     "Mean PPL(Q)-PPL(base)         : ", .nth_line = 5, .nth_member = 3},
    {"ppl.ratio", DOC_ESTIMATE, AT(figures.ratio), &doc_as_number, "PPL ratio", "ppl_ratio",
     DOC_OF_NEW_TYPE | DOC_PPL_FINITE | DOC_BASE_FINITE, DOC_PERPLEXITIES,
     "Mean PPL(Q)/PPL(base)         : ", .nth_line = 4, .nth_member = 2},
    {"ppl.ln_ratio", DOC_ESTIMATE, AT(figures.log_ratio), &doc_as_number, "ln(PPL ratio)",
     "ln_ppl_ratio", 0, DOC_PERPLEXITIES, "Mean ln(PPL(Q)/PPL(base))     : ", .nth_line = 3,
     .nth_member = 1},
    {"ppl.correlation", DOC_REAL, AT(figures.correlation), &correlation, "PPL correlation %",
     "ppl_correlation_percent", 0, DOC_PERPLEXITIES,
     "Cor(ln(PPL(Q)), ln(PPL(base))): ", .nth_line = 2, .nth_member = 4},
    {"mean_nll", DOC_ESTIMATE, AT(figures.nll), &doc_as_number, .flags = DOC_PPL_INFINITE,
     .block = DOC_PERPLEXITIES, .line = "Mean NLL(Q)                   : "},
    {"base_mean_nll", DOC_ESTIMATE, AT(figures.base_nll), &doc_as_number,
     .flags = DOC_BASE_INFINITE, .block = DOC_PERPLEXITIES,
     .line = "Mean NLL(base)                : ", .nth_line = 1},
    [DOC_METRIC_KLD] = {"kld.mean", DOC_ESTIMATE, AT(figures.kld), &doc_as_number, "KLD", "kld",
                        DOC_ON_BOARD | DOC_OF_NEW_TYPE | DOC_NOT_NEGATIVE, DOC_DIVERGENCES,
                        "Mean    KLD: "},
    {"kld.max", DOC_REAL, AT(kld_quantiles[0].value), &doc_as_number, "Maximum KLD", "kld_max",
     DOC_OF_NEW_TYPE, DOC_DIVERGENCES, "Maximum KLD: "},
    {"kld.p99_9", DOC_ESTIMATE, AT(kld_quantiles[1]), &doc_as_number, "KLD 99.9 %", "kld_p99_9",
     DOC_ON_BOARD | DOC_OF_NEW_TYPE | DOC_NO_ERROR, DOC_DIVERGENCES, "99.9%   KLD: "},
    {"kld.p99", DOC_ESTIMATE, AT(kld_quantiles[2]), &doc_as_number, "KLD 99.0 %", "kld_p99",
     DOC_OF_NEW_TYPE | DOC_NO_ERROR, DOC_DIVERGENCES, "99.0%   KLD: "},
    {"kld.p95", DOC_ESTIMATE, AT(kld_quantiles[3]), &doc_as_number, "KLD 95.0 %", "kld_p95",
     DOC_NO_ERROR, DOC_DIVERGENCES, "95.0%   KLD: "},
    {"kld.p90", DOC_ESTIMATE, AT(kld_quantiles[4]), &doc_as_number, "KLD 90.0 %", "kld_p90",
     DOC_NO_ERROR, DOC_DIVERGENCES, "90.0%   KLD: "},
    {"kld.p75", DOC_ESTIMATE, AT(kld_quantiles[5]), &doc_as_number},
    {"kld.median", DOC_ESTIMATE, AT(kld_quantiles[6]), &doc_as_number, "Median KLD", "kld_median",
     DOC_OF_NEW_TYPE | DOC_NO_ERROR, DOC_DIVERGENCES, "Median  KLD: "},
    {"kld.p25", DOC_ESTIMATE, AT(kld_quantiles[7]), &doc_as_number},
    {"kld.p10", DOC_ESTIMATE, AT(kld_quantiles[8]), &doc_as_number, "KLD 10.0 %", "kld_p10",
     DOC_NO_ERROR, DOC_DIVERGENCES, "10.0%   KLD: "},
    {"kld.p5", DOC_ESTIMATE, AT(kld_quantiles[9]), &doc_as_number, "KLD 5.0 %", "kld_p5",
     DOC_NO_ERROR, DOC_DIVERGENCES, " 5.0%   KLD: "},
    {"kld.p1", DOC_ESTIMATE, AT(kld_quantiles[10]), &doc_as_number, "KLD 1.0 %", "kld_p1",
     DOC_NO_ERROR, DOC_DIVERGENCES, " 1.0%   KLD: "},
    {"kld.p0_1", DOC_ESTIMATE, AT(kld_quantiles[11]), &doc_as_number, "KLD 0.1 %", "kld_p0_1",
     DOC_NO_ERROR, DOC_DIVERGENCES, " 0.1%   KLD: "},
    {"kld.min", DOC_REAL, AT(kld_quantiles[12].value), &doc_as_number, "Minimum KLD", "kld_min", 0,
     DOC_DIVERGENCES, "Minimum KLD: "},
    {"kld.rounding", DOC_REAL, AT(rounding), &doc_as_number},
    {"dp.mean", DOC_ESTIMATE, AT(figures.dp), &doc_as_percent, "Mean Δp %", "mean_dp_percent",
     DOC_ON_BOARD, DOC_PROBABILITIES, "Mean    Δp: "},
    {"dp.max", DOC_REAL, AT(dp_quantiles[0].value), &doc_as_percent, "Maximum Δp %",
     "dp_max_percent", 0, DOC_PROBABILITIES, "Maximum Δp: "},
    {"dp.p99_9", DOC_ESTIMATE, AT(dp_quantiles[1]), &doc_as_percent, "99.9% Δp %",
     "dp_p99_9_percent", DOC_NO_ERROR, DOC_PROBABILITIES, "99.9%   Δp: "},
    {"dp.p99", DOC_ESTIMATE, AT(dp_quantiles[2]), &doc_as_percent, "99.0% Δp %", "dp_p99_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, "99.0%   Δp: "},
    {"dp.p95", DOC_ESTIMATE, AT(dp_quantiles[3]), &doc_as_percent, "95.0% Δp %", "dp_p95_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, "95.0%   Δp: "},
    {"dp.p90", DOC_ESTIMATE, AT(dp_quantiles[4]), &doc_as_percent, "90.0% Δp %", "dp_p90_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, "90.0%   Δp: "},
    {"dp.p75", DOC_ESTIMATE, AT(dp_quantiles[5]), &doc_as_percent, "75.0% Δp %", "dp_p75_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, "75.0%   Δp: "},
    {"dp.median", DOC_ESTIMATE, AT(dp_quantiles[6]), &doc_as_percent, "Median Δp %",
     "dp_median_percent", DOC_NO_ERROR, DOC_PROBABILITIES, "Median  Δp: "},
    {"dp.p25", DOC_ESTIMATE, AT(dp_quantiles[7]), &doc_as_percent, "25.0% Δp %", "dp_p25_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, "25.0%   Δp: "},
    {"dp.p10", DOC_ESTIMATE, AT(dp_quantiles[8]), &doc_as_percent, "10.0% Δp %", "dp_p10_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, "10.0%   Δp: "},
    {"dp.p5", DOC_ESTIMATE, AT(dp_quantiles[9]), &doc_as_percent, "5.0% Δp %", "dp_p5_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, " 5.0%   Δp: "},
    {"dp.p1", DOC_ESTIMATE, AT(dp_quantiles[10]), &doc_as_percent, "1.0% Δp %", "dp_p1_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, " 1.0%   Δp: "},
    {"dp.p0_1", DOC_ESTIMATE, AT(dp_quantiles[11]), &doc_as_percent, "0.1% Δp %", "dp_p0_1_percent",
     DOC_NO_ERROR, DOC_PROBABILITIES, " 0.1%   Δp: "},
    {"dp.min", DOC_REAL, AT(dp_quantiles[12].value), &doc_as_percent, "Minimum Δp %",
     "dp_min_percent", 0, DOC_PROBABILITIES, "Minimum Δp: "},
    {"dp.rms", DOC_ESTIMATE, AT(figures.rms_dp), &doc_as_percent, "RMS Δp %", "rms_dp_percent",
     DOC_ON_BOARD | DOC_OF_NEW_TYPE, DOC_PROBABILITIES, "RMS Δp    : "},
    {"same_top", DOC_ESTIMATE, AT(figures.same_top), &doc_as_percent, "Same top p %",
     "same_top_percent", DOC_ON_BOARD | DOC_OF_NEW_TYPE, DOC_PROBABILITIES, "Same top p: "},
    {"common_top_5", DOC_ESTIMATE, AT(common_5), &doc_as_percent, .block = DOC_FURTHER,
     .line = "Common top 5   : ", .nth_line = 1},
    {"common_top_10", DOC_ESTIMATE, AT(common_10), &doc_as_percent, .block = DOC_FURTHER,
     .line = "Common top 10  : ", .nth_line = 1},
    {"reverse_kld", DOC_ESTIMATE, AT(reverse_kld), &doc_as_number, .block = DOC_FURTHER,
     .line = "KL(Q || base)  : "},
    {"js", DOC_ESTIMATE, AT(js), &doc_as_number, .flags = DOC_WITH_JS, .block = DOC_FURTHER,
     .line = "Jensen-Shannon : "},
    {"tv", DOC_ESTIMATE, AT(tv), &doc_as_number, .flags = DOC_WITH_JS, .block = DOC_FURTHER,
     .line = "Total variation: "},
    {"acceptance", DOC_ESTIMATE, AT(acceptance), &doc_as_percent, .flags = DOC_WITH_JS,
     .block = DOC_FURTHER, .line = "Acceptance     : "},
    {"rank.mean", DOC_REAL, AT(ranks.mean), &doc_as_number},
    {"rank.median", DOC_REAL, AT(ranks.median), &doc_as_number},
    {"rank.first", DOC_REAL, AT(ranks.first), &doc_as_percent},
    {"rank.mean_reciprocal", DOC_REAL, AT(ranks.reciprocal), &doc_as_number},
    {"base_rank.mean", DOC_REAL, AT(base_ranks.mean), &doc_as_number},
    {"base_rank.median", DOC_REAL, AT(base_ranks.median), &doc_as_number},
    {"base_rank.first", DOC_REAL, AT(base_ranks.first), &doc_as_percent},
    {"base_rank.mean_reciprocal", DOC_REAL, AT(base_ranks.reciprocal), &doc_as_number},
    {"bits_per_byte", DOC_REAL, AT(bits_per_byte), &doc_as_number},
    {"base_bits_per_byte", DOC_REAL, AT(base_bits_per_byte), &doc_as_number},
    /* Of llama-bench: not of the struct, nor of the document. */
    {NULL, DOC_ESTIMATE, 0, &speed, "prompt t/s", "prompt_tokens_per_second",
     DOC_ON_BOARD | DOC_SAMPLED},
    {NULL, DOC_ESTIMATE, 0, &speed, "generation t/s", "generation_tokens_per_second",
     DOC_ON_BOARD | DOC_SAMPLED},
};
enum { N_METRICS = sizeof metrics / sizeof *metrics - DOC_N_SPEEDS };

const struct doc_metric *doc_kld_metrics(size_t *n)
{
    *n = N_METRICS;
    _Static_assert(sizeof metrics / sizeof *metrics <= DOC_MOST_METRICS, "a run has no room");
    return metrics;
}

size_t doc_speed_metric(size_t kind)
{
    return N_METRICS + kind;
}
