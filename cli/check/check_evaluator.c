/* assay check: how far what another program recorded is from the exact predictions. */
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/content/kind.h"
#include "cli/calibrate.h"
#include "cli/check/check_evaluator.h"
#include "cli/check/recipe_types.h"
#include "cli/commands.h"
#include "kernels/kernels.h"

static enum status open_files(struct cli_check *c, struct status_why *why)
{
    const struct cli_check_settings *s = c->settings;
    enum status status = cli_base_check_logits(s->recorded, why);
    if (!status)
        status = cli_base_open(&c->recorded, s->recorded, &s->evaluate, why);
    if (!status)
        status = cli_model_open(&c->model, s->model, &s->evaluate, false, why);
    if (!status)
        status = cli_backends_round(&c->e.backends, model_file(c->model.model), why);
    if (!status)
        status = c->recorded.kind->check(&c->recorded, c->model.model, NULL, why);
    if (!status)
        status = cli_fits_open(c, why);
    if (!status)
        status = cli_against_open(c, why);
    return status ? status : cli_again_open(c, why);
}

static enum status lay_windows(struct cli_check *c, struct status_why *why)
{
    struct eval_plan_options plan = cli_plan_options(&c->settings->windows, c->model.model, 0);
    enum status status = cli_base_tokens(&c->recorded, &c->windows, &plan, why);
    if (!status)
        status = cli_windows_lay(&c->windows, &plan, why);
    if (!status)
        status = cli_calibrate(&c->e, &c->model, &c->windows, why);
    if (!status)
        status = c->recorded.kind->use(&c->recorded, &c->windows.plan, false, why);
    if (!status)
        status = cli_windows_make_tables(&c->windows, c->n_fits, why);
    if (!status)
        status = cli_against_lay(c, why);
    return status ? status : cli_again_lay(c, why);
}

static enum status open(void *self, struct status_why *why)
{
    struct cli_check *c = self;
    if (c->settings->n_trace && kern_describe(c->e.backends.items[0]).own_memory)
        return status_fail(why, STATUS_USAGE,
                           "--trace-worst: a trace is made on a CPU; expected --device cpu");
    enum status status = open_files(c, why);
    if (!status)
        status = lay_windows(c, why);
    if (!status)
        status = cli_check_list_others(c, why);
    if (status)
        return status;
    struct eval_check_task check = {
        .model = c->model.model,
        .backends = c->e.backends.items,
        .n_backends = c->e.backends.n,
        .plan = &c->windows.plan,
        .stream = &c->windows.stream,
        .recorded = &c->recorded.source,
        .reach = eval_logits_reach(c->recorded.step),
        .others = c->sources,
        .n_others = c->n_others,
    };
    status = eval_check_open(&c->check, &check, why);
    if (status)
        return status;
    c->e.models = eval_check_models(c->check);
    c->e.models.candidates = c->models + 1;
    c->e.models.n_candidates = c->n_fits - 1;
    c->e.units = &c->windows.units.units;
    c->windows.units.sink = c->e.models.sink;
    return STATUS_OK;
}

static void close(void *self)
{
    struct cli_check *c = self;
    for (size_t i = 0; c->traces && i < c->result.kld.n_worst; i++)
        cli_worst_free(&c->traces[i]);
    free(c->traces);
    eval_check_result_free(&c->result);
    eval_check_close(c->check);
    cli_windows_close(&c->windows);
    cli_against_close(c);
    cli_again_close(c);
    free(c->sources);
    free(c->others);
    cli_fits_close(c);
    cli_model_close(&c->model);
    cli_base_close(&c->recorded);
}

static void unit_done(void *self, size_t w)
{
    struct cli_check *c = self;
    struct eval_check_tables tables = {c->windows.tables, c->windows.units.n_tables, c->others};
    eval_check_window(c->check, &tables, w);
    cli_against_window(c, w);
}

/* The windows of the worst tokens, each up to its token. */
static enum status trace_worst(struct cli_check *c, struct status_why *why)
{
    size_t n = base_min(c->result.kld.n_worst, (size_t)c->settings->n_trace);
    if (base_array_new(c->traces, c->result.kld.n_worst + 1, "traces", why))
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        c->traces[i].window = c->result.kld.worst[i].window;
        c->traces[i].position = c->windows.plan.first_scored + c->result.kld.worst[i].index;
        status =
            cli_worst_make(&c->traces[i], c->model.model, c->e.backends.items[0], &c->windows, why);
    }
    return status;
}

