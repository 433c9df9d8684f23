/* assay draft: what speculative decoding with a model's own block would accept of a text. */
#include "cli/draft/draft_command.h"

#include <stdlib.h>

#include "cli/commands.h"
#include "cli/process/signals.h"
#include "cli/session/cluster.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"

static enum status check_settings(const struct cli_draft_settings *s, struct status_why *why)
{
    enum status status = cli_cluster_alone("a draft", why);
    if (!status)
        status = cli_text_check_single(&s->text, "a draft", why);
    if (!status)
        status = cli_text_check(&s->text, why);
    if (!status)
        status = cli_window_check(&s->windows, false, why);
    if (!status && cli_kv_count(&s->load) > 1)
        status = status_fail(why, STATUS_USAGE, "-ctk, -ctv: expected one type of each here");
    return status ? status : cli_model_check(&s->load, why);
}

static enum status open_model(struct cli_draft *d, struct status_why *why)
{
    const struct cli_draft_settings *s = d->settings;
    const struct cli_named_file output = {"--json", s->json_file};
    const struct cli_named_file inputs[] = {
        {"-m", s->model}, {"-f", s->text.text_file}, {"-bf", s->text.binary_file}};
    struct cli_evaluate_settings evaluating = {.load = s->load};
    evaluating.load.nextn = MODEL_NEXTN_WANTED;
    enum status status = cli_outputs_check(&output, 1, inputs, 3, why);
    if (!status)
        status = cli_model_open(&d->model, s->model, &evaluating, s->llama_compat, why);
    if (!status)
        status = cli_outputs_check_model(&output, 1, "-m", model_file(d->model.model), why);
    return status;
}

static enum status open_windows(struct cli_draft *d, struct status_why *why)
{
    const struct cli_draft_settings *s = d->settings;
    const struct eval_stream_options options = {.bos_in_front = true,
                                                .parse_special = s->text.parse_special};
    const struct eval_plan_options plan =
        cli_plan_options(&s->windows, d->model.model, CLI_DEFAULT_CONTEXT);
    enum status status = cli_windows_read(&d->windows, &s->text, &options, "a draft",
                                          model_tokenizer(d->model.model), why);
    return status ? status : cli_windows_lay(&d->windows, &plan, why);
}

static enum status open_session(struct cli_draft *d, struct status_why *why)
{
    enum status status = cli_backends_open(&d->backends, &d->settings->machine, why);
    if (!status && d->backends.n > 1)
        status = status_fail(why, STATUS_USAGE, "--device: expected one device for a draft");
    if (!status)
        kern_set_cancel(d->backends.items[0], cli_interrupt_catch());
    if (!status)
        status = base_pool_open(&d->pool, kern_describe(d->backends.items[0]).n_threads, why);
    const struct draft_options options = {.model = d->model.model,
                                          .backend = d->backends.items[0],
                                          .pool = d->pool,
                                          .max_tokens = d->windows.plan.n_inputs};
    return status ? status : draft_open(&d->session, &options, why);
}

/** The tokens of a window, then the targets of its scored positions, then what these come to. */
struct window {
    int32_t *tokens, *targets;
    struct draft_position *positions;
};

static enum status evaluate_window(struct cli_draft *d, size_t w, const struct window *window,
                                   struct status_why *why)
{
    const struct eval_plan *plan = &d->windows.plan;
    const struct eval_stream *stream = &d->windows.stream;
    size_t n = plan->n_inputs, first = plan->first_scored ? plan->first_scored : 1;
    for (size_t p = 0; p < n; p++)
        window->tokens[p] = eval_plan_input(plan, stream, w, p);
    for (size_t p = first; p < n; p++)
        window->targets[p - first] = stream->ids[eval_plan_target(plan, w, p)];
    const struct draft_window evaluated = {window->tokens, n, first, window->targets,
                                           window->positions};
    enum status status = draft_evaluate(d->session, &evaluated, why);
    for (size_t p = first; p < n && !status; p++)
        draft_sums_add(&d->sums, &window->positions[p - first], w);
    return status;
}

