#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/buffer.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "gguf/safetensors/folder.h"
#include "model/bind/bind.h"
#include "model/folder/folder.h"
#include "model/folder/map.h"
#include "model/overrides.h"
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
    char supported[896] = "", nearest[sizeof text] = "";
    size_t distance = strlen(text) / 3 + 1;
    struct base_quoted shown;
    for (size_t i = 0; model_archs[i]; i++) {
        base_list_name(supported, sizeof supported, model_archs[i]->name);
        base_nearest_name(text, model_archs[i]->name, nearest, sizeof nearest, &distance);
    }
    return status_fail(why, STATUS_UNSUPPORTED,
                       "%s: key 'general.architecture' is %s%s%s, supported: %s",
                       gguf_path(m->file), base_quote(&shown, name),
                       *nearest ? "; the nearest name is " : "", nearest, supported);
}

void model_tensor_use(struct model_tensor *tensor, const struct gguf_file *file,
                      const struct gguf_tensor *from, uint64_t generation)
{
    tensor->type = from->type;
    tensor->file = file;
    tensor->data = from->data;
    tensor->view = from->view;
    tensor->scales = from->scales;
    tensor->row_bytes = (size_t)from->row_bytes;
    tensor->generation = generation;
}

static enum status list_tensors(struct model *m, struct status_why *why)
{
    size_t n = gguf_n_tensors(m->file);
    if (base_array_new(m->tensors, n, "tensors", why))
        return STATUS_MEMORY;
    m->generation = kern_next_generation();
    for (size_t i = 0; i < n; i++) {
        m->tensors[i].source = gguf_tensor_at(m->file, i);
        model_tensor_use(&m->tensors[i], m->file, m->tensors[i].source, m->generation);
    }
    return STATUS_OK;
}

static bool is_of_architecture(const struct model *m, struct base_string key)
{
    size_t n_prefix = strlen(m->arch->name);
    return key.n_bytes > n_prefix && memcmp(key.data, m->arch->name, n_prefix) == 0 &&
           key.data[n_prefix] == '.';
}

/** Every key of the architecture must have been read. */
static void check_keys(struct model *m, const struct model_keys *keys, bool allow_unknown)
{
    struct model_unknown unknown = {"key", "has no effect", allow_unknown, 0};
    (void)model_key_find(keys, "vocab_size");
    for (size_t i = 0; i < gguf_n_kv(m->file); i++) {
        struct base_string key = gguf_kv_at(m->file, i)->key;
        if (!keys->read[i] && is_of_architecture(m, key))
            model_unknown_add(m, &unknown, key);
    }
    model_unknown_end(m, &unknown);
}

static enum status read_hparams(struct model *m, const struct model_options *options,
                                struct status_why *why)
{
    struct model_reading reading = {
        .keys = {.file = m->file,
                 .prefix = m->arch->name,
                 .read = calloc(gguf_n_kv(m->file), sizeof(bool)),
                 .kept = &m->kept},
        .arch = m->arch,
        .archs = model_archs,
        .options = options,
        .remarks = &m->remarks,
    };
    if (!reading.keys.read)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu keys", gguf_n_kv(m->file));
    model_hparams_read(&m->hparams, &reading);
    check_keys(m, &reading.keys, options->allow_unknown);
    free(reading.keys.read);
    return status_of(&m->kept, why);
}

/** No program that writes files of an architecture of ours leaves byte-level BPE at `default`. */
static void remark_on_splitting(struct model *m)
{
    static const char key[] = "tokenizer.ggml.pre";
    if (strcmp(model_tokenizer_pre(m->tokenizer), "default") == 0)
        model_remark(&m->remarks,
                     "key %s is %s: published files of architecture %s name how texts are split, "
                     "and models have not learnt from this splitting; --tokenizer-pre NAME takes "
                     "another",
                     key, gguf_kv_find(m->file, key) ? "default" : "missing", m->arch->name);
}

