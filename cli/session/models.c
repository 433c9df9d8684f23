#include "cli/session/models.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "cli/host.h"
#include "cli/process/say.h"
#include "cli/session/backends.h"
#include "clients/activations/rule.h"
#include "gguf/gguf.h"

/* A number of the command line; the model takes 0 for "as the file says". */
static float given_or_zero(double value)
{
    return value > 0 ? (float)value : 0; /* 0 for NaN, too */
}

static struct model_options model_options(const struct cli_model_settings *s, bool llama_compat)
{
    static const char *const scalings[] = {"none", "linear", "yarn"};
    double freq_scale = s->rope_scale > 0 ? 1 / s->rope_scale : s->rope_freq_scale;
    bool has_ext_factor = s->yarn_ext_factor >= 0; /* false for NaN, too */
    return (struct model_options){
        .tokenizer_pre = s->tokenizer_pre,
        .allow_unknown = s->allow_unknown,
        .llama_compat = llama_compat,
        .nextn = (enum model_nextn_wish)s->nextn,
        .overrides = (const char *const *)s->overrides.items,
        .n_overrides = s->overrides.n,
        .rope_freq_base = given_or_zero(s->rope_freq_base),
        .rope_freq_scale = given_or_zero(freq_scale),
        .rope_scaling = s->rope_scaling >= 0 ? scalings[s->rope_scaling] : NULL,
        .has_yarn_ext_factor = has_ext_factor,
        .yarn_ext_factor = has_ext_factor ? (float)s->yarn_ext_factor : 0,
        .yarn_attn_factor = given_or_zero(s->yarn_attn_factor),
        .yarn_beta_fast = given_or_zero(s->yarn_beta_fast),
        .yarn_beta_slow = given_or_zero(s->yarn_beta_slow),
        .yarn_original_ctx = (uint32_t)s->yarn_original_ctx,
        .n_experts_used = (uint32_t)s->experts_used,
    };
}

/* llama.cpp's reading of a file is another model. */
static bool lend(struct cli_model *out, const char *path, const struct cli_host *host,
                 bool llama_compat)
{
    const struct cli_model *found = NULL;
    if (host && host->find_model && !llama_compat)
        found = host->find_model(host, path);
    if (found) {
        *out = *found;
        out->lent = true;
    }
    return found;
}

/** Two mixtures may begin alike, and then have one name. */
static void remark_on_label(const struct model_kv_types *kv)
{
    const struct {
        const char *option;
        struct model_kv_type type;
        const struct model_kv_exceptions *but;
    } sides[] = {{"-ctk", kv->k, &kv->k_but}, {"-ctv", kv->v, &kv->v_but}};
    char text[CLI_KV_SPELLING];
    for (size_t i = 0; i < 2; i++)
        if (doc_kv_is_cut(cli_kv_spelling(text, sides[i].type, sides[i].but)))
            cli_say("assay: note: names of models have the first %d characters of %s; kv_types in "
                    "results has all %zu\n",
                    DOC_KV_SHOWN, sides[i].option, strlen(text));
}

enum status cli_model_round(struct cli_model *model, const struct cli_evaluate_settings *settings,
                            size_t i, struct status_why *why)
{
    struct model_kv_types types = cli_kv_types(&settings->load, i);
    enum status status = model->lent ? STATUS_OK : model_round_kv(model->model, &types, why);
    if (status || model->lent)
        return status;
    const struct model_expert_hparams *experts = &model_hparams(model->model)->experts;
    const struct act_rule *rule = settings->machine.activations;
    const char *rounds = rule ? act_rule_name(rule) : NULL;
    const char *engine = rounds ? strchr(rounds, ':') : NULL;
    size_t n = strlen(cli_kv_label(model->kv, &types));
    remark_on_label(&types);
    if (rounds)
        n += (size_t)snprintf(model->kv + n, sizeof model->kv - n, " A %s",
                              engine ? engine + 1 : rounds);
    if (experts->n_used_chosen && n < sizeof model->kv)
        snprintf(model->kv + n, sizeof model->kv - n, " experts %u", experts->n_used);
    return STATUS_OK;
}

enum status cli_model_share(struct cli_model *out, const struct cli_model *m,
                            struct status_why *why)
{
    *out = *m;
    out->lent = false;
    out->scales = NULL;
    return model_share(&out->model, m->model, why);
}

