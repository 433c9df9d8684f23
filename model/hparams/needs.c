/* Keys that published files have: what it means that one of them is missing. */
#include <string.h>

#include "model/arch.h"

/** Those of all architectures. */
static const struct model_key_need of_all[] = {
    {"rope.scaling.factor", MODEL_WHEN_UNSTRETCHED},
    {"rope.scaling.type", MODEL_WHEN_STRETCHED},
    {"rope.scaling.type", MODEL_WHEN_LINEAR, "positions are stretched linearly"},
    {"rope.scaling.original_context_length", MODEL_WHEN_YARN,
     "YaRN takes the whole context for what was stretched"},
    {"rope.scaling.original_context_length", MODEL_WHEN_LONG,
     "the factors of short windows count for the whole context"},
    {"rope.freq_base", MODEL_WHEN_ROTATED, "the base of the angles is 10000"},
    {0},
};

static const struct model_key_need of_shares[] = {
    {"expert_weights_norm", MODEL_WHEN_EXPERTS},
    {"expert_weights_scale", MODEL_WHEN_EXPERTS},
    {0},
};

/** Converters write the second key wherever they write the first. */
static const char *const pairs[][2] = {
    {"expert_group_used_count", "expert_group_count"},
    {"attention.sliding_window_pattern", "attention.sliding_window"},
    {"rope.dimension_count_swa", "attention.sliding_window"},
};

/** Whether the file has a key; it does not count as read. */
static bool has(const struct model_reading *r, const char *suffix)
{
    char key[MODEL_KEY_BYTES];
    model_key_name(&r->keys, suffix, key);
    return gguf_kv_find(r->keys.file, key) != NULL;
}

/** list: the one that the condition stands in. */
static bool applies(const struct model_key_need *list, enum model_when when,
                    const struct model_hparams *h, const struct model_reading *r)
{
    const struct model_rope *rope = &h->ropes[MODEL_ROPE_FULL];
    bool any = false;
    if (when >= MODEL_WHEN_YARN && when <= MODEL_WHEN_UNSTRETCHED && r->options->rope_scaling)
        return false;
    switch (when) {
    case MODEL_WHEN_EVER:
        return true;
    case MODEL_WHEN_EXPERTS:
        return h->experts.n > 0;
    case MODEL_WHEN_SIGMOID:
        return h->experts.n > 0 && h->experts.gating == KERN_GATE_SIGMOID;
    case MODEL_WHEN_WINDOWS:
        for (uint32_t i = 0; i < h->n_layers; i++)
            any |= h->layers[i].slides;
        return any;
    case MODEL_WHEN_OTHERS:
        for (; list->suffix; list++)
            any |= list->when == MODEL_WHEN_OTHERS && has(r, list->suffix);
        return any;
    case MODEL_WHEN_ROTATED:
        for (uint32_t i = 0; i < h->n_layers; i++)
            any |= h->layers[i].rope != MODEL_ROPE_OFF;
        return any && !r->arch->old_base && r->options->rope_freq_base == 0;
    case MODEL_WHEN_YARN:
        return rope->scaling == MODEL_ROPE_YARN;
    case MODEL_WHEN_LONG:
        return rope->scaling == MODEL_ROPE_LONG;
    case MODEL_WHEN_LINEAR:
        return rope->scaling == MODEL_ROPE_LINEAR && r->options->rope_freq_scale == 0;
    case MODEL_WHEN_STRETCHED:
        return has(r, "rope.scaling.factor") && has(r, "rope.scaling.original_context_length");
    case MODEL_WHEN_UNSTRETCHED:
        return (rope->scaling == MODEL_ROPE_YARN || rope->scaling == MODEL_ROPE_LINEAR) &&
               rope->factor == 1;
    }
    return false;
}

static void check(const struct model_key_need *list, const struct model_hparams *h,
                  const struct model_reading *r)
{
    for (const struct model_key_need *need = list; need->suffix; need++) {
        if (has(r, need->suffix) || !applies(list, need->when, h, r))
            continue;
        if (need->otherwise)
            model_remark(r->remarks, "key %s.%s is missing: %s", r->keys.prefix, need->suffix,
                         need->otherwise);
        else
            model_key_fail(&r->keys, STATUS_FORMAT, need->suffix,
                           "is missing, expected it as published files of %s have it: make the "
                           "file again, or add the key (--override-kv)",
                           r->arch->name);
    }
}

/** Half of a pair: a converter, or what edited the file, lost the other one. */
static void check_pairs(const struct model_reading *r)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (has(r, pairs[i][0]) && !has(r, pairs[i][1]))
            model_key_fail(&r->keys, STATUS_FORMAT, pairs[i][1],
                           "is missing, expected it beside key '%s.%s'", r->keys.prefix,
                           pairs[i][0]);
}

void model_needs_check(const struct model_hparams *h, const struct model_reading *r)
{
    check(r->arch->needs, h, r);
    if (r->arch->needs_shares)
        check(of_shares, h, r);
    check(of_all, h, r);
    check_pairs(r);
}

bool model_key_is_needed(const struct model_arch *arch, const char *suffix)
{
    const struct model_key_need *need = arch->needs;
    while (need->suffix && strcmp(need->suffix, suffix) != 0)
        need++;
    return need->suffix && need->when == MODEL_WHEN_EVER && !need->otherwise;
}
