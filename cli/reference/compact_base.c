/* A compact base as what models are compared with. */
#include <string.h>

#include "cli/process/say.h"
#include "cli/reference/base.h"
#include "eval/identity.h"

/* The head that was left in the model's file, whose tokens must be those that were recorded. */
static enum status open_head(struct cli_base *base, const struct cli_evaluate_settings *settings,
                             struct status_why *why)
{
    struct eval_compact_file *file = &base->compact;
    struct cli_evaluate_settings load_only = {.load = settings->load}; /* no hash of the model */
    cli_model_plain(&load_only.load);
    enum status status = cli_model_open(&base->model, file->head_path, &load_only, false, why);
    if (status) {
        status_context(why, "%s: its head is elsewhere", file->name);
        return status;
    }
    status = eval_compact_take_head(file, base->model.model, base->model.id, why);
    return status ? status : eval_compact_check_vocab(file, base->model.model, NULL, why);
}

static enum status open_file(struct cli_base *base, const struct cli_evaluate_settings *settings,
                             struct status_why *why)
{
    struct eval_compact_file *file = &base->compact;
    enum status status = eval_compact_open(file, base->path, why);
    if (!status) {
        status = cli_description_parse(&base->description, file->description,
                                       (size_t)file->layout.n_description, why);
        if (status)
            status_context(why, "%s", base->path);
    }
    if (!status)
        status = eval_compact_id(base->id, file, why);
    if (!status && settings->output.hash_model)
        status = base_sha256(base->sha256, file->bytes, file->n_bytes, why);
    if (!status && file->layout.by_path)
        status = open_head(base, settings, why);
    base->n_ctx = (size_t)file->layout.n_ctx;
    base->n_windows = (size_t)file->layout.n_windows;
    return status;
}

static void close_file(struct cli_base *base)
{
    eval_compact_source_close(&base->compact_reading);
    eval_compact_close(&base->compact);
    cli_description_free(&base->description);
}

/* The model that the head is in can name the first token that differs, and knows those that the
 * candidate lacks; the file cannot. */
static enum status check(const struct cli_base *base, const struct model *candidate,
                         size_t *n_common, struct status_why *why)
{
    const struct model *model = base->model.model;
    if (model && n_common)
        return eval_check_common_vocab(n_common, model, candidate, why);
    return model ? eval_check_same_vocab(model, candidate, why)
                 : eval_compact_check_vocab(&base->compact, candidate, n_common, why);
}

static size_t n_vocab(const struct cli_base *base)
{
    return (size_t)base->compact.layout.n_vocab;
}

static struct cli_model_size size(const struct cli_base *base)
{
    return cli_description_size(&base->description);
}

static enum status tokens(const struct cli_base *base, struct eval_stream *stream,
                          struct status_why *why)
{
    return eval_compact_stream(stream, &base->compact, why);
}

static enum status documents(const struct cli_base *base, struct eval_documents *out,
                             struct status_why *why)
{
    *out = (struct eval_documents){0};
    if (!base->compact.layout.n_documents)
        return STATUS_OK;
    enum status status = eval_compact_documents(out, &base->compact, why);
    if (status)
        status_context(why, "%s", base->path);
    else
        cli_description_conversations(&base->description, out);
    return status;
}

static struct base_text text(const struct cli_base *base)
{
    return cli_description_text(&base->description);
}

static enum status use(struct cli_base *base, const struct eval_plan *plan, bool llama_compat,
                       struct status_why *why)
{
    (void)llama_compat; /* a compact base has all tokens */
    return eval_compact_source_open(&base->source, &base->compact_reading, &base->compact,
                                    plan->options.skip_windows, why);
}

/* What storing lost, over all windows. */
static struct eval_compact_error error_of(const struct eval_compact_file *file)
{
    struct eval_compact_error sum = {0};
    for (size_t w = 0; w < file->layout.n_windows; w++) {
        struct eval_compact_check check = eval_compact_check_of(file, w);
        eval_compact_error_add(&sum, &check.error);
    }
    return sum;
}

static void add_json(struct base_json *json, cJSON *o, const struct cli_base *base)
{
    const struct eval_compact_layout *l = &base->compact.layout;
    struct eval_compact_error error = error_of(&base->compact);
    base_json_uint(json, o, "n_ctx", l->n_ctx);
    base_json_uint(json, o, "n_vocab", l->n_vocab);
    base_json_uint(json, o, "n_chunks", l->n_windows);
    base_json_uint(json, o, "width", l->width);
    base_json_text(json, o, "rows", eval_compact_kind_name(l->kind));
    base_json_real(json, o, "error_rms", eval_compact_error_rms(&error));
    base_json_real(json, o, "error_max", error.largest);
    base_json_flag(json, o, "head_by_path", l->by_path);
    base_json_text(json, o, "precision", cli_description_precision(&base->description));
    cli_description_add_model(json, o, &base->description);
}

static void print_limits(const struct cli_base *base, const struct cli_machine_settings *machine)
{
    const char *recorded = cli_description_precision(&base->description);
    const char *used = cli_precision_name(machine->precision);
    if (recorded && strcmp(recorded, used) != 0)
        cli_say("assay: note: %s was recorded with --precision %s, the models are evaluated with "
                "%s: the difference is part of the divergence\n",
                base->path, recorded, used);
    if (base->compact.layout.kind == EVAL_COMPACT_F32)
        return;
    struct eval_compact_error error = error_of(&base->compact);
    cli_say(
        "assay: note: %s has hidden states in float16: their relative error is %.2g, %.2g in the "
        "worst row\n",
        base->path, eval_compact_error_rms(&error), error.largest);
}

const struct cli_base_kind cli_base_compact = {
    .name = "compact",
    .open = open_file,
    .close = close_file,
    .check = check,
    .n_vocab = n_vocab,
    .size = size,
    .add_json = add_json,
    .tokens = tokens,
    .documents = documents,
    .text = text,
    .use = use,
    .print_limits = print_limits,
};
