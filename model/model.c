#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/overrides.h"
#include "model/rope.h"
#include "model/state.h"

static enum status find_architecture(struct model *m, struct status_why *why)
{
    struct base_string name = {0};
    enum status status = gguf_get_string(m->file, "general.architecture", &name, NULL, why);
    if (status)
        return status;
    char text[sizeof m->hparams.architecture] = {0};
    if (name.n_bytes < sizeof text)
        memcpy(text, name.data, name.n_bytes);
    m->arch = model_arch_find(text);
    if (m->arch)
        return STATUS_OK;
    char supported[256] = "";
    struct base_quoted shown;
    const struct model_arch *arch;
    for (size_t i = 0; (arch = model_arch_at(i)) != NULL; i++)
        base_list_name(supported, sizeof supported, arch->name);
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: key 'general.architecture' is %s, supported: %s", gguf_path(m->file),
                       base_quote(&shown, name), supported);
}

static enum status list_tensors(struct model *m, struct status_why *why)
{
    size_t n = gguf_n_tensors(m->file);
    m->tensors = calloc(n > 0 ? n : 1, sizeof *m->tensors);
    if (!m->tensors)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu tensors", n);
    uint64_t generation = kern_next_generation();
    for (size_t i = 0; i < n; i++) {
        const struct gguf_tensor *source = gguf_tensor_at(m->file, i);
        m->tensors[i] = (struct model_tensor){.source = source,
                                              .type = source->type,
                                              .data = source->data,
                                              .row_bytes = (size_t)source->row_bytes,
                                              .generation = generation};
    }
    return STATUS_OK;
}

static bool is_understood(const struct model *m, struct base_string key)
{
    size_t n_prefix = strlen(m->arch->name);
    if (key.n_bytes <= n_prefix || memcmp(key.data, m->arch->name, n_prefix) != 0 ||
        key.data[n_prefix] != '.')
        return true; /* of something else, which the forward pass does not read */
    struct base_string suffix = {key.data + n_prefix + 1, key.n_bytes - n_prefix - 1};
    for (const char *const *known = m->arch->key_suffixes; *known; known++)
        if (strlen(*known) == suffix.n_bytes && memcmp(*known, suffix.data, suffix.n_bytes) == 0)
            return true;
    return false;
}

