/* Members of config.json as keys of GGUF. */
#include <math.h>
#include <string.h>

#include "model/folder/state.h"

static const struct model_arch_key of_latent[] = {
    {"attention.value_length"},
    {0},
};

static const struct model_arch_key of_experts[] = {
    {"expert_used_count"},
    {"expert_feed_forward_length"},
    {0},
};

static const struct model_arch_key of_compressed[] = {
    {"attention.value_length_mla"},
    {"attention.value_length", .from = "kv_lora_rank"},
    {0},
};

static void check_flag(struct model_folder *f, const struct model_arch_key *key)
{
    struct base_field item = model_config_find(f, key->from);
    bool wanted = key->member == MODEL_MEMBER_TRUE;
    if (item.json ? cJSON_IsBool(item.json) && cJSON_IsTrue(item.json) == wanted : !wanted)
        return;
    model_config_fail(f, STATUS_UNSUPPORTED,
                      "member '%s' is %s, expected %s, which is what architecture %s computes",
                      key->from,
                      !item.json ? "absent"
                      : wanted   ? "not true"
                                 : "not false",
                      wanted ? "true" : "false", f->arch->name);
}

static void check_fixed(struct model_folder *f, const struct model_arch_key *key)
{
    const cJSON *item = model_config_find(f, key->from).json;
    bool off = !item && model_config_null(f, key->from) && /* null of a truth value is false */
               cJSON_IsBool(model_config_class(f, key->from).json);
    double value = off                  ? 0
                   : !item              ? key->unset
                   : cJSON_IsBool(item) ? cJSON_IsTrue(item)
                                        : (double)NAN;
    if (cJSON_IsNumber(item))
        value = item->valuedouble;
    if (value == key->unset)
        return;
    model_config_fail(f, STATUS_UNSUPPORTED,
                      "member '%.*s' is %g, expected %g, which is what architecture %s computes",
                      (int)strcspn(key->from, " "), key->from, value, key->unset, f->arch->name);
}

void model_write_gating(struct model_folder *f, const char *names, uint32_t absent)
{
    static const uint32_t values[] = {1, 2, 4};
    struct base_field item = model_config_find(f, names);
    int word = base_field_word_or(item, "", "softmax sigmoid sqrtsoftplus", -1);
    if (word >= 0)
        absent = values[word];
    model_write_u32(f, "expert_gating_func", absent);
}

static void write_number(struct model_folder *f, const struct model_arch_key *key,
                         const char *names, enum model_hparam_kind kind)
{
    if (kind == MODEL_HPARAM_U32) {
        model_write_u32(f, key->suffix, model_config_u32_or(f, names, (uint32_t)key->unset));
        return;
    }
    double number = model_config_f32_or(f, names, key->unset);
    if (kind == MODEL_HPARAM_F32 && number == 0)
        model_config_fail(f, STATUS_UNSUPPORTED, "member '%.*s' is 0, expected another number",
                          (int)strcspn(names, " "), names);
    model_write_f32(f, key->suffix, number);
}

/** A key that the table of hyper-parameters has. */
static void write_key(struct model_folder *f, const struct model_arch_key *key)
{
    const struct model_hparam *row = model_hparam_row(key->suffix);
    const char *names = key->from ? key->from : row->members;
    struct base_field item = model_config_find(f, names);
    bool null = !item.json && model_config_null(f, names);
    if (null && row->kind == MODEL_HPARAM_F32)
        model_config_fail(f, STATUS_FORMAT, "member '%.*s' is null, expected a number",
                          (int)strcspn(names, " "), names);
    if (!item.json && row->kind == MODEL_HPARAM_CAP)
        model_write_f32(f, key->suffix, 0);
    if (null && row->kind == MODEL_HPARAM_BOOL)
        model_write_bool(f, key->suffix, false);
    if (!item.json && (key->unset == 0 || null))
        return;
    if (row->kind == MODEL_HPARAM_GATING)
        model_write_gating(f, names, (uint32_t)key->unset);
    else if (row->kind == MODEL_HPARAM_BOOL)
        model_write_bool(f, key->suffix, base_field_flag_or(item, "", key->unset != 0));
    else
        write_number(f, key, names, row->kind);
}

static void write_one(struct model_folder *f, const struct model_arch_key *key)
{
    if (key->member == MODEL_MEMBER_WRITTEN)
        write_key(f, key);
    else if (key->member == MODEL_MEMBER_FIXED)
        check_fixed(f, key);
    else
        check_flag(f, key);
}

/** Write the rows of a list, but for those of which the architecture has another, and those of
 * experts where it has none. */
static void write_all(struct model_folder *f, const struct model_arch_key *keys)
{
    for (; keys->from || keys->suffix; keys++) {
        const struct model_arch_key *own =
            keys->suffix ? model_arch_key_find(f->arch, keys->suffix) : NULL;
        bool idle =
            f->n_experts == 0 && keys->suffix &&
            (strncmp(keys->suffix, "expert_", 7) == 0 || strncmp(keys->suffix, "leading_", 8) == 0);
        if (!idle && (!own || own == keys))
            write_one(f, keys);
    }
}