static enum status measure_budget(struct cli_check *c, struct status_why *why)
{
    struct cli_budget_task task = {.recorded = &c->recorded,
                                   .model = &c->model,
                                   .e = &c->e,
                                   .windows = &c->windows,
                                   .complete = c->result.kld.complete,
                                   .beyond = c->result.beyond,
                                   .noise = c->noise.judges ? c->noise.of_budget : 0,
                                   .noise_of_all = c->noise.judges ? c->noise.part : 0};
    return cli_budget_measure(&c->budget, &task, why);
}

static enum status summarise(void *self, struct status_why *why)
{
    struct cli_check *c = self;
    size_t n_worst =
        base_max((size_t)c->settings->divergence.n_worst, (size_t)c->settings->n_trace);
    enum status status =
        eval_check_summarise(&c->result, c->check, c->windows.tables, n_worst, why);
    if (!status)
        status = cli_fits_summarise(c, why);
    if (!status)
        status = cli_again_summarise(c, why);
    if (!status)
        status = cli_against_summarise(c, why);
    if (!status)
        status = measure_budget(c, why);
    return status || !c->settings->n_trace ? status : trace_worst(c, why);
}

static enum status finish(void *self, struct status_why *why)
{
    const struct cli_check *c = self;
    bool wanted = c->settings->markdown && c->result.kld.n_windows;
    return wanted ? cli_against_print_markdown(c, why) : STATUS_OK;
}

static enum status verdict(const void *self, struct status_why *why)
{
    const struct cli_check *c = self;
    if (c->result.kld.nonfinite.n)
        return status_fail(why, STATUS_NONFINITE, "%s: the divergence is not finite",
                           c->recorded.path);
    const struct eval_kld_figures *f = &c->result.kld.figures;
    if (isinf(f->base_ppl.value) || isinf(f->ppl.value))
        return status_fail(why, STATUS_NONFINITE,
                           "%s: the perplexity, exp(%.4f), is larger than the largest number",
                           c->recorded.path, fmax(f->base_nll.value, f->nll.value));
    struct cli_check_limit limits[CLI_CHECK_LIMITS];
    cli_check_limits(c, limits);
    for (size_t i = 0; i < CLI_CHECK_LIMITS; i++)
        if (limits[i].found > limits[i].limit) /* false without a limit */
            return status_fail(why, STATUS_EXCEEDED, "%s: %s is %.4e, above %s %g",
                               c->recorded.path, limits[i].what, limits[i].found, limits[i].option,
                               limits[i].limit);
    if (c->settings->server.strict && c->budget.verdict != ACT_AGREES)
        return status_fail(why, STATUS_EXCEEDED, "%s: --strict: it is not told to agree with %s",
                           c->recorded.path, c->model.path);
    return cli_against_verdict(c, why);
}

static enum status outlook(const void *self, struct cli_outlook *out, struct status_why *why)
{
    const struct cli_check *c = self;
    (void)why;
    out->fewer = "--chunks";
    out->n_fewer = c->windows.plan.n_windows;
    out->n_again = cli_budget_passes(&c->e, &c->windows.plan);
    return STATUS_OK;
}

static const struct cli_evaluator evaluator = {
    .lines = &cli_check_lines,
    .members = &cli_check_members,
    .open = open,
    .unit_done = unit_done,
    .summarise = summarise,
    .finish = finish,
    .verdict = verdict,
    .close = close,
    .outlook = outlook,
};

/** Compare with a folder, or with another file, in place of what is recorded. */
static enum status check_conversion(const struct cli_check_settings *s, struct status_why *why)
{
    const struct cli_conversion_settings conversion = {.model = s->model,
                                                       .folder = s->recorded,
                                                       .text_file = s->server.text_file,
                                                       .max_kld = s->max_kld,
                                                       .windows = s->windows,
                                                       .evaluate = s->evaluate};
    enum status status = STATUS_OK;
    if (s->max_kld < 0)
        status = status_fail(why, STATUS_USAGE, "--max-kld: a limit below 0");
    if (!status && s->evaluate.host)
        status = status_fail(why, STATUS_USAGE,
                             "a comparison with a folder is not planned; a plan is of a "
                             "comparison with --kl-divergence-base");
    if (!status)
        status = cli_connection_alone(&s->evaluate.machine, why);
    if (!status)
        status = cli_model_check(&s->evaluate.load, why);
    if (!status)
        status = cli_window_check(&s->windows, false, why);
    return status ? status : cli_conversion_check(&conversion, why);
}

