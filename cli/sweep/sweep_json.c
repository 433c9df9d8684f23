/* The result of assay sweep as JSON, and as a table (TSV). */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "base/text/printable.h"
#include "cli/output/json_parts.h"
#include "cli/sweep/sweep_evaluator.h"

static void add_estimate(struct base_json *json, cJSON *parent, const char *key,
                         struct base_estimate x)
{
    cJSON *o = base_json_object(json, parent, key);
    base_json_real(json, o, "mean", x.value);
    base_json_real(json, o, "se", x.error);
    base_json_real(json, o, "lot_se", base_estimate_lot_error(x));
}

static void add_figures(struct base_json *json, cJSON *o, const struct cli_sweep_figures *f)
{
    const struct base_estimate unknown = {(double)NAN, (double)NAN};
    add_estimate(json, o, "kld", f->known ? f->kld.kld : unknown);
    add_estimate(json, o, "delta_nll", f->known ? f->kld.log_ratio : unknown);
    base_json_real(json, o, "same_top", f->known ? f->kld.same_top.value : (double)NAN);
    base_json_real(json, o, "rms_dp", f->known ? f->kld.rms_dp.value : (double)NAN);
}

static void add_reference(struct base_json *json, const struct cli_sweep *s)
{
    struct cli_sweep_figures f = cli_sweep_reference(s);
    cJSON *o = base_json_object(json, json->root, "reference");
    add_figures(json, o, &f);
    base_json_real(json, o, "nll", f.known ? f.kld.nll.value : (double)NAN);
    base_json_real(json, o, "base_nll", f.known ? f.kld.base_nll.value : (double)NAN);
}

static void add_choice(struct base_json *json, cJSON *list, const struct cli_sweep *s, size_t i)
{
    const struct cli_sweep_choice *c = &s->groups.choices[i];
    struct cli_sweep_figures f = cli_sweep_figures(s, i);
    cJSON *o = base_json_object(json, list, NULL);
    base_json_uint(json, o, "candidate", c->candidate);
    base_json_text(json, o, "type", c->type);
    base_json_uint(json, o, "bytes", c->n_bytes);
    add_figures(json, o, &f);
    add_estimate(json, o, "excess_kld",
                 f.known ? f.excess : (struct base_estimate){(double)NAN, (double)NAN});
    base_json_real(json, o, "kld_per_bit", f.per_bit);
    base_json_text(json, o, "below", cli_sweep_doubts[f.doubt]);
    base_json_uint(json, o, "n_windows", f.n_windows);
}

static void add_group(struct base_json *json, cJSON *list, const struct cli_sweep *s, size_t i)
{
    const struct cli_sweep_group *g = &s->groups.items[i];
    cJSON *o = base_json_object(json, list, NULL);
    base_json_text(json, o, "name", g->name);
    if (g->place.layer == SIZE_MAX)
        base_json_text(json, o, "layer", NULL);
    else
        base_json_uint(json, o, "layer", g->place.layer);
    base_json_text(json, o, "role", *g->place.role ? g->place.role : NULL);
    cJSON *tensors = base_json_list(json, o, "tensors");
    for (size_t t = 0; t < g->n_tensors; t++)
        base_json_text(json, tensors, NULL, g->tensors[t]->name);
    base_json_uint(json, o, "n_elements", g->n_elements);
    cJSON *around = base_json_object(json, o, "around");
    base_json_text(json, around, "type", g->type);
    base_json_uint(json, around, "bytes", g->n_bytes);
    cJSON *choices = base_json_list(json, o, "choices");
    for (size_t c = 0; c < g->n_choices; c++)
        add_choice(json, choices, s, g->first_choice + c);
}

/* All choices of a candidate at once, where there are several. */
static void add_together(struct base_json *json, cJSON *list, const struct cli_sweep *s, size_t k)
{
    struct cli_sweep_together t = cli_sweep_together(s, k);
    if (!t.figures.known)
        return;
    cJSON *o = base_json_object(json, list, NULL);
    base_json_uint(json, o, "candidate", k);
    base_json_uint(json, o, "n_choices", t.n_choices);
    add_estimate(json, o, "excess_kld", t.figures.excess);
    base_json_real(json, o, "sum", t.sum);
}

static void add_result(const void *self, struct base_json *json)
{
    const struct cli_sweep *s = self;
    cJSON *result = base_json_object(json, json->root, "result");
    base_json_flag(json, result, "complete", s->trials.units.n_finished == s->trials.units.n);
    base_json_uint(json, result, "n_windows", cli_sweep_whole_windows(s));
    add_reference(json, s);
    cJSON *groups = base_json_list(json, json->root, "groups");
    for (size_t i = 0; i < s->groups.n; i++)
        add_group(json, groups, s, i);
    cJSON *together = base_json_list(json, json->root, "together");
    for (size_t k = 0; k < s->n_candidates; k++)
        add_together(json, together, s, k);
    cJSON *rest = base_json_list(json, json->root, "rest");
    for (size_t i = 0; i < s->groups.n_rest; i++) {
        const struct gguf_tensor *t = s->groups.rest[i];
        cJSON *o = base_json_object(json, rest, NULL);
        base_json_text(json, o, "name", t->name);
        base_json_text(json, o, "type", t->type->name);
        base_json_uint(json, o, "bytes", t->n_bytes);
    }
}