/** The tokenizer, the size of its vocabulary, and whether the file's own figure agrees. */
static enum status open_vocabulary(struct model *m, const struct model_options *options,
                                   struct status_why *why)
{
    enum status status = model_tokenizer_open(&m->tokenizer, m->file, options->tokenizer_pre,
                                              options->llama_compat, why);
    if (status)
        return status;
    m->hparams.n_vocab = (uint32_t)model_n_vocab(m->tokenizer);
    struct base_string lines = {0};
    status = gguf_get_string(m->file, "tokenizer.declared.remarks", &lines, &(bool){false}, why);
    if (!status && lines.n_bytes > 0)
        model_remark(&m->remarks, "%.*s", (int)base_min(lines.n_bytes - 1, 4096), lines.data);
    if (status)
        return status;
    if (!options->tokenizer_pre)
        remark_on_splitting(m);
    char key[MODEL_KEY_BYTES];
    model_key_name(&(struct model_keys){.prefix = m->arch->name}, "vocab_size", key);
    uint32_t said = m->hparams.n_vocab;
    status = gguf_get_u32(m->file, key, &said, &(bool){false}, why);
    if (!status && said != m->hparams.n_vocab)
        model_remark(&m->remarks,
                     "%s.vocab_size is %" PRIu32 ", the vocabulary has %" PRIu32
                     " tokens: the vocabulary counts",
                     m->arch->name, said, m->hparams.n_vocab);
    return status;
}

static enum status allocate(struct model *m, struct status_why *why)
{
    size_t n_factors = m->hparams.ropes[MODEL_ROPE_FULL].n_factors;
    m->layers = calloc(m->hparams.n_layers + m->hparams.n_bound, sizeof *m->layers);
    bool ok = m->layers != NULL;
    for (size_t i = 0; i < MODEL_N_FACTORS; i++) {
        m->factors[i].values = calloc(n_factors + 1, sizeof *m->factors[i].values);
        ok = ok && m->factors[i].values;
    }
    if (!ok)
        return status_fail(why, STATUS_MEMORY, "no memory for %" PRIu32 " layers",
                           m->hparams.n_layers);
    return list_tensors(m, why);
}

static enum status bind_all(struct model *m, const struct model_options *options,
                            struct status_why *why)
{
    enum status status = allocate(m, why);
    if (!status)
        status = model_bind(m, why);
    if (!status) {
        model_bind_check_rest(m, options->allow_unknown);
        model_bind_check_missing(m);
        status = status_of(&m->kept, why);
    }
    for (size_t i = 0; !status && i < gguf_n_tensors(m->file); i++)
        status = model_tensor_check(&m->tensors[i], why);
    bool always_tied = m->arch->folder && m->arch->folder->tied;
    if (!status && m->head.weight.data == m->embedding.data && !always_tied)
        model_remark(&m->remarks, "no tensor 'output.weight': the head is token_embd.weight");
    return status;
}

enum status model_file_open(struct gguf_file **out, const char *path, const char *tokens,
                            struct status_why *why)
{
    *out = NULL;
    if (safetensors_is_folder(path))
        return model_folder_open(out, path, tokens, model_archs, why);
    if (tokens)
        return status_fail(why, STATUS_USAGE,
                           "%s: is no published folder, expected one with --tokenizer: a GGUF file "
                           "has its own tokens",
                           path);
    return gguf_open(out, path, why);
}

enum status model_file_list(struct gguf_file **out, const char *path, struct status_why *why)
{
    struct status_why unread;
    if (!safetensors_is_folder(path))
        return gguf_list(out, path, why);
    return model_folder_open(out, path, path, model_archs, &unread)
               ? model_folder_open(out, path, NULL, model_archs, why)
               : STATUS_OK;
}

bool model_is_folder(const char *path)
{
    return safetensors_is_folder(path);
}

/** Keys, vocabulary and weights. */
static enum status read_all(struct model *m, const struct model_options *options,
                            struct status_why *why)
{
    enum status status = read_hparams(m, options, why);
    if (!status)
        status = open_vocabulary(m, options, why);
    return status ? status : bind_all(m, options, why);
}

/** Free what read_all made. */
static void forget(struct model *m)
{
    for (uint32_t i = 0; m->layers && i < m->hparams.n_layers + m->hparams.n_bound; i++)
        free(m->layers[i].experts.each);
    for (size_t i = 0; i < MODEL_N_FACTORS; i++)
        free(m->factors[i].values);
    free(m->layers);
    free(m->tensors);
    if (m->origin)
        return;
    model_tokenizer_close(m->tokenizer);
    model_hparams_free(&m->hparams);
}

