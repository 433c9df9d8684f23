#include "cli/reference/base.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "cli/output/json_parts.h"
#include "eval/reference/same_vocab.h"

/** llama.cpp leaves out tokens of the base with ln p at or below this. */
static const double compat_cut = -16;

enum cli_base_kind cli_base_recognise(const char *path)
{
    if (eval_logits_recognise(path))
        return CLI_BASE_LOGITS;
    return eval_compact_recognise(path) ? CLI_BASE_COMPACT : CLI_BASE_MODEL;
}

enum status cli_base_open(struct cli_base *out, const char *path,
                          const struct cli_base_options *options, struct status_why *why)
{
    *out = (struct cli_base){.kind = cli_base_recognise(path), .path = path};
    if (out->kind == CLI_BASE_MODEL)
        return cli_model_open(&out->model, path, options->load, false, options->hash, why);
    if (out->kind == CLI_BASE_COMPACT)
        return cli_compact_open(out, options, why);
    enum status status = eval_logits_open(&out->logits, path, why);
    if (status == STATUS_OK)
        status = eval_logits_id(out->id, &out->logits, why);
    if (status == STATUS_OK && options->hash)
        status = base_sha256(out->sha256, out->logits.bytes, out->logits.n_bytes, why);
    out->step = status == STATUS_OK ? eval_logits_step(&out->logits) : 0;
    return status;
}

void cli_base_close(struct cli_base *base)
{
    cli_model_close(&base->model);
    eval_logits_close(&base->logits);
    eval_compact_source_close(&base->compact_reading);
    eval_compact_close(&base->compact);
    cli_model_close(&base->head);
    cli_description_free(&base->description);
    *base = (struct cli_base){0};
}

bool cli_base_has_tokens(const struct cli_base *base)
{
    return base->kind != CLI_BASE_MODEL;
}

/* The file says nothing of BOS but what its first token is. */
static enum status check_bos(const struct cli_base *base, const struct model *candidate,
                             struct status_why *why)
{
    const struct model_tokenizer *tokenizer = model_tokenizer(candidate);
    int32_t bos = model_token_bos(tokenizer), first = base->logits.ids[0];
    bool used = bos >= 0 && first == bos, wanted = model_adds_bos(tokenizer);
    if (used == wanted)
        return STATUS_OK;
    const char *path = gguf_path(model_file(candidate));
    if (wanted)
        return status_fail(why, STATUS_FORMAT,
                           "%s: its texts begin with BOS, token %" PRId32 ", that of %s with token "
                           "%" PRId32 ": it was recorded without BOS; only what agrees can be "
                           "compared",
                           path, bos, base->path, first);
    return status_fail(why, STATUS_FORMAT,
                       "%s: its texts begin without BOS, that of %s with it (token %" PRId32
                       "); only what agrees can be compared",
                       path, base->path, bos);
}

enum status cli_base_check(const struct cli_base *base, const struct model *candidate,
                           struct status_why *why)
{
    if (base->kind == CLI_BASE_MODEL)
        return eval_check_same_vocab(base->model.model, candidate, why);
    if (base->kind == CLI_BASE_COMPACT)
        return cli_compact_check(base, candidate, why);
    size_t n_vocab = model_hparams(candidate)->n_vocab;
    if (n_vocab != base->logits.shape.n_vocab)
        return status_fail(why, STATUS_FORMAT,
                           "%s: a vocabulary of %zu tokens where %s has %zu; only models of the "
                           "same vocabulary can be compared",
                           gguf_path(model_file(candidate)), n_vocab, base->path,
                           base->logits.shape.n_vocab);
    return check_bos(base, candidate, why);
}

