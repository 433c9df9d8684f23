/* config.json: its members, and which architecture it is. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/json/parse.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/folder/state.h"

enum { NAME_BYTES = 64 };

enum status model_config_fail(const struct model_folder *f, enum status status,
                              struct status_why *why, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return status_fail(why, status, "%s: config.json: %s", f->path, text);
}

static struct base_string string_of(const char *text)
{
    return (struct base_string){text, strlen(text)};
}

static const cJSON *find_in(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    return found && !cJSON_IsNull(found) ? found : NULL;
}

/** The first of several names in an object that is not null, else one that is. */
static const cJSON *first_in(const cJSON *object, const char *names)
{
    const char *word;
    size_t length;
    const cJSON *found = NULL;
    while ((!found || cJSON_IsNull(found)) &&
           (names = base_words_next(names, &word, &length)) != NULL) {
        char name[NAME_BYTES];
        snprintf(name, sizeof name, "%.*s", (int)length, word);
        const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
        found = item ? item : found;
    }
    return found;
}

/** What config.json says counts before what the class has, null of the text's part after the
 * whole's value. */
static const cJSON *first_of(const struct model_folder *f, const char *names)
{
    const cJSON *found = first_in(f->text, names);
    const cJSON *whole = !found || cJSON_IsNull(found) ? first_in(f->config, names) : NULL;
    return whole ? whole : found ? found : first_in(f->defaults, names);
}

const cJSON *model_config_any(const struct model_folder *f, const char *names)
{
    const cJSON *found = first_of(f, names);
    return cJSON_IsNull(found) ? NULL : found;
}

bool model_config_of_class(const struct model_folder *f, const cJSON *item)
{
    return item && cJSON_GetObjectItemCaseSensitive(f->defaults, item->string) == item;
}

const cJSON *model_config_class(const struct model_folder *f, const char *names)
{
    return first_in(f->defaults, names);
}

bool model_config_null(const struct model_folder *f, const char *names)
{
    return cJSON_IsNull(first_of(f, names));
}

const cJSON *model_config_find(const struct model_folder *f, const char *name)
{
    return model_config_any(f, name);
}

/** The member, or a failure where it is required. */
static enum status take(const struct model_folder *f, const char *names, bool required,
                        const cJSON **out, struct status_why *why)
{
    *out = model_config_any(f, names);
    if (*out || !required)
        return STATUS_OK;
    return model_config_fail(f, STATUS_FORMAT, why, "member '%.*s' is missing, expected a number",
                             (int)strcspn(names, " "), names);
}

static bool all_equal(const cJSON *list)
{
    const cJSON *item = list->child;
    while (item && item->next && cJSON_IsNumber(item) && cJSON_IsNumber(item->next) &&
           item->valuedouble == item->next->valuedouble)
        item = item->next;
    return item && !item->next;
}

enum status model_config_u32(const struct model_folder *f, const char *names, bool required,
                             uint32_t *value, struct status_why *why)
{
    const cJSON *item;
    enum status status = take(f, names, required, &item, why);
    if (status || !item)
        return status;
    const char *name = item->string;
    if (cJSON_IsArray(item) && all_equal(item)) /* one for each layer */
        item = item->child;
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (!(number >= 0 && number <= UINT32_MAX) || number != floor(number))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "member '%s' is no whole number from 0 to 2^32 - 1", name);
    *value = (uint32_t)number;
    return STATUS_OK;
}

enum status model_config_f32(const struct model_folder *f, const char *names, bool required,
                             double *value, struct status_why *why)
{
    const cJSON *item;
    enum status status = take(f, names, required, &item, why);
    if (status || !item)
        return status;
    if (!cJSON_IsNumber(item) || !isfinite((float)item->valuedouble))
        return model_config_fail(f, STATUS_FORMAT, why, "member '%s' is no number", item->string);
    *value = item->valuedouble;
    return STATUS_OK;
}

