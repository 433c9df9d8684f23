#include "cli/reference/budget.h"

#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/evaluate.h"
#include "cli/process/say.h"

/** Why there is none, where that is known beforehand; NULL: it can be measured. */
static const char *reason_against(const struct cli_budget_task *t)
{
    const struct cli_machine_settings *machine = &t->e->settings->machine;
    if (!t->complete)
        return "the run is not whole";
    if (machine->activations && !t->simulated)
        return "--activations rounds what the recording is held against";
    if (machine->precision == CLI_PRECISION_FAST)
        return "--precision fast rounds as much as what would be judged; expected exact or high";
    return NULL;
}

enum status cli_budget_measure(struct cli_budget *out, const struct cli_budget_task *t,
                               struct status_why *why)
{
    *out = (struct cli_budget){.recorded = t->recorded->path,
                               .model = t->model->path,
                               .rule = {.engine = ACT_LLAMA_CPU},
                               .beyond = t->beyond};
    const char *reason = reason_against(t);
    if (t->activations)
        out->rule = *t->activations;
    snprintf(out->why_not.text, sizeof out->why_not.text, "%s", reason ? reason : "");
    if (reason)
        return STATUS_OK;
    struct act_budget_task task = {.model = t->model->model,
                                   .backend = t->e->backends.items[0],
                                   .rule = out->rule,
                                   .simulated = t->simulated,
                                   .plan = &t->windows->plan,
                                   .stream = &t->windows->stream,
                                   .recorded = &t->recorded->source,
                                   .reach = eval_logits_reach(t->recorded->step),
                                   .noise = t->noise,
                                   .noise_of_all = t->noise_of_all};
    size_t n = act_budget_windows(task.plan);
    cli_say("assay: the budget: %zu of %zu window%s once more, exactly and as %s\n", n,
            task.plan->n_windows, status_plural(task.plan->n_windows), act_rule_name(&out->rule));
    struct status_why found = {""};
    enum status status = act_budget_measure(&out->figures, &task, &found);
    if (!status) {
        out->verdict = act_budget_judge(&out->figures, t->beyond);
        return STATUS_OK;
    }
    snprintf(out->why_not.text, sizeof out->why_not.text, "%s", found.text);
    bool allowed = status == STATUS_UNSUPPORTED || status == STATUS_CANCELLED;
    return allowed ? STATUS_OK : status_fail(why, status, "%s", found.text);
}

size_t cli_budget_passes(const struct cli_evaluation *e, const struct eval_plan *plan)
{
    const struct cli_budget_task task = {.e = e, .complete = true};
    return reason_against(&task) ? 0 : 2 * act_budget_windows(plan);
}

static const char *engine_of(const struct cli_budget *b)
{
    return b->rule.engine == ACT_LLAMA_CPU ? "llama.cpp on a CPU" : act_rule_name(&b->rule);
}

/** Whether the first windows are within the budget, and the whole file departs. */
static bool is_later(const struct cli_budget *b)
{
    const struct act_budget *f = &b->figures;
    bool departs = b->verdict == ACT_DIFFERS || b->verdict == ACT_NOISE;
    return departs && f->recorded <= act_budget_slack * f->kld;
}

/** How large the divergence is, and what the budget is; of the whole file, where that departs. */
static void say_size(char out[512], const struct cli_budget *b)
{
    const struct act_budget *f = &b->figures;
    double beyond = f->recorded, times = f->recorded / f->kld;
    char first[96] = "";
    if (is_later(b)) {
        snprintf(first, sizeof first, " (the first %zu window%s have %.2f times)", f->n_windows,
                 status_plural(f->n_windows), times);
        beyond = b->beyond;
        times = beyond / f->kld;
    }
    snprintf(out, 512,
             "%.2e nats beyond the file are %.*f times the budget%s, what the rounding of "
             "%s makes",
             beyond, times < 100 ? 2 : 0, times, first, engine_of(b));
}