/** The epsilon of norms: the member that the class has, where transformers has one. */
static void write_eps(struct model_folder *f)
{
    static const char rms_eps[] = "rms_norm_eps";
    const char *names = "rms_norm_eps layer_norm_eps norm_epsilon layer_norm_epsilon norm_eps "
                        "layernorm_epsilon";
    bool by_key = f->arch->rms_by_key && model_config_find(f, rms_eps).json != NULL;
    bool rms = !f->arch->layer_norm || f->arch->rms_eps || by_key;
    struct base_field of_class = model_config_class(f, names);
    names = by_key ? rms_eps : of_class.json ? of_class.json->string : names;
    model_write_f32(f, rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon",
                    model_config_f32(f, names));
}

/** Which layers slide, from layer_types. */
static void write_pattern(struct model_folder *f)
{
    static const char suffix[] = "attention.sliding_window_pattern";
    const cJSON *types = model_config_find(f, "layer_types").json;
    const cJSON *period =
        model_config_find(f, "sliding_window_pattern global_attn_every_n_layers").json;
    if (!types && cJSON_IsNumber(period) && period->valuedouble >= 1 && period->valuedouble <= 1024)
        model_write_u32(f, suffix, (uint32_t)period->valuedouble);
    if (!types && f->arch->folder->named_layers)
        model_config_fail(f, STATUS_FORMAT, "member 'layer_types' is missing");
    if (!types)
        return;
    uint8_t slides[MODEL_MAX_BLOCKS];
    uint32_t n = model_config_kinds(f, "layer_types", "full_attention sliding_attention", slides);
    model_write_bools(f, suffix, slides, n);
}

static void write_windows(struct model_folder *f)
{
    static const char names[] = "sliding_window sliding_window_size";
    const cJSON *use = model_config_find(f, "use_sliding_window").json;
    uint32_t length = model_config_u32_or(f, names, 0);
    if (length == 0 && !cJSON_IsFalse(use) && model_config_find(f, names).json)
        model_config_fail(f, STATUS_FORMAT,
                          "member 'sliding_window' is 0, expected a number above 0, or null");
    bool slides = cJSON_IsTrue(use) && length > 0;
    struct base_field types = model_config_find(f, "layer_types"), item = {0};
    while (length > 0 && base_field_next(types, &item))
        slides |= base_field_is(item, "sliding_attention");
    if (f->arch->windows.period == 0 && slides)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "layers see a sliding window of %u, which architecture %s does not have",
                          length, f->arch->name);
    if (f->arch->windows.period == 0 || model_arch_key_find(f->arch, "attention.sliding_window"))
        return;
    if (cJSON_IsFalse(use))
        length = 0;
    model_write_u32(f, "attention.sliding_window", length);
    if (f->arch->windows.period > 1 && length > 0)
        write_pattern(f);
}

/** Every layer has experts, as far as no key says otherwise. */
static void check_experts(struct model_folder *f)
{
    uint32_t step = model_config_u32_or(f, "decoder_sparse_step", 1);
    size_t n_dense = base_field_count(model_config_find(f, "mlp_only_layers"));
    if (step != 1 || n_dense > 0)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "decoder_sparse_step is %u and mlp_only_layers has %zu layers, expected "
                          "1 and none: GGUF's %s has experts in all layers",
                          step, n_dense, f->arch->name);
}

/** Which layers have no positions must be what the architecture takes for granted. */
static void check_still(struct model_folder *f)
{
    uint32_t period = f->arch->folder->still_period, i = 0;
    struct base_field rotates = model_config_find(f, "no_rope_layers");
    for (struct base_field item = {0}; period && base_field_next(rotates, &item); i++)
        if ((item.json->valuedouble != 0) != ((i + 1) % period != 0))
            model_config_fail(f, STATUS_UNSUPPORTED,
                              "member 'no_rope_layers' is %g for layer %u, expected 0 for each "
                              "%uth layer and 1 for others",
                              item.json->valuedouble, i, period);
}

void model_folder_check_turns(struct model_folder *f, uint32_t i, bool slides, bool turns)
{
    if (turns != slides)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "layer %u slides without positions, or the reverse, which GGUF's %s "
                          "cannot say",
                          i, f->arch->name);
}

/** What the reader takes for granted, and config.json may deny. */
static void check_granted(struct model_folder *f)
{
    static const struct model_arch_key granted[] = {
        {.from = "clip_qkv", .member = MODEL_MEMBER_FIXED},
        {.from = "rope_interleave", .unset = 1, .member = MODEL_MEMBER_FIXED},
        {.from = "moe_norm_min", .unset = 1e-12, .member = MODEL_MEMBER_FIXED},
        {0},
    };
    const struct model_folder_map *map = f->arch->folder;
    write_all(f, granted);
    if (model_config_u32_or(f, "topk_group", 1) == 0 && model_config_find(f, "n_group").json)
        model_config_fail(f, STATUS_FORMAT,
                          "member 'topk_group' is 0, expected a number from 1 to 'n_group'");
    double usual = f->n_layers == map->largest ? (double)f->n_embd / f->n_heads : f->head_size;
    double scalar =
        map->largest > 0 ? model_config_f32_or(f, "query_pre_attn_scalar", usual) : usual;
    if (scalar != usual)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "member 'query_pre_attn_scalar' is %g, expected %g, which GGUF's %s "
                          "takes for granted",
                          scalar, usual, f->arch->name);
    const cJSON *limits = model_config_find(f, "time_step_limit").json,
                *low = limits ? limits->child : NULL;
    if (low &&
        (low->valuedouble != 0 || (cJSON_IsNumber(low->next) && isfinite(low->next->valuedouble))))
        model_config_fail(f, STATUS_UNSUPPORTED, "member 'time_step_limit' is not 0 and infinity");
    check_still(f);
}

