/* The figures of a recording: what they are held against, and their members. */
#include "cli/check/check_evaluator.h"
#include "cli/output/json_parts.h"

void cli_check_limits(const struct cli_check *c, struct cli_check_limit out[CLI_CHECK_LIMITS])
{
    out[0] = (struct cli_check_limit){"--max-kld", "the mean divergence", c->settings->max_kld,
                                      c->result.kld.figures.kld.value};
    out[1] = (struct cli_check_limit){"--max-beyond", "the mean divergence beyond the file's share",
                                      c->settings->max_beyond, c->result.beyond};
}

void cli_check_add_figures(struct base_json *json, cJSON *o, const struct eval_check_result *r)
{
    const struct eval_kld_figures *f = &r->kld.figures;
    cJSON *kld = cli_json_distribution(json, o, "kld", f->kld, r->kld.kld_quantiles);
    cli_json_estimate(json, kld, "file", r->floor);
    base_json_real(json, kld, "file_max", r->floor_max);
    base_json_real(json, kld, "file_share", r->share);
    base_json_real(json, kld, "beyond", r->beyond);
    cli_json_estimate(json, o, "reverse_kld", r->kld.reverse_kld);
    cJSON *nll = base_json_object(json, o, "nll_difference");
    cli_json_estimate(json, nll, "mean", f->log_ratio);
    base_json_real(json, nll, "rms", r->nll.rms);
    base_json_real(json, nll, "max", r->nll.max);
    base_json_real(json, nll, "file_rms", r->floor_nll.rms);
    base_json_real(json, nll, "file_max", r->floor_nll.max);
    cli_json_estimate(json, nll, "beyond", r->nll_beyond);
    cli_json_estimate(json, o, "ppl", f->base_ppl);
    cli_json_estimate(json, o, "mean_nll", f->base_nll);
    cli_json_estimate(json, o, "recorded_ppl", f->ppl);
    cli_json_estimate(json, o, "recorded_mean_nll", f->nll);
    cli_json_estimate(json, o, "rms_dp", f->rms_dp);
    cli_json_estimate(json, o, "same_top", f->same_top);
    cli_json_add_nonfinite(json, o, &r->kld.nonfinite);
}