enum status cli_base_tokens(const struct cli_base *base, struct eval_stream *stream, size_t *n_ctx,
                            struct status_why *why)
{
    const struct eval_logits_shape *shape = &base->logits.shape;
    bool compact = base->kind == CLI_BASE_COMPACT;
    size_t recorded = compact ? (size_t)base->compact.layout.n_ctx : shape->n_ctx;
    if (*n_ctx && *n_ctx != recorded)
        return status_fail(why, STATUS_USAGE,
                           "-c %zu: %s was recorded with windows of %zu tokens; leave -c out",
                           *n_ctx, base->path, recorded);
    *n_ctx = recorded;
    if (compact)
        return eval_compact_stream(stream, &base->compact, why);
    return eval_stream_of_ids(stream, base->logits.ids, shape->n_chunks * shape->n_ctx, why);
}

struct eval_text cli_base_text(const struct cli_base *base)
{
    return base->kind == CLI_BASE_COMPACT ? cli_description_text(&base->description)
                                          : (struct eval_text){0};
}

struct cli_model_size cli_base_size(const struct cli_base *base)
{
    if (base->kind == CLI_BASE_MODEL)
        return cli_model_size(&base->model);
    return base->kind == CLI_BASE_COMPACT ? cli_description_size(&base->description)
                                          : (struct cli_model_size){0};
}

enum status cli_base_limit(const struct cli_base *base, struct eval_plan_options *plan,
                           struct status_why *why)
{
    if (base->kind == CLI_BASE_MODEL)
        return STATUS_OK;
    size_t n_windows = base->kind == CLI_BASE_COMPACT ? (size_t)base->compact.layout.n_windows
                                                      : base->logits.shape.n_chunks;
    if (plan->skip_windows >= n_windows)
        return status_fail(why, STATUS_USAGE,
                           "--chunk-from %zu leaves nothing of the %zu window%s of %s",
                           plan->skip_windows, n_windows, status_plural(n_windows), base->path);
    size_t left = n_windows - plan->skip_windows;
    if (plan->max_windows == 0 || plan->max_windows > left)
        plan->max_windows = left;
    return STATUS_OK;
}

enum status cli_base_place(struct cli_base *base, const struct eval_plan *plan, bool llama_compat,
                           struct status_why *why)
{
    if (base->kind == CLI_BASE_MODEL)
        return STATUS_OK;
    if (base->kind == CLI_BASE_COMPACT)
        return cli_compact_place(base, plan, why);
    size_t first = plan->options.skip_windows;
    base->source = eval_logits_source(&base->reading, &base->logits, first,
                                      llama_compat ? compat_cut : -(double)INFINITY);
    return eval_logits_check_chunks(&base->logits, first, plan->n_windows, why);
}

void cli_base_print_floor(const struct cli_base *base, const struct cli_machine_settings *machine)
{
    if (base->kind == CLI_BASE_COMPACT)
        cli_compact_print_floor(base, machine);
    if (base->kind == CLI_BASE_LOGITS)
        fprintf(stderr,
                "assay: note: %s has log-probabilities in 16 bits, in steps of up to %.6f, and "
                "none more than %.1f below the largest: divergences carry an error of that "
                "origin and may be slightly negative\n",
                base->path, base->step, EVAL_LOGITS_MAX_CODE * base->step);
}

void cli_base_add_json(struct base_json *json, cJSON *parent, const struct cli_base *base)
{
    if (base->kind == CLI_BASE_MODEL) {
        cJSON *o = cli_json_add_model(json, parent, "base", &base->model);
        base_json_text(json, o, "kind", "model");
        return;
    }
    cJSON *o = base_json_object(json, parent, "base");
    bool compact = base->kind == CLI_BASE_COMPACT;
    base_json_text(json, o, "kind", compact ? "compact" : "logits");
    base_json_text(json, o, "id", base->id);
    base_json_text(json, o, "sha256", *base->sha256 ? base->sha256 : NULL);
    if (compact) {
        cli_compact_add_json(json, o, base);
        return;
    }
    base_json_uint(json, o, "n_ctx", base->logits.shape.n_ctx);
    base_json_uint(json, o, "n_vocab", base->logits.shape.n_vocab);
    base_json_uint(json, o, "n_chunks", base->logits.shape.n_chunks);
    base_json_real(json, o, "step", base->step);
    base_json_real(json, o, "reach", EVAL_LOGITS_MAX_CODE * base->step);
}