enum status model_config_u32s(const struct model_folder *f, const cJSON *list, const char *name,
                              uint32_t *values, uint32_t n, struct status_why *why)
{
    uint32_t i = 0;
    const cJSON *item = cJSON_IsArray(list) ? list->child : NULL;
    for (; item && i < n; item = item->next, i++) {
        double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
        if (!(number >= 0 && number <= UINT32_MAX) || number != floor(number))
            return model_config_fail(f, STATUS_FORMAT, why,
                                     "member '%s' has something else than a whole number from 0 to "
                                     "2^32 - 1 at place %u",
                                     name, i);
        values[i] = (uint32_t)number;
    }
    if (i == n && !item)
        return STATUS_OK;
    return model_config_fail(f, STATUS_FORMAT, why, "member '%s' has %d numbers, expected %u", name,
                             cJSON_GetArraySize(list), n);
}

bool model_config_is(const struct model_folder *f, const char *name, uint32_t i, const char *kind)
{
    const cJSON *item = cJSON_GetArrayItem(model_config_find(f, name), (int)i);
    return cJSON_IsString(item) && strcmp(item->valuestring, kind) == 0;
}

enum status model_config_kinds(const struct model_folder *f, const char *name, const char *expected,
                               uint8_t *kinds, uint32_t *n, struct status_why *why)
{
    const cJSON *list = model_config_find(f, name);
    *n = 0;
    /* Lists may go on with blocks that predict further tokens. */
    for (const cJSON *item = list ? list->child : NULL; item && *n < f->n_layers;
         item = item->next) {
        int kind = cJSON_IsString(item) ? base_words_index(expected, item->valuestring) : -1;
        if (*n == MODEL_MAX_BLOCKS || kind < 0)
            return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                     "member '%s' has something else for layer %u than: %s", name,
                                     *n, expected);
        kinds[(*n)++] = (uint8_t)kind;
    }
    if (list && *n != f->n_layers)
        return model_config_fail(f, STATUS_FORMAT, why, "member '%s' has %u layers, expected %u",
                                 name, *n, f->n_layers);
    return STATUS_OK;
}

static const struct model_folder_class *class_named(const char *name)
{
    const struct model_folder_class *class = model_folder_classes;
    while (class->names && base_words_index(class->names, name) < 0)
        class ++;
    return class->names ? class : NULL;
}

/** The class is that of the text's model_type, as transformers chooses it, else the named one. */
static enum status find_class(struct model_folder *f, const char *name, struct status_why *why)
{
    const cJSON *type = find_in(f->text, "model_type");
    if (cJSON_IsString(type))
        f->class = class_named(type->valuestring);
    if (!f->class)
        f->class = class_named(name);
    if (!f->class || f->defaults)
        return STATUS_OK;
    f->defaults = cJSON_Parse(f->class->members);
    return f->defaults ? STATUS_OK : status_fail(why, STATUS_MEMORY, "out of memory");
}

/** A list that says which layers are dense counts before a number of the class's. */
static enum status count_dense(struct model_folder *f, struct status_why *why)
{
    static const char name[] = "first_k_dense_replace";
    const cJSON *list = find_in(f->text, "mlp_layer_types");
    int n = 0;
    while (cJSON_IsArray(list) && n < cJSON_GetArraySize(list) &&
           model_config_is(f, "mlp_layer_types", (uint32_t)n, "dense"))
        n++;
    cJSON *item = list && f->defaults ? cJSON_CreateNumber(n) : NULL;
    if (list && f->defaults && !item)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    if (item && cJSON_GetObjectItemCaseSensitive(f->defaults, name))
        cJSON_ReplaceItemInObjectCaseSensitive(f->defaults, name, item);
    else
        cJSON_Delete(item);
    return STATUS_OK;
}

