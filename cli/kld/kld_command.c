/* assay kld: how far models are from a base: another model, computed in the same pass, or a file.
 */
#include "base/content/kind.h"
#include "cli/commands.h"
#include "cli/input/models.h"
#include "cli/kld/kld_evaluator.h"
#include "cli/kld/server/bounds.h"
#include "cli/output/contexts.h"
#include "cli/process/say.h"

/* A model is compared on a text. If there is no text, a file that is not a model may be why. */
static enum status check_text_of_model(const struct cli_kld_settings *s, struct status_why *why)
{
    struct gguf_file *base = NULL;
    enum status status =
        cli_text_given(&s->text) ? STATUS_OK : model_file_open(&base, s->base, NULL, why);
    gguf_close(base);
    return status ? status : cli_text_check(&s->text, why);
}

/* The text, as the kind of base takes it. */
static enum status check_against_base(const struct cli_kld_settings *s, struct status_why *why)
{
    const struct cli_base_kind *kind = cli_base_recognise(s->base);
    if (kind == &cli_base_model)
        return check_text_of_model(s, why);
    enum status status = STATUS_OK;
    if (kind == &cli_base_logits) /* a recording may be of documents */
        status = cli_text_check_single(&s->text, "a comparison with a base-logits file", why);
    if (status)
        return status;
    return cli_text_given(&s->text) ? cli_text_check(&s->text, why) : STATUS_OK;
}

enum { MODEL, COMPACT, LOGITS, SERVER, ANSWERS };
static const char *const modes[] = {"a base model", "a compact file",   "a base-logits file",
                                    "--base-url",   "recorded answers", NULL};

#define BASES "a model, a recording or recorded answers"

static int mode_of(const void *settings)
{
    const struct cli_kld_settings *s = settings;
    if (s->base && base_file_check_no_result(s->base, BASES, NULL))
        return -1; /* as the run says, too */
    if (s->base_url)
        return SERVER;
    if (s->base && base_file_begins_object(s->base))
        return ANSWERS;
    if (!s->base && s->llama_compat)
        return -1; /* a base is missing, which the run says */
    const struct cli_base_kind *kind = s->base ? cli_base_recognise(s->base) : &cli_base_model;
    return kind == &cli_base_model ? MODEL : kind == &cli_base_logits ? LOGITS : COMPACT;
}

enum { EXACT = 1 << MODEL | 1 << COMPACT | 1 << LOGITS };

static const struct cli_rule rules[] = {
    {"--base --base-url", CLI_ONE_OF},
    {"--llama-compat", CLI_ONLY, .modes = 1 << LOGITS},
    {"--js --new-type --full --markdown --per-token --context-curve --context-bins --worst --watch "
     "--watch-status --watch-script --cache --cache-file --activations --stop-when-se --chunk-from "
     "--parse-special -b --dry-run",
     CLI_ONLY, .modes = EXACT},
    {"--chunks", CLI_ONLY, NULL, "--requests says how much is asked", EXACT},
    {"-f -bf -p -e --force-text --strict --mask --chat-template -c", CLI_ONLY, NULL,
     "they have their prompts", EXACT | 1 << SERVER},
    {"--state", CLI_ONLY, NULL, "nothing is asked", EXACT | 1 << SERVER},
    {"--api --api-key-file --timeout --concurrency --requests", CLI_ONLY, .modes = 1 << SERVER},
    {0},
};

static enum status run_one(const void *settings, struct status_why *why)
{
    return cli_kld_run(settings, why);
}

/* Several context sizes, where windows are laid over a text. */
static enum status run_contexts(struct cli_kld_settings *s, struct status_why *why)
{
    struct cli_contexts contexts = {.windows = &s->windows,
                                    .evaluate = &s->evaluate,
                                    .text = &s->text,
                                    .per_token_file = &s->per_token_file,
                                    .head = "| n_ctx | model | PPL | KLD | Same top p % |\n"
                                            "| ---: | --- | ---: | ---: | ---: |\n",
                                    .run = run_one,
                                    .settings = s};
    s->rows = &contexts.rows;
    return cli_contexts_run(&contexts, why);
}

static enum status run_kld(const void *settings, const struct cli_args *args,
                           struct status_why *why)
{
    struct cli_kld_settings s = *(const struct cli_kld_settings *)settings;
    s.models.n = cli_models_chosen(&s.models, args->n_bare, s.base, &s.evaluate);
    enum status status = cli_labels_check(&s.labels, s.models.n, why);
    if (status)
        return status;
    if (s.base)
        status = base_file_check_no_result(s.base, BASES, why);
    if (status)
        return status;
    int mode = mode_of(&s);
    if (mode == SERVER || mode == ANSWERS)
        return cli_bounds_run(&s, why);
    const struct cli_model_settings *load = &s.evaluate.load;
    bool differs = load->cache_k.n || load->cache_v.n || load->experts_used;
    if (!s.base && s.models.n == 1 && (differs || s.evaluate.machine.activations))
        s.base = s.models.items[0];
    if (!s.base)
        return status_fail(why, STATUS_USAGE, "--base is missing; see assay help kld");
    cli_tokens_take(&s.evaluate.load, s.base, &s.models);
    cli_text_settle(&s.text);
    status = cli_watch_check(&s.evaluate, why);
    if (!status)
        status = cli_window_check(&s.windows, cli_base_recognise(s.base) == &cli_base_model, why);
    if (!status)
        status = check_against_base(&s, why);
    if (status)
        return status;
    return s.windows.n_ctx.more ? run_contexts(&s, why) : cli_kld_run(&s, why);
}

