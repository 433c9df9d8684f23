#include "clients/imatrix/missing.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels/kernels.h"

/** Parts of names of matrices that stay as they are, and of which architecture they do. */
static const struct {
    const char *part, *arch; /* arch NULL: of all */
} kept[] = {
    {"_norm.weight", NULL},
    {"ffn_gate_inp.weight", NULL},
    {"ffn_gate_tid2eid.weight", NULL},
    {"altup", NULL},
    {"laurel", NULL},
    {"per_layer_model_proj", NULL},
    {"ssm_conv1d", NULL},
    {"shortconv.conv.weight", NULL},
    {"indexer.k_proj.weight", NULL},
    {"indexer.q_proj.weight", NULL},
    {"hc_", "glm5-next"},
    {"indexer.attn_q_b", "glm5-next"},
    {"indexer.attn_k", "glm5-next"},
    {"indexer.proj", "glm5-next"},
    {"indexer_compressor_gate", "glm5-next"},
    {"indexer_compressor_ape", "glm5-next"},
    {"ssm_f_a.weight", "glm5-next"},
    {"ssm_f_b.weight", "glm5-next"},
    {"ssm_g_a.weight", "glm5-next"},
    {"ssm_g_b.weight", "glm5-next"},
    {"ssm_beta.weight", "glm5-next"},
    {"attn_kv_a_mqa.weight", "glm5-next"},
    {"attn_k_b.weight", "glm5-next"},
    {"attn_v_b.weight", "glm5-next"},
};
/** Whole names that never stop it. */
static const char *const alike[] = {"token_embd.weight", "per_layer_token_embd.weight",
                                    "output.weight"};

static enum imat_treatment treatment_of(const char *name, const char *arch)
{
    static const char end[] = "weight";
    size_t n = strlen(name), n_end = sizeof end - 1;
    if (n < n_end || strcmp(name + n - n_end, end) != 0)
        return IMAT_KEPT;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if ((!kept[i].arch || strcmp(kept[i].arch, arch) == 0) && strstr(name, kept[i].part))
            return IMAT_KEPT;
    for (size_t i = 0; i < sizeof alike / sizeof *alike; i++)
        if (strcmp(name, alike[i]) == 0)
            return IMAT_ALIKE;
    return IMAT_STOPPED;
}

/** Where matrices begin that are multiplied. */
struct multiplied {
    const void **items;
    size_t n, capacity;
    enum status status;
    struct status_why *why;
};

static void add(void *user, const struct kern_weight *weight, double share)
{
    struct multiplied *m = user;
    (void)share;
    if (!m->status)
        m->status = base_array_reserve(m->items, m->capacity, m->n + 1, "matrices", m->why);
    if (!m->status)
        m->items[m->n++] = weight->data;
}

static int compare(const void *a, const void *b)
{
    uintptr_t x = (uintptr_t) * (const void *const *)a, y = (uintptr_t) * (const void *const *)b;
    return x < y ? -1 : x > y;
}

static void find_multiplied(struct multiplied *all, const struct model *m, bool outputs)
{
    const struct model_hparams *h = model_hparams(m);
    for (size_t i = 0; i < h->n_layers + h->n_bound; i++)
        model_layer_walk(m, i, add, all);
    if (h->n_bound)
        add(all, model_nextn_head(m).matrix, 1);
    if (outputs)
        add(all, model_head(m), 1);
    if (!all->status)
        qsort(all->items, all->n, sizeof *all->items, compare);
}

/** Whether a layer multiplies with a matrix of the tensor. */
static bool is_multiplied(const struct multiplied *all, const struct gguf_tensor *t, bool outputs)
{
    bool is_output = strcmp(t->name, "output.weight") == 0;
    if (strncmp(t->name, "blk.", 4) != 0 && !(outputs && is_output))
        return false;
    for (uint64_t i = 0; i < t->ne[2] * t->ne[3]; i++) {
        const void *data = gguf_tensor_matrix(t, i);
        if (bsearch(&data, all->items, all->n, sizeof *all->items, compare))
            return true;
    }
    return false;
}

/** No tensor is missing yet. */
static enum status begin(struct imat_missing_list *out, const struct model *m,
                         struct status_why *why)
{
    out->n = 0;
    return base_array_new(out->items, gguf_n_tensors(model_file(m)), "tensors", why);
}

static void put(struct imat_missing_list *list, const struct model *m, const struct gguf_tensor *t)
{
    enum imat_treatment treatment = treatment_of(t->name, model_hparams(m)->architecture);
    list->items[list->n++] = (struct imat_missing){t->name, treatment};
}

enum status imat_missing_foresee(struct imat_missing_list *out, const struct model *m, bool outputs,
                                 struct status_why *why)
{
    const struct gguf_file *file = model_file(m);
    struct multiplied all = {.why = why};
    enum status status = begin(out, m, why);
    if (!status) {
        find_multiplied(&all, m, outputs);
        status = all.status;
    }
    for (size_t i = 0; i < gguf_n_tensors(file) && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t->n_rows > 1 && !is_multiplied(&all, t, outputs))
            put(out, m, t);
    }
    free(all.items);
    return status;
}

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, ((const struct imat_entry *)entry)->name);
}

enum status imat_missing_find(struct imat_missing_list *out, const struct model *m,
                              const struct imat_matrix *entries, struct status_why *why)
{
    const struct gguf_file *file = model_file(m);
    enum status status = begin(out, m, why);
    for (size_t i = 0; i < gguf_n_tensors(file) && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t->n_rows > 1 && (entries->n == 0 || !bsearch(t->name, entries->entries, entries->n,
                                                          sizeof *entries->entries, compare_name)))
            put(out, m, t);
    }
    return status;
}

bool imat_missing_has(const struct imat_missing_list *list, const struct imat_missing *missing)
{
    for (size_t i = 0; i < list->n; i++)
        if (list->items[i].name == missing->name)
            return true;
    return false;
}
