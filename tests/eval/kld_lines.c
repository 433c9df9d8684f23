#include "kld_lines.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/harness/cmocka.h"
static const char *const levels[EVAL_N_QUANTILES] = {
    "Maximum", "99.9%  ", "99.0%  ", "95.0%  ", "90.0%  ", "75.0%  ", "Median ",
    "25.0%  ", "10.0%  ", " 5.0%  ", " 1.0%  ", " 0.1%  ", "Minimum"};

enum {
    PPL,
    PPL_BASE,
    LOG_RATIO,
    RATIO,
    DIFFERENCE,
    CORRELATION,
    MEAN_KLD,
    MEAN_DP,
    RMS_DP,
    SAME_TOP,
    QUANTILES /* KLD's 11 and Δp's 13 follow; 75.0% and 25.0% KLD are not printed */
};
enum { N_KLD_QUANTILES = EVAL_N_QUANTILES - 2 };

static struct kld_figure figure(const char *label, struct base_estimate e, double scale)
{
    struct kld_figure f = {.found = scale * e.value, .error = scale * e.error};
    snprintf(f.label, sizeof f.label, "%s", label);
    return f;
}

static void fill(struct kld_figure *out, const struct eval_kld_result *r)
{
    const struct eval_kld_figures *f = &r->figures;
    const double none = (double)NAN;
    out[PPL] = figure("Mean PPL(Q)                   :", f->ppl, 1);
    out[PPL_BASE] = figure("Mean PPL(base)                :", f->base_ppl, 1);
    out[LOG_RATIO] = figure("Mean ln(PPL(Q)/PPL(base))     :", f->log_ratio, 1);
    out[RATIO] = figure("Mean PPL(Q)/PPL(base)         :", f->ratio, 1);
    out[DIFFERENCE] = figure("Mean PPL(Q)-PPL(base)         :", f->difference, 1);
    out[CORRELATION] = figure(
        "Cor(ln(PPL(Q)), ln(PPL(base))):", (struct base_estimate){f->correlation, none}, 100);
    out[MEAN_KLD] = figure("Mean    KLD:", f->kld, 1);
    out[MEAN_DP] = figure("Mean    Δp:", f->dp, 100);
    out[RMS_DP] = figure("RMS Δp    :", f->rms_dp, 100);
    out[SAME_TOP] = figure("Same top p:", f->same_top, 100);
    struct kld_figure *next = out + QUANTILES;
    char label[40];
    for (size_t k = 0; k < EVAL_N_QUANTILES; k++) {
        snprintf(label, sizeof label, "%s KLD:", levels[k]);
        if (k != 5 && k != 7)
            *next++ =
                figure(label, (struct base_estimate){r->kld_quantiles[k].value, none, none}, 1);
    }
    for (size_t k = 0; k < EVAL_N_QUANTILES; k++) {
        snprintf(label, sizeof label, "%s Δp:", levels[k]);
        *next++ = figure(label, (struct base_estimate){r->dp_quantiles[k].value, none, none}, 100);
    }
    assert_int_equal(next - out, KLD_FIGURES);
}

static void allow(struct kld_figure *f, double absolute, double relative, double error_absolute,
                  double error_relative)
{
    f->absolute = absolute;
    f->relative = relative;
    f->error_absolute = error_absolute;
    f->error_relative = error_relative;
}

static bool is_extreme(const struct kld_figure *f)
{
    return strncmp(f->label, "M", 1) == 0 ? strncmp(f->label, "Median", 6) != 0
                                          : strstr(f->label, "99.9") || strstr(f->label, " 0.1");
}

