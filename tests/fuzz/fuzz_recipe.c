/*
 * Documents of sweeps and recipes: any text. From a sweep that can be read recipes are made, for
 * limits between its smallest and its largest file, which they must keep; its files are not there.
 * Rules of types are read from any text, too.
 */
#include <math.h>
#include <stdlib.h>

#include "cli/process/say.h"
#include "cli/recipe/recipe.h"
#include "clients/documents/recipe/recipe_document.h"
#include "clients/documents/recipe/type_rules.h"
#include "clients/documents/schema.h"
#include "tests/fuzz/fuzz.h"

static void check(enum status status, const struct status_why *why)
{
    require((status == STATUS_OK) == !*why->text);
}

/* Write everything that a recipe can be written as. */
static void write_all(const struct cli_recipe *r)
{
    for (int form = 0; form < 3; form++) {
        struct base_file *file;
        struct status_why why = {""};
        require(base_file_create(&file, "/dev/null", NULL, &why) == STATUS_OK);
        check(form ? cli_recipe_write_types(r, file, form > 1, &why)
                   : cli_recipe_write_json(r, file, &why),
              &why);
        base_file_abandon(file);
    }
}

static void choose(struct cli_recipe *r, struct doc_target target)
{
    struct cli_recipe_settings settings = {.target = target};
    struct status_why why = {""};
    r->settings = &settings;
    enum status status = doc_plan_choose(&r->plan, &target, r->chosen, &r->gap, &why);
    check(status, &why);
    if (status)
        return;
    r->figures = doc_plan_figures(&r->plan, r->chosen);
    require(r->gap >= 0);
    require(isnan(target.bpw) || r->figures.bits_per_weight <= target.bpw * (1 + 1e-12));
    write_all(r);
}

static void make_recipes(struct cli_recipe *r)
{
    struct status_why why = {""};
    for (size_t i = 0; i < r->sweep.n_files; i++)
        r->sweep.files[i].path = "/nowhere/x.gguf";
    enum status status = doc_plan_make(&r->plan, &r->sweep, &why);
    if (!status)
        status = doc_plan_curve_make(&r->curve, &r->plan, 4, &why);
    check(status, &why);
    if (status)
        return;
    r->chosen = calloc(r->sweep.n_groups, sizeof *r->chosen);
    require(r->chosen && r->curve.n >= 1);
    const struct doc_plan_figures *least = &r->curve.points[0].figures,
                                  *most = &r->curve.points[r->curve.n - 1].figures;
    require(least->n_bytes <= most->n_bytes);
    choose(r, (struct doc_target){.bpw = (least->bits_per_weight + most->bits_per_weight) / 2,
                                  .kld = (double)NAN});
    choose(r, (struct doc_target){.bpw = (double)NAN, .kld = fabs(least->kld + most->kld) / 2});
}

static void read_sweep(struct base_string text)
{
    struct cli_recipe r = {.sweep_file = "input", .sweep_sha256 = ""};
    struct status_why why = {""};
    enum status status = doc_parse_as(&r.sweep.document, "input", text, DOC_SWEEP_SCHEMA, &why);
    if (!status)
        status = doc_swept_take(&r.sweep, &why);
    check(status, &why);
    if (!status)
        make_recipes(&r);
    doc_plan_curve_free(&r.curve);
    doc_plan_free(&r.plan);
    free(r.chosen);
    doc_swept_free(&r.sweep);
}

static void read_recipe(struct base_string text)
{
    struct doc_recipe r = {0};
    struct status_why why = {""};
    enum status status = doc_parse_as(&r.document, "input", text, DOC_RECIPE_SCHEMA, &why);
    if (!status)
        status = doc_recipe_take(&r, &why);
    check(status, &why);
    for (size_t i = 0; i < r.n_tensors && !status; i++)
        require(*r.tensors[i].name && r.tensors[i].file < r.n_files);
    doc_recipe_free(&r);
}

static void read_rules(struct base_string text)
{
    struct doc_type_rules rules = {0};
    const struct doc_type_rule *rule = NULL;
    struct status_why why = {""};
    enum status status = doc_type_rules_take(&rules, text, "input", &why);
    check(status, &why);
    if (!status)
        check(doc_type_rules_find(&rule, &rules, "blk.10.ffn_down_exps.weight", &why), &why);
    require(!rule || rule->type);
    doc_type_rules_free(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    cli_be_quiet(true);
    read_sweep((struct base_string){(const char *)data, n_bytes});
    read_recipe((struct base_string){(const char *)data, n_bytes});
    read_rules((struct base_string){(const char *)data, n_bytes});
    return 0;
}
