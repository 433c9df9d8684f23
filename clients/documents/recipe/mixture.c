#include "clients/documents/recipe/mixture.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/content/written.h"
#include "base/text/printable.h"
#include "base/text/quote.h"
#include "gguf/about/identity.h"
#include "gguf/about/quantisation.h"
#include "gguf/meta.h"

/* The version of all quantised types as programs read them today. */
enum { QUANTIZATION_VERSION = 2 };

enum status doc_mixture_begin(struct doc_mixture *m, struct status_why *why)
{
    size_t n = gguf_n_tensors(m->files[0]);
    enum status status = base_array_new(m->from, n + 1, "tensors", why);
    return status ? status : base_array_new(m->tensors, n + 1, "tensors", why);
}

void doc_mixture_free(struct doc_mixture *m)
{
    for (size_t i = 0; i < m->n_files && m->files; i++)
        gguf_close(m->files[i]);
    free(m->files);
    free(m->from);
    free(m->tensors);
    gguf_layout_free(m->layout);
    *m = (struct doc_mixture){0};
}

enum status doc_mixed_check(const struct gguf_file *file, const struct doc_mixed_file *named,
                            bool *checked, struct status_why *why)
{
    char id[BASE_HEX] = "", sha256[BASE_HEX] = "";
    enum status status = named->id ? gguf_model_id(id, file, why) : STATUS_OK;
    if (!status && named->id && strcmp(id, named->id) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: its id is %.16s..., that of the file that was measured is %.16s...",
                           named->path, id, named->id);
    if (!status && named->sha256)
        status = gguf_file_hash(sha256, file, why);
    if (!status && named->sha256 && strcmp(sha256, named->sha256) != 0)
        return status_fail(why, STATUS_FORMAT,
                           "%s: its SHA-256 is %.16s..., that of the file that was measured is "
                           "%.16s...",
                           named->path, sha256, named->sha256);
    *checked = named->id || named->sha256;
    return status;
}

static bool same_shape(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    return memcmp(a->ne, b->ne, sizeof a->ne) == 0;
}

/* Check that tensors of two files have the same shape, and the files the same architecture. */
static enum status check_like(const struct gguf_file *base, const struct gguf_file *file,
                              struct status_why *why)
{
    struct base_string a = {"", 0}, b = {"", 0};
    bool found;
    enum status status = gguf_get_string(base, "general.architecture", &a, &found, why);
    if (!status)
        status = gguf_get_string(file, "general.architecture", &b, &found, why);
    if (status)
        return status;
    struct base_quoted of_a, of_b;
    if (a.n_bytes != b.n_bytes || memcmp(a.data, b.data, a.n_bytes) != 0)
        return status_fail(why, STATUS_FORMAT, "%s: general.architecture is %s, that of %s is %s",
                           gguf_path(file), base_quote(&of_b, b), gguf_path(base),
                           base_quote(&of_a, a));
    for (size_t i = 0; i < gguf_n_tensors(base); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(base, i), *u = gguf_tensor_find(file, t->name);
        if (u && !same_shape(t, u))
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor '%s' has the dimensions %" PRIu64 " x %" PRIu64
                               " x %" PRIu64 " x %" PRIu64 ", in %s it has %" PRIu64 " x %" PRIu64
                               " x %" PRIu64 " x %" PRIu64,
                               gguf_path(file), t->name, u->ne[0], u->ne[1], u->ne[2], u->ne[3],
                               gguf_path(base), t->ne[0], t->ne[1], t->ne[2], t->ne[3]);
    }
    return STATUS_OK;
}

/*
 * A matrix may have a scale in a tensor of its own, "x.scale" beside "x.weight". It belongs to
 * the matrix of the same file.
 */
static enum status check_scale(const struct doc_mixture *m, size_t i, struct status_why *why)
{
    const struct gguf_file *base = m->files[0], *file = m->files[m->from[i]];
    char name[512];
    const char *dot = strrchr(m->tensors[i]->name, '.');
    if (!m->from[i] || !dot || strcmp(dot, ".weight") != 0)
        return STATUS_OK;
    snprintf(name, sizeof name, "%.*s.scale", (int)(dot - m->tensors[i]->name),
             m->tensors[i]->name);
    const struct gguf_tensor *here = gguf_tensor_find(base, name),
                             *there = gguf_tensor_find(file, name);
    if (!here && !there)
        return STATUS_OK;
    for (size_t k = 0; k < gguf_n_tensors(base) && here && there; k++)
        if (gguf_tensor_at(base, k) == here && m->from[k] == m->from[i])
            return STATUS_OK;
    if (here && there && here->n_bytes == there->n_bytes &&
        memcmp(here->data, there->data, here->n_bytes) == 0)
        return STATUS_OK;
    return status_fail(why, STATUS_FORMAT,
                       "tensor '%s' of %s would be multiplied by another scale: '%s' does not come "
                       "from the same file",
                       m->tensors[i]->name, gguf_path(file), name);
}

