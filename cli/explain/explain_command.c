/* assay explain: what a divergence is made of, as an engine shows it. */
#include "cli/commands.h"
#include "cli/explain/explain.h"
#include "clients/activations/rule.h"

#define AT(member)  offsetof(struct cli_explain_settings, member)
#define KLD(member) AT(kld.member)

static void defaults(void *settings)
{
    struct cli_explain_settings *s = settings;
    *s = (struct cli_explain_settings){0};
    cli_kld_defaults(&s->kld);
    s->kld.evaluate.machine.precision = CLI_PRECISION_EXACT; /* what others are measured by */
}

/** What the options do not say is what llama.cpp does. */
static void complete(struct cli_explain_settings *s)
{
    static struct cli_kv_type halves = {.type = {.type = GGUF_TYPE_F16}};
    struct cli_evaluate_settings *e = &s->kld.evaluate;
    if (!e->machine.activations)
        e->machine.activations = act_rule_find("engine", NULL);
    if (!e->load.cache_k.n && !e->load.cache_v.n)
        e->load.cache_k = e->load.cache_v = (struct cli_kv_list){&halves, 1};
}

static enum status check_recorded(const struct cli_explain_settings *s, struct status_why *why)
{
    if (!s->recorded)
        return STATUS_OK;
    if (s->kld.evaluate.host || s->kld.evaluate.dry_run)
        return status_fail(why, STATUS_USAGE,
                           "a plan is of the run without --recorded, which takes one more pass "
                           "over the base");
    if (cli_base_recognise(s->kld.base) != &cli_base_model)
        return status_fail(why, STATUS_USAGE,
                           "--base %s is a file of rows; expected a model beside --recorded, whose "
                           "rows are compared with its",
                           s->kld.base);
    return STATUS_OK;
}

static enum status run_explain(const void *settings, const struct cli_args *args,
                               struct status_why *why)
{
    struct cli_explain_settings s = *(const struct cli_explain_settings *)settings;
    (void)args;
    complete(&s);
    enum status status = cli_window_check(&s.kld.windows, false, why);
    if (!status)
        status = cli_text_check_single(&s.kld.text, "assay explain", why);
    if (!status)
        status = cli_text_check(&s.kld.text, why);
    if (!status && cli_kv_count(&s.kld.evaluate.load) > 1)
        status = status_fail(why, STATUS_USAGE, "-ctk, -ctv: expected one type of each here");
    if (!status)
        status = check_recorded(&s, why);
    return status ? status : cli_explain_run(&s, why);
}

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {"--base", CLI_TEXT, "FILE",
     "the model that it was made of, usually F16 or BF16, or a file that assay record wrote of it",
     KLD(base), .required = true, .usual = true},
    {"--recorded", CLI_TEXT, "FILE",
     "what the engine computed with the model on this text, as a base-logits file "
     "(llama-perplexity --kl-divergence-base FILE): also say how far it is from the base, and how "
     "much of that is left over",
     AT(recorded), .usual = true},
    {.type = CLI_GROUP, .group = cli_text_options, .offset = KLD(text)},

    {.type = CLI_HEADING, .help = "What the engine rounds"},
    {.type = CLI_GROUP,
     .group = cli_activations_options,
     .offset = KLD(evaluate.machine.activations),
     .help = " (default: engine)"},
    {.type = CLI_GROUP, .group = cli_model_options, .offset = KLD(evaluate.load)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = KLD(windows),
     .help = ", of which the second half is scored (default: 512, or the recording's)"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = KLD(windows)},

    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = KLD(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};

const struct cli_command cli_command_explain = {
    .name = "explain",
    .usage = "[-m] MODEL --base MODEL -f TEXT [options]",
    .summary = "Say of what a divergence is made: weights, activations, cache, kernels.",
    .description =
        "The model is evaluated in four ways: as it is, with the inputs of products rounded as\n"
        "an engine rounds them, over a rounded cache (f16 unless -ctk and -ctv say otherwise),\n"
        "and with both. The command says what each of them adds to the divergence from the\n"
        "base. With --recorded it also says how much of the engine's own divergence is left\n"
        "over, which is what its kernels add. docs/explain.md has figures.",
    .examples = "assay explain q4.gguf --base f16.gguf -f wiki.test.raw\n"
                "What of a divergence are the weights, and what llama.cpp's rounding on a CPU.\n"
                "assay explain q4.gguf --base f16.gguf -f wiki.test.raw --recorded llama.kld\n"
                "The same, beside what llama-perplexity recorded of q4.gguf on this text.",
    .options = options,
    .settings_bytes = sizeof(struct cli_explain_settings),
    .evaluate = KLD(evaluate),
    .defaults = defaults,
    .run = run_explain,
};
