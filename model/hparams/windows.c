/* Which layers slide: see a window of keys instead of all. */
#include "model/arch.h"

/** One layer of each period sees all keys. */
static void slide_by_period(struct model_hparams *h, const struct model_reading *r, uint32_t period)
{
    uint32_t full = r->arch->windows.first_full ? 0 : period - 1;
    for (uint32_t i = 0; i < h->n_layers; i++)
        h->layers[i].slides = i % period != full;
}

/** Periods are those of a model's layers; the block after them has a kind of its own. */
static void slide_nextn(struct model_hparams *h, const struct model_reading *r)
{
    for (uint32_t i = h->n_layers - h->n_bound; i < h->n_layers; i++)
        h->layers[i].slides = r->arch->nextn_slides;
}

/** Whether each layer slides: an array of truth values, or a period. */
static void read_pattern(struct model_hparams *h, const struct model_reading *r)
{
    static const char suffix[] = "attention.sliding_window_pattern";
    const struct gguf_kv *kv = model_key_find(&r->keys, suffix);
    if (kv && kv->type == GGUF_VALUE_ARRAY) {
        bool slides[MODEL_MAX_BLOCKS] = {false};
        uint32_t n_own = h->n_layers - h->n_bound;
        uint32_t n = kv->count == n_own ? n_own : r->n_blocks;
        model_key_bools(&r->keys, suffix, slides, n);
        for (uint32_t i = 0; i < h->n_layers; i++)
            h->layers[i].slides = slides[i];
        if (n == n_own)
            slide_nextn(h, r);
        return;
    }
    if (kv && r->arch->windows.by_array)
        model_key_fail(&r->keys, STATUS_FORMAT, suffix,
                       "is a single value, expected an array of truth values");
    uint32_t period =
        model_key_u32_or(&r->keys, suffix, (struct model_range){0, 1024}, r->arch->windows.period);
    if (kv ? period > 0 : period != 1)
        slide_by_period(h, r, period);
    else
        for (uint32_t i = 0; i < h->n_layers; i++)
            h->layers[i].slides = true;
    slide_nextn(h, r);
}

/** What a person must know where llama.cpp does something else. */
static void remark(struct model_hparams *h, const struct model_reading *r, uint32_t length)
{
    if (!r->options->llama_compat) {
        model_remark(r->remarks,
                     "attention sees a sliding window of %u tokens "
                     "(%s.attention.sliding_window; llama.cpp ignores it)",
                     length, r->keys.prefix);
        return;
    }
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].slides = false;
        h->layers[i].window = 0;
    }
    model_remark(r->remarks, "%s.attention.sliding_window (%u) is ignored, as llama.cpp does",
                 r->keys.prefix, length);
}

void model_windows_read(struct model_hparams *h, const struct model_reading *r)
{
    const struct model_windows *w = &r->arch->windows;
    if (w->period == 0)
        return;
    static const char suffix[] = "attention.sliding_window";
    struct model_range range = {model_key_is_needed(r->arch, suffix), INT32_MAX};
    uint32_t length = model_key_u32_or(&r->keys, suffix, range, w->length);
    if (length > 0)
        read_pattern(h, r);
    else
        (void)model_key_find(&r->keys, "attention.sliding_window_pattern");
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->layers[i].slides)
            h->layers[i].window = length;
    if (length > 0 && w->unknown_to_llama_cpp)
        remark(h, r, length);
}

void model_still_full_layers(struct model_hparams *h)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (!h->layers[i].slides)
            h->layers[i].rope = MODEL_ROPE_OFF;
}