static enum status evaluate(struct cli_draft *d, struct status_why *why)
{
    size_t n = d->windows.plan.n_inputs, n_windows = d->windows.plan.n_windows;
    struct window window = {calloc(n, sizeof(int32_t)), calloc(n, sizeof(int32_t)),
                            calloc(n, sizeof(struct draft_position))};
    enum status status = STATUS_OK;
    if (!window.tokens || !window.targets || !window.positions)
        status = status_fail(why, STATUS_MEMORY, "no memory for a window of %zu tokens", n);
    cli_phase_begin(&d->phase);
    for (size_t w = 0; w < n_windows && !status; w++) {
        status = evaluate_window(d, w, &window, why);
        cli_phase_show(&d->phase, (double)(w + 1) / (double)n_windows);
    }
    cli_phase_end(&d->phase);
    free(window.tokens);
    free(window.targets);
    free(window.positions);
    d->figures = draft_figures(&d->sums);
    return status ? status : gguf_check_unchanged(model_file(d->model.model), why);
}

static enum status run_all(struct cli_draft *d, struct base_file **file, struct status_why *why)
{
    enum status status = check_settings(d->settings, why);
    if (!status)
        status = open_model(d, why);
    if (!status)
        status = open_windows(d, why);
    if (!status)
        status = open_session(d, why);
    if (!status)
        status = cli_output_create(file, d->settings->json_file,
                                   d->settings->force ? NULL : DOC_DRAFT_SCHEMA, why);
    if (!status)
        status = evaluate(d, why);
    if (!status)
        cli_draft_print(d);
    if (!status && *file)
        status = cli_output_commit(file, cli_draft_write(d, *file, why), why);
    return status;
}

static enum status run_draft(const void *opaque, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    struct cli_draft d = {.settings = opaque};
    struct base_file *file = NULL;
    enum status status = run_all(&d, &file, why);
    base_file_abandon(file);
    draft_close(d.session);
    base_pool_close(d.pool);
    cli_backends_close(&d.backends);
    cli_windows_close(&d.windows);
    cli_model_close(&d.model);
    return status;
}

static void defaults(void *settings)
{
    struct cli_draft_settings *s = settings;
    *s = (struct cli_draft_settings){.text.chat = cli_chat_defaults, .machine.isa = CLI_ISA_AUTO};
    cli_window_defaults(&s->windows);
    cli_model_defaults(&s->load);
}

#define AT(member) offsetof(struct cli_draft_settings, member)

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_text_options, .offset = AT(text)},
    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP, .group = cli_window_options, .offset = AT(windows)},
    {.type = CLI_GROUP, .group = cli_chunk_from_options, .offset = AT(windows)},
    {"--llama-compat", CLI_ON, NULL,
     "compute and cut the text as llama.cpp does where it departs from the model's authors",
     AT(llama_compat)},
    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(load)},
    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP, .group = cli_json_options, .offset = AT(json_file)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error", .usual = true},
    {.type = CLI_HEADING,
     .help = "Machine (only --device, -ngl, --gemm, --precision and, with AMX, --isa can change a "
             "result)"},
    {.type = CLI_GROUP, .group = cli_device_options, .offset = AT(machine)},
    {0},
};

const struct cli_command cli_command_draft = {
    .name = "draft",
    .usage = "[-m] MODEL -f TEXT [options]",
    .summary = "Say what a model's own block for further tokens guesses right.",
    .description =
        "Some models have a block that predicts the token after the next (nextn, MTP), with\n"
        "which programs draft tokens. At each scored position of a text, the block's guess is\n"
        "compared with the model's own prediction: how often the guess is the text's token, how\n"
        "often it is the model's likeliest one, and how many guesses speculative sampling would\n"
        "accept. docs/draft.md has the formulas, and says which architectures are known.",
    .examples = "assay draft model.gguf -f wiki.test.raw\n"
                "How many tokens a pass of the model yields, if it checks one drafted token.\n"
                "assay draft model.gguf -f wiki.test.raw --chunks 20 --json drafts.json\n"
                "The same on the first 20 windows, and as a document.",
    .options = options,
    .settings_bytes = sizeof(struct cli_draft_settings),
    .defaults = defaults,
    .run = run_draft,
};