/** Compare with a server, or with what one answered. */
static enum status check_server(const struct cli_check_settings *s, struct status_why *why)
{
    struct cli_server_settings server = s->server;
    server.others = s->others;
    server.max_kld = s->max_kld;
    if (s->evaluate.host)
        return status_fail(why, STATUS_USAGE,
                           "%s is a server, whose time nobody can plan; a plan is of a comparison "
                           "with --kl-divergence-base",
                           s->server.url ? "--url" : "--logprobs");
    return cli_server_check(s->model, &server, &s->evaluate, why);
}

/** Compare with rules about types. */
static enum status check_recipe(const struct cli_check_settings *s, struct status_why *why)
{
    if (s->evaluate.host)
        return status_fail(why, STATUS_USAGE,
                           "--recipe evaluates nothing; a plan is of a comparison with "
                           "--kl-divergence-base");
    enum status status = cli_connection_alone(&s->evaluate.machine, why);
    return status ? status
                  : cli_recipe_types_check(s->model, &s->recipes, &s->evaluate.output, why);
}

/** Compare with what another program recorded. */
static enum status check_recording(const struct cli_check_settings *s, struct status_why *why)
{
    if (s->max_kld < 0 || s->max_beyond < 0)
        return status_fail(why, STATUS_USAGE, "%s: a limit below 0",
                           s->max_kld < 0 ? "--max-kld" : "--max-beyond");
    enum status status = cli_window_check(&s->windows, false, why);
    if (!status)
        status = cli_against_check(s, why);
    if (status)
        return status;
    struct cli_check *c = calloc(1, sizeof *c); /* large for a stack */
    if (!c)
        return status_fail(why, STATUS_MEMORY, "no memory for a check");
    c->settings = s;
    c->e = (struct cli_evaluation){.kind = &evaluator,
                                   .settings = &s->evaluate,
                                   .name = "check",
                                   .model_file = s->model,
                                   .inputs = {{"-m", s->model},
                                              {"--kl-divergence-base", s->recorded},
                                              {"--against", s->against}},
                                   .model_paths = s->others,
                                   .model_option = "--or",
                                   .more_inputs = s->again,
                                   .more_option = "--again",
                                   .outputs = {{"--per-token", s->per_token_file, BASE_TOKENS,
                                                .write = cli_check_write_table}}};
    status = cli_evaluate(&c->e, why);
    free(c);
    return status;
}

enum { RECORDING, FOLDER, OTHER_FILE, URL, LOGPROBS, RECIPE };
static const char *const modes[] = {
    "a recording", "a folder", "another GGUF file", "--url", "--logprobs", "--recipe", NULL};

static int mode_of(const void *settings)
{
    const struct cli_check_settings *s = settings;
    struct stat about;
    if (s->recipes.n)
        return RECIPE;
    if (s->server.url || s->server.records)
        return s->server.url ? URL : LOGPROBS;
    if (!s->recorded || stat(s->recorded, &about) != 0) /* nobody knows what it would be */
        return -1;
    return model_is_folder(s->recorded)                                          ? FOLDER
           : base_file_begins_with(s->recorded, (struct base_string){"GGUF", 4}) ? OTHER_FILE
                                                                                 : RECORDING;
}

static enum status run_check(const void *settings, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    const struct cli_check_settings *s = settings;
    int mode = mode_of(s);
    switch (mode < 0 && s->recorded ? RECORDING : mode) {
    case RECORDING:
        return check_recording(settings, why);
    case FOLDER:
    case OTHER_FILE:
        return check_conversion(settings, why);
    case URL:
    case LOGPROBS:
        return check_server(settings, why);
    case RECIPE:
        return check_recipe(settings, why);
    }
    return status_fail(
        why, STATUS_USAGE,
        "--kl-divergence-base (what another program recorded, or the folder that the file was "
        "converted from, or another file), --url or --logprobs (what a server says), or --recipe "
        "is missing; see assay help check");
}

