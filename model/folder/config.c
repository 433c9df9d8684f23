/* config.json: its members, and which architecture it is. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/words.h"
#include "model/folder/state.h"

enum { NAME_BYTES = 64 };

enum status model_config_status(const struct model_folder *f, struct status_why *why)
{
    enum status status = base_json_status(&f->json, why);
    if (status)
        status_context(why, "%s", f->path);
    return status;
}

static struct base_field defaults_of(const struct model_folder *f)
{
    return (struct base_field){f->config.reader, f->defaults, 0};
}

/** The first of several names in an object that is not null, else one that is. */
static struct base_field first_in(struct base_field object, const char *names)
{
    const char *word;
    size_t length;
    struct base_field found = {object.reader, NULL, 0};
    while ((!found.json || cJSON_IsNull(found.json)) &&
           (names = base_words_next(names, &word, &length)) != NULL) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        struct base_field item = base_field_get(object, name);
        found = item.json ? item : found;
    }
    return found;
}

/** What config.json says counts before what the class has, null of the text's part after the
 * whole's value. */
static struct base_field first_of(const struct model_folder *f, const char *names)
{
    struct base_field found = first_in(f->text, names);
    if (found.json && !cJSON_IsNull(found.json))
        return found;
    struct base_field whole = first_in(f->config, names);
    return whole.json ? whole : found.json ? found : model_config_class(f, names);
}

struct base_field model_config_find(const struct model_folder *f, const char *names)
{
    return base_field_find(first_of(f, names), "");
}

bool model_config_of_class(const struct model_folder *f, struct base_field item)
{
    return item.json && base_field_get(defaults_of(f), item.json->string).json == item.json;
}

struct base_field model_config_class(const struct model_folder *f, const char *names)
{
    return first_in(defaults_of(f), names);
}

bool model_config_null(const struct model_folder *f, const char *names)
{
    return cJSON_IsNull(first_of(f, names).json);
}

/** A member, or a failure. */
static struct base_field need(const struct model_folder *f, const char *names)
{
    struct base_field found = model_config_find(f, names);
    char name[NAME_BYTES];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(names, " "), names);
    if (!found.json)
        base_field_fail_member(f->config, name, STATUS_FORMAT, "is missing, expected a number");
    return found;
}

static bool all_equal(const cJSON *list)
{
    const cJSON *item = list->child;
    while (item && item->next && cJSON_IsNumber(item) && cJSON_IsNumber(item->next) &&
           item->valuedouble == item->next->valuedouble)
        item = item->next;
    return item && !item->next;
}

uint32_t model_config_u32(const struct model_folder *f, const char *names)
{
    struct base_field item = need(f, names);
    if (cJSON_IsArray(item.json) && all_equal(item.json)) /* one for each layer */
        item.json = item.json->child;
    return (uint32_t)base_field_uint(item, "", UINT32_MAX);
}

uint32_t model_config_u32_or(const struct model_folder *f, const char *names, uint32_t absent)
{
    return model_config_find(f, names).json ? model_config_u32(f, names) : absent;
}

double model_config_real(struct base_field from, const char *path)
{
    double value = base_field_real(from, path);
    if (isfinite((float)value))
        return value;
    base_field_fail_member(from, path, STATUS_FORMAT, "is %g, expected a number of float32", value);
    return 0;
}

double model_config_f32(const struct model_folder *f, const char *names)
{
    return model_config_real(need(f, names), "");
}

double model_config_f32_or(const struct model_folder *f, const char *names, double absent)
{
    return model_config_find(f, names).json ? model_config_f32(f, names) : absent;
}

void model_config_u32s(struct base_field from, const char *path, uint32_t *values, uint32_t n)
{
    struct base_field list = base_field_list(from, path), item = {0};
    if (base_field_count(list) != n)
        base_field_fail(list, STATUS_FORMAT, "has %zu numbers, expected %u", base_field_count(list),
                        n);
    for (uint32_t i = 0; i < n && base_field_next(list, &item); i++)
        values[i] = (uint32_t)base_field_uint(item, "", UINT32_MAX);
}

bool model_config_is(const struct model_folder *f, const char *name, uint32_t i, const char *kind)
{
    struct base_field list = model_config_find(f, name);
    list.json = cJSON_GetArrayItem(list.json, (int)i);
    return base_field_is(list, kind);
}

double model_config_at(struct base_field list, uint32_t i)
{
    const cJSON *item = cJSON_GetArrayItem(list.json, (int)i);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

uint32_t model_config_kinds(const struct model_folder *f, const char *name, const char *expected,
                            uint8_t *kinds)
{
    struct base_field list = model_config_find(f, name), item = {0};
    uint32_t n = 0;
    /* Lists may go on with blocks that predict further tokens. */
    while (n < f->n_layers && base_field_next(list, &item)) {
        int kind =
            cJSON_IsString(item.json) ? base_words_index(expected, item.json->valuestring) : -1;
        if (n == MODEL_MAX_BLOCKS || kind < 0) {
            base_field_fail(list, STATUS_UNSUPPORTED, "has something else for layer %u than: %s", n,
                            expected);
            return 0;
        }
        kinds[n++] = (uint8_t)kind;
    }
    if (!list.json || n == f->n_layers)
        return n;
    base_field_fail(list, STATUS_FORMAT, "has %u layers, expected %u", n, f->n_layers);
    return 0;
}

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
    if (!list.json || !base_field_get(defaults_of(f), name).json)
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
    for (struct base_field item = {0}; base_field_next(defaults_of(f), &item);) {
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
    const struct model_arch *arch;
    struct base_field_shown shown;
    f->class_name = first.json->valuestring;
    find_class(f, f->class_name);
    for (size_t i = 0; !f->arch && (arch = model_arch_at(i)) != NULL; i++)
        if (has_class(f, arch))
            f->arch = arch;
    if (!f->arch) {
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "the architecture is %s, of which no folder is read (docs/folders.md "
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
        [KERN_SILU] = "silu swish",
        [KERN_GELU] = "gelu_pytorch_tanh gelu_new gelu_fast",
        [KERN_RELU_SQUARED] = "relu2",
    };
    struct base_field item = model_config_find(f, "hidden_activation hidden_act mlp_hidden_act");
    const char *expected = known[f->arch->activation];
    struct base_field_shown shown;
    if (!item.json || !expected)
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
    if (f->n_rot == 0)
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
    static const char layers[] = "num_hidden_layers";
    f->n_layers =
        n_kinds > 0 ? model_config_u32_or(f, layers, n_kinds) : model_config_u32(f, layers);
    f->n_embd = model_config_u32(f, "hidden_size");
    f->n_heads = model_config_u32(f, "num_attention_heads");
    f->n_kv_heads = model_config_u32_or(f, "num_key_value_heads num_attention_groups", f->n_heads);
    if (f->n_heads == 0 || f->n_kv_heads == 0 || f->n_layers == 0)
        model_config_fail(f, STATUS_FORMAT,
                          "%u layers, %u heads, %u key/value heads, expected 1 or more",
                          f->n_layers, f->n_heads, f->n_kv_heads);
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
    if (f->arch->folder->sizes && f->n_layers > MODEL_MAX_BLOCKS)
        model_config_fail(f, STATUS_UNSUPPORTED, "%u layers, expected at most %u", f->n_layers,
                          (unsigned)MODEL_MAX_BLOCKS);
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
