/* assay perplexity: how well a model predicts a text. */
#include "cli/choice/evaluator.h"
#include "cli/commands.h"
#include "cli/kld/evaluator.h"
#include "cli/perplexity/evaluator.h"

/* --kl-divergence and the file that it is for. */
static enum status check_base(const struct cli_perplexity_settings *s, struct status_why *why)
{
    if (s->kl_divergence && !s->base_file)
        return status_fail(why, STATUS_USAGE,
                           "--kl-divergence: --kl-divergence-base FILE is missing");
    if (s->force && (s->kl_divergence || !s->base_file))
        return status_fail(why, STATUS_USAGE,
                           "--force goes with --kl-divergence-base without --kl-divergence, which "
                           "records a file");
    if (!s->base_file)
        return STATUS_OK;
    if (cli_choice_wanted(s) || s->protocol != CLI_PROTOCOL_DEFAULT || s->stride)
        return status_fail(why, STATUS_USAGE,
                           "--kl-divergence-base goes with the default windows only, not with "
                           "tasks, --protocol fixed or --ppl-stride");
    if (s->kl_divergence && cli_base_recognise(s->base_file) == &cli_base_model) {
        struct eval_logits_file none; /* whose sentence says what is wrong with it */
        enum status status = eval_logits_open(&none, s->base_file, why);
        eval_logits_close(&none);
        return status;
    }
    return STATUS_OK;
}

/* What the table of options cannot say: what belongs together and what excludes each other. */
static enum status check_settings(const struct cli_perplexity_settings *s, struct status_why *why)
{
    enum status status = check_base(s, why);
    if (status == STATUS_OK && !s->kl_divergence)
        status = cli_text_check(&s->text, why);
    if (status != STATUS_OK)
        return status;
    if (s->protocol == CLI_PROTOCOL_FIXED && s->stride)
        return status_fail(why, STATUS_USAGE, "--ppl-stride goes with --protocol default only");
    if (s->protocol != CLI_PROTOCOL_FIXED && s->split_lines)
        return status_fail(why, STATUS_USAGE, "--split-lines goes with --protocol fixed only");
    status = cli_window_check(&s->windows, why);
    if (!status)
        status = cli_choice_check(s, why);
    return status ? status : cli_model_check(&s->load, why);
}

/* With --kl-divergence it is assay kld under another name. */
static enum status compare(const struct cli_perplexity_settings *s, struct status_why *why)
{
    /* A list owns its items, this one is only read. */
    char *models[] = {(char *)(uintptr_t)s->model};
    struct cli_kld_settings kld;
    cli_kld_defaults(&kld);
    kld.base = s->base_file;
    kld.models = (struct cli_list){models, 1};
    kld.text = s->text;
    kld.windows = s->windows;
    kld.llama_compat = s->llama_compat;
    kld.load = s->load;
    kld.per_token_file = s->per_token_file;
    kld.divergence.context_curve = s->context_curve;
    kld.evaluate = s->evaluate;
    return cli_kld_run(&kld, why);
}

static enum status run_perplexity(const void *settings, const struct cli_args *args,
                                  struct status_why *why)
{
    (void)args;
    enum status status = check_settings(settings, why);
    if (status != STATUS_OK)
        return status;
    if (cli_choice_wanted(settings))
        return cli_choice_run(settings, why);
    const struct cli_perplexity_settings *s = settings;
    return s->kl_divergence ? compare(s, why) : cli_perplexity_run(s, why);
}

const struct cli_command cli_command_perplexity = {
    .name = "perplexity",
    .usage = "-m MODEL -f TEXT [options]",
    .summary = "Evaluate the perplexity of a model on a text.",
    .description =
        "Takes the options of llama-perplexity with its meaning. Those that cannot change a "
        "number here\n(-fa, -ub, --mlock, ...) are accepted and ignored; those that "
        "could, and are not\nimplemented, are errors.",
    .options = cli_perplexity_options,
    .settings_bytes = sizeof(struct cli_perplexity_settings),
    .defaults = cli_perplexity_defaults,
    .run = run_perplexity,
};