static void add_settings(struct base_json *json, const struct cli_sweep *s, bool for_journal)
{
    static const char *const by[] = {"tensor", "layer", "role"};
    cJSON *o = base_json_object(json, json->root, "settings");
    base_json_text(json, o, "by", s->settings->groups.n ? NULL : by[s->settings->by]);
    cJSON *patterns = base_json_list(json, o, "group");
    for (size_t i = 0; i < s->settings->groups.n; i++)
        base_json_text(json, patterns, NULL, s->settings->groups.items[i]);
    if (for_journal) {
        base_json_uint(json, o, "batch_windows", s->trials.batch_windows);
        base_json_uint(json, o, "n_variants", s->n_variants);
    }
    cli_json_add_window_settings(json, o, &s->settings->windows, &s->windows.plan);
    cli_json_add_text_settings(json, o, &s->settings->text);
    cli_json_add_computation(json, o, &s->e);
}

static void describe(const void *self, struct base_json *json, bool for_journal)
{
    const struct cli_sweep *s = self;
    bool with_file = !for_journal;
    add_settings(json, s, for_journal);
    cli_json_add_model(json, json->root, "base", &s->base, with_file);
    if (s->around.model)
        cli_json_add_model(json, json->root, "around", &s->around, with_file);
    else
        base_json_text(json, json->root, "around", NULL);
    cJSON *candidates = base_json_list(json, json->root, "candidates");
    for (size_t i = 0; i < s->n_candidates; i++)
        cli_json_add_model(json, candidates, NULL, &s->candidates[i], with_file);
    cli_json_add_text(json, &s->windows, model_tokenizer(s->base.model));
    if (!for_journal)
        cli_json_add_doubts(json, &s->windows);
}

static void add_files(const void *self, struct base_json *json, cJSON *run)
{
    const struct cli_sweep *s = self;
    base_json_text(json, run, "around_file", s->around.path);
    cJSON *files = base_json_list(json, run, "candidate_files");
    for (size_t i = 0; i < s->n_candidates; i++)
        base_json_text(json, files, NULL, s->candidates[i].path);
}

const struct cli_members cli_sweep_members = {DOC_SWEEP_SCHEMA, add_result, describe, NULL,
                                              add_files};

enum status cli_sweep_write_tsv(const void *self, struct base_file *file, struct status_why *why)
{
    (void)why;
    const struct cli_sweep *s = self;
    base_file_printf(file,
                     "group\tlayer\trole\tcandidate\ttype_around\ttype\telements\tbytes_around\t"
                     "bytes\tkld\tkld_se\texcess_kld\texcess_kld_se\tkld_per_bit\tdelta_nll\t"
                     "delta_nll_se\tsame_top\trms_dp\tbelow\n");
    for (size_t i = 0; i < s->groups.n_choices; i++) {
        const struct cli_sweep_choice *c = &s->groups.choices[i];
        const struct cli_sweep_group *g = &s->groups.items[c->group];
        struct cli_sweep_figures f = cli_sweep_figures(s, i);
        char name[CLI_SWEEP_NAME_BYTES], role[CLI_SWEEP_NAME_BYTES], layer[24] = "";
        if (g->place.layer != SIZE_MAX)
            snprintf(layer, sizeof layer, "%zu", g->place.layer);
        base_file_printf(file, "%s\t%s\t%s\t%zu\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64,
                         base_printable_text(name, sizeof name, g->name), layer,
                         base_printable_text(role, sizeof role, g->place.role), c->candidate,
                         g->type, c->type, g->n_elements, g->n_bytes, c->n_bytes);
        const double numbers[] = {f.kld.kld.value,
                                  base_estimate_error(f.kld.kld),
                                  f.excess.value,
                                  base_estimate_error(f.excess),
                                  f.per_bit,
                                  f.kld.log_ratio.value,
                                  base_estimate_error(f.kld.log_ratio),
                                  f.kld.same_top.value,
                                  f.kld.rms_dp.value};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            base_file_printf(file, "\t%.12g", base_unsigned_nan(numbers[k]));
        base_file_printf(file, "\t%s\n",
                         cli_sweep_doubts[f.doubt] ? cli_sweep_doubts[f.doubt] : "");
    }
    return STATUS_OK;
}