void model_folder_heads(const struct model_folder *f, struct model_folder_heads *of)
{
    of->n = f->n_layers < MODEL_MAX_BLOCKS ? f->n_layers : MODEL_MAX_BLOCKS;
    for (uint32_t i = 0; i < of->n; i++) {
        of->n_heads[i] = f->n_heads;
        of->n_kv_heads[i] = f->n_kv_heads;
        of->plain[i] = f->head_size - f->n_rot;
    }
    if (f->arch->folder->heads)
        f->arch->folder->heads(f, of);
}

/** Heads: all layers have as many, or the architecture has a list of them. */
static void write_heads(struct model_folder *f)
{
    static const char heads[] = "attention.head_count";
    static const char kv_heads[] = "attention.head_count_kv";
    struct model_folder_heads of;
    if (!f->arch->folder->heads) {
        model_write_u32(f, heads, f->n_heads);
        if (f->kv_by_layer)
            model_write_u32s(f, kv_heads, f->kv_heads_of, f->n_layers);
        else
            model_write_u32(f, kv_heads, f->n_kv_heads);
        return;
    }
    model_folder_heads(f, &of);
    model_write_u32s(f, heads, of.n_heads, of.n);
    model_write_u32s(f, kv_heads, of.n_kv_heads, of.n);
}

/** Whether kv_b can be cut: codes with scales cannot be turned over. */
static bool can_be_cut(const struct model_folder *f)
{
    static const char name[] = "kv_b_proj.weight";
    bool found = false, plain = true;
    for (size_t i = 0; i < f->files.names.n; i++) {
        struct base_string s = f->files.names.strings[i];
        enum safetensors_type type = f->files.tensors[i]->type;
        if (s.n_bytes < sizeof name - 1 ||
            memcmp(s.data + s.n_bytes - (sizeof name - 1), name, sizeof name - 1) != 0)
            continue;
        found = true;
        plain &= type == SAFETENSORS_F32 || type == SAFETENSORS_F16 || type == SAFETENSORS_BF16;
    }
    return found && plain;
}

/** Sizes of latent attention's heads; with compressed keys the model's own are others. */
static void write_latent(struct model_folder *f)
{
    uint32_t size = f->head_size;
    if (f->compressed) {
        model_write_u32(f, "attention.key_length_mla", size);
        size = model_config_u32(f, "kv_lora_rank") + f->n_rot;
    }
    model_write_u32(f, "attention.key_length", size);
    write_all(f, f->compressed ? of_compressed : of_latent);
    write_all(f, model_latent_keys);
}

/** Sizes of heads, where they are not the usual ones, and widths: one, or one for each layer. */
static void write_sizes(struct model_folder *f)
{
    static const struct model_arch_key width[] = {
        {"feed_forward_length"},
        {0},
    };
    bool usual = f->head_size == f->n_embd / f->n_heads && !model_config_find(f, "head_dim").json;
    if (!f->latent && !usual && !model_arch_key_find(f->arch, "attention.key_length"))
        model_write_u32(f, "attention.key_length", f->head_size);
    if (!f->latent && !usual && !model_arch_key_find(f->arch, "attention.value_length"))
        model_write_u32(f, "attention.value_length", f->head_size);
    if (f->latent)
        write_latent(f);
    if (f->ff_by_layer)
        model_write_u32s(f, "feed_forward_length", f->n_ff_of, f->n_layers);
    else
        write_all(f, width);
}

enum status model_folder_keys(struct model_folder *f, struct status_why *why)
{
    const struct model_folder_map *map = f->arch->folder;
    f->compressed = map->compressed && can_be_cut(f);
    f->n_kv_heads = f->compressed ? 1 : f->n_kv_heads;
    gguf_layout_string(f->layout, "general.architecture", f->arch->name);
    model_schemes_write(f);
    model_write_u32(f, "block_count", f->n_layers);
    model_write_u32(f, "embedding_length", f->n_embd);
    write_heads(f);
    write_all(f, model_size_keys);
    write_sizes(f);
    if (f->n_experts > 0) {
        model_write_u32(f, "expert_count", f->n_experts);
        write_all(f, of_experts);
        check_experts(f);
    }
    check_granted(f);
    write_eps(f);
    write_windows(f);
    model_folder_rope(f);
    for (const struct model_arch_key *const *list = f->arch->keys; *list; list++)
        write_all(f, *list);
    if (map->write)
        map->write(f);
    return model_config_status(f, why);
}
