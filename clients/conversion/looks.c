#include "clients/conversion/looks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "kernels/kernels.h"

int64_t conv_layer_of(const char *name, const char **rest)
{
    char *end;
    if (strncmp(name, "blk.", 4) != 0 || name[4] < '0' || name[4] > '9')
        return -1;
    long layer = strtol(name + 4, &end, 10);
    if (*end != '.' || layer > INT32_MAX)
        return -1;
    if (rest)
        *rest = end + 1;
    return layer;
}

/** Whether the whole tensor is what a view says; few rows tell in most cases that it is not. */
static enum status try_view(const struct conv_looking *l, const struct conv_pair *pair,
                            const struct conv_view *view, bool *fits, struct status_why *why)
{
    struct conv_pair other = conv_pair_with(pair, view);
    size_t n = conv_n_matrices(&other.found);
    struct conv_sums *matrices;
    *fits = conv_sample(l->work, &other, 0, (size_t)(view->ne[2] * view->ne[3]));
    if (!*fits)
        return STATUS_OK;
    if (base_array_new(matrices, n, "matrices", why))
        return STATUS_MEMORY;
    enum status status = conv_compare_rows(l->work, &other, matrices, why);
    *fits = !status && conv_all_right(&other, matrices, n);
    free(matrices);
    return status;
}

/** Try a view for a look, unless one was found before. */
static enum status look(struct conv_tensor *t, const struct conv_looking *l,
                        const struct conv_pair *pair, const struct conv_view *view,
                        enum conv_look as, struct status_why *why)
{
    bool fits = false;
    if (t->look != CONV_NOTHING_KNOWN)
        return STATUS_OK;
    enum status status = try_view(l, pair, view, &fits, why);
    if (fits)
        t->look = as;
    return status;
}

static enum status look_for_rounding(struct conv_tensor *t, const struct conv_looking *l,
                                     const struct conv_pair *pair, struct status_why *why)
{
    static const enum gguf_type through[] = {GGUF_TYPE_BF16, GGUF_TYPE_F16, GGUF_TYPE_Q8_0};
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof through / sizeof *through && !status; i++) {
        struct conv_view view = pair->expected;
        view.through = through[i];
        if (t->found->type->type == through[i] || t->look != CONV_NOTHING_KNOWN ||
            view.ne[0] % kern_round_elems(through[i]) != 0)
            continue;
        t->through = through[i];
        status = look(t, l, pair, &view, CONV_ROUNDED_TWICE, why);
    }
    return status;
}

static enum status look_for_one(struct conv_tensor *t, const struct conv_looking *l,
                                const struct conv_pair *pair, struct status_why *why)
{
    struct conv_view view = pair->expected;
    view.near = conv_computed;
    view.plus = -1;
    enum status status = look(t, l, pair, &view, CONV_ONE_MISSING, why);
    view.plus = 1;
    return status ? status : look(t, l, pair, &view, CONV_ONE_ADDED, why);
}

/** Heads of a tensor whose rows some architectures permute; 0: of any other. */
static uint32_t heads_of(const struct conv_looking *l, const char *name)
{
    const char *rest = "";
    int64_t layer = conv_layer_of(name, &rest);
    if (layer < 0 || layer >= l->hparams->n_layers)
        return 0;
    const struct model_layer_shape *shape = &l->hparams->layers[layer];
    if (strncmp(rest, "attn_q.", 7) == 0)
        return shape->n_heads;
    return strncmp(rest, "attn_k.", 7) == 0 ? shape->n_kv_heads : 0;
}

static enum status look_for_turns(struct conv_tensor *t, const struct conv_looking *l,
                                  const struct conv_pair *pair, struct status_why *why)
{
    struct conv_view view = pair->expected;
    view.n_heads = heads_of(l, t->name);
    if (view.n_heads == 0)
        return STATUS_OK;
    view.turn = -1;
    enum status status = look(t, l, pair, &view, CONV_NOT_TURNED, why);
    view.turn = 1;
    return status ? status : look(t, l, pair, &view, CONV_TURNED, why);
}

static enum status look_for_factor(struct conv_tensor *t, const struct conv_looking *l,
                                   const struct conv_pair *pair, struct status_why *why)
{
    const double least = 0.6;     /* correlation with what it is a multiple of */
    const double most_left = 0.5; /* of the squared error: a fine-tune has almost all of it */
    const struct conv_sums *s = &t->sums;
    struct conv_view view = pair->expected;
    if (fabs(conv_correlation(s)) < least || s->xx == 0 ||
        s->yy - s->xy * s->xy / s->xx > most_left * s->ee)
        return STATUS_OK;
    t->factor = view.times = s->xy / s->xx;
    view.near = conv_rounded;
    return look(t, l, pair, &view, CONV_SCALED, why);
}