/** What says how a model is read and evaluated. */
#define EVALUATION                                                                                 \
    "-t -tb --device -ngl --isa --gemm --precision --mpi --mpi-wait --split -ctk -ctv "            \
    "--no-kv-rotation --experts-used --tokenizer --tokenizer-pre --allow-unknown --override-kv "   \
    "--rope-scaling --rope-scale --rope-freq-base --rope-freq-scale --yarn-orig-ctx "              \
    "--yarn-ext-factor --yarn-attn-factor --yarn-beta-slow --yarn-beta-fast"

static const struct cli_rule rules[] = {
    {"--kl-divergence-base --url --logprobs --recipe", CLI_ONE_OF},
    {"--resolve --markdown", CLI_NEEDS, "--against"},
    {"-c --chunks --chunk-from --state --max-kld", CLI_NEEDS, "-f",
     "without a text the files alone are compared", 1 << FOLDER},
    {"--against --again --resolve --max-beyond --activations --markdown --per-token "
     "--context-curve "
     "--context-bins --worst --trace-worst --dry-run",
     CLI_ONLY, .modes = 1 << RECORDING},
    {"-c --chunks --chunk-from -b", CLI_ONLY, .modes = 1 << RECORDING | 1 << FOLDER},
    {"--or --strict --hash-model", CLI_ONLY, .modes = 1 << RECORDING | 1 << URL | 1 << LOGPROBS},
    {"--max-kld", CLI_ONLY, .modes = 1 << RECORDING | 1 << FOLDER | 1 << URL | 1 << LOGPROBS},
    {"-f", CLI_ONLY, .modes = 1 << FOLDER | 1 << URL},
    {"--chat-template --lengths --concurrency --requests --repeat --api-key-file --timeout",
     CLI_ONLY, .modes = 1 << URL},
    {"--api --passes --max-rms", CLI_ONLY, .modes = 1 << URL | 1 << LOGPROBS},
    {"--state", CLI_ONLY, .modes = 1 << RECORDING | 1 << FOLDER | 1 << URL},
    {EVALUATION, CLI_ONLY, NULL, "the types of tensors alone are compared",
     1 << RECORDING | 1 << FOLDER | 1 << OTHER_FILE | 1 << URL | 1 << LOGPROBS},
    {EVALUATION, CLI_NOT_WITH, "--kl-divergence-base",
     "only tokens and prompts of a GGUF file are compared", 1 << OTHER_FILE},
    {0},
};

static void defaults(void *settings)
{
    struct cli_check_settings *s = settings;
    const double none = (double)NAN;
    *s = (struct cli_check_settings){.max_kld = none, .max_beyond = none, .resolve = none};
    cli_window_defaults(&s->windows);
    cli_server_defaults(&s->server);
    cli_evaluate_defaults(&s->evaluate);
    s->evaluate.machine.precision = CLI_PRECISION_EXACT; /* what others are measured by */
}

enum { MOST_TRACED = 100 };

