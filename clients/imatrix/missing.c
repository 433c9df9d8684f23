#include "clients/imatrix/missing.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels/kernels.h"

/** Parts of names of matrices that stay as they are, among those that may be without an entry. */
static const char *const kept[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "altup",
    "laurel",
    "per_layer_model_proj",
    "ssm_conv1d",
    "shortconv.conv.weight",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
};
/** Whole names that never stop it. */
static const char *const alike[] = {"token_embd.weight", "per_layer_token_embd.weight",
                                    "output.weight"};

static enum imat_treatment treatment_of(const char *name)
{
    static const char end[] = "weight";
    size_t n = strlen(name), n_end = sizeof end - 1;
    if (n < n_end || strcmp(name + n - n_end, end) != 0)
        return IMAT_KEPT;
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (strstr(name, kept[i]))
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

static bool has_entry(const struct multiplied *all, const struct gguf_tensor *t, bool outputs)
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

enum status imat_missing_list(const struct model *m, bool outputs, struct imat_missing **out,
                              size_t *n, struct status_why *why)
{
    const struct gguf_file *file = model_file(m);
    struct multiplied all = {.why = why};
    *n = 0;
    find_multiplied(&all, m, outputs);
    enum status status = all.status;
    if (!status)
        status = base_array_new(*out, gguf_n_tensors(file), "tensors", why);
    for (size_t i = 0; i < gguf_n_tensors(file) && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        if (t->n_rows > 1 && !has_entry(&all, t, outputs))
            (*out)[(*n)++] = (struct imat_missing){t->name, treatment_of(t->name)};
    }
    free(all.items);
    return status;
}
