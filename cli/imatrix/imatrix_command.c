/* assay imatrix: which columns of a model's matrices matter, for those who quantise it. */
#include "cli/imatrix/imatrix_command.h"

#include <math.h>

#include "cli/commands.h"

static enum status check_stop(const struct cli_imatrix_settings *s, struct status_why *why)
{
    if (!isnan(s->stop_change) && !(s->stop_change > 0 && s->stop_change < 1))
        return status_fail(why, STATUS_USAGE,
                           "--stop-when-change: %g is no change to be reached; expected a share "
                           "above 0 and below 1",
                           s->stop_change);
    return STATUS_OK;
}

/** What llama-imatrix does is known of a text alone, and of batches that it can compute. */
static enum status check_compat(const struct cli_imatrix_settings *s, struct status_why *why)
{
    struct imat_llama llama = cli_imatrix_llama(s);
    enum status status = STATUS_OK;
    if (s->llama_compat)
        status = cli_text_check_single(&s->text, "--llama-compat", why);
    if (!status && s->llama_compat && llama.ubatch < 16)
        status = status_fail(why, STATUS_USAGE,
                             "-ub: llama-imatrix counts no dense product in batches of %zu tokens; "
                             "expected 16 or more",
                             llama.ubatch);
    return status;
}

static enum status check_settings(const struct cli_imatrix_settings *s, struct status_why *why)
{
    enum status status = cli_text_check(&s->text, why);
    if (!status)
        status = cli_window_check(&s->windows, false, why);
    if (!status)
        status = check_stop(s, why);
    if (!status)
        status = check_compat(s, why);
    if (!status && cli_kv_count(&s->evaluate.load) > 1)
        status = status_fail(why, STATUS_USAGE, "-ctk, -ctv: expected one type of each here");
    return status;
}

static enum status run(const void *opaque, const struct cli_args *args, struct status_why *why)
{
    (void)args;
    struct cli_imatrix_settings s = *(const struct cli_imatrix_settings *)opaque;
    cli_text_settle(&s.text);
    s.evaluate.load.nextn = s.no_nextn || s.llama_compat ? MODEL_NEXTN_LEFT : MODEL_NEXTN_IF_THERE;
    enum status status = check_settings(&s, why);
    return status ? status : cli_imatrix_run(&s, why);
}

static void defaults(void *settings)
{
    struct cli_imatrix_settings *s = settings;
    *s = (struct cli_imatrix_settings){
        .out_file = "imatrix.gguf", .text.chat = cli_chat_defaults, .stop_change = (double)NAN};
    s->text.chat.usual = MODEL_CHAT_ALL;
    cli_window_defaults(&s->windows);
    cli_evaluate_defaults(&s->evaluate);
}

#define AT(member) offsetof(struct cli_imatrix_settings, member)

static const struct cli_rule rules[] = {
    {"--llama-compat", CLI_NOT_WITH, "--process-output --state --stop-when-rows --stop-when-change",
     "llama-imatrix does nothing like it"},
    {0},
};

static const struct cli_option options[] = {
    {.type = CLI_HEADING, .help = "Input"},
    {.type = CLI_GROUP, .group = cli_model_file_options, .offset = AT(model)},
    {.type = CLI_GROUP, .group = cli_rows_options, .offset = AT(text)},

    {.type = CLI_HEADING, .help = "Collecting"},
    {"-o --output --output-file", CLI_TEXT, "FILE",
     "the file to write, which appears when it is whole (default: imatrix.gguf)", AT(out_file),
     .usual = true},
    {"--output-format", CLI_CHOICE, "NAME",
     "gguf: with the rows of each expert (default); dat: llama.cpp's older format, without",
     AT(format), .choices = "gguf dat"},
    {"--process-output", CLI_ON, NULL,
     "also collect for output.weight, unless the model's embedding is its head",
     AT(process_output)},
    {"--no-nextn", CLI_ON, NULL,
     "leave out the block that predicts the token after the next (nextn, MTP), which else is "
     "collected where the file has it and assay draft knows its form",
     AT(no_nextn)},
    {"--llama-compat", CLI_ON, NULL,
     "leave out that block and the rows of dense products that llama-imatrix forgets with -b "
     "(default: 2048) and "
     "-ub, and write float32 sums alone",
     AT(llama_compat)},
    {"-ub --ubatch-size", CLI_COUNT, "N",
     "what llama-imatrix computes at a time (default: 512), for --llama-compat; else nothing "
     "depends on it",
     AT(n_ubatch), 1, INT32_MAX},
    {"--no-ppl", CLI_ON, NULL, "do not compute the perplexity as well", AT(no_ppl)},
    {"--stop-when-change", CLI_NUMBER, "X",
     "end as soon as no matrix has changed by more than X since half as many windows: X, from 0 to "
     "1, is the share of its sum that went to other columns. That is asked after 32, 64, 128, ... "
     "windows",
     AT(stop_change)},
    {"--stop-when-rows", CLI_COUNT, "N",
     "end as soon as every expert has N rows, which is asked after every 16 windows; with "
     "--stop-when-change, as soon as both are so",
     AT(stop_rows), 1, INT32_MAX},

    {.type = CLI_HEADING, .help = "Evaluation"},
    {.type = CLI_GROUP,
     .group = cli_window_options,
     .offset = AT(windows),
     .help = " (default: 512)"},
    {"--chunk-from --chunk --from-chunk", CLI_COUNT, "N",
     "leave out the first N windows (default: 0)", AT(windows.chunk_from), 0, INT32_MAX},

    {.type = CLI_GROUP, .group = cli_model_options, .offset = AT(evaluate.load)},

    {.type = CLI_HEADING, .help = "Output"},
    {.type = CLI_GROUP, .group = cli_evaluate_options, .offset = AT(evaluate)},
    {"-ofreq --output-frequency", CLI_IGNORED, "N"},
    {"--save-frequency", CLI_REFUSED, "N",
     "no copies are written on the way; collect ranges of the windows (--chunk-from, --chunks) "
     "into files of their own; assay merge adds them up",
     .choices = "0"},
    {"--in-file", CLI_REFUSED, "FILE",
     "collecting begins with nothing; assay merge adds files up after it"},
    {"--show-statistics", CLI_REFUSED, NULL, "assay info FILE shows them"},
    {.type = CLI_GROUP, .group = cli_foreign_options},
    {0},
};

const struct cli_command cli_command_imatrix = {
    .name = "imatrix",
    .usage = "[-m] MODEL -f TEXT [options]",
    .summary = "Collect an importance matrix, with which a model is quantised.",
    .description =
        "For each matrix of the model's layers, and for each expert, the command adds up the\n"
        "squares of its inputs, column by column, and counts the inputs. llama-quantize\n"
        "--imatrix reads the file. The sums are exact, so that no batch, thread or order shows\n"
        "in them; docs/imatrix.md says what counts. The options are those of llama-imatrix.",
    .examples =
        "assay imatrix model.gguf -f calibration.txt -o model.imatrix.gguf\n"
        "Collects over all windows of 512 tokens of a text.\n"
        "assay imatrix model.gguf -f calibration.txt --chunk-from 100 --chunks 100 -o b.gguf\n"
        "Over the second hundred of them only; assay merge adds both up.\n"
        "assay imatrix model.gguf -f chats.jsonl --mask assistant -c 4096\n"
        "Only the rows with which the assistant's tokens are predicted.",
    .options = options,
    .rules = rules,
    .settings_bytes = sizeof(struct cli_imatrix_settings),
    .evaluate = AT(evaluate),
    .defaults = defaults,
    .run = run,
};