static enum status check_keys(struct model *m, bool allow_unknown, struct status_why *why)
{
    for (size_t i = 0; i < gguf_n_kv(m->file); i++) {
        struct base_string key = gguf_kv_at(m->file, i)->key;
        struct base_quoted shown;
        if (is_understood(m, key))
            continue;
        base_quote(&shown, key);
        if (!allow_unknown)
            return status_fail(why, STATUS_FORMAT,
                               "%s: key %s is not understood by architecture %s, and results "
                               "without it may be wrong",
                               gguf_path(m->file), shown.text, m->arch->name);
        enum status status = model_remark(&m->remarks, why,
                                          "key %s is not understood and has no effect", shown.text);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/** The tokenizer, the size of its vocabulary, and whether the file's own figure agrees. */
static enum status open_vocabulary(struct model *m, const struct model_options *options,
                                   struct status_why *why)
{
    enum status status = model_tokenizer_open(&m->tokenizer, m->file, options->tokenizer_pre, why);
    if (status)
        return status;
    m->hparams.n_vocab = (uint32_t)model_n_vocab(m->tokenizer);
    struct model_keys keys = {m->file, m->arch->name};
    uint32_t said = m->hparams.n_vocab;
    status = model_key_u32(&keys, "vocab_size", (struct model_range){0, UINT32_MAX}, &said,
                           &(bool){false}, why);
    if (!status && said != m->hparams.n_vocab)
        status = model_remark(&m->remarks, why,
                              "%s.vocab_size is %" PRIu32 ", the vocabulary has %" PRIu32
                              " tokens: the vocabulary counts",
                              m->arch->name, said, m->hparams.n_vocab);
    return status;
}

static enum status bind_all(struct model *m, const struct model_options *options,
                            struct status_why *why)
{
    size_t n_pairs = m->hparams.n_rot / 2;
    m->layers = calloc(m->hparams.n_layers, sizeof *m->layers);
    m->rope_factors = calloc(n_pairs, sizeof *m->rope_factors);
    m->rope_frequency = calloc(n_pairs, sizeof *m->rope_frequency);
    if (!m->layers || !m->rope_factors || !m->rope_frequency)
        return status_fail(why, STATUS_MEMORY, "no memory for %" PRIu32 " layers",
                           m->hparams.n_layers);
    enum status status = list_tensors(m, why);
    if (!status)
        status = m->arch->bind(m, why);
    if (!status)
        status = model_bind_check_rest(m, options->allow_unknown, why);
    for (size_t i = 0; !status && i < gguf_n_tensors(m->file); i++)
        status = model_tensor_check(m, &m->tensors[i], why);
    if (!status && m->head.data == m->embedding.data)
        status = model_remark(&m->remarks, why,
                              "no tensor 'output.weight': the head is token_embd.weight");
    return status;
}

enum status model_open(struct model **out, struct gguf_file *file,
                       const struct model_options *options, struct status_why *why)
{
    *out = NULL;
    struct model *m = calloc(1, sizeof *m);
    if (!m) {
        gguf_close(file);
        return status_fail(why, STATUS_MEMORY, "no memory for a model");
    }
    m->file = file;
    enum status status = model_overrides_apply(file, options, &m->remarks, why);
    if (!status && gguf_n_unused(file) > 0)
        status = model_remark(&m->remarks, why,
                              "%" PRIu64 " zero bytes behind the last tensor belong to none",
                              gguf_n_unused(file));
    if (!status)
        status = find_architecture(m, why);
    if (status)
        goto fail;
    struct model_keys keys = {file, m->arch->name};
    status = m->arch->read(&m->hparams, &keys, options, &m->remarks, why);
    if (!status)
        status = check_keys(m, options->allow_unknown, why);
    if (!status)
        status = open_vocabulary(m, options, why);
    if (!status)
        status = bind_all(m, options, why);
    if (status)
        goto fail;
    *out = m;
    return STATUS_OK;
fail:
    model_close(m);
    return status;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    for (uint32_t i = 0; m->layers && i < m->hparams.n_layers; i++)
        free(m->layers[i].ffn);
    free(m->layers);
    free(m->tensors);
    free(m->rope_factors);
    free(m->rope_frequency);
    free(m->remarks.text);
    model_tokenizer_close(m->tokenizer);
    model_hparams_free(&m->hparams);
    gguf_close(m->file);
    free(m);
}

const struct gguf_file *model_file(const struct model *m)
{
    return m->file;
}

const struct model_hparams *model_hparams(const struct model *m)
{
    return &m->hparams;
}

const struct model_tokenizer *model_tokenizer(const struct model *m)
{
    return m->tokenizer;
}

const struct model_layer *model_layer(const struct model *m, size_t i)
{
    return &m->layers[i];
}

const struct kern_weight *model_embedding(const struct model *m)
{
    return &m->embedding;
}

const struct kern_weight *model_output_norm(const struct model *m)
{
    return &m->output_norm;
}

const struct kern_weight *model_head(const struct model *m)
{
    return &m->head;
}

struct kern_head model_kern_head(const struct model *m)
{
    return (struct kern_head){.matrix = &m->head, .soft_cap = m->hparams.logit_soft_cap};
}

const char *model_remarks(const struct model *m)
{
    return m->remarks.text ? m->remarks.text : "";
}

const double *model_rope_frequency(const struct model *m)
{
    return m->rope_frequency;
}

double model_rope_magnitude(const struct model *m)
{
    return model_rope_magnitude_of(&m->hparams);
}
