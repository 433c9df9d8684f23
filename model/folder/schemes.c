/* What config.json says of packed integers: by GPTQ, by AWQ, by compressed-tensors. Where they lie
 * is packed.c's. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/text/words.h"
#include "model/folder/state.h"

/** A scheme of bits, columns of a group (-1: all of a row) and symmetry. */
static void add_scheme(struct model_folder *f, struct base_field from, const char *bits,
                       const char *group, struct model_scheme scheme)
{
    struct model_packing *p = &f->packing;
    double size = base_field_real_or(from, group, -1);
    scheme.bits = (unsigned)base_field_uint(from, bits, 64);
    if (scheme.bits != 4 && (scheme.bits != 8 || p->packer == MODEL_AWQ))
        base_field_fail_member(from, bits, STATUS_UNSUPPORTED, "is %u, expected 4%s", scheme.bits,
                               p->packer == MODEL_AWQ ? "" : " or 8");
    if (size != -1 && !(size >= 1 && size <= INT32_MAX && size == floor(size)))
        base_field_fail_member(
            from, group, STATUS_FORMAT,
            "is %g, expected a whole number of columns from 1 to 2^31 - 1, or -1", size);
    else if (p->n_schemes == MODEL_SCHEMES)
        base_field_fail_member(from, group, STATUS_UNSUPPORTED,
                               "is of more than %d groups of weights, expected fewer",
                               MODEL_SCHEMES);
    else if (size >= 1 || size == -1) {
        scheme.group = size < 0 ? 0 : (uint64_t)size;
        p->schemes[p->n_schemes++] = scheme;
    }
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
    p->ordered = base_field_flag_or(quantised, "desc_act", false);
    p->any = base_field_count(base_field_find(quantised, "dynamic")) > 0;
    p->kept = base_field_find(quantised, "modules_to_not_convert");
    add_scheme(f, quantised, "bits", "group_size",
               (struct model_scheme){.symmetric = base_field_flag_or(quantised, "sym", true)});
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

void model_schemes_group(struct model_folder *f, struct base_field weights)
{
    f->packing.packer = MODEL_COMPRESSED;
    check_word(weights, "type", "int");
    check_word(weights, "strategy", "group channel");
    bool channel = strcasecmp(base_field_text_or(weights, "strategy", ""), "channel") == 0;
    add_scheme(f, weights, "num_bits", channel ? "none" : "group_size",
               (struct model_scheme){.symmetric = base_field_flag_or(weights, "symmetric", true)});
}

void model_schemes_write(struct model_folder *f)
{
    static const char *const packers[] = {"", "compressed-tensors", "GPTQ", "AWQ"};
    const struct model_packing *p = &f->packing;
    char text[512];
    snprintf(text, sizeof text, "%s", packers[p->packer]);
    for (size_t i = 0; i < p->n_schemes; i++) {
        const struct model_scheme *s = &p->schemes[i];
        char group[48] = "a scale for each row";
        if (s->group)
            snprintf(group, sizeof group, "groups of %" PRIu64, s->group);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s %u bits, %s%s",
                 i ? ", or" : ":", s->bits, group, s->symmetric ? "" : ", zero points");
    }
    if (p->packer)
        gguf_layout_string(f->layout, "folder.quantization", text);
}