/** Null where the class has a value that may not be null. */
static enum status check_nulls(const struct model_folder *f, struct status_why *why)
{
    const cJSON *item = f->defaults ? f->defaults->child : NULL;
    for (; item; item = item->next) {
        const cJSON *own = cJSON_GetObjectItemCaseSensitive(f->text, item->string);
        if (cJSON_IsNull(own) && base_words_index(f->class->nullable, item->string) < 0)
            return model_config_fail(f, STATUS_FORMAT, why,
                                     "member '%s' is null, expected %s, or no such member, which "
                                     "means the default of its class",
                                     item->string, cJSON_IsNumber(item) ? "a number" : "a value");
    }
    return STATUS_OK;
}

static bool has_class(const struct model_folder *f, const struct model_arch *arch, const char *name)
{
    const char *const *class = arch->folder ? arch->folder->classes : NULL;
    while (class && *class && strcmp(*class, name) != 0)
        class ++;
    return class && *class && (!arch->folder->is || arch->folder->is(f));
}

static enum status find_architecture(struct model_folder *f, struct status_why *why)
{
    const cJSON *list = find_in(f->config, "architectures");
    const cJSON *first = cJSON_IsArray(list) ? list->child : NULL;
    if (!cJSON_IsString(first))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "member 'architectures' is no list of names, expected one like "
                                 "LlamaForCausalLM");
    const struct model_arch *arch;
    enum status status = find_class(f, first->valuestring, why);
    if (status)
        return status;
    for (size_t i = 0; !f->arch && (arch = model_arch_at(i)) != NULL; i++) {
        if (has_class(f, arch, first->valuestring))
            f->arch = arch;
    }
    for (size_t i = 0; f->arch && !f->class && !status && f->arch->folder->classes[i]; i++)
        status = find_class(f, f->arch->folder->classes[i], why); /* of a relative */
    if (f->arch && !status)
        status = count_dense(f, why);
    if (f->arch)
        return status ? status : check_nulls(f, why);
    struct base_quoted shown;
    return model_config_fail(f, STATUS_UNSUPPORTED, why,
                             "the architecture is %s, of which no folder is read (docs/folders.md "
                             "lists the others); expected a GGUF file that llama.cpp's "
                             "convert_hf_to_gguf.py makes",
                             base_quote(&shown, string_of(first->valuestring)));
}

/** The activation must be the architecture's. */
static enum status check_activation(const struct model_folder *f, struct status_why *why)
{
    static const char *const known[KERN_N_ACTIVATIONS] = {
        [KERN_SILU] = "silu swish",
        [KERN_GELU] = "gelu_pytorch_tanh gelu_new gelu_fast",
        [KERN_RELU_SQUARED] = "relu2",
    };
    const cJSON *item = model_config_any(f, "hidden_activation hidden_act mlp_hidden_act");
    const char *expected = known[f->arch->activation];
    struct base_quoted shown;
    if (!item || !expected)
        return STATUS_OK;
    if (cJSON_IsString(item) && base_words_index(expected, item->valuestring) >= 0)
        return STATUS_OK;
    return model_config_fail(
        f, STATUS_UNSUPPORTED, why, "member '%s' is %s, expected %s", item->string,
        base_quote(&shown, string_of(cJSON_IsString(item) ? item->valuestring : "no text")),
        expected);
}

/** Latent attention has sizes of its own; head_dim is then that of something else. DeepSeek 4 has
 * none, and says which part of head_dim rotates. */
static enum status read_latent(struct model_folder *f, struct status_why *why)
{
    uint32_t plain = 0;
    if (!model_config_find(f, "qk_nope_head_dim") && !model_config_find(f, "kv_lora_rank"))
        return STATUS_OK;
    enum status status = model_config_u32(f, "qk_rope_head_dim", false, &f->n_rot, why);
    if (status || f->n_rot == 0)
        return status;
    status = model_config_u32(f, "qk_nope_head_dim", true, &plain, why);
    if (!status && (plain > UINT16_MAX || f->n_rot > UINT16_MAX))
        plain = f->n_rot = UINT16_MAX; /* refused with the size of heads */
    f->head_size = plain + f->n_rot;
    f->n_kv_heads = f->n_heads;
    return status;
}