void kld_figures_rounded(struct kld_figure out[KLD_FIGURES], const struct eval_kld_result *r,
                         double llama_rms)
{
    fill(out, r);
    const double ppl = 2e-3, both = out[PPL].found + out[PPL_BASE].found;
    double ours = out[RMS_DP].found;
    double noise = llama_rms > ours ? sqrt(llama_rms * llama_rms - ours * ours) : 0;
    allow(&out[PPL], 0, ppl, 0, 0.1);
    allow(&out[PPL_BASE], 0, ppl, 0, 0.1);
    allow(&out[LOG_RATIO], 2 * ppl, 0, 1.5e-3, 0.1);
    allow(&out[RATIO], 0, 2 * ppl, 1.5e-3, 0.1);
    allow(&out[DIFFERENCE], ppl * both, 0, 1.5e-3 * both / 2, 0.1);
    allow(&out[CORRELATION], 0.1, 0, 0, 0);
    allow(&out[MEAN_KLD], 5e-4, 0.05, 1e-4, 0.1);
    allow(&out[MEAN_DP], 0.05, 0.05, noise / 45, 0.1); /* 45: the root of 2032 tokens */
    allow(&out[RMS_DP], 0.1, 0.05, 0.01, 0.1);
    allow(&out[SAME_TOP], 1, 0, 0.1, 0.1);
    for (size_t i = QUANTILES; i < KLD_FIGURES; i++) {
        bool of_kld = i < QUANTILES + N_KLD_QUANTILES, extreme = is_extreme(&out[i]);
        if (of_kld)
            allow(&out[i], extreme ? 2e-3 : 1e-3, extreme ? 0.25 : 0.1, 0, 0);
        else
            allow(&out[i], 0.05 + 3 * noise, extreme ? 0.25 : 0.05, 0, 0);
    }
}

void kld_row_figures(struct kld_figure out[KLD_ROW_FIGURES], const struct eval_kld_figures *f,
                     size_t w)
{
    out[0] = figure("PPL", f->ppl, 1);
    out[1] = figure("ln(PPL(Q)/PPL(base))", f->log_ratio, 1);
    out[2] = figure("KL Divergence", f->kld, 1);
    out[3] = figure("RMS Δp", f->rms_dp, 100);
    out[4] = figure("Same top p", f->same_top, 100);
    double scatter = sqrt(16 / (double)w);
    allow(&out[0], 0, 4e-3 * scatter, 0, 0.1);
    allow(&out[1], 4e-3 * scatter, 0, 1.5e-3 * scatter, 0.1);
    allow(&out[2], 5e-4 * scatter, 0.05 * scatter, 1e-4 * scatter, 0.1 * scatter);
    allow(&out[3], 0.1 * scatter, 0.05 * scatter, 0.01 * scatter, 0.1 * scatter);
    allow(&out[4], scatter, 0, 0.1 * scatter, 0.1 * scatter);
}

void kld_figures_float32(struct kld_figure out[KLD_FIGURES], const struct eval_kld_result *r)
{
    fill(out, r);
    const double clamp = 1.5e-3, code = 1.25e-4, last_digit = 1.1e-3;
    const double both = out[PPL_BASE].found + out[PPL].found;
    allow(&out[PPL], 0, 1e-6, 0, 1e-6);
    allow(&out[PPL_BASE], 0, clamp, 0, 4e-3);
    allow(&out[LOG_RATIO], clamp, 0, 1e-3, 0);
    allow(&out[RATIO], 0, clamp, 0, 0);
    out[RATIO].error_absolute = 1e-3 * out[RATIO].found;
    allow(&out[DIFFERENCE], clamp * both / 2, 0, 1e-3 * both, 0);
    allow(&out[CORRELATION], 0.06, 0, 0, 0);
    allow(&out[MEAN_KLD], code / 100, 1e-5, 1.1e-6, 0);
    allow(&out[MEAN_DP], last_digit, 0, last_digit, 0);
    allow(&out[RMS_DP], last_digit, 0, last_digit, 0);
    allow(&out[SAME_TOP], last_digit, 0, last_digit, 0);
    for (size_t i = QUANTILES; i < KLD_FIGURES; i++)
        allow(&out[i], i < QUANTILES + N_KLD_QUANTILES ? code : 100 * code, 2e-5, 0, 0);
}

int kld_line_numbers(const char *line, const char *label, double *value, double *error)
{
    if (strncmp(line, label, strlen(label)) != 0 || sscanf(line + strlen(label), "%lf", value) != 1)
        return 0;
    const char *sign = strstr(line, "±");
    return sign && sscanf(sign + strlen("±"), "%lf", error) == 1 ? 2 : 1;
}

void kld_check_value(const char *model, const struct kld_figure *f, double value)
{
    if (!(fabs(f->found - value) <= f->absolute + f->relative * fabs(value)))
        fail_msg("%s: %s found %.6f, llama.cpp has %.6f", model, f->label, f->found, value);
}

void kld_check_error(const char *model, const struct kld_figure *f, double error)
{
    if (!(fabs(f->error - error) <= f->error_absolute + f->error_relative * fabs(error)))
        fail_msg("%s: %s found ± %.6f, llama.cpp has ± %.6f", model, f->label, f->error, error);
}
