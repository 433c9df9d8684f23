/* Whether the tensors of a file have the types that rules say. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/words.h"
#include "clients/documents/recipe/type_rules.h"

/*
 * Types whose blocks do not fit every row, and what llama-quantize makes of a tensor then; of two,
 * the second is ik_llama.cpp's. Where blocks of these do not fit, either, it is F16.
 */
static const struct {
    const char *types, *instead;
} fallbacks[] = {
    {"IQ1_S IQ1_M IQ2_XXS IQ2_XS IQ2_S IQ3_XXS IQ3_S IQ4_XS IQ2_K IQ2_KS IQ2_KL IQ3_K IQ3_KS "
     "IQ4_KS IQ4_KSS IQ1_KT IQ2_KT IQ3_KT IQ4_KT Q2_K_R4 Q3_K_R4 IQ2_XXS_R4 IQ2_XS_R4 IQ2_S_R4 "
     "IQ3_XXS_R4 IQ3_S_R4 IQ4_XS_R8 IQ2_K_R4 IQ3_K_R4 IQ4_KS_R4",
     "IQ4_NL"},
    {"Q2_K Q3_K", "Q4_0 IQ4_NL"},
    {"Q2_0 TQ1_0 TQ2_0", "Q4_0"},
    {"Q4_K IQ4_K IQ5_KS Q4_K_R4 IQ4_K_R4 IQ5_KS_R4", "Q5_0"},
    {"Q5_K IQ5_K Q5_K_R4 IQ5_K_R4", "Q5_1 Q6_0"},
    {"Q6_K IQ6_K Q6_K_R4", "Q8_0"},
};

/* Parts of the names of matrices that llama-quantize (October 2026) leaves as they are. */
static const char *const left_alone[] = {
    "_norm.weight",
    "ffn_gate_inp.weight",
    "ffn_gate_tid2eid.weight",
    "position_embd",
    "token_types.weight",
    "per_layer_model_proj",
    "altup",
    "laurel",
    "ssm_conv1d",
    "shortconv.conv",
    "indexer.k_proj.weight",
    "indexer.q_proj.weight",
    "time_mix_first",
    "time_mix_w",
    "time_mix_v0",
    "time_mix_v1",
    "time_mix_v2",
    "time_mix_a0",
    "time_mix_a1",
    "time_mix_a2",
    "time_mix_g1",
    "time_mix_g2",
    "time_mix_decay_w",
    "time_mix_lerp_fused",
    "attn_rel_b.weight",
};

/** Whether rows are whole blocks of one of the types. */
static bool any_fits(const char *types, uint64_t n_cols)
{
    const char *word;
    size_t n;
    while ((types = base_words_next(types, &word, &n))) {
        char name[16];
        snprintf(name, sizeof name, "%.*s", (int)n, word);
        if (n_cols % gguf_type_named(name)->block_elems == 0)
            return true;
    }
    return false;
}

static const char *instead_of(const struct gguf_type_info *type, uint64_t n_cols)
{
    if (n_cols % type->block_elems == 0)
        return NULL;
    for (size_t i = 0; i < sizeof fallbacks / sizeof *fallbacks; i++)
        if (base_words_index(fallbacks[i].types, type->name) >= 0 &&
            any_fits(fallbacks[i].instead, n_cols))
            return fallbacks[i].instead;
    return "F16";
}

/** Whether a tensor of numbers as they are is one that quantisers leave so. */
static bool is_left(const struct gguf_tensor *t)
{
    bool left = t->n_rows == 1 || !base_ends_with(t->name, "weight");
    for (size_t i = 0; i < sizeof left_alone / sizeof *left_alone && !left; i++)
        left = strstr(t->name, left_alone[i]) != NULL;
    return left && base_words_index("F32 F16 BF16", t->type->name) >= 0;
}

static struct doc_typed_tensor judge(const struct gguf_tensor *t, const struct doc_type_rule *rule)
{
    struct doc_typed_tensor typed = {DOC_TYPED_WRONG, t->name, t, rule, NULL};
    typed.instead = instead_of(rule->type, t->ne[0]);
    if (t->type == rule->type)
        typed.outcome = DOC_TYPED_RIGHT;
    else if (is_left(t))
        typed.outcome = DOC_TYPED_LEFT;
    else if (typed.instead && base_words_index(typed.instead, t->type->name) >= 0)
        typed.outcome = DOC_TYPED_FALLBACK;
    return typed;
}

