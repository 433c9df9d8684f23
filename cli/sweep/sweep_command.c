/* assay sweep: tensors of candidates in a model, a few at a time, and what each costs. */
#include <string.h>

#include "base/arithmetic.h"
#include "cli/commands.h"
#include "cli/input/models.h"
#include "cli/options/value.h"
#include "cli/process/say.h"
#include "cli/reference/base.h"
#include "cli/session/cluster.h"
#include "cli/sweep/donors.h"
#include "cli/sweep/sweep_evaluator.h"

#define AT(member) offsetof(struct cli_sweep_settings, member)

static void defaults(void *settings)
{
    struct cli_sweep_settings *s = settings;
    *s = (struct cli_sweep_settings){.text.chat = cli_chat_defaults};
    cli_window_defaults(&s->windows);
    cli_evaluate_defaults(&s->evaluate);
}

/* With models that are made for it. */
static enum status run_types(struct cli_sweep_settings *s, struct status_why *why)
{
    struct cli_donors donors = {0};
    const struct cli_donors_order order = {
        .types = &s->types,
        .quantizer = s->quantizer ? s->quantizer : "llama-quantize",
        .base = s->base,
        .keep = s->keep,
        .n_threads = (int)base_max(s->evaluate.machine.n_threads, 0),
    };
    enum status status = cli_cluster_join(&s->evaluate.machine, why);
    if (!status && cli_cluster()->n_ranks > 1)
        status = status_fail(why, STATUS_USAGE,
                             "--types does not go with several processes; make the models "
                             "beforehand, and give them with --from");
    if (!status && model_is_folder(s->base))
        status = status_fail(why, STATUS_USAGE,
                             "--base %s is a published folder, of which no quantizer makes models; "
                             "expected a GGUF file with --types; convert it, or give models of it "
                             "with --from",
                             s->base);
    if (!status)
        status = cli_donors_make(&donors, &order, why);
    s->from = donors.paths; /* which stay the donors' */
    if (!status)
        status = cli_sweep_run(s, why);
    if (!status && !s->keep && s->evaluate.output.json_file)
        cli_say("assay: note: the models that were made are deleted, so that assay mix cannot take "
                "tensors from them; with --keep DIR they stay\n");
    cli_donors_remove(&donors);
    return status;
}

/** For a plan nothing is made: the base stands in for each model that would be. */
static enum status plan_types(struct cli_sweep_settings *s, struct status_why *why)
{
    s->unmade = s->types.n;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < s->types.n && !status; i++)
        status = cli_list_append(&s->from, s->base, strlen(s->base), why);
    if (!status)
        status = cli_sweep_run(s, why);
    cli_list_clear(&s->from);
    return status;
}

static enum status run_sweep(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    struct cli_sweep_settings own = *(const struct cli_sweep_settings *)settings, *s = &own;
    own.from.n = cli_models_chosen(&own.from, args->n_bare, own.base, &own.evaluate);
    cli_tokens_take(&s->evaluate.load, s->base, &s->from);
    cli_text_settle(&s->text);
    enum status status = cli_window_check(&s->windows, false, why);
    if (!status)
        status = cli_text_check(&s->text, why);
    if (!status && cli_base_recognise(s->base) != &cli_base_model)
        status =
            status_fail(why, STATUS_USAGE,
                        "--base %s is a file of rows; a sweep needs the model itself", s->base);
    if (!status && !s->from.n == !s->types.n)
        status = status_fail(why, STATUS_USAGE,
                             s->from.n ? "--from and --types both say what is tried: give one"
                                       : "--from, or --types, is missing; see assay help sweep");
    if (status)
        return status;
    bool planned = s->evaluate.host || s->evaluate.dry_run;
    if (!s->types.n)
        return cli_sweep_run(s, why);
    return (planned ? plan_types : run_types)(s, why);
}

