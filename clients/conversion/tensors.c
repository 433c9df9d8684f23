#include "clients/conversion/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/conversion/looks.h"
#include "kernels/kernels.h"

enum { NAME_BYTES = 128 };

static bool ends_in(const char *name, const char *end)
{
    size_t n = strlen(name), n_end = strlen(end);
    return n >= n_end && strcmp(name + n - n_end, end) == 0;
}

/** Numbers that belong to a quantised tensor, and are compared with it. */
static bool is_scale(const struct gguf_tensor *t)
{
    return ends_in(t->name, ".scale") || ends_in(t->name, ".input_scale");
}

/** The tensor of the same layer with another name. */
static const struct gguf_tensor *sibling(const struct gguf_file *file, const char *name,
                                         const char *other)
{
    char text[NAME_BYTES];
    const char *rest = name;
    if (conv_layer_of(name, &rest) < 0)
        return NULL;
    snprintf(text, sizeof text, "%.*s%s", (int)(rest - name), name, other);
    return gguf_tensor_find(file, text);
}

/**
 * One of the two parts that latent attention's compressed rows are multiplied by: heads of
 * kv_b, whose rows are n_k of keys and then n_v of values. Those of keys are turned over.
 */
static bool view_latent(struct conv_view *view, const struct gguf_file *folder,
                        const struct gguf_tensor *found)
{
    bool keys = ends_in(found->name, ".attn_k_b.weight");
    if (!keys && !ends_in(found->name, ".attn_v_b.weight"))
        return false;
    const struct gguf_tensor *both = sibling(folder, found->name, "attn_kv_b.weight");
    uint64_t n_heads = found->ne[2], own = keys ? found->ne[0] : found->ne[1];
    uint64_t rank = keys ? found->ne[1] : found->ne[0];
    if (!both || both->n_dims != 2 || both->ne[0] != rank || both->ne[1] % n_heads != 0 ||
        both->ne[1] / n_heads <= own)
        return false;
    *view = conv_view_of(both);
    memcpy(view->ne, found->ne, sizeof view->ne);
    view->step = both->ne[1] / n_heads;
    view->first = keys ? 0 : (int64_t)(view->step - own);
    view->transposed = keys;
    return true;
}

/** Whether `column` is the vector `row` as a matrix with rows of one number; so some converters
 * write decays of delta nets. */
static bool is_column(const struct gguf_tensor *column, const struct gguf_tensor *row)
{
    return column->ne[0] == 1 && column->ne[1] > 1 && column->n_rows == row->ne[0] &&
           row->n_rows == 1;
}

/** What a tensor of the file should hold; false: the folder has no such tensor. */
static bool expect(struct conv_view *view, const struct gguf_file *folder,
                   const struct gguf_tensor *found)
{
    const struct gguf_tensor *t = gguf_tensor_find(folder, found->name);
    if (!t && strcmp(found->name, "output.weight") == 0) /* stored once more */
        t = gguf_tensor_find(folder, "token_embd.weight");
    if (!t)
        return view_latent(view, folder, found);
    *view = conv_view_of(t);
    if (is_column(found, t) || is_column(t, found)) {
        memcpy(view->ne, found->ne, sizeof view->ne);
        view->transposed = true;
    }
    if (strncmp(t->name, "rope_f", 6) == 0) /* of config.json, by a formula */
        view->near = conv_computed;
    const struct gguf_tensor *scales = conv_scales(folder, t);
    view->scales = scales ? scales->data : NULL;
    view->n_scales = scales ? scales->ne[0] : 0;
    return true;
}

struct comparison {
    struct conv_result *out;
    const struct conv_options *options;
    struct conv_looking looking;
    uint64_t n_values, n_done;
};

static enum status add(struct conv_result *out, const struct conv_tensor *tensor,
                       struct status_why *why)
{
    enum status status =
        base_array_reserve(out->tensors, out->tensor_capacity, out->n_tensors + 1, "tensors", why);
    if (!status)
        out->tensors[out->n_tensors++] = *tensor;
    return status;
}

static bool can_decode(const struct gguf_tensor *t)
{
    return kern_quant_find(t->type->type) != NULL;
}

