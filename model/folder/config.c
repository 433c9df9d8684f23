/* config.json: which architecture it is, its sizes, and what is refused. */
#include <string.h>

#include "base/text/words.h"
#include "model/folder/state.h"

static const struct model_folder_class *class_named(const char *name)
{
    const struct model_folder_class *class = model_folder_classes;
    while (class->names && base_words_index(class->names, name) < 0)
        class ++;
    return class->names ? class : NULL;
}

static void fail_memory(const struct model_folder *f)
{
    model_config_fail(f, STATUS_MEMORY, "out of memory");
}

/** The class is that of the text's model_type, as transformers chooses it, else the named one. */
static void find_class(struct model_folder *f, const char *name)
{
    struct base_field type = base_field_get(f->text, "model_type");
    if (cJSON_IsString(type.json))
        f->class = class_named(type.json->valuestring);
    if (!f->class)
        f->class = class_named(name);
    if (!f->class || f->defaults)
        return;
    f->defaults = cJSON_Parse(f->class->members);
    if (!f->defaults)
        fail_memory(f);
}

/** A list that says which layers are dense counts before a number of the class's. */
static void count_dense(struct model_folder *f)
{
    static const char name[] = "first_k_dense_replace";
    struct base_field list = base_field_find(f->text, "mlp_layer_types");
    int n = 0;
    while (cJSON_IsArray(list.json) && n < cJSON_GetArraySize(list.json) &&
           model_config_is(f, "mlp_layer_types", (uint32_t)n, "dense"))
        n++;
    if (!list.json || !base_field_get(model_config_defaults(f), name).json)
        return;
    cJSON *item = cJSON_CreateNumber(n);
    if (!item)
        fail_memory(f);
    else
        cJSON_ReplaceItemInObjectCaseSensitive(f->defaults, name, item);
}

/** Null where the class has a value that may not be null. */
static void check_nulls(const struct model_folder *f)
{
    for (struct base_field item = {0}; base_field_next(model_config_defaults(f), &item);) {
        struct base_field own = base_field_get(f->text, item.json->string);
        if (cJSON_IsNull(own.json) && base_words_index(f->class->nullable, item.json->string) < 0)
            base_field_fail(own, STATUS_FORMAT,
                            "is null, expected %s, or no such member, which means the default of "
                            "its class",
                            cJSON_IsNumber(item.json) ? "a number" : "a value");
    }
}

static bool has_class(const struct model_folder *f, const struct model_arch *arch)
{
    const char *const *class = arch->folder ? arch->folder->classes : NULL;
    while (class && *class && strcmp(*class, f->class_name) != 0)
        class ++;
    return class && *class && (!arch->folder->is || arch->folder->is(f));
}

static void find_architecture(struct model_folder *f)
{
    struct base_field list = base_field_get(f->config, "architectures"), first = {0};
    if (!cJSON_IsArray(list.json) || !base_field_next(list, &first) ||
        !cJSON_IsString(first.json)) {
        base_field_fail_member(f->config, "architectures", STATUS_FORMAT,
                               "is no list of names, expected one like LlamaForCausalLM");
        return;
    }
    struct base_field_shown shown;
    f->class_name = first.json->valuestring;
    find_class(f, f->class_name);
    for (size_t i = 0; !f->arch && f->archs[i]; i++)
        if (has_class(f, f->archs[i]))
            f->arch = f->archs[i];
    if (!f->arch) {
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "the architecture is %s, of which no folder is read (docs/models.md "
                          "lists the others); expected a GGUF file that llama.cpp's "
                          "convert_hf_to_gguf.py makes",
                          base_field_show(&shown, first));
        return;
    }
    for (size_t i = 0; !f->class && f->arch->folder->classes[i]; i++)
        find_class(f, f->arch->folder->classes[i]); /* of a relative */
    count_dense(f);
    check_nulls(f);
}

/** The activation must be the architecture's. */
static void check_activation(const struct model_folder *f)
{
    static const char *const known[KERN_N_ACTIVATIONS] = {
        [KERN_SILU] = "silu swish", [KERN_GELU] = "gelu_pytorch_tanh gelu_new gelu_fast",
        [KERN_GELU_EXACT] = "gelu", [KERN_RELU_SQUARED] = "relu2",
        [KERN_SITU] = "situ",
    };
    struct base_field item =
        model_config_find(f, "hidden_activation hidden_act mlp_hidden_act activation_function");
    const char *expected = known[f->arch->activation];
    struct base_field_shown shown;
    const char *other = f->arch->folder->activation;
    if (!item.json || !expected || (other && base_field_is(item, other)))
        return;
    if (!cJSON_IsString(item.json) || base_words_index(expected, item.json->valuestring) < 0)
        base_field_fail(item, STATUS_UNSUPPORTED, "is %s, expected %s",
                        base_field_show(&shown, item), expected);
}