/** Leave the first n bytes of the lines. */
static void cut_remarks(struct model_remarks *remarks, size_t n)
{
    remarks->lines.n = n;
    if (remarks->lines.data)
        remarks->lines.data[n] = '\0';
}

/**
 * Read everything. A block for further tokens that is not as its architecture has it is left out
 * where the caller can do without: the layers may be sound.
 */
static enum status read_what_is_sound(struct model *m, const struct model_options *options,
                                      struct status_why *why)
{
    size_t n_remarks = m->remarks.lines.n;
    struct status_why failure = {""};
    enum status status = read_all(m, options, &failure);
    if (status && status != STATUS_MEMORY && m->hparams.n_bound > 0 &&
        options->nextn == MODEL_NEXTN_IF_THERE) {
        struct model_options without = *options;
        struct model begun = {.file = m->file, .arch = m->arch, .remarks = m->remarks};
        without.nextn = MODEL_NEXTN_LEFT;
        forget(m);
        *m = begun;
        cut_remarks(&m->remarks, n_remarks);
        model_remark(&m->remarks, "the block that predicts further tokens is left out: %s",
                     failure.text);
        return read_all(m, &without, why);
    }
    if (status && why)
        *why = failure;
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
        model_remark(&m->remarks, "%" PRIu64 " zero bytes after the last tensor belong to none",
                     gguf_n_unused(file));
    if (!status)
        status = model_check_zeros(m, why);
    if (!status)
        status = find_architecture(m, why);
    if (status)
        goto fail;
    status = read_what_is_sound(m, options, why);
    if (!status)
        status = base_buffer_check(&m->remarks.lines, "a remark", why);
    if (status)
        goto fail;
    *out = m;
    return STATUS_OK;
fail:
    model_close(m);
    return status;
}

enum status model_hparams_look(struct model_hparams *h, struct gguf_file *file,
                               struct status_why *why)
{
    const struct model_options options = {.allow_unknown = true};
    struct model m = {.file = file};
    enum status status = find_architecture(&m, why);
    if (!status)
        status = read_hparams(&m, &options, why);
    base_buffer_free(&m.remarks.lines);
    *h = m.hparams;
    return status;
}

enum status model_share(struct model **out, const struct model *m, struct status_why *why)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return status_fail(why, STATUS_MEMORY, "no memory for a model");
    **out = (struct model){.file = m->file,
                           .origin = m,
                           .arch = m->arch,
                           .tokenizer = m->tokenizer,
                           .hparams = m->hparams};
    enum status status = allocate(*out, why);
    if (!status) {
        memcpy((*out)->tensors, m->tensors, gguf_n_tensors(m->file) * sizeof *m->tensors);
        (*out)->generation = m->generation;
        status = model_bind(*out, why);
    }
    if (status) {
        model_close(*out);
        *out = NULL;
    }
    return status;
}

void model_close(struct model *m)
{
    if (!m)
        return;
    forget(m);
    base_buffer_free(&m->remarks.lines);
    if (!m->origin)
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

const struct model_norm *model_output_norm(const struct model *m)
{
    return &m->output_norm;
}

const struct kern_weight *model_head(const struct model *m)
{
    return &m->head.weight;
}

struct kern_head model_kern_head(const struct model *m)
{
    return (struct kern_head){.matrix = &m->head.weight,
                              .bias = m->head.bias.data ? &m->head.bias : NULL,
                              .soft_cap = m->hparams.logit_soft_cap};
}

struct kern_head model_nextn_head(const struct model *m)
{
    const struct model_product *head = &m->nextn.head;
    return (struct kern_head){.matrix = &head->weight,
                              .bias = head->bias.data ? &head->bias : NULL,
                              .soft_cap = m->hparams.logit_soft_cap};
}

const char *model_remarks(const struct model *m)
{
    const char *text = (m->origin ? m->origin : m)->remarks.lines.data;
    return text ? text : "";
}
