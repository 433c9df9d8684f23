/* assay recipe: from a sweep to the best mixture of types. */
#include "cli/recipe/recipe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "base/text/size.h"
#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/process/say.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"

enum { POINTS = 16, MOST_POINTS = 1000 };

static void print_counts(const struct doc_plan *plan, const size_t *chosen,
                         struct cli_type_count *counts)
{
    size_t n = cli_recipe_count(plan, chosen, counts);
    char type[96];
    for (size_t i = 0; i < n; i++)
        printf("%s%s %zu", i ? ", " : "", base_printable_text(type, sizeof type, counts[i].type),
               counts[i].n_groups);
    putchar('\n');
}

/** The unit of the limit, or one that is good for the largest file of the curve. */
static const struct base_size_unit *unit_of(const struct cli_recipe *r)
{
    size_t n = r->curve.n;
    return base_size_unit(r->settings->target.size,
                          (double)(n ? r->curve.points[n - 1].figures : r->figures).n_bytes);
}

static void print_curve(const struct cli_recipe *r, struct cli_type_count *counts)
{
    const struct base_size_unit *unit = unit_of(r);
    char size[BASE_SIZE_BYTES];
    printf("%14s %9s %8s %12s  %s\n", "bytes", unit->name, "bpw", "KLD", "groups of each type");
    for (size_t i = 0; i < r->curve.n; i++) {
        const struct doc_plan_figures *f = &r->curve.points[i].figures;
        printf("%14" PRIu64 " %9s %8.4f %12.6g  ", f->n_bytes,
               base_size_digits(size, (double)f->n_bytes, unit), f->bits_per_weight, f->kld);
        print_counts(&r->plan, r->curve.points[i].chosen, counts);
    }
}

static void print_recipe(const struct cli_recipe *r, struct cli_type_count *counts)
{
    const struct doc_plan_figures *f = &r->figures;
    bool of_size = !isnan(r->settings->target.kld);
    char size[BASE_SIZE_BYTES];
    printf("\nRecipe: %" PRIu64 " bytes (%s), %.4f bits per weight\nPredicted KLD: %.6g",
           f->n_bytes, base_size_text(size, (double)f->n_bytes, unit_of(r)), f->bits_per_weight,
           f->kld);
    if (!isnan(f->kld_error))
        printf(" ± %.3g", f->kld_error);
    if (r->gap > 0)
        printf("\nGap: another mixture may be better by %.6g %s at most", r->gap,
               of_size ? "bytes" : "nats");
    else
        printf("\nGap: 0: no other mixture within the limit is %s",
               of_size ? "smaller" : "predicted to be better");
    printf("\nGroups of each type: ");
    print_counts(&r->plan, r->chosen, counts);
}

static enum status choose(struct cli_recipe *r, struct status_why *why)
{
    if (!doc_target_given(&r->settings->target))
        return STATUS_OK;
    if (base_array_new(r->chosen, r->sweep.n_groups, "groups", why))
        return STATUS_MEMORY;
    enum status status = doc_plan_choose(&r->plan, &r->settings->target, r->chosen, &r->gap, why);
    if (!status)
        r->figures = doc_plan_figures(&r->plan, r->chosen);
    return status;
}

static enum status print(const struct cli_recipe *r, struct status_why *why)
{
    struct cli_type_count *counts;
    if (base_array_new(counts, r->sweep.n_groups, "groups", why))
        return STATUS_MEMORY;
    print_curve(r, counts);
    if (r->chosen)
        print_recipe(r, counts);
    free(counts);
    return STATUS_OK;
}

enum { JSON, TYPES, SUITE, N_OUTPUTS };

static void note_missing(const struct cli_recipe *r)
{
    for (size_t f = 0; f < r->sweep.n_files; f++)
        if (!r->plan.mixture.files[f])
            cli_say("assay: note: %s: is not there; %s\n", r->sweep.files[f].path,
                    f ? "its sizes are those of the sweep"
                      : "sizes are those of the sweep, without the file's metadata");
}

/* The files are begun before anything is computed, and all written or none; what cannot be written
 * is not printed as a recipe either. */
static enum status make(struct cli_recipe *r, const struct cli_named_file *outputs,
                        struct status_why *why)
{
    static const char *const kinds[N_OUTPUTS] = {
        [JSON] = DOC_RECIPE_SCHEMA, [TYPES] = BASE_TYPES, [SUITE] = BASE_SUITE};
    struct base_file *files[N_OUTPUTS] = {NULL};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < N_OUTPUTS && !status; i++)
        status = cli_output_create(&files[i], outputs[i].path, r->settings->force ? NULL : kinds[i],
                                   why);
    if (!status)
        status = doc_plan_make(&r->plan, &r->sweep, why);
    if (!status)
        note_missing(r);
    if (!status)
        status = doc_plan_curve_make(&r->curve, &r->plan, (size_t)r->settings->n_points, why);
    if (!status)
        status = choose(r, why);
    for (size_t i = 0; i < N_OUTPUTS && !status; i++)
        if (files[i])
            status = i == JSON ? cli_recipe_write_json(r, files[i], why)
                               : cli_recipe_write_types(r, files[i], i == SUITE, why);
    if (!status)
        status = print(r, why);
    for (size_t i = 0; i < N_OUTPUTS; i++)
        if (files[i])
            status = cli_output_commit(&files[i], status, why);
    return status;
}