/** Latent attention has sizes of its own; head_dim is then that of something else. DeepSeek 4 has
 * none, and says which part of head_dim rotates. */
static void read_latent(struct model_folder *f)
{
    if (!model_config_find(f, "qk_nope_head_dim").json &&
        !model_config_find(f, "kv_lora_rank").json)
        return;
    f->n_rot = model_config_u32_or(f, "qk_rope_head_dim", 0);
    f->latent = f->n_rot > 0 || f->arch->unrotated;
    if (!f->latent)
        return;
    uint32_t plain = model_config_u32(f, "qk_nope_head_dim");
    if (plain > UINT16_MAX || f->n_rot > UINT16_MAX)
        plain = f->n_rot = UINT16_MAX; /* refused with the size of heads */
    f->head_size = plain + f->n_rot;
    f->n_kv_heads = f->n_heads;
}

static void read_sizes(struct model_folder *f)
{
    struct base_field kinds = model_config_find(f, "layers_block_type"); /* if it alone says it */
    uint32_t n_kinds = (uint32_t)base_field_count(kinds);
    static const char layers[] = "num_hidden_layers num_layers";
    f->n_layers =
        n_kinds > 0 ? model_config_u32_or(f, layers, n_kinds) : model_config_u32(f, layers);
    f->n_embd = model_config_u32(f, "hidden_size");
    f->n_heads = model_config_u32(f, "num_attention_heads");
    f->n_kv_heads = model_config_u32_or(f, "num_key_value_heads num_attention_groups", f->n_heads);
    if (f->n_heads == 0 || f->n_kv_heads == 0 || f->n_layers == 0)
        model_config_fail(f, STATUS_FORMAT,
                          "%u layers, %u heads, %u key/value heads, expected 1 or more",
                          f->n_layers, f->n_heads, f->n_kv_heads);
    if (f->n_layers > MODEL_MAX_BLOCKS)
        model_config_fail(f, STATUS_UNSUPPORTED, "%u layers, expected at most %d", f->n_layers,
                          MODEL_MAX_BLOCKS);
    f->head_size = model_config_u32_or(f, "head_dim", f->n_heads ? f->n_embd / f->n_heads : 0);
    read_latent(f);
    if (f->head_size > UINT16_MAX)
        model_config_fail(f, STATUS_FORMAT, "heads of %u numbers, expected at most 65535",
                          f->head_size);
    f->n_experts = model_config_u32_or(f,
                                       "num_local_experts num_experts n_routed_experts "
                                       "moe_num_experts moe_num_primary_experts",
                                       0);
    f->names = f->arch->folder->names;
    if (f->arch->folder->sizes && !f->json.status)
        f->arch->folder->sizes(f);
}

/** Leave out a member that says with null what its absence says. */
static void drop_null(cJSON *object, const char *name)
{
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, name)))
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
}

/** Choose what the members are read from. */
static void find_parts(struct model_folder *f)
{
    cJSON *text = cJSON_GetObjectItemCaseSensitive(f->json.root, "text_config");
    cJSON *const objects[] = {f->json.root, cJSON_IsObject(text) ? text : NULL};
    for (size_t i = 0; i < 2; i++) {
        drop_null(objects[i], "rope_parameters");
        drop_null(objects[i], "rope_scaling");
    }
    f->text = f->config;
    f->text.json = objects[1] ? objects[1] : objects[0];
}

enum status model_config_open(struct model_folder *f, struct status_why *why)
{
    struct gguf_map map;
    f->json.file = "config.json";
    enum status status = safetensors_map_json(&map, f->path, f->json.file, NULL, why);
    if (status)
        return status;
    f->config = base_json_root(&f->json);
    if (map.n_bytes > SAFETENSORS_MAX_HEADER)
        model_config_fail(f, STATUS_FORMAT, "is beyond 100 MB");
    else
        f->config = base_json_open(&f->json, map.data, map.n_bytes);
    gguf_map_close(&map);
    if (!f->json.status) {
        find_parts(f);
        find_architecture(f);
    }
    if (f->arch && !f->json.status) {
        model_config_quantisation(f);
        check_activation(f);
        read_sizes(f);
    }
    return model_config_status(f, why);
}