/** Compare two tensors of one shape. */
static enum status compare_values(struct comparison *c, struct conv_tensor *t,
                                  const struct conv_pair *pair, struct status_why *why)
{
    size_t n = conv_n_matrices(&pair->found);
    struct conv_sums *matrices;
    c->out->n_matrices += t->found->n_rows > 1;
    if (base_array_new(matrices, n, "matrices", why))
        return STATUS_MEMORY;
    enum status status = conv_compare_rows(c->looking.work, pair, matrices, why);
    struct conv_sums all = conv_sums_of(matrices, status ? 0 : n);
    bool quantised = t->found->n_rows > 1 && gguf_type_info(t->expected->type_id)->block_elems > 1;
    c->out->n_quantised += quantised;
    c->out->n_lossless += quantised && all.ee == 0 && all.n_nonfinite == 0;
    if (!status && !conv_all_right(pair, matrices, n)) {
        t->sums = all;
        for (size_t m = 0; m < n && n > 1; m++)
            t->n_matrices_wrong += !conv_all_right(pair, &matrices[m], 1);
        status = conv_look_at(t, &c->looking, pair, matrices, why);
        c->out->n_unrelated +=
            t->found->n_rows > 1 && t->look == CONV_NOTHING_KNOWN && conv_judge_unrelated(&t->sums);
        if (!status)
            status = add(c->out, t, why);
    }
    free(matrices);
    return status;
}

/** Tables of whole numbers have no rule: their bytes are the same, or not. */
static enum status compare_tables(struct comparison *c, struct conv_tensor *t,
                                  struct status_why *why)
{
    bool same = t->found->type == t->expected->type && gguf_tensor_same(t->found, t->expected);
    return same ? STATUS_OK : add(c->out, t, why);
}

static enum status compare_one(struct comparison *c, const struct gguf_tensor *found,
                               struct status_why *why)
{
    struct conv_view expected = {0};
    struct conv_tensor t = {.found = found, .name = found->name};
    if (!expect(&expected, c->options->folder, found)) {
        if (conv_layer_of(found->name, NULL) >= c->looking.hparams->n_layers) {
            c->out->n_beyond++;
            return STATUS_OK;
        }
        t.outcome = CONV_SUPERFLUOUS;
        return add(c->out, &t, why);
    }
    t.expected = expected.tensor;
    c->out->n_compared++;
    bool same_shape = memcmp(expected.ne, found->ne, sizeof expected.ne) == 0;
    if (same_shape && (!can_decode(found) || !can_decode(expected.tensor)))
        return compare_tables(c, &t, why);
    struct conv_pair pair = conv_pair_of(c->options->file, found, &expected);
    t.rule = pair.judge.rule;
    c->out->n_exact += t.rule == CONV_EXACT;
    if (same_shape)
        return compare_values(c, &t, &pair, why);
    t.outcome = CONV_SHAPE;
    enum status status = can_decode(found) && can_decode(expected.tensor)
                             ? conv_look_at(&t, &c->looking, &pair, NULL, why)
                             : STATUS_OK;
    return status ? status : add(c->out, &t, why);
}

/** Whether the file may leave a tensor of the folder out. */
static bool may_lack(const struct conv_options *o, const struct gguf_tensor *t)
{
    const struct gguf_tensor *embedding = gguf_tensor_find(o->folder, "token_embd.weight");
    if (is_scale(t))
        return true;
    if (strcmp(t->name, "output.weight") == 0)
        return embedding && embedding->type == t->type &&
               memcmp(embedding->ne, t->ne, sizeof t->ne) == 0 && gguf_tensor_same(t, embedding);
    return ends_in(t->name, ".attn_kv_b.weight") && sibling(o->file, t->name, "attn_k_b.weight") &&
           sibling(o->file, t->name, "attn_v_b.weight");
}

static enum status find_missing(struct comparison *c, struct status_why *why)
{
    const struct conv_options *o = c->options;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < gguf_n_tensors(o->folder) && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(o->folder, i);
        struct conv_tensor missing = {.outcome = CONV_MISSING, .expected = t, .name = t->name};
        if (!gguf_tensor_find(o->file, t->name) && !may_lack(o, t))
            status = add(c->out, &missing, why);
    }
    return status;
}

enum status conv_compare_tensors(struct conv_result *out, const struct conv_options *options,
                                 const struct conv_work *work, const struct model_hparams *hparams,
                                 struct status_why *why)
{
    struct comparison c = {out, options, {work, options->folder, hparams}, 0, 0};
    size_t n = gguf_n_tensors(options->file);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n; i++)
        c.n_values +=
            gguf_tensor_at(options->file, i)->n_rows * gguf_tensor_at(options->file, i)->ne[0];
    for (size_t i = 0; i < n && !status; i++) {
        const struct gguf_tensor *found = gguf_tensor_at(options->file, i);
        if (!is_scale(found))
            status = compare_one(&c, found, why);
        c.n_done += found->n_rows * found->ne[0];
        if (options->progress)
            options->progress(options->user, (double)c.n_done / (double)c.n_values);
    }
    return status ? status : find_missing(&c, why);
}
