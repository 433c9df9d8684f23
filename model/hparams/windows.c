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
static enum status read_pattern(struct model_hparams *h, const struct model_reading *r,
                                struct status_why *why)
{
    static const char suffix[] = "attention.sliding_window_pattern";
    const struct gguf_kv *kv = model_key_find(&r->keys, suffix);
    if (kv && kv->type == GGUF_VALUE_ARRAY) {
        bool slides[MODEL_MAX_BLOCKS] = {false};
        uint32_t n_own = h->n_layers - h->n_bound;
        uint32_t n = kv->count == n_own ? n_own : r->n_blocks;
        enum status status = model_key_bools(&r->keys, suffix, slides, n, why);
        for (uint32_t i = 0; !status && i < h->n_layers; i++)
            h->layers[i].slides = slides[i];
        uint32_t theirs = r->options->llama_compat ? r->arch->windows.llama_cpp_period : 0;
        if (theirs > 0)
            slide_by_period(h, r, theirs);
        if (theirs > 0 || n == n_own)
            slide_nextn(h, r);
        return status;
    }
    if (kv && r->arch->windows.by_array)
        return status_fail(why, STATUS_FORMAT,
                           "%s: key '%s.%s' is a single value, expected an array of truth values",
                           gguf_path(r->keys.file), r->keys.prefix, suffix);
    uint32_t period;
    enum status status = model_key_u32_or(&r->keys, suffix, (struct model_range){0, 1024},
                                          r->arch->windows.period, &period, why);
    if (kv ? period > 0 : period != 1)
        slide_by_period(h, r, period);
    else
        for (uint32_t i = 0; i < h->n_layers; i++)
            h->layers[i].slides = true;
    slide_nextn(h, r);
    return status;
}

/** What a person must know where llama.cpp does something else. */
static enum status remark(struct model_hparams *h, const struct model_reading *r, uint32_t length,
                          struct status_why *why)
{
    if (!r->options->llama_compat)
        return model_remark(r->remarks, why,
                            "attention sees a sliding window of %u tokens "
                            "(%s.attention.sliding_window; llama.cpp ignores it)",
                            length, r->keys.prefix);
    for (uint32_t i = 0; i < h->n_layers; i++) {
        h->layers[i].slides = false;
        h->layers[i].window = 0;
    }
    return model_remark(r->remarks, why,
                        "%s.attention.sliding_window (%u) is ignored, as llama.cpp does",
                        r->keys.prefix, length);
}

enum status model_windows_read(struct model_hparams *h, const struct model_reading *r,
                               struct status_why *why)
{
    const struct model_windows *w = &r->arch->windows;
    if (w->period == 0)
        return STATUS_OK;
    static const char suffix[] = "attention.sliding_window";
    uint32_t length = w->length;
    struct model_range range = {model_key_is_needed(r->arch, suffix), INT32_MAX};
    enum status status = model_key_u32_or(&r->keys, suffix, range, length, &length, why);
    if (!status && length > 0)
        status = read_pattern(h, r, why);
    else
        (void)model_key_find(&r->keys, "attention.sliding_window_pattern");
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (h->layers[i].slides)
            h->layers[i].window = length;
    if (!status && length > 0 && w->unknown_to_llama_cpp)
        status = remark(h, r, length, why);
    return status;
}

void model_still_full_layers(struct model_hparams *h)
{
    for (uint32_t i = 0; i < h->n_layers; i++)
        if (!h->layers[i].slides)
            h->layers[i].rope = MODEL_ROPE_OFF;
}
