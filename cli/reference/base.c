#include "cli/reference/base.h"

#include "base/content/kind.h"
#include "cli/output/json_parts.h"
#include "eval/identity.h"

const struct cli_base_kind *cli_base_recognise(const char *path)
{
    if (base_file_begins(path, eval_logits_magic))
        return &cli_base_logits;
    return base_file_begins(path, EVAL_COMPACT_MAGIC) ? &cli_base_compact : &cli_base_model;
}

enum status cli_base_open(struct cli_base *out, const char *path,
                          const struct cli_evaluate_settings *settings, struct status_why *why)
{
    *out = (struct cli_base){.kind = cli_base_recognise(path), .path = path};
    return out->kind->open(out, settings, why);
}

void cli_base_close(struct cli_base *base)
{
    if (base->kind && base->kind->close)
        base->kind->close(base);
    cli_model_close(&base->model);
    *base = (struct cli_base){0};
}

bool cli_base_has_rows(const struct cli_base *base)
{
    return base->kind->tokens != NULL;
}

enum status cli_base_tokens(const struct cli_base *base, struct cli_windows *windows,
                            struct eval_plan_options *plan, struct status_why *why)
{
    if (plan->n_ctx && plan->n_ctx != base->n_ctx)
        return status_fail(why, STATUS_USAGE,
                           "-c %zu: %s was recorded with windows of %zu tokens; leave -c out",
                           plan->n_ctx, base->path, base->n_ctx);
    plan->n_ctx = base->n_ctx;
    if (plan->skip_windows >= base->n_windows)
        return status_fail(
            why, STATUS_USAGE, "--chunk-from %zu leaves nothing of the %zu window%s of %s",
            plan->skip_windows, base->n_windows, status_plural(base->n_windows), base->path);
    size_t left = base->n_windows - plan->skip_windows;
    if (plan->max_windows == 0 || plan->max_windows > left)
        plan->max_windows = left;
    const struct cli_base_kind *kind = base->kind;
    if (kind->text)
        windows->text = kind->text(base);
    enum status status =
        kind->documents ? kind->documents(base, &windows->documents, why) : STATUS_OK;
    if (status || !windows->documents.n)
        return status ? status : kind->tokens(base, &windows->stream, why);
    windows->stream = windows->documents.stream;
    windows->documents.stream = (struct eval_stream){0};
    return STATUS_OK;
}

void cli_base_add_json(struct base_json *json, cJSON *parent, const struct cli_base *base,
                       bool with_file)
{
    if (!cli_base_has_rows(base)) {
        cJSON *o = cli_json_add_model(json, parent, "base", &base->model, with_file);
        base_json_text(json, o, "kind", base->kind->name);
        return;
    }
    cJSON *o = base_json_object(json, parent, "base");
    base_json_text(json, o, "kind", base->kind->name);
    base_json_text(json, o, "id", base->id);
    base_json_text(json, o, "sha256", *base->sha256 ? base->sha256 : NULL);
    base->kind->add_json(json, o, base);
}

/* The first kind: a model. */

static enum status open_model(struct cli_base *base, const struct cli_evaluate_settings *settings,
                              struct status_why *why)
{
    struct cli_evaluate_settings unrounded = *settings;
    cli_model_plain(&unrounded.load);
    unrounded.machine.activations = NULL;
    return cli_model_open(&base->model, base->path, &unrounded, false, why);
}

static enum status check_vocab(const struct cli_base *base, const struct model *candidate,
                               size_t *n_common, struct status_why *why)
{
    const struct model *model = base->model.model;
    return n_common ? eval_check_common_vocab(n_common, model, candidate, why)
                    : eval_check_same_vocab(model, candidate, why);
}

static size_t n_vocab(const struct cli_base *base)
{
    return model_hparams(base->model.model)->n_vocab;
}

static struct cli_model_size size(const struct cli_base *base)
{
    return cli_model_size(&base->model);
}

const struct cli_base_kind cli_base_model = {
    .name = "model",
    .open = open_model,
    .check = check_vocab,
    .n_vocab = n_vocab,
    .size = size,
};