#define AT(member) offsetof(struct cli_check_settings, member)

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP,
     .group = cli_model_file_options,
     .offset = AT(model),
     .help = ". It must be the model that the rows were recorded from"},
    {"--kl-divergence-base --base", CLI_TEXT, "FILE",
     "what the other program recorded, for example by llama-perplexity --kl-divergence-base FILE; "
     "the file has the tokens, so no text is needed. Or the folder that -m was converted from: "
     "then each tensor, key and prompt is compared with what the folder gives and, with -f TEXT, "
     "the predictions are compared, too. Or another GGUF file, whose tokens and prompts are "
     "compared (docs/conversions.md)",
     AT(recorded), .usual = true},
    {"--against", CLI_TEXT, "FILE",
     "a second recording of the same windows, from before a change. The command says whether the "
     "first one is further from exact than this one, by how much and where, over pairs of windows; "
     "the exit code is 1 if it is",
     AT(against)},
    {"--again", CLI_EACH, "FILE",
     "a recording of the same program once more, with another -ub, -t, -ngl or in another run: the "
     "command says how far its runs are apart, and judges by it; may be given several times",
     AT(again)},
    {"--or", CLI_EACH, "FILE",
     "another model that may have been recorded, or may be served: the command says which of them "
     "fits best; may be given several times",
     AT(others)},
    {"--recipe", CLI_EACH, "RECIPE",
     "in place of what is recorded: what assay recipe --json wrote, a file of rules NAME=TYPE as "
     "llama-quantize --tensor-type-file takes them, or a rule; may be given several times, and "
     "the first rule that names a tensor counts. The exit code is 1 if a tensor has another type "
     "than its rule says, but for those that llama-quantize cannot give it (docs/comparing.md)",
     AT(recipes)},

    {.type = CLI_GROUP, .group = cli_server_options, .offset = AT(server)},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = "; refused if they are not the file's (default: the file's)"},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},
    {"--max-kld", CLI_NUMBER, "X",
     "fail, with exit code 1, if the mean divergence is above X nats; of a server its lower bound",
     AT(max_kld)},
    {"--max-beyond", CLI_NUMBER, "X",
     "fail, with exit code 1, if the part of the divergence that the file's 16 bits do not explain "
     "is above X nats",
     AT(max_beyond)},

    {"--resolve", CLI_NUMBER, "X",
     "find a difference of X nats: a note says how many windows that takes, and two recordings are "
     "called equal only on so many (else the exit code is 2). Differences below X / 2 do not count",
     AT(resolve)},

    {.type = CLI_GROUP, .group = cli_load_options, .offset = AT(evaluate)},

    {.type = CLI_HEADING, .help = "Output"},
    {"--markdown", CLI_ON, NULL,
     "print the answer and a table for a pull request, before and after, and "
     "nothing else",
     AT(markdown)},
    {.type = CLI_GROUP, .group = cli_per_token_options, .offset = AT(per_token_file)},
    {.type = CLI_GROUP, .group = cli_divergence_options, .offset = AT(divergence)},
    {"--trace-worst", CLI_COUNT, "N",
     "as --worst N, and for each the tokens to give to assay trace and to the other program, and "
     "the residual stream after each layer",
     AT(n_trace), 0, MOST_TRACED},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};

const struct cli_command cli_command_check = {
    .name = "check",
    .usage = "[-m] MODEL (--kl-divergence-base FILE | --base FOLDER|GGUF | --url URL | --logprobs "
             "FILE | "
             "--recipe RECIPE) [options]",
    .summary = "Validate another program: what it recorded, serves, converted or quantised.",
    .description =
        "FILE is what llama-perplexity, or any other program, recorded of this very model. The\n"
        "command says how far its probabilities are from the exact ones, and how much of that\n"
        "comes from the file's 16 bits. Its first line is a verdict: the first windows are\n"
        "evaluated twice more, exactly and as llama.cpp rounds on a CPU, and what that rounding\n"
        "makes is the budget of a recording. With --against, the command says which of two\n"
        "recordings is further from exact. With --again, it says how far the runs of one program\n"
        "are apart.\n\n"
        "FOLDER is a published checkpoint: the command says whether MODEL is what its\n"
        "conversion should be, and whether both chat templates make the same prompts. GGUF is\n"
        "another file, whose tokens and prompts alone are compared. URL is a running server:\n"
        "it is asked for log-probabilities, and the command says whether it computes what the\n"
        "file says. With --recipe it says which tensors have another type than the recipe says.",
    .examples = "assay check f16.gguf --kl-divergence-base recorded.kld --max-beyond 1e-6\n"
                "Whether what another program recorded of this model is right; exit code 1 where "
                "it is not.\n"
                "assay check q8.gguf --kl-divergence-base new.kld --against old.kld --markdown\n"
                "Whether a change made it worse, and the table for its pull request; exit code 1 "
                "where it did.\n"
                "assay check model.gguf --base Qwen3-4B/\n"
                "Whether the file is what the published folder gives, tensor by tensor; exit code "
                "1 where it is not.\n"
                "assay check model.gguf --url http://127.0.0.1:8080 --or other.gguf\n"
                "Whether a running server computes what the file says, or the other file; exit "
                "code 1 where it does not.\n"
                "assay check model.gguf --recipe 'ffn_down=q6_K' --recipe 'attn_.*=q5_K'\n"
                "Whether the file has the types that it was to be quantised to; exit code 1 where "
                "it has not.",
    .options = options,
    .rules = rules,
    .modes = modes,
    .mode = mode_of,
    .settings_bytes = sizeof(struct cli_check_settings),
    .evaluate = AT(evaluate),
    .defaults = defaults,
    .run = run_check,
};