static enum status find_tensors(struct doc_mixture *m, struct status_why *why)
{
    const struct gguf_file *base = m->files[0];
    enum status status = STATUS_OK;
    for (size_t f = 1; f < m->n_files && !status; f++)
        if (m->files[f])
            status = check_like(base, m->files[f], why);
    for (size_t i = 0; i < gguf_n_tensors(base) && !status; i++) {
        const char *name = gguf_tensor_at(base, i)->name;
        m->tensors[i] = gguf_tensor_find(m->files[m->from[i]], name);
        if (!m->tensors[i])
            status = status_fail(why, STATUS_FORMAT, "%s: has no tensor '%s'",
                                 gguf_path(m->files[m->from[i]]), name);
    }
    for (size_t i = 0; i < gguf_n_tensors(base) && !status; i++)
        status = check_scale(m, i, why);
    return status;
}

/* Keys that are made anew, or would no longer be true. */
static bool is_dropped(struct base_string key)
{
    static const char *const keys[] = {"general.file_type", "general.quantization_version"};
    static const char *const begins[] = {"split.", "assay.mix."};
    for (size_t i = 0; i < 2; i++) {
        if (key.n_bytes == strlen(keys[i]) && memcmp(key.data, keys[i], key.n_bytes) == 0)
            return true;
        if (key.n_bytes >= strlen(begins[i]) && memcmp(key.data, begins[i], strlen(begins[i])) == 0)
            return true;
    }
    return false;
}

/* What was mixed: names and ids of the recipe's files, the base first. */
static enum status add_origin(struct doc_mixture *m, const char *recipe_sha256,
                              struct status_why *why)
{
    struct base_string *names = NULL, *ids = NULL;
    char(*hex)[BASE_HEX] = NULL; /* where the recipe has no id */
    enum status status = base_array_new(names, m->n_files, "files", why);
    if (!status)
        status = base_array_new(ids, m->n_files, "files", why);
    if (!status)
        status = base_array_new(hex, m->n_files, "files", why);
    for (size_t f = 0; f < m->n_files && !status; f++) {
        const char *name = base_file_name(m->names[f].path);
        const char *id = m->names[f].id ? m->names[f].id : hex[f];
        if (m->files[f] && id == hex[f])
            status = gguf_model_id(hex[f], m->files[f], why);
        names[f] = (struct base_string){name, strlen(name)};
        ids[f] = (struct base_string){id, strlen(id)};
    }
    if (!status) {
        gguf_layout_string(m->layout, BASE_MIXTURE_KEY, recipe_sha256);
        gguf_layout_strings(m->layout, "assay.mix.files", names, m->n_files);
        gguf_layout_strings(m->layout, "assay.mix.ids", ids, m->n_files);
    }
    free(names);
    free(ids);
    free(hex);
    return status;
}

enum status doc_mixture_lay_out(struct doc_mixture *m, const char *recipe_sha256,
                                struct status_why *why)
{
    const struct gguf_file *base = m->files[0];
    enum status status = find_tensors(m, why);
    if (!status)
        status = gguf_layout_new(&m->layout, why);
    if (status)
        return status;
    status = add_origin(m, recipe_sha256, why); /* in front: see BASE_MIXTURE_KEY */
    for (size_t i = 0; i < gguf_n_kv(base); i++)
        if (!is_dropped(gguf_kv_at(base, i)->key))
            gguf_layout_pair(m->layout, gguf_kv_at(base, i));
    uint32_t file_type = gguf_file_type(m->tensors, gguf_n_tensors(base));
    if (file_type != UINT32_MAX)
        gguf_layout_u32(m->layout, "general.file_type", file_type);
    gguf_layout_u32(m->layout, "general.quantization_version", QUANTIZATION_VERSION);
    for (size_t i = 0; i < gguf_n_tensors(base) && !status; i++)
        gguf_layout_tensor(m->layout, m->tensors[i]->name, m->tensors[i]->type_id,
                           m->tensors[i]->ne, gguf_tensor_at(base, i)->n_dims);
    return status ? status : gguf_layout_finish(m->layout, &m->directory, why);
}
