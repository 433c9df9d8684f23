/* Whether the stored tensors that a tensor is made of are there, and what they should be. */
#include <inttypes.h>
#include <string.h>

#include "model/folder/state.h"

/** Every part of a table's rows must be there, each of the first one's type, width and number of
 * rows, but for the last, which may have fewer. */
static enum status check_parts(const struct model_folder *f, const struct model_target *t,
                               struct status_why *why)
{
    size_t missing = 0;
    while (missing < t->n_sources && t->sources[missing])
        missing++;
    if (missing < t->n_sources)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor %s lacks part %zu, expected parts 0 to %zu", f->path,
                           t->name, missing, t->n_sources - 1);
    const struct safetensors_tensor *first = t->sources[0];
    for (size_t i = 0; i < t->n_sources; i++) {
        const struct safetensors_tensor *s = t->sources[i];
        bool last = i + 1 == t->n_sources;
        if (s->n_dims != 2 || s->type != first->type || s->shape[1] != first->shape[1] ||
            s->shape[0] > first->shape[0] || (s->shape[0] < first->shape[0] && !last))
            return status_fail(
                why, STATUS_FORMAT,
                "%s: tensor '%s' has dtype %s, %" PRIu32 " dimensions, %" PRIu64 " rows of %" PRIu64
                ", expected %s, 2, %s%" PRIu64 " of %" PRIu64 ", as of '%s'",
                f->path, s->name, safetensors_type_name(s->type), s->n_dims, s->shape[0],
                s->shape[1], safetensors_type_name(first->type), last ? "at most " : "",
                first->shape[0], first->shape[1], first->name);
    }
    return STATUS_OK;
}

/** Both factors must be there, with as many values, which are no codes. */
static enum status check_factors(const struct model_folder *f, const struct model_target *t,
                                 struct status_why *why)
{
    const struct safetensors_tensor *a = t->sources[0],
                                    *b = t->n_sources > 1 ? t->sources[1] : NULL;
    enum gguf_type type;
    if (!a || !b)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' is one of two that make %s, and the other one is not "
                           "there",
                           f->path, a ? a->name : b->name, t->name);
    if (a->n_elements != b->n_elements)
        return status_fail(why, STATUS_FORMAT,
                           "%s: tensor '%s' has %" PRIu64 " elements, and '%s', by which it is "
                           "multiplied, %" PRIu64 "; expected as many",
                           f->path, b->name, b->n_elements, a->name, a->n_elements);
    if (!model_plain_type(b->type, &type))
        return status_fail(why, STATUS_UNSUPPORTED,
                           "%s: tensor '%s' has dtype %s, expected F32, F16 or BF16", f->path,
                           b->name, safetensors_type_name(b->type));
    return STATUS_OK;
}

/** Every expert must be there, each of the first one's type and shape. */
static enum status check_experts(const struct model_folder *f, const struct model_target *t,
                                 struct status_why *why)
{
    size_t n = t->experts ? f->n_experts : 1;
    if (t->n_sources > n)
        return status_fail(why, STATUS_FORMAT, "%s: tensor %s has expert %zu, expected %zu of them",
                           f->path, t->name, t->n_sources - 1, n);
    for (size_t i = 0; i < n; i++) {
        const struct safetensors_tensor *s = i < t->n_sources ? t->sources[i] : NULL;
        if (!s)
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor %s lacks expert %zu, expected %zu of them", f->path,
                               t->name, i, n);
        if (s->type != t->sources[0]->type ||
            memcmp(s->shape, t->sources[0]->shape, sizeof s->shape) != 0)
            return status_fail(why, STATUS_FORMAT,
                               "%s: tensor '%s' has another type or shape than '%s', expected the "
                               "same of all experts",
                               f->path, s->name, t->sources[0]->name);
    }
    return STATUS_OK;
}

/** Whole numbers from 0 up to what I32 holds, or I64. */
static enum status check_numbers(const struct model_folder *f, const struct safetensors_tensor *s,
                                 bool wide, struct status_why *why)
{
    if (s->type != SAFETENSORS_I64 && (wide || s->type != SAFETENSORS_I32))
        return status_fail(why, STATUS_UNSUPPORTED, "%s: tensor '%s' has dtype %s, expected I64%s",
                           f->path, s->name, safetensors_type_name(s->type), wide ? "" : " or I32");
    for (size_t i = 0; i < s->n_elements; i++)
        if (model_whole_number(s, i) < 0 || (!wide && model_whole_number(s, i) > INT32_MAX))
            return status_fail(why, STATUS_FORMAT,
                               "%s: element %zu of tensor '%s' is %" PRId64
                               ", expected 0 to 2^%d - 1",
                               f->path, i, s->name, model_whole_number(s, i), wide ? 63 : 31);
    return STATUS_OK;
}

enum status model_sources_check(const struct model_folder *f, const struct model_target *t,
                                struct status_why *why)
{
    if (t->change & MODEL_PARTS)
        return check_parts(f, t, why);
    if (t->change & MODEL_FACTOR)
        return check_factors(f, t, why);
    enum status status = check_experts(f, t, why);
    if (status || !(t->change & (MODEL_WHOLE_NUMBERS | MODEL_NUMBERS)))
        return status;
    return check_numbers(f, t->sources[0], t->change & MODEL_NUMBERS, why);
}
