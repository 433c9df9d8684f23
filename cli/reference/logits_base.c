/* A base-logits file as what models are compared with. */
#include <inttypes.h>
#include <math.h>

#include "cli/process/say.h"
#include "cli/reference/base.h"
#include "eval/identity.h"
#include "eval/llama_compat.h"

enum status cli_base_check_logits(const char *path, struct status_why *why)
{
    struct eval_logits_file file;
    enum status status = eval_logits_open(&file, path, why);
    eval_logits_close(&file);
    return status;
}

static enum status open_file(struct cli_base *base, const struct cli_evaluate_settings *settings,
                             struct status_why *why)
{
    enum status status = eval_logits_open(&base->logits, base->path, why);
    if (!status)
        status = eval_logits_id(base->id, &base->logits, why);
    if (!status && settings->output.hash_model)
        status = base_sha256(base->sha256, base->logits.bytes, base->logits.n_bytes, why);
    if (status)
        return status;
    base->step = eval_logits_step(&base->logits);
    base->n_ctx = base->logits.shape.n_ctx;
    base->n_windows = base->logits.shape.n_chunks;
    return STATUS_OK;
}

static void close_file(struct cli_base *base)
{
    eval_logits_close(&base->logits);
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

static size_t n_vocab(const struct cli_base *base)
{
    return base->logits.shape.n_vocab;
}

/* Rows of codes are as long as they are: a candidate may have more tokens, not fewer. */
static enum status check(const struct cli_base *base, const struct model *candidate,
                         size_t *n_common, struct status_why *why)
{
    size_t n = model_hparams(candidate)->n_vocab, n_base = n_vocab(base);
    if (n_common ? n < n_base : n != n_base)
        return status_fail(why, STATUS_FORMAT,
                           "%s: a vocabulary of %zu tokens where %s has %zu; only models of the "
                           "same vocabulary can be compared",
                           gguf_path(model_file(candidate)), n, base->path, n_base);
    if (n_common)
        *n_common = n_base;
    enum status status = check_bos(base, candidate, why);
    return status ? status : eval_check_further_tokens(candidate, n_base, base->path, why);
}

static void add_json(struct base_json *json, cJSON *o, const struct cli_base *base)
{
    base_json_uint(json, o, "n_ctx", base->n_ctx);
    base_json_uint(json, o, "n_vocab", base->logits.shape.n_vocab);
    base_json_uint(json, o, "n_chunks", base->n_windows);
    base_json_real(json, o, "step", base->step);
    base_json_real(json, o, "reach", EVAL_LOGITS_MAX_CODE * base->step);
}

static enum status tokens(const struct cli_base *base, struct eval_stream *stream,
                          struct status_why *why)
{
    return eval_stream_of_ids(stream, base->logits.ids, base->n_windows * base->n_ctx, why);
}

static enum status use(struct cli_base *base, const struct eval_plan *plan, bool llama_compat,
                       struct status_why *why)
{
    size_t first = plan->options.skip_windows;
    base->source = eval_logits_source(&base->logits_reading, &base->logits, first,
                                      llama_compat ? -EVAL_COMPAT_LOGITS_REACH : -(double)INFINITY);
    return eval_logits_check_chunks(&base->logits, first, plan->n_windows, why);
}

static void print_limits(const struct cli_base *base, const struct cli_machine_settings *machine)
{
    (void)machine;
    cli_say(
        "assay: note: %s has log-probabilities in 16 bits: in steps of up to %.6f, at most %.1f "
        "below the largest; this adds an error to divergences, which may be slightly negative\n",
        base->path, base->step, EVAL_LOGITS_MAX_CODE * base->step);
}

const struct cli_base_kind cli_base_logits = {
    .name = "logits",
    .open = open_file,
    .close = close_file,
    .check = check,
    .n_vocab = n_vocab,
    .add_json = add_json,
    .tokens = tokens,
    .use = use,
    .print_limits = print_limits,
};