static enum status look_for_turning_over(struct conv_tensor *t, const struct conv_looking *l,
                                         const struct conv_pair *pair, struct status_why *why)
{
    struct conv_view view = pair->expected;
    if (view.tensor->n_dims < 2 || view.ne[0] != pair->found.ne[1] || view.transposed ||
        view.ne[1] != pair->found.ne[0] || view.ne[2] != pair->found.ne[2] ||
        view.ne[3] != pair->found.ne[3])
        return STATUS_OK;
    view.transposed = true;
    memcpy(view.ne, pair->found.ne, sizeof view.ne);
    return look(t, l, pair, &view, CONV_TRANSPOSED, why);
}

/** Other tensors of the folder, those of the same name in another layer first. */
static enum status look_for_others(struct conv_tensor *t, const struct conv_looking *l,
                                   const struct conv_pair *pair, struct status_why *why)
{
    const char *own = NULL, *rest = NULL;
    bool in_layer = conv_layer_of(t->name, &own) >= 0;
    enum status status = STATUS_OK;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < gguf_n_tensors(l->folder) && !status; i++) {
            const struct gguf_tensor *other = gguf_tensor_at(l->folder, i);
            if (other == t->expected || t->look != CONV_NOTHING_KNOWN ||
                !kern_quant_find(other->type->type) ||
                memcmp(other->ne, pair->found.ne, sizeof other->ne) != 0)
                continue;
            bool alike =
                in_layer && conv_layer_of(other->name, &rest) >= 0 && strcmp(own, rest) == 0;
            if (alike != (pass == 0))
                continue;
            struct conv_view view = conv_view_of(other);
            t->other = other;
            status = look(t, l, pair, &view, CONV_OTHER_TENSOR, why);
        }
    return status;
}

/** Which matrix of the folder's stack matrix m is; -1: none of them. */
static int64_t find_matrix(const struct conv_looking *l, const struct conv_pair *pair, size_t m,
                           size_t n)
{
    for (size_t other = 0; other < n; other++) {
        struct conv_pair moved = *pair;
        moved.expected.first += ((int64_t)other - (int64_t)m) * (int64_t)pair->expected.step;
        if (other != m && conv_sample(l->work, &moved, m, 1))
            return (int64_t)other;
    }
    return -1;
}

/** Whether all wrong matrices are others of the stack. */
static enum status look_for_experts(struct conv_tensor *t, const struct conv_looking *l,
                                    const struct conv_pair *pair, const struct conv_sums *matrices,
                                    struct status_why *why)
{
    size_t n = conv_n_matrices(&pair->found);
    int64_t *whose;
    if (n < 2 || t->look != CONV_NOTHING_KNOWN)
        return STATUS_OK;
    if (base_array_new(whose, n, "matrices", why))
        return STATUS_MEMORY;
    bool found = t->n_matrices_wrong > 0;
    size_t first = n;
    for (size_t m = 0; m < n; m++) {
        whose[m] = (int64_t)m;
        if (!found || conv_all_right(pair, &matrices[m], 1))
            continue;
        whose[m] = find_matrix(l, pair, m, n);
        found = whose[m] >= 0;
        first = first < n ? first : m;
    }
    if (found) {
        t->look = CONV_OTHER_EXPERTS;
        t->matrix = first;
        t->other_matrix = (size_t)whose[first];
        t->exchanged = true;
        for (size_t m = 0; m < n; m++)
            t->exchanged &= whose[whose[m]] == (int64_t)m;
    }
    free(whose);
    return STATUS_OK;
}

/** What the sums alone tell. */
static void look_at_sums(struct conv_tensor *t)
{
    const double largest_half = 65504;
    const struct conv_sums *s = &t->sums;
    if (s->yy == 0 && s->xx > 0 && s->n_nonfinite == 0)
        t->look = CONV_ZERO;
    else if (t->rule == CONV_EXACT && s->n_nonfinite > 0 && s->n_wrong == s->n_nonfinite &&
             t->found->type->type == GGUF_TYPE_F16 && s->largest_expected > largest_half)
        t->look = CONV_OVERFLOW;
}

enum status conv_look_at(struct conv_tensor *t, const struct conv_looking *looking,
                         const struct conv_pair *pair, const struct conv_sums *matrices,
                         struct status_why *why)
{
    typedef enum status search(struct conv_tensor *, const struct conv_looking *,
                               const struct conv_pair *, struct status_why *);
    static search *const of_shape[] = {look_for_rounding, look_for_one, look_for_turns,
                                       look_for_factor};
    enum status status = STATUS_OK;
    t->look = CONV_NOTHING_KNOWN;
    if (matrices)
        look_at_sums(t);
    for (size_t i = 0; matrices && i < sizeof of_shape / sizeof *of_shape && !status; i++)
        status = of_shape[i](t, looking, pair, why);
    if (!status && matrices)
        status = look_for_experts(t, looking, pair, matrices, why);
    if (!status)
        status = look_for_turning_over(t, looking, pair, why);
    return status ? status : look_for_others(t, looking, pair, why);
}