static enum status run_recipe(const void *settings, const struct cli_args *args,
                              struct status_why *why)
{
    const struct cli_recipe_settings *s = settings;
    const struct cli_named_file input = {"recipe", args->operands[0]};
    const struct cli_named_file outputs[N_OUTPUTS] = {[JSON] = {"--json", s->json_file},
                                                      [TYPES] = {"--tensor-types", s->types_file},
                                                      [SUITE] = {"--tool-suite", s->suite_file}};
    char sha256[BASE_HEX];
    struct cli_recipe r = {.settings = s, .sweep_file = input.path, .sweep_sha256 = sha256};
    enum status status = doc_target_check(&s->target, why);
    for (size_t i = 0; i < N_OUTPUTS && !status; i++)
        if (outputs[i].path && !doc_target_given(&s->target))
            status = status_fail(why, STATUS_USAGE,
                                 "%s: there is no recipe without --size, --bpw or --kld",
                                 outputs[i].option);
    if (!status)
        status = cli_outputs_check(outputs, N_OUTPUTS, &input, 1, why);
    if (!status)
        status = doc_swept_read(&r.sweep, input.path, sha256, why);
    if (!status && !r.sweep.complete)
        cli_say("assay: note: %s: the sweep was not complete\n", input.path);
    if (!status && r.sweep.n_left_out)
        cli_say("assay: note: %zu choice%s left out: no finite divergence is known\n",
                r.sweep.n_left_out, r.sweep.n_left_out == 1 ? " is" : "s are");
    if (!status && r.sweep.n_odd)
        cli_say("assay: note: %zu choice%s left out, whose tensors are no versions of the base's: "
                "%s\n",
                r.sweep.n_odd, r.sweep.n_odd == 1 ? " is" : "s are", r.sweep.odd.data);
    if (!status)
        status = make(&r, outputs, why);
    doc_plan_curve_free(&r.curve);
    doc_plan_free(&r.plan);
    free(r.chosen);
    doc_swept_free(&r.sweep);
    return status;
}

static void defaults(void *settings)
{
    *(struct cli_recipe_settings *)settings = (struct cli_recipe_settings){
        .target = {NULL, (double)NAN, (double)NAN}, .n_points = POINTS};
}

#define AT(member) offsetof(struct cli_recipe_settings, member)

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Limit: one of these; without one only the curve is printed"},
    {"--size", CLI_TEXT, "SIZE",
     "the file is this large at most, with its metadata: bytes, or 4.2GiB, 3500MB, ...",
     AT(target.size)},
    {"--bpw", CLI_NUMBER, "X", "its tensors have X bits per weight at most", AT(target.bpw)},
    {"--kld", CLI_NUMBER, "X", "the smallest file whose predicted mean divergence is X at most",
     AT(target.kld)},
    {.type = CLI_HEADING, .help = "Output"},
    {"--points", CLI_COUNT, "N", "points of the curve (default: 16)", AT(n_points), 2, MOST_POINTS},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error"},
    {.type = CLI_GROUP,
     .group = cli_json_options,
     .offset = AT(json_file),
     .help = "; assay mix reads it"},
    {"--tensor-types", CLI_TEXT, "FILE",
     "write the types as llama-quantize --tensor-type-file reads them", AT(types_file)},
    {"--tool-suite", CLI_TEXT, "FILE", "write the types as a recipe of GGUF-Tool-Suite (*.recipe)",
     AT(suite_file)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {0},
};

const struct cli_command cli_command_recipe = {
    .name = "recipe",
    .usage = "SWEEP.json [options]",
    .n_operands = 1,
    .summary = "Find the best mixture of types for a size, from a sweep.",
    .description =
        "SWEEP.json is what assay sweep --json wrote. The divergence of a mixture is predicted\n"
        "to be the sum of what its tensors cost one by one. By this prediction the mixture\n"
        "is the best one there is; where the search had to end before that was proved, the gap\n"
        "that is printed says by how much another one may be better.",
    .examples = "assay recipe sweep.json --size 4.2GiB --json recipe.json\n"
                "The best mixture of types for a size, from what a sweep measured.",
    .options = options,
    .settings_bytes = sizeof(struct cli_recipe_settings),
    .defaults = defaults,
    .run = run_recipe,
};
