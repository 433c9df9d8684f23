/* The object `against` of assay check's document. */
#include <math.h>

#include "cli/check/check_evaluator.h"
#include "cli/output/json_parts.h"

static void add_paired(struct base_json *json, cJSON *parent, const char *key,
                       const struct eval_paired *p)
{
    cJSON *o = base_json_object(json, parent, key);
    base_json_real(json, o, "difference", p->value);
    base_json_real(json, o, "difference_error", p->error);
    base_json_real(json, o, "low", p->value - p->half_width);
    base_json_real(json, o, "high", p->value + p->half_width);
    base_json_real(json, o, "z", p->z);
}

/* first: what the axis counts from; unit: what a step of it is. */
static void add_bins(struct base_json *json, cJSON *parent, const char *key,
                     const struct eval_against_bins *bins, double first, double unit)
{
    cJSON *o = base_json_object(json, parent, key);
    const struct eval_against_place *place = &bins->place;
    cJSON *at = place->found ? base_json_object(json, o, "place") : NULL;
    if (place->found) {
        base_json_real(json, at, "from", first + unit * (double)bins->items[place->from].from);
        base_json_real(json, at, "to", first + unit * (double)bins->items[place->to - 1].to);
        base_json_real(json, at, "share", place->share);
        base_json_real(json, at, "tokens", place->tokens);
    }
    cJSON *list = base_json_list(json, o, "bins");
    for (size_t k = 0; k < bins->n; k++) {
        const struct eval_against_bin *bin = &bins->items[k];
        cJSON *item = base_json_object(json, list, NULL);
        base_json_real(json, item, "from", first + unit * (double)bin->from);
        base_json_real(json, item, "to", first + unit * (double)bin->to);
        base_json_uint(json, item, "n_tokens", bin->n_tokens);
        base_json_real(json, item, "kld", bin->a);
        base_json_real(json, item, "old_kld", bin->b);
        cli_json_estimate(json, item, "difference", bin->difference);
    }
}

void cli_against_add_json(struct base_json *json, const struct cli_check *c)
{
    const struct cli_check_against *old = &c->against;
    if (!c->settings->against)
        return;
    char sentence[CLI_AGAINST_BYTES];
    const struct eval_against_result *r = &old->paired;
    cJSON *o = base_json_object(json, json->root, "against");
    base_json_text(json, o, "verdict", eval_against_name(r->verdict));
    base_json_text(json, o, "answer", cli_against_sentence(sentence, c));
    base_json_flag(json, o, "same_bits", r->verdict == EVAL_AGAINST_SAME_BITS);
    add_paired(json, o, "kld", &r->kld);
    add_paired(json, o, "nll", &r->nll);
    base_json_real(json, o, "resolution", r->resolution);
    base_json_uint(json, o, "n_windows", r->kld.n);
    base_json_uint(json, o, "n_windows_needed", r->n_needed);
    bool measured = c->budget.verdict != ACT_NO_BUDGET;
    bool within = c->budget.verdict == ACT_AGREES || c->budget.verdict == ACT_OTHER_ROUNDING;
    base_json_real(json, o, "budget", measured ? c->budget.figures.kld : (double)NAN);
    if (measured)
        base_json_flag(json, o, "within_budget", within);
    else
        base_json_text(json, o, "within_budget", NULL);
    const double tenth = 0.1, first = (double)c->windows.plan.first_scored;
    add_bins(json, o, "positions", &r->axes[EVAL_AGAINST_POSITION], first, 1);
    add_bins(json, o, "confidence", &r->axes[EVAL_AGAINST_CONFIDENCE], 0, tenth);
    cli_base_add_json(json, o, &old->recorded, true);
    cli_check_add_figures(json, base_json_object(json, o, "result"), &old->result);
}
