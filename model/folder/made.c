/* Values of tensors that are made in memory. */
#include <math.h>
#include <string.h>

#include "kernels/quant/apart.h"
#include "model/folder/state.h"

bool model_plain_type(enum safetensors_type stored, enum gguf_type *type)
{
    switch (stored) {
    case SAFETENSORS_F32:
        *type = GGUF_TYPE_F32;
        return true;
    case SAFETENSORS_F16:
        *type = GGUF_TYPE_F16;
        return true;
    case SAFETENSORS_BF16:
        *type = GGUF_TYPE_BF16;
        return true;
    default:
        return false;
    }
}

uint32_t model_target_heads(const struct model_folder *f, const struct model_target *t)
{
    uint64_t n_rows = t->n_dims > 1 ? t->ne[1] : t->ne[0];
    if (t->change & (MODEL_TURN_Q | MODEL_TURN_K) && f->arch->folder->heads && f->head_size > 0)
        return (uint32_t)(n_rows / f->head_size);
    return t->change & MODEL_TURN_Q ? f->n_heads : t->change & MODEL_TURN_K ? f->n_kv_heads : 0;
}

int64_t model_whole_number(const struct safetensors_tensor *s, size_t i)
{
    int64_t wide;
    int32_t narrow;
    if (s->type == SAFETENSORS_I64) {
        memcpy(&wide, (const char *)s->data + i * sizeof wide, sizeof wide);
        return wide;
    }
    memcpy(&narrow, (const char *)s->data + i * sizeof narrow, sizeof narrow);
    return narrow;
}

static void make_table(const struct safetensors_tensor *s, int32_t *to)
{
    for (size_t i = 0; i < s->n_elements; i++)
        to[i] = (int32_t)model_whole_number(s, i);
}

uint64_t model_turned_row(uint64_t i, uint64_t d)
{
    uint64_t head = i / d, at = i % d;
    return head * d + at / 2 + (at % 2 ? d / 2 : 0);
}

/** Multiply values by those of a tensor. */
static void multiply(const struct safetensors_tensor *by, float *to)
{
    enum gguf_type type = GGUF_TYPE_F32;
    (void)model_plain_type(by->type, &type);
    size_t size = (size_t)(by->n_bytes / by->n_elements);
    for (size_t i = 0; i < by->n_elements; i++) {
        float factor;
        kern_quant_find(type)->decode((const char *)by->data + i * size, &factor, 1);
        to[i] *= factor;
    }
}

void model_target_make(const struct model_folder *f, const struct model_target *t, float *to)
{
    const struct safetensors_tensor *s = t->sources[0];
    enum gguf_type type = GGUF_TYPE_F32;
    if (t->change & MODEL_WHOLE_NUMBERS) {
        make_table(s, (int32_t *)(void *)to);
        return;
    }
    (void)model_plain_type(s->type, &type);
    kern_decode_fn *decode = kern_quant_find(type)->decode;
    size_t n = (size_t)(t->ne[0] * t->ne[1] * t->ne[2] * t->ne[3]);
    uint32_t n_heads = model_target_heads(f, t);
    decode(s->data, to, n);
    if (t->change & MODEL_FACTOR) {
        multiply(t->sources[1], to);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        if (t->change & MODEL_PLUS_ONE)
            to[i] += 1;
        else if (t->change & MODEL_NEGATIVE_EXP)
            to[i] = (float)-exp((double)to[i]);
        else if (t->change & MODEL_EXP)
            to[i] = (float)exp((double)to[i]);
        else if (t->change & MODEL_LENGTHEN)
            to[i] *= (float)sqrt((double)f->n_embd / (double)n);
        else if (n_heads > 0) {
            size_t from = (size_t)model_turned_row(i, n / n_heads);
            decode((const char *)s->data + from * (s->n_bytes / n), &to[i], 1);
        }
    }
}
