/* assay best: of several files, the smallest that is as good as the best one that fits. */
#include "cli/best/best.h"
#include "cli/commands.h"
#include "cli/input/models.h"

#define AT(member)  offsetof(struct cli_best_settings, member)
#define KLD(member) AT(kld.member)

static void defaults(void *settings)
{
    struct cli_best_settings *s = settings;
    *s = (struct cli_best_settings){.margin = "0.001+5%", .alpha = 0.05};
    cli_kld_defaults(&s->kld);
}

static enum status run_best(const void *settings, const struct cli_args *args,
                            struct status_why *why)
{
    struct cli_best_settings s = *(const struct cli_best_settings *)settings;
    const char *what = "assay best";
    s.kld.models.n = cli_models_chosen(&s.kld.models, args->n_bare, s.kld.base, &s.kld.evaluate);
    enum status status = cli_labels_check(&s.kld.labels, s.kld.models.n, why);
    if (!status)
        status = cli_window_check(&s.kld.windows, false, why);
    bool has_rows = cli_base_recognise(s.kld.base) != &cli_base_model;
    if (!status)
        status = cli_text_check_single(&s.kld.text, what, why);
    if (!status && (!has_rows || cli_text_given(&s.kld.text)))
        status = cli_text_check(&s.kld.text, why);
    return status ? status : cli_best_run(&s, why);
}

static const struct cli_rule rules[] = {
    {"--memory --size", CLI_ONE_OF, .why = "what fits"},
    {"--context", CLI_NEEDS, "--memory"},
    {"--speed", CLI_NEEDS, "--bench"},
    {"--prompt-speed", CLI_NEEDS, "--bench"},
    {0},
};

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {"-m --model", CLI_EACH, "FILE",
     "a file to choose from; may be given several times, and -m may be left out: of files that "
     "stand alone the base is left out",
     KLD(models), .required = true, .bare = true},
    {.type = CLI_GROUP, .group = cli_label_options, .offset = KLD(labels)},
    {"--base", CLI_TEXT, "FILE",
     "what all are compared with: the model that they were made of, usually F16 or BF16, or a file "
     "that assay record wrote of it",
     KLD(base), .required = true, .usual = true},
    {.type = CLI_GROUP, .group = cli_text_options, .offset = KLD(text)},

    {.type = CLI_HEADING, .help = "What fits; without a limit, all"},
    {"--memory", CLI_TEXT, "SIZE",
     "the weights, and the cache of --context, take so much memory at most: 24GiB, 16GB, ...",
     AT(memory), .usual = true},
    {"--context", CLI_COUNT, "N",
     "count a cache of keys and values for N tokens, of the types of -ctk and -ctv (default: f16)",
     AT(context), 0, INT32_MAX},
    {"--size", CLI_TEXT, "SIZE",
     "in place of --memory: the file is so large at most, with its metadata", AT(size),
     .usual = true},
    {"--bench", CLI_EACH, "FILE",
     "what llama-bench printed of the files with -o json or -o jsonl: speeds are shown, and can be "
     "asked for; may be given several times",
     AT(benches)},
    {"--speed", CLI_NUMBER, "X", "the file generates so many tokens per second at least",
     AT(least_speed[DOC_GENERATION])},
    {"--prompt-speed", CLI_NUMBER, "X", "the file reads so many tokens of a prompt per second",
     AT(least_speed[DOC_PROMPT])},

    {.type = CLI_HEADING, .help = "What as good means"},
    {"--margin", CLI_TEXT, "MARGIN",
     "a file is as good as another if its mean KL divergence is at most this much more: nats, or a "
     "share of the other's, or their sum (default: 0.001+5%)",
     AT(margin)},
    {"--alpha", CLI_NUMBER, "X",
     "the probability, at most, that something which is said to be clear is wrong, however early "
     "it is said (default: 0.05)",
     AT(alpha)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = KLD(windows),
     .help = ", of which the second half is scored (default: 512, or the base file's)"},
    {.type = CLI_GROUP, .group = cli_model_options, .offset = KLD(evaluate.load)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--report", CLI_TEXT, "FILE", "write a page for a browser: the verdict, charts, paired tests",
     AT(report_file)},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = KLD(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};

const struct cli_command cli_command_best = {
    .name = "best",
    .usage = "[-m] FILE ... --base BASE [-f TEXT] [options]",
    .summary = "Choose among files: the smallest that is as good as the best one that fits.",
    .description =
        "The files are compared with their base together, window by window. A file leaves as\n"
        "soon as it is clear that it is not the answer, and the run ends as soon as the answer\n"
        "is clear. The verdict comes first: which file to take, which others are as good, and\n"
        "which are worse, by how much.",
    .examples =
        "assay best --base f16.gguf -f wiki.test.raw *.gguf --memory 24GiB --context 32768\n"
        "Which of these files to take: the smallest that is as good as the best one that fits.\n"
        "assay best --base f16.gguf -f wiki.test.raw *.gguf --size 5GB --report best.html\n"
        "The same among files of 5 GB at most, with a page of the result.\n"
        "assay best --base f16.gguf -f wiki.test.raw *.gguf --bench bench.json --speed 30\n"
        "The same among files that generate 30 tokens per second, by what llama-bench -o json "
        "measured.",
    .options = options,
    .rules = rules,
    .settings_bytes = sizeof(struct cli_best_settings),
    .evaluate = KLD(evaluate),
    .defaults = defaults,
    .run = run_best,
};