static enum status read_sizes(struct model_folder *f, struct status_why *why)
{
    const cJSON *kinds = model_config_find(f, "layers_block_type"); /* where nothing else says it */
    f->n_layers = kinds ? (uint32_t)cJSON_GetArraySize(kinds) : 0;
    enum status status =
        model_config_u32(f, "num_hidden_layers", f->n_layers == 0, &f->n_layers, why);
    if (!status)
        status = model_config_u32(f, "hidden_size", true, &f->n_embd, why);
    if (!status)
        status = model_config_u32(f, "num_attention_heads", true, &f->n_heads, why);
    f->n_kv_heads = f->n_heads;
    if (!status)
        status = model_config_u32(f, "num_key_value_heads num_attention_groups", false,
                                  &f->n_kv_heads, why);
    if (!status && (f->n_heads == 0 || f->n_kv_heads == 0 || f->n_layers == 0))
        status = model_config_fail(f, STATUS_FORMAT, why,
                                   "%u layers, %u heads, %u key/value heads, expected 1 or more",
                                   f->n_layers, f->n_heads, f->n_kv_heads);
    f->head_size = f->n_heads ? f->n_embd / f->n_heads : 0;
    if (!status)
        status = model_config_u32(f, "head_dim", false, &f->head_size, why);
    if (!status)
        status = read_latent(f, why);
    if (!status && f->head_size > UINT16_MAX)
        status = model_config_fail(f, STATUS_FORMAT, why,
                                   "heads of %u numbers, expected at most 65535", f->head_size);
    static const char experts[] = "num_local_experts num_experts n_routed_experts moe_num_experts "
                                  "moe_num_primary_experts";
    if (!status)
        status = model_config_u32(f, experts, false, &f->n_experts, why);
    f->names = f->arch->folder->names;
    if (!status && f->arch->folder->sizes && f->n_layers > MODEL_MAX_BLOCKS)
        status = model_config_fail(f, STATUS_UNSUPPORTED, why, "%u layers, expected at most %u",
                                   f->n_layers, (unsigned)MODEL_MAX_BLOCKS);
    return status || !f->arch->folder->sizes ? status : f->arch->folder->sizes(f, why);
}

/** Leave out a member that says with null what its absence says. */
static void drop_null(cJSON *object, const char *name)
{
    if (cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, name)))
        cJSON_DeleteItemFromObjectCaseSensitive(object, name);
}

enum status model_config_open(struct model_folder *f, struct status_why *why)
{
    struct gguf_map map;
    enum status status = safetensors_map_json(&map, f->path, "config.json", NULL, why);
    if (status)
        return status;
    size_t n_read = 0;
    bool has_nul = base_json_has_nul(map.data, map.n_bytes);
    if (map.n_bytes > SAFETENSORS_MAX_HEADER || has_nul)
        status = model_config_fail(f, STATUS_FORMAT, why,
                                   has_nul ? "has the character U+0000" : "is beyond 100 MB");
    else
        status = base_json_parse(&f->config, map.data, map.n_bytes, &n_read, why);
    gguf_map_close(&map);
    if (status == STATUS_FORMAT && !has_nul)
        return model_config_fail(f, STATUS_FORMAT, why, "is no JSON from byte %zu on", n_read);
    if (status)
        return status;
    cJSON *text = cJSON_GetObjectItemCaseSensitive(f->config, "text_config");
    f->text = cJSON_IsObject(text) ? text : f->config;
    drop_null(f->config, "rope_parameters");
    drop_null(f->config, "rope_scaling");
    drop_null(cJSON_IsObject(text) ? text : NULL, "rope_parameters");
    drop_null(cJSON_IsObject(text) ? text : NULL, "rope_scaling");
    status = find_architecture(f, why);
    if (!status)
        status = model_config_quantisation(f, why);
    if (!status)
        status = check_activation(f, why);
    return status ? status : read_sizes(f, why);
}
