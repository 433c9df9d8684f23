/* Names of a folder as names of GGUF, and which stored tensors each tensor is made of. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/folder/state.h"

enum { NAME_BYTES = MODEL_STORED_BYTES, MAX_EXPERTS = 1024 };

/** Names that most architectures have. An architecture's own come first. */
static const struct model_folder_name common[] = {
    {"embed_tokens.weight", "token_embd.weight"},
    {"norm", "output_norm"},
    {"lm_head", "output"},
    {0},
};

static const struct model_folder_name of_layers[] = {
    {"input_layernorm", "attn_norm"},
    {"post_attention_layernorm", "ffn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
    {"mlp.gate", "ffn_gate_inp"},
    {"mlp.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"mlp.experts.*.gate_proj", "ffn_gate_exps"},
    {"mlp.experts.*.up_proj", "ffn_up_exps"},
    {"mlp.experts.*.down_proj", "ffn_down_exps"},
    {"mlp.experts.gate_up_proj", "ffn_gate_exps.weight", MODEL_FIRST_HALF},
    {"mlp.experts.gate_up_proj", "ffn_up_exps.weight", MODEL_SECOND_HALF},
    {"mlp.experts.down_proj", "ffn_down_exps.weight"},
    {"mlp.shared_expert.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_expert.up_proj", "ffn_up_shexp"},
    {"mlp.shared_expert.down_proj", "ffn_down_shexp"},
    {"mlp.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"mlp.shared_experts.up_proj", "ffn_up_shexp"},
    {"mlp.shared_experts.down_proj", "ffn_down_shexp"},
    {"mlp.shared_expert_gate", "ffn_gate_inp_shexp"},
    {"self_attn.rotary_emb.inv_freq", NULL},
    {0},
};

const struct model_folder_name model_mixtral_names[] = {
    {"block_sparse_moe.gate", "ffn_gate_inp"},
    {"block_sparse_moe.gate.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.e_score_correction_bias", "exp_probs_b.bias"},
    {"block_sparse_moe.experts.*.w1", "ffn_gate_exps"},
    {"block_sparse_moe.experts.*.w3", "ffn_up_exps"},
    {"block_sparse_moe.experts.*.w2", "ffn_down_exps"},
    {"block_sparse_moe.shared_experts.gate_proj", "ffn_gate_shexp"},
    {"block_sparse_moe.shared_experts.up_proj", "ffn_up_shexp"},
    {"block_sparse_moe.shared_experts.down_proj", "ffn_down_shexp"},
    {0},
};

/** Parts of models that are not about text. */
static const char *const elsewhere[] = {"vision",        "visual.",     "audio",
                                        "projector.",    "patch_embed", "multi_modal",
                                        "image_newline", "patch_merge"};

/** A stored name within its layer, or beyond the layers. */
struct place {
    char name[NAME_BYTES];
    int64_t layer; /* -1: none */
    bool no_bias;  /* as in struct model_role */
};

/** Cut a word out wherever it stands. */
static void cut(char *name, const char *word)
{
    char *at = strstr(name, word);
    if (at)
        memmove(at, at + strlen(word), strlen(at + strlen(word)) + 1);
}

/** A number in decimal digits without zeros in front; where it ends, or NULL. */
static const char *read_number(const char *text, uint32_t *value)
{
    const char *at = text;
    for (*value = 0; isdigit((unsigned char)*at) && at - text < 6; at++)
        *value = *value * 10 + (uint32_t)(*at - '0');
    return at == text || isdigit((unsigned char)*at) || (*text == '0' && at > text + 1) ? NULL : at;
}

/** What follows the first of these words that a name begins with; NULL: none. */
static const char *begins_with(const char *name, const char *const words[3])
{
    for (size_t i = 0; i < 3 && words[i]; i++)
        if (strncmp(name, words[i], strlen(words[i])) == 0)
            return name + strlen(words[i]);
    return NULL;
}

static bool find_place(struct place *place, const char *name)
{
    static const char *const whole[3] = {"model.", "backbone.", "transformer."};
    static const char *const layers[3] = {"layers.", "h."};
    if (snprintf(place->name, sizeof place->name, "%s", name) >= NAME_BYTES)
        return false;
    cut(place->name, "language_model.");
    place->layer = -1;
    uint32_t number;
    const char *rest = begins_with(place->name, whole);
    if (rest)
        memmove(place->name, rest, strlen(rest) + 1);
    rest = begins_with(place->name, layers);
    rest = rest ? read_number(rest, &number) : NULL;
    if (rest && *rest == '.') {
        place->layer = number;
        memmove(place->name, rest + 1, strlen(rest + 1) + 1);
    }
    return true;
}

/** Whether a name matches; then *suffix is what follows, and *expert the number at the *. */
static bool matches(const char *pattern, const char *name, const char **suffix, int64_t *expert)
{
    *expert = -1;
    while (*pattern) {
        if (*pattern == '*') {
            uint32_t number;
            name = read_number(name, &number);
            if (!name)
                return false;
            *expert = number;
            pattern++;
        } else if (*pattern++ != *name++) {
            return false;
        }
    }
    *suffix = name;
    return *name == '\0' || strcmp(name, ".weight") == 0 || strcmp(name, ".bias") == 0;
}

/** The target of a name, which is shorter than MODEL_TARGET_BYTES; a new one if there is none. */
static enum status target_of(struct model_folder *f, const char *name, struct model_target **out,
                             struct status_why *why)
{
    size_t n = f->target_names.n;
    int32_t i = base_strtab_find(&f->target_names, (struct base_string){name, strlen(name)});
    if (i >= 0) {
        *out = f->targets[i];
        return STATUS_OK;
    }
    enum status status = base_array_reserve(f->targets, f->target_capacity, n + 1, "tensors", why);
    struct model_target *target = status ? NULL : calloc(1, sizeof *target);
    if (!target)
        return status_fail(why, STATUS_MEMORY, "no memory for a tensor");
    memcpy(target->name, name, strlen(name));
    status = base_strtab_add(&f->target_names,
                             (struct base_string){target->name, strlen(target->name)}, &i, why);
    if (status) {
        free(target);
        return status;
    }
    *out = f->targets[n] = target;
    return STATUS_OK;
}

/** A stored tensor as source `number` of a target. */
static enum status add_source(struct model_target *target, size_t number,
                              const struct safetensors_tensor *source, struct status_why *why)
{
    size_t before = target->capacity;
    enum status status =
        base_array_reserve(target->sources, target->capacity, number + 1, "experts", why);
    if (status)
        return status;
    for (size_t i = before; i < target->capacity; i++)
        target->sources[i] = NULL;
    if (target->sources[number])
        return status_fail(why, STATUS_FORMAT, "becomes %s, as '%s' does, expected one of them",
                           target->name, target->sources[number]->name);
    target->sources[number] = source;
    if (number + 1 > target->n_sources)
        target->n_sources = number + 1;
    return STATUS_OK;
}

/** What the architecture does to all tensors of a kind, beyond what the table says. */
static unsigned change_of(const struct model_folder *f, const struct model_folder_name *entry,
                          const char *to)
{
    const struct model_folder_map *map = f->arch->folder;
    size_t n = strlen(to);
    static const char norm[] = "norm.weight";
    if (entry->change != MODEL_KEEP)
        return entry->change;
    if (map->norms_less_one && n >= sizeof norm && strcmp(to + n - (sizeof norm - 1), norm) == 0)
        return MODEL_PLUS_ONE;
    if (map->long_rows && strstr(to, "_a_norm."))
        return MODEL_LENGTHEN;
    if (map->turned && strcmp(entry->to, "attn_q") == 0)
        return MODEL_TURN_Q;
    if (map->turned && strcmp(entry->to, "attn_k") == 0)
        return MODEL_TURN_K;
    return MODEL_KEEP;
}

/** Whether columns are rows may depend on how a folder was saved. */
static unsigned change_by_shape(const struct model_folder *f, unsigned change,
                                const struct safetensors_tensor *source)
{
    uint32_t before = change & MODEL_IF_WIDTH_BEFORE ? 1 : 0;
    if (!(change & (MODEL_IF_WIDTH_BEFORE | MODEL_IF_WIDTH_LAST)) || source->n_dims < 2 ||
        source->shape[source->n_dims - 1 - before] == f->n_embd)
        return change;
    return change & ~(unsigned)(MODEL_OF_COLUMNS | MODEL_TURN_OVER);
}

/** Whether a layer is one of those that an entry is for. */
static bool is_meant(const struct model_folder *f, unsigned change, int64_t layer)
{
    struct model_folder_heads of;
    if (!(change & (MODEL_IF_ATTENTION | MODEL_IF_RECURRENT)))
        return true;
    model_folder_heads(f, &of);
    bool attends = layer < 0 || layer >= of.n || of.n_kv_heads[layer] > 0;
    return attends == !!(change & MODEL_IF_ATTENTION);
}

/** Whether the architecture's files have a layer's bias mostly, or always; those of keys and values
 * where they have the queries'. */
static bool has_usually(const struct model_folder *f, const char *bias)
{
    const struct model_presence_rule *rule = f->arch->presence;
    const char *first = base_words_index(MODEL_QKV_BIASES, bias) >= 0 ? "attn_q.bias" : bias;
    while (rule->tensors && base_words_index(rule->tensors, first) < 0)
        rule++;
    return rule->tensors && rule->presence >= MODEL_MOSTLY;
}

/** Take the entries of a table that match. *found: how many did. */
static enum status look_up(struct model_folder *f, const struct model_folder_name *table,
                           const struct place *place, const struct safetensors_tensor *source,
                           size_t *found, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (; table->from && !status; table++) {
        const char *suffix;
        int64_t expert;
        char to[NAME_BYTES + MODEL_TARGET_BYTES];
        if (!matches(table->from, place->name, &suffix, &expert) ||
            !is_meant(f, table->change, place->layer))
            continue;
        (*found)++;
        if (table->change & (f->compressed ? MODEL_IF_WHOLE : MODEL_OF_KEYS | MODEL_OF_VALUES))
            continue;
        bool tied = f->arch->folder->tied && strncmp(place->name, "lm_head.", 8) == 0;
        if (!table->to || tied)
            continue;
        bool of_none = place->layer < 0 || table->change & (MODEL_PARTS | MODEL_NUMBERS);
        int n = of_none ? 0 : snprintf(to, sizeof to, "blk.%d.", (int)place->layer);
        snprintf(to + n, sizeof to - (size_t)n, "%s%s", table->to, suffix);
        if (place->no_bias && !has_usually(f, to + n))
            continue;
        if (strlen(to) >= MODEL_TARGET_BYTES || expert >= MAX_EXPERTS)
            return status_fail(why, STATUS_FORMAT, "has a name or a number that is too long");
        struct model_target *target = NULL;
        status = target_of(f, to, &target, why);
        if (status)
            return status;
        target->change = change_by_shape(f, change_of(f, table, to), source);
        bool second = target->change & MODEL_SECOND_FACTOR;
        if (second) /* both say the same of the target */
            target->change ^= MODEL_FACTOR | MODEL_SECOND_FACTOR;
        target->experts = expert >= 0 && !(target->change & MODEL_PARTS);
        status = add_source(target, expert < 0 ? second : (size_t)expert, source, why);
    }
    return status;
}

static bool is_elsewhere(const char *name)
{
    bool is = false;
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        is |= strstr(name, elsewhere[i]) != NULL;
    return is;
}

/** A layer beyond the last predicts the tokens after the next, if config.json counts such ones. */
static enum status check_further(const struct model_folder *f, int64_t layer,
                                 struct status_why *why)
{
    static const char further[] = "num_nextn_predict_layers num_mtp_layers mtp_num_hidden_layers";
    const char *first = f->arch->folder->further;
    bool has =
        first && base_strtab_find(&f->files.names, (struct base_string){first, strlen(first)}) >= 0;
    uint32_t n = model_config_u32_or(f, further, has);
    enum status status = model_config_status(f, why);
    if (status || layer < (int64_t)f->n_layers + n)
        return status;
    return status_fail(why, STATUS_FORMAT,
                       "is of layer %d, but config.json has %u layers ('num_hidden_layers') and %u "
                       "beyond them ('num_nextn_predict_layers')",
                       (int)layer, f->n_layers, n);
}

static enum status name_one(struct model_folder *f, const struct safetensors_tensor *tensor,
                            struct status_why *why)
{
    struct place place;
    struct model_role role;
    size_t found = 0;
    if (is_elsewhere(tensor->name))
        return STATUS_OK;
    enum status status = model_quantised_role(f, tensor, &role, why);
    if (status || role.aside)
        return status;
    if (find_place(&place, role.name)) {
        place.no_bias = role.no_bias;
        if (place.layer >= (int64_t)f->n_layers)
            return check_further(f, place.layer, why);
        if (strncmp(place.name, "mtp", 3) == 0)
            return STATUS_OK; /* predicts the tokens after the next */
        if (f->arch->folder->bare_attention &&
            strncmp(place.name, "attention.", sizeof "attention." - 1) == 0)
            memcpy(place.name, "self_attn.", sizeof "self_attn." - 1);
        for (size_t i = 0; !status && !found && f->names[i]; i++)
            status = look_up(f, f->names[i], &place, tensor, &found, why);
        if (!status && !found)
            status = look_up(f, place.layer < 0 ? common : of_layers, &place, tensor, &found, why);
    }
    if (!status && !found)
        status = status_fail(why, STATUS_FORMAT,
                             "has no name in GGUF's %s, and results without it may be wrong",
                             f->arch->name);
    return status;
}

enum status model_folder_names(struct model_folder *f, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && i < f->files.names.n; i++) {
        struct base_quoted shown;
        status = name_one(f, f->files.tensors[i], why);
        if (status)
            status_context(why, "%s: tensor %s", f->path,
                           base_quote(&shown, f->files.names.strings[i]));
    }
    return status;
}