void cli_tokens_take(struct cli_model_settings *load, const char *base,
                     const struct cli_list *models)
{
    size_t i = 0;
    while (i < models->n && model_is_folder(models->items[i]))
        i++;
    if (load->tokenizer || !model_is_folder(base) || i == models->n)
        return;
    load->tokenizer = models->items[i];
    load->tokenizer_chosen = true;
    cli_say("assay: note: %s has the tokens of %s; --tokenizer FILE takes others\n", base,
            load->tokenizer);
}

/** A GGUF file has its own tokens; so has a folder, unless --tokenizer gives it others. */
static enum status open_file(struct gguf_file **out, const char *path,
                             const struct cli_evaluate_settings *settings, struct status_why *why)
{
    const struct cli_model_settings *load = &settings->load;
    bool folder = model_is_folder(path);
    *out = NULL;
    if (folder && settings->watch.wanted)
        return status_fail(
            why, STATUS_USAGE,
            "%s: is a published folder, whose tensors cannot be replaced while it is "
            "open, expected a GGUF file with --watch",
            path);
    const char *other = folder ? NULL : gguf_other(path);
    if (other)
        return status_fail(why, STATUS_USAGE, "%s: is %s, expected a model", path, other);
    if (!folder && load->tokenizer && !load->tokenizer_chosen)
        cli_say("assay: note: %s has its own tokens; --tokenizer has no effect on it\n", path);
    const char *tokens = load->tokenizer ? load->tokenizer : path;
    return model_file_open(out, path, folder ? tokens : NULL, why);
}

enum status cli_model_open(struct cli_model *out, const char *path,
                           const struct cli_evaluate_settings *settings, bool llama_compat,
                           struct status_why *why)
{
    if (lend(out, path, settings->host, llama_compat))
        return STATUS_OK;
    *out = (struct cli_model){.path = path};
    if (cli_kv_count(&settings->load) > 1)
        return status_fail(why, STATUS_USAGE,
                           "several types of -ctk or -ctv are for assay kld, in which each is a "
                           "candidate; expected one");
    struct model_options options = model_options(&settings->load, llama_compat);
    struct gguf_file *file;
    enum status status = open_file(&file, path, settings, why);
    if (!status)
        status = gguf_model_id(out->id, file, why);
    if (!status && settings->output.hash_model)
        status = gguf_file_hash(out->sha256, file, why);
    if (!status && settings->watch.wanted)
        status = gguf_keep_directories(file, why);
    if (status) {
        gguf_close(file);
        return status;
    }
    status = model_open(&out->model, file, &options, why);
    if (!status)
        status = cli_model_round(out, settings, 0, why);
    if (!status && settings->watch.wanted)
        status = cli_shards_open(&out->shards, out->model, file, why);
    if (!status)
        cli_print_new_notes(model_remarks(out->model));
    return status;
}

void cli_model_close(struct cli_model *model)
{
    if (!model->lent) {
        free(model->scales);
        model_close(model->model);
        cli_shards_close(model->shards);
    }
    *model = (struct cli_model){0};
}

enum status cli_models_label(struct cli_model *models, size_t n, const char *base,
                             struct status_why *why)
{
    struct base_label *labels = NULL;
    struct base_named *named = NULL;
    struct gguf_quantisation *types = NULL;
    enum status status = base_array_new(labels, n + 1, "labels", why);
    if (!status)
        status = base_array_new(named, n + 1, "labels", why);
    if (!status)
        status = base_array_new(types, n, "labels", why);
    for (size_t i = 0; i < n && !status; i++) {
        types[i] = gguf_quantisation(model_file(models[i].model));
        named[i] = (struct base_named){models[i].path, model_hparams(models[i].model)->name,
                                       types[i].name};
    }
    if (!status && base)
        named[n].path = base;
    if (!status)
        status = base_labels(labels, named, n + (base != NULL), why);
    for (size_t i = 0; i < n && !status; i++) {
        struct cli_model *m = &models[i];
        if (m->label)
            base_label_fit(&labels[i], m->label, BASE_LABEL_WIDTH);
        snprintf(m->called, sizeof m->called, "%s%s", labels[i].text, m->kv);
    }
    free(named);
    free(types);
    free(labels);
    return status;
}

struct cli_model_size cli_model_size(const struct cli_model *model)
{
    const struct gguf_file *file = model_file(model->model);
    struct cli_model_size size = {0};
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        size.n_weights += tensor->n_rows * tensor->ne[0];
        struct model_in_force force = model_in_force(model->model, i);
        size.n_bytes += force.n_bytes + force.n_scale_bytes;
    }
    size.bits_per_weight = 8 * (double)size.n_bytes / (double)size.n_weights;
    return size;
}
