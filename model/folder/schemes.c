/* What config.json says of packed integers: by GPTQ, by AWQ, by compressed-tensors. Where they lie
 * is packed.c's. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/words.h"
#include "model/folder/state.h"

static bool is_listed(const struct model_packing *p, const struct model_scheme *scheme)
{
    size_t i = 0;
    while (i < p->n_schemes &&
           (p->schemes[i].bits != scheme->bits || p->schemes[i].group != scheme->group ||
            p->schemes[i].symmetric != scheme->symmetric ||
            p->schemes[i].ordered != scheme->ordered))
        i++;
    return i < p->n_schemes;
}

/** A scheme of bits, columns of a group (-1: all of a row), and what the last argument says. */
static void add_scheme(struct model_folder *f, struct base_field from, const char *bits,
                       const char *group, struct model_scheme scheme)
{
    struct model_packing *p = &f->packing;
    double size = base_field_real_or(from, group, -1);
    scheme.bits = (unsigned)base_field_uint(from, bits, 64);
    scheme.group = size >= 1 && size <= INT32_MAX ? (uint64_t)size : 0;
    if (scheme.bits != 4 && (scheme.bits != 8 || p->packer == MODEL_AWQ))
        base_field_fail_member(from, bits, STATUS_UNSUPPORTED, "is %u, expected 4%s", scheme.bits,
                               p->packer == MODEL_AWQ ? "" : " or 8");
    if (size != -1 && !(size >= 1 && size <= INT32_MAX && size == floor(size)))
        base_field_fail_member(
            from, group, STATUS_FORMAT,
            "is %g, expected a whole number of columns from 1 to 2^31 - 1, or -1", size);
    else if (!is_listed(p, &scheme) && p->n_schemes == MODEL_SCHEMES)
        base_field_fail_member(from, group, STATUS_UNSUPPORTED,
                               "is of more than %d schemes of weights, expected fewer",
                               MODEL_SCHEMES);
    else if (!is_listed(p, &scheme))
        p->schemes[p->n_schemes++] = scheme;
}

/** A text must be one of these words, whatever its capital letters. What is absent passes. */
static void check_word(struct base_field from, const char *member, const char *words)
{
    const char *found = base_field_text_or(from, member, NULL);
    if (found && base_words_index_any_case(words, found) < 0)
        base_field_fail_member(from, member, STATUS_UNSUPPORTED,
                               "is '%.40s', which is not read; expected %s", found, words);
}

/** The first of two names that is there. */
static const char *either(struct base_field from, const char *name, const char *other)
{
    return base_field_find(from, other).json && !base_field_find(from, name).json ? other : name;
}

void model_schemes_gptq(struct model_folder *f, struct base_field quantised)
{
    struct model_packing *p = &f->packing;
    p->packer = MODEL_GPTQ;
    check_word(quantised, "checkpoint_format", "gptq gptq_v2");
    check_word(quantised, "pack_dtype", "int32");
    if (base_field_flag_or(quantised, "is_marlin_format", false))
        base_field_fail_member(quantised, "is_marlin_format", STATUS_UNSUPPORTED,
                               "is true, which is not read; expected false");
    p->less_one =
        strcasecmp(base_field_text_or(quantised, "checkpoint_format", "gptq"), "gptq") == 0;
    p->any = base_field_count(base_field_find(quantised, "dynamic")) > 0;
    p->kept = base_field_find(quantised, "modules_to_not_convert");
    add_scheme(f, quantised, "bits", "group_size",
               (struct model_scheme){.symmetric = base_field_flag_or(quantised, "sym", true),
                                     .ordered = base_field_flag_or(quantised, "desc_act", false)});
}

void model_schemes_awq(struct model_folder *f, struct base_field quantised)
{
    f->packing.packer = MODEL_AWQ;
    check_word(quantised, "version", "gemm");
    check_word(quantised, "backend", "autoawq");
    f->packing.kept = base_field_find(quantised, "modules_to_not_convert");
    add_scheme(
        f, quantised, either(quantised, "bits", "w_bit"),
        either(quantised, "group_size", "q_group_size"),
        (struct model_scheme){.symmetric = !base_field_flag_or(quantised, "zero_point", true)});
}

/** Whether columns are stored apart from their groups: `actorder`. Of "weight", also called
 * "static", and of false, those of a group are neighbours. */
static bool is_ordered(struct base_field weights)
{
    struct base_field said = base_field_find(weights, "actorder");
    if (cJSON_IsBool(said.json))
        return cJSON_IsTrue(said.json);
    check_word(weights, "actorder", "group dynamic weight static");
    const char *word = base_field_text_or(weights, "actorder", "");
    return base_words_index_any_case("group dynamic", word) >= 0;
}

void model_schemes_group(struct model_folder *f, struct base_field weights)
{
    f->packing.packer = MODEL_COMPRESSED;
    check_word(weights, "type", "int");
    check_word(weights, "strategy", "group channel");
    bool channel = strcasecmp(base_field_text_or(weights, "strategy", ""), "channel") == 0;
    add_scheme(f, weights, "num_bits", channel ? "none" : "group_size",
               (struct model_scheme){.symmetric = base_field_flag_or(weights, "symmetric", true),
                                     .ordered = is_ordered(weights)});
}

void model_schemes_describe(const struct model_packing *packing, char out[MODEL_SCHEMES_BYTES])
{
    size_t n = 0;
    for (size_t i = 0; i < packing->n_schemes; i++) {
        const struct model_scheme *s = &packing->schemes[i];
        char group[48] = "a scale for each row";
        if (s->group)
            snprintf(group, sizeof group, "groups of %" PRIu64 "%s", s->group,
                     s->ordered ? " in any order" : "");
        n += (size_t)snprintf(out + n, MODEL_SCHEMES_BYTES - n, "%s%u bits, %s%s", i ? ", or " : "",
                              s->bits, group, s->symmetric ? "" : ", zero points");
    }
}

void model_schemes_write(struct model_folder *f)
{
    static const char *const packers[] = {"", "compressed-tensors", "GPTQ", "AWQ"};
    const struct model_packing *p = &f->packing;
    char schemes[MODEL_SCHEMES_BYTES] = "", text[MODEL_SCHEMES_BYTES + 64];
    model_schemes_describe(p, schemes);
    snprintf(text, sizeof text, "%s%s: %s", packers[p->packer],
             p->less_one ? ", zero points less 1" : "", schemes);
    if (p->packer)
        gguf_layout_string(f->layout, "folder.quantization", text);
}