/* Where a row's setting lives. */
#define AT(member) offsetof(struct cli_kld_settings, member)

void cli_kld_defaults(void *settings)
{
    struct cli_kld_settings *s = settings;
    *s = (struct cli_kld_settings){.text.chat = cli_chat_defaults};
    cli_window_defaults(&s->windows);
    cli_evaluate_defaults(&s->evaluate);
    cli_connection_defaults(&s->connection);
    s->connection.n_requests = CLI_BOUNDS_REQUESTS;
}

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {"-m --model", CLI_EACH, "FILE",
     "a model to compare with the base: a GGUF file, any one of a split model; may be given "
     "several times, and -m may be left out: of files that stand alone the base is left out",
     AT(models), .required = true, .bare = true, .usual = true},
    {.type = CLI_GROUP, .group = cli_label_options, .offset = AT(labels)},
    {"--base", CLI_TEXT, "FILE",
     "the base: a model, or a file that assay record, assay perplexity --kl-divergence-base or "
     "llama-perplexity wrote. With such a file -f is not needed, and refused where it is another "
     "text. With -ctk, -ctv or --experts-used and one model --base may be left out: the base is "
     "then the model itself, without them. FILE may also have recorded answers of a server, as "
     "JSON lines: then divergences are bounds",
     AT(base), .usual = true},
    {.type = CLI_GROUP, .group = cli_texts_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = ", of which the second half is scored (default: 512, or the base file's). Several, as "
             "512,4096, are evaluated one after the other, each with files of its own (--json "
             "r.json writes r-c512.json), and a table at the end"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},
    {.type = CLI_GROUP, .group = cli_stop_options, .offset = AT(windows)},
    {"--js", CLI_ON, NULL,
     "also the Jensen-Shannon divergence, the total variation and, as 1 - that, the acceptance to "
     "expect of a draft model; they take a second pass over the vocabulary",
     AT(js)},
    {"--llama-compat", CLI_ON, NULL,
     "leave out tokens of the base with ln p <= -16, and the summary of "
     "fewer than 100 tokens, as llama-perplexity does",
     AT(llama_compat)},

    {.type = CLI_HEADING,
     .help = "A server as the base: divergences are bounds (docs/server-check.md)"},
    {"--base-url", CLI_TEXT, "URL",
     "the base is what the server at http://HOST:PORT serves, which lists its likeliest tokens; "
     "what it answers is kept in the file of --state, which --base takes with other models",
     AT(base_url)},
    {.type = CLI_GROUP, .group = cli_connection_options, .offset = AT(connection)},
    {"--concurrency", CLI_COUNT, "N", "ask N prompts at the same time (default: 1)",
     AT(connection.concurrency), 1, 64},
    {"--requests", CLI_COUNT, "N",
     "make N requests at most, 24 or more; what a busy server is sent again does not count "
     "(default: 100)",
     AT(connection.n_requests), 24, 100000},

    {.type = CLI_GROUP, .group = cli_watch_options, .offset = AT(evaluate.watch)},
    {.type = CLI_GROUP, .group = cli_load_options, .offset = AT(evaluate)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--full", CLI_ON, NULL,
     "with several models: print for each the lines that are printed for a single one, and after "
     "them the table, in Markdown (default: the table alone, as wide as the terminal, and the "
     "lists of --worst and --context-curve, unless --json has them)",
     AT(full)},
    {"--markdown", CLI_ON, NULL, "print the table with all its columns, in Markdown, without lines",
     AT(markdown)},
    {"--new-type", CLI_ON, NULL,
     "print the table that is asked of a new quantisation type, in Markdown, and nothing else: "
     "size, perplexity and its ratio to the base's, divergence with quantiles, a row for each "
     "model",
     AT(new_type)},
    {.type = CLI_GROUP,
     .group = cli_per_token_options,
     .offset = AT(per_token_file),
     .help = " and model"},
    {.type = CLI_GROUP, .group = cli_divergence_options, .offset = AT(divergence)},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};

const struct cli_command cli_command_kld = {
    .name = "kld",
    .usage = "[-m] MODEL ... (--base MODEL|FILE | --base-url URL) [-f TEXT] [options]",
    .summary = "Compare the predictions of models with those of a base model.",
    .description =
        "The base and all models are evaluated in step, and their exact logits are compared;\n"
        "nothing is written in between. The base may also be a file, which then has the tokens\n"
        "and the windows: assay record writes one that is exact, and assay perplexity and\n"
        "llama-perplexity write one whose logits are rounded, with --kl-divergence-base. Or the\n"
        "base is a server, which is asked for its likeliest tokens: they bound the divergence\n"
        "from below and above.\n\n"
        "One model gives the lines of llama-perplexity --kl-divergence, several models give a\n"
        "table.",
    .examples =
        "assay kld *.gguf --base f16.gguf -f wiki.test.raw --json kld.json\n"
        "How far quantisations are from the model that they were made of, in one pass.\n"
        "assay kld q4.gguf --base base.assay\n"
        "The same figures as from the model itself, from what assay record wrote of it.\n"
        "assay kld model.gguf -f wiki.test.raw --ctk f16,q8_0,q4_0\n"
        "What it costs to round keys.\n"
        "assay kld q4-00001-of-00300.gguf --base f16.kld --watch control --watch-status status\n"
        "Keeps running: tensors are replaced by other files, and commands in the file control "
        "start evaluations.",
    .options = options,
    .rules = rules,
    .modes = modes,
    .mode = mode_of,
    .settings_bytes = sizeof(struct cli_kld_settings),
    .evaluate = AT(evaluate),
    .defaults = cli_kld_defaults,
    .run = run_kld,
};