/** What may be read into the verdict, and is not so. */
static const char *aside(const struct cli_budget *b)
{
    const struct act_budget *f = &b->figures;
    bool small = act_budget_is_small(f);
    if (b->verdict == ACT_DIFFERS && small)
        return "; that is little, as nothing is rounded to 8 bits, and another engine may make "
               "more";
    if (b->verdict == ACT_AGREES && !small && f->recorded < act_budget_close * f->kld)
        return "; the program rounds less, or had a file of the same weights in 16 bits";
    return "";
}

const char *cli_budget_sentence(char out[CLI_BUDGET_BYTES], const struct cli_budget *b)
{
    char recorded[256], model[256], size[512], why_not[512];
    double shared = 100 * act_budget_shared(&b->figures);
    base_printable_text(recorded, sizeof recorded, b->recorded);
    base_printable_text(model, sizeof model, b->model);
    base_printable_text(why_not, sizeof why_not, b->why_not.text);
    say_size(size, b);
    if (b->verdict == ACT_NOISE)
        snprintf(out, CLI_BUDGET_BYTES,
                 "cannot tell whether %s is of %s: %s, and %.2f times one run's noise", recorded,
                 model, size,
                 is_later(b) ? b->beyond / b->figures.noise_of_all
                             : b->figures.recorded / b->figures.noise);
    else if (b->verdict == ACT_NO_BUDGET)
        snprintf(out, CLI_BUDGET_BYTES, "cannot tell whether %s is of %s: there is no budget: %s",
                 recorded, model, *why_not ? why_not : "that engine rounds nothing of this model");
    else if (b->verdict == ACT_OTHER_ROUNDING)
        snprintf(out, CLI_BUDGET_BYTES,
                 "cannot tell whether %s is of %s: %s, but the rounding is not that of this file, "
                 "%.0f %% is the same: not this model, or not %s",
                 recorded, model, size, shared, engine_of(b));
    else
        snprintf(out, CLI_BUDGET_BYTES, "%s %s %s: %s%s", recorded,
                 b->verdict == ACT_AGREES ? "agrees with" : "differs from", model, size, aside(b));
    return out;
}

void cli_budget_print(const struct cli_budget *b)
{
    const struct act_budget *f = &b->figures;
    if (!(f->kld > 0))
        return;
    printf("\n====== The budget: the first %zu window%s as %s rounds, nats ======\n", f->n_windows,
           status_plural(f->n_windows), engine_of(b));
    printf("KL(exact || simulated)   : %11.4e\n", f->kld);
    printf("KL(exact || recorded)    : %11.4e beyond the file\n", f->recorded);
    printf("KL(simulated || recorded): %11.4e beyond the file\n", f->simulated_recorded);
    printf("Shared rounding          : %11.2f %%\n", 100 * act_budget_shared(f));
}

void cli_budget_add_json(struct base_json *json, cJSON *parent, const struct cli_budget *b)
{
    char sentence[CLI_BUDGET_BYTES];
    const struct act_budget *f = &b->figures;
    const double none = (double)NAN;
    bool measured = f->kld > 0;
    cJSON *o = base_json_object(json, parent, "budget");
    base_json_text(json, o, "verdict", act_verdict_name(b->verdict));
    base_json_text(json, o, "answer", cli_budget_sentence(sentence, b));
    base_json_text(json, o, "activations", act_rule_name(&b->rule));
    base_json_uint(json, o, "n_windows", measured ? f->n_windows : 0);
    base_json_uint(json, o, "n_tokens", measured ? f->n_tokens : 0);
    base_json_real(json, o, "kld", measured ? f->kld : none);
    base_json_real(json, o, "recorded", measured ? f->recorded : none);
    base_json_real(json, o, "simulated_recorded", measured ? f->simulated_recorded : none);
    base_json_real(json, o, "noise", measured && f->noise > 0 ? f->noise : none);
    base_json_real(json, o, "times", measured ? f->recorded / f->kld : none);
    base_json_real(json, o, "shared", measured ? act_budget_shared(f) : none);
}
