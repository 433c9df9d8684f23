#include "cli/check/conversion/conversion.h"

#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"
#include "model/model.h"

static void on_compared(void *user, double fraction)
{
    cli_phase_show(user, fraction);
}

static enum status open_files(struct cli_conversion *c, struct status_why *why)
{
    const struct cli_conversion_settings *s = c->settings;
    const struct cli_named_file outputs[] = {{"--json", s->evaluate.output.json_file},
                                             {"--state", s->evaluate.state_file}};
    const struct cli_named_file inputs[] = {
        {"-m", s->model}, {"--base", s->folder}, {"-f", s->text_file}};
    enum status status = cli_outputs_check(outputs, 2, inputs, 3, why);
    if (!status)
        status = gguf_open(&c->file, s->model, why);
    if (!status)
        status = cli_outputs_check_model(outputs, 2, "-m", c->file, why);
    if (!status)
        status = model_file_open(&c->folder, s->folder, NULL, why);
    return status ? status : cli_outputs_check_model(outputs, 2, "--base", c->folder, why);
}

/** The folder's tokens, or those of --tokenizer. Without them the rest is compared. */
static enum status open_tokens(struct cli_conversion *c, struct status_why *why)
{
    const char *given = c->settings->evaluate.load.tokenizer;
    const struct gguf_tensor *embedding = gguf_tensor_find(c->folder, "token_embd.weight");
    uint64_t n_ids = embedding && !given && gguf_is_folder(c->folder) ? embedding->ne[1] : 0;
    struct status_why unread = {""};
    enum status status =
        model_tokens_open(&c->tokens, given ? given : c->settings->folder, n_ids, &unread);
    if (status == STATUS_MEMORY || (status && given))
        return status_fail(why, status, "%s", unread.text);
    if (status)
        cli_say("assay: note: the lists of tokens are not compared: %s\n", unread.text);
    return STATUS_OK;
}

static enum status compare(struct cli_conversion *c, struct status_why *why)
{
    const struct cli_machine_settings *m = &c->settings->evaluate.machine;
    int64_t n_threads = m->n_threads_batch ? m->n_threads_batch : m->n_threads;
    const struct conv_options options = {.file = c->file,
                                         .folder = c->folder,
                                         .tokens = c->tokens,
                                         .n_threads = n_threads > 0 ? (unsigned)n_threads : 0,
                                         .cancel = cli_interrupt_catch(),
                                         .progress = on_compared,
                                         .user = &c->phase};
    cli_phase_begin(&c->phase);
    enum status status = (gguf_is_folder(c->folder) ? conv_compare : conv_compare_tokenizers)(
        &c->result, &options, why);
    cli_phase_end(&c->phase);
    if (!status)
        status = gguf_check_unchanged(c->file, why);
    return status ? status : gguf_check_unchanged(c->folder, why);
}

static enum status verdict(const struct cli_conversion *c, struct status_why *why)
{
    const struct cli_conversion_settings *s = c->settings;
    if (conv_result_differs(&c->result))
        return status_fail(why, STATUS_EXCEEDED,
                           gguf_is_folder(c->folder)    ? "%s: it is not what %s gives"
                           : c->result.n_prompts_differ ? "%s: it makes other prompts than %s"
                                                        : "%s: it has another tokenizer than %s",
                           s->model, s->folder);
    if (c->divergence.kld.value > s->max_kld) /* false without a limit */
        return status_fail(why, STATUS_EXCEEDED,
                           "%s: the mean divergence is %.4e, above --max-kld %g", s->model,
                           c->divergence.kld.value, s->max_kld);
    return STATUS_OK;
}

static enum status run(struct cli_conversion *c, struct base_file **file, struct status_why *why)
{
    const struct cli_conversion_settings *s = c->settings;
    const struct cli_output_settings *output = &s->evaluate.output;
    enum status status = open_files(c, why);
    if (!status)
        status = cli_output_create(file, output->json_file,
                                   output->force ? NULL : DOC_CONVERSION_SCHEMA, why);
    if (!status)
        status = open_tokens(c, why);
    if (!status)
        status = compare(c, why);
    if (!status) {
        cli_conversion_print(c);
        if (s->text_file)
            status = cli_conversion_diverge(c, why);
    }
    if (!status && *file)
        status = cli_output_commit(file, cli_conversion_write(c, *file, why), why);
    return status ? status : verdict(c, why);
}

enum status cli_conversion_check(const struct cli_conversion_settings *settings,
                                 struct status_why *why)
{
    struct cli_conversion c = {.settings = settings};
    struct base_file *file = NULL;
    enum status status = run(&c, &file, why);
    base_file_abandon(file);
    conv_result_free(&c.result);
    gguf_close(c.file);
    gguf_close(c.folder);
    gguf_close(c.tokens);
    return status;
}