static const struct cli_rule rules[] = {
    {"--by --group", CLI_ONE_OF, .why = "which tensors go together"},
    {"--quantizer --keep", CLI_NEEDS, "--types"},
    {0},
};

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {"--base", CLI_TEXT, "FILE", "the model that all others are compared with, usually F16 or BF16",
     AT(base), .required = true, .usual = true},
    {"--from", CLI_EACH, "FILE",
     "a model of other types, whose tensors are tried; may be given several times, and --from may "
     "be left out",
     AT(from), .bare = true, .usual = true},
    {"--types", CLI_LIST, "NAMES",
     "in place of --from: have --quantizer make models of these types of the base; without --keep "
     "they lie in a folder of TMPDIR and are deleted at the end",
     AT(types)},
    {"--keep", CLI_TEXT, "DIR",
     "keep the models of --types in this folder, where assay mix and the next sweep find them",
     AT(keep)},
    {"--quantizer", CLI_TEXT, "PROGRAM",
     "llama-quantize, a name or a path, and options for it with blanks between, as "
     "\"llama-quantize --imatrix im.gguf\"; --pure and the threads of -t are added (default: "
     "llama-quantize)",
     AT(quantizer)},
    {"--around", CLI_TEXT, "FILE",
     "the model that all other tensors are taken from (default: the base)", AT(around)},
    {.type = CLI_GROUP, .group = cli_texts_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {"--by", CLI_CHOICE, "WHAT",
     "which tensors are taken together: tensor, each alone (default); layer, those of a layer; "
     "role, those of one name in all layers",
     AT(by), .choices = "tensor layer role"},
    {"--group", CLI_EACH, "REGEX",
     "in place of --by: tensors whose names match REGEX (PCRE2, anywhere in the name) go together "
     "where its parentheses match the same; without parentheses all of them do. May be given "
     "several times; the first that matches counts",
     AT(groups)},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = ", of which the second half is scored (default: 512)"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},

    {.type = CLI_GROUP, .group = cli_weight_options, .offset = AT(evaluate.load)},
    {.type = CLI_GROUP,
     .group = cli_activations_options,
     .offset = AT(evaluate.machine.activations)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--sort", CLI_CHOICE, "HOW",
     "the order of the printed lines: model, as in the file (default), or kld, the largest first",
     AT(sort), .choices = "model kld"},
    {"--tsv", CLI_TEXT, "FILE", "write a table (TSV) with a line for each group and candidate",
     AT(tsv_file)},
    {"--heatmap", CLI_TEXT, "FILE", "draw the divergences (SVG): layers by roles",
     AT(heatmap_file)},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {"-ctk --cache-type-k --ctk -ctv --cache-type-v --ctv", CLI_REFUSED, "TYPE",
     "a sweep tells what weights cost; assay kld compares types of a cache", .choices = "f32"},
    {0},
};

const struct cli_command cli_command_sweep = {
    .name = "sweep",
    .usage = "--base MODEL ([--from] MODEL ... | --types NAMES) -f TEXT [options]",
    .summary = "Measure what each tensor costs in other types: one at a time, the rest stays.",
    .description =
        "Each tensor, or each group of tensors, is taken from each candidate in turn, while all\n"
        "others stay the base's. What is measured is the exact divergence from the base, the\n"
        "same that assay kld has for a file with that change. Only the layers after the tensor\n"
        "are computed. The command prints a table; assay recipe reads what --json wrote.",
    .examples =
        "assay sweep --base f16.gguf q2_k.gguf iq4_xs.gguf -f wiki.test.raw --json sweep.json\n"
        "Which tensors may be quantised how far: each one from each file, all others as they are.\n"
        "assay sweep --base f16.gguf q4_k.gguf -f wiki.test.raw --by layer --heatmap layers.svg\n"
        "Layer by layer, as a drawing.\n"
        "assay sweep --base f16.gguf --types Q3_K,Q4_K,Q6_K --keep made -f wiki.test.raw --json "
        "sweep.json\n"
        "What a recipe and a mixture begin with: the models are made here, and stay in made/.",
    .options = options,
    .rules = rules,
    .settings_bytes = sizeof(struct cli_sweep_settings),
    .evaluate = AT(evaluate),
    .defaults = defaults,
    .run = run_sweep,
};