static void add(struct doc_type_check *out, struct doc_typed_tensor tensor)
{
    out->tensors[out->n_tensors++] = tensor;
    out->n[tensor.outcome]++;
}

enum status doc_type_check_make(struct doc_type_check *out, const struct doc_type_rules *rules,
                                const struct gguf_file *file, struct status_why *why)
{
    size_t n = gguf_n_tensors(file);
    enum status status = base_array_new(out->tensors, n + rules->n, "tensors", why);
    if (!status)
        status = base_array_new(out->named, rules->n, "rules", why);
    for (size_t i = 0; i < n && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        const struct doc_type_rule *rule;
        status = doc_type_rules_find(&rule, rules, t->name, why);
        if (rule) {
            out->named[rule - rules->items]++;
            add(out, judge(t, rule));
        } else
            out->n_unnamed++;
    }
    for (size_t i = 0; i < rules->n && !status; i++) {
        const struct doc_type_rule *rule = &rules->items[i];
        out->n_idle += rule->is_expression && out->named[i] == 0;
        if (!rule->is_expression && !gguf_tensor_find(file, rule->text))
            add(out, (struct doc_typed_tensor){DOC_TYPED_MISSING, rule->text, NULL, rule, NULL});
    }
    return status;
}

void doc_type_check_free(struct doc_type_check *check)
{
    free(check->tensors);
    free(check->named);
    *check = (struct doc_type_check){0};
}

const char *doc_typed_name(enum doc_typed outcome)
{
    static const char *const names[DOC_N_TYPED] = {"right", "fallback", "left", "wrong", "missing"};
    return names[outcome];
}

static void put_beginning(char out[DOC_TYPE_SENTENCE], const struct doc_type_check *c,
                          const char *file)
{
    size_t wrong = c->n[DOC_TYPED_WRONG], right = c->n[DOC_TYPED_RIGHT] + c->n[DOC_TYPED_FALLBACK];
    size_t missing = c->n[DOC_TYPED_MISSING];
    if (c->n_tensors == 0)
        snprintf(out, DOC_TYPE_SENTENCE, "%s has no tensor that the recipe names", file);
    else if (c->n[DOC_TYPED_LEFT] == c->n_tensors)
        snprintf(out, DOC_TYPE_SENTENCE,
                 "%s has no tensor that the recipe names and that a quantiser would change", file);
    else if (wrong && !right)
        snprintf(out, DOC_TYPE_SENTENCE,
                 "%s was not made by this recipe: of %zu tensor%s that it names none has the type "
                 "that it says",
                 file, wrong, status_plural(wrong));
    else if (wrong)
        snprintf(out, DOC_TYPE_SENTENCE,
                 "%s is not what the recipe says: %zu of %zu tensors ha%s another type", file,
                 wrong, wrong + right, wrong == 1 ? "s" : "ve");
    else if (missing)
        snprintf(out, DOC_TYPE_SENTENCE, "%s is not what the recipe says", file);
    else
        snprintf(out, DOC_TYPE_SENTENCE, "%s has the types that the recipe says: %zu tensor%s",
                 file, right, status_plural(right));
}

const char *doc_type_sentence(char out[DOC_TYPE_SENTENCE], const struct doc_type_check *check,
                              const char *file)
{
    const struct {
        size_t n;
        const char *one, *many;
    } parts[] = {
        {check->n[DOC_TYPED_MISSING], "tensor is missing", "tensors are missing"},
        {check->n[DOC_TYPED_FALLBACK], "of them has a fallback, as its rows do not fit",
         "of them have a fallback, as their rows do not fit"},
        {check->n[DOC_TYPED_LEFT], "is of a kind that is never quantised",
         "are of kinds that are never quantised"},
        {check->n_idle, "rule names no tensor", "rules name no tensor"},
        {check->n_unnamed, "tensor is not named", "tensors are not named"},
    };
    put_beginning(out, check, file);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        size_t used = strlen(out);
        if (parts[i].n)
            snprintf(out + used, DOC_TYPE_SENTENCE - used, "; %zu %s", parts[i].n,
                     parts[i].n == 1 ? parts[i].one : parts[i].many);
    }
    return out;
}
