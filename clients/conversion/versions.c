/* Whether tensors are versions of others: by the limits of a conversion's. */
#include <stdlib.h>

#include "base/array.h"
#include "clients/conversion/compare.h"
#include "kernels/kernels.h"

static bool is_plain(const struct gguf_tensor *t)
{
    return t->type->block_elems == 1;
}

/** Whether a type has more bits than another. */
static bool is_finer(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    return a->type->block_bytes * b->type->block_elems >
           b->type->block_bytes * a->type->block_elems;
}

static struct conv_view view_in(const struct gguf_file *file, const struct gguf_tensor *t)
{
    struct conv_view view = conv_view_of(t);
    const struct gguf_tensor *scales = conv_scales(file, t);
    view.scales = scales ? scales->data : NULL;
    view.n_scales = scales ? scales->ne[0] : 0;
    return view;
}

/** The coarser one is judged by the finer one, which has errors of its own unless it is plain. */
static enum status check(const struct conv_work *work, struct conv_version *v,
                         struct status_why *why)
{
    bool swap = is_finer(v->tensor, v->of);
    const struct gguf_tensor *coarse = swap ? v->of : v->tensor, *fine = swap ? v->tensor : v->of;
    const struct conv_view expected = view_in(swap ? v->file : v->of_file, fine);
    struct conv_pair pair = conv_pair_of(swap ? v->of_file : v->file, coarse, &expected);
    size_t n = conv_n_matrices(&pair.found);
    struct conv_sums *matrices;
    pair.judge.rule = CONV_STEP;
    if (base_array_new(matrices, n, "matrices", why))
        return STATUS_MEMORY;
    enum status status = conv_compare_rows(work, &pair, matrices, why);
    bool by_steps = is_plain(fine) && !is_plain(coarse);
    v->is = true;
    for (size_t i = 0; i < n && !status; i++)
        v->is = v->is && matrices[i].n_nonfinite == 0 &&
                (by_steps ? conv_judge_matrix(&pair.judge, &matrices[i])
                          : conv_judge_likeness(&matrices[i]));
    free(matrices);
    return status;
}

enum status conv_check_versions(struct conv_version *versions, size_t n, unsigned n_threads,
                                const atomic_bool *cancel, struct status_why *why)
{
    struct conv_work work = {0};
    enum status status = conv_work_open(&work, n_threads, cancel, why);
    for (size_t i = 0; i < n && !status; i++) {
        bool has_values = kern_quant_find(versions[i].tensor->type->type) &&
                          kern_quant_find(versions[i].of->type->type);
        versions[i].is = true;
        if (has_values)
            status = check(&work, &versions[i], why);
    }
    conv_work_close(&work);
    return status;
}
