/* How a folder says that its weights are quantised: which methods are read, and blocks of scales.
 * Which tensors are quantised is not looked at here: what lies beside a tensor says it
 * (quantised.c). */
#include <math.h>
#include <string.h>

#include "base/json/parse.h"
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/folder/state.h"

/** What to do with a folder that is not read. */
static const char instead[] =
    "expected fp8, mxfp4, modelopt (FP8, NVFP4) or compressed-tensors (float-quantized, "
    "nvfp4-pack-quantized); take the folder that it was made of";

static const cJSON *member(const cJSON *object, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(object, name);
    return found && !cJSON_IsNull(found) ? found : NULL;
}

/** Whether a text is one of these words. What is absent is. */
static bool is_one_of(const cJSON *item, const char *words)
{
    return !item || (cJSON_IsString(item) && base_words_index(words, item->valuestring) >= 0);
}

static enum status refuse(const struct model_folder *f, const char *what, const cJSON *item,
                          const char *further, struct status_why *why)
{
    struct base_quoted shown;
    const char *text = cJSON_IsString(item) ? item->valuestring : "no text";
    return model_config_fail(
        f, STATUS_UNSUPPORTED, why, "the weights are quantised (%s %s), which is not read; %s%s",
        what, base_quote(&shown, (struct base_string){text, strlen(text)}), instead, further);
}

/** A shape that blocks of one scale may have.   member: whose value it is. */
static enum status add_blocks(struct model_folder *f, const char *name, double rows, double columns,
                              struct status_why *why)
{
    if (!(rows >= 1 && rows <= INT32_MAX && columns >= 1 && columns <= INT32_MAX) ||
        rows != floor(rows) || columns != floor(columns))
        return model_config_fail(f, STATUS_FORMAT, why,
                                 "member '%s' is no list of two whole numbers from 1 to 2^31 - 1",
                                 name);
    struct model_blocks blocks = {(uint64_t)rows, (uint64_t)columns};
    for (size_t i = 0; i < f->n_blocks; i++)
        if (f->blocks[i].rows == blocks.rows && f->blocks[i].columns == blocks.columns)
            return STATUS_OK;
    if (f->n_blocks == MODEL_BLOCK_SHAPES)
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "more than %d shapes of blocks, expected fewer",
                                 MODEL_BLOCK_SHAPES);
    f->blocks[f->n_blocks++] = blocks;
    return STATUS_OK;
}

/** The same of a list of rows and columns; NULL: there is none. */
static enum status read_blocks(struct model_folder *f, const cJSON *list, struct status_why *why)
{
    if (!list)
        return STATUS_OK;
    const cJSON *rows = cJSON_GetArrayItem(list, 0), *columns = cJSON_GetArrayItem(list, 1);
    bool are = cJSON_IsNumber(rows) && cJSON_IsNumber(columns) && !columns->next;
    return add_blocks(f, list->string, are ? rows->valuedouble : 0, are ? columns->valuedouble : 0,
                      why);
}

/** One of compressed-tensors' groups. */
static enum status read_group(struct model_folder *f, const cJSON *group, struct status_why *why)
{
    const cJSON *weights = member(group, "weights"), *size = member(weights, "group_size");
    const cJSON *format = member(group, "format"), *type = member(weights, "type");
    enum status status = STATUS_OK;
    if (!is_one_of(format, "float-quantized naive-quantized nvfp4-pack-quantized dense"))
        return refuse(f, "compressed-tensors' format", format, "", why);
    if (!is_one_of(type, "float"))
        return refuse(f, "compressed-tensors' type", type, "", why);
    if (cJSON_IsNumber(size) && size->valuedouble > 0)
        status = add_blocks(f, size->string, 1, size->valuedouble, why);
    return status ? status : read_blocks(f, member(weights, "block_structure"), why);
}

static enum status read_compressed(struct model_folder *f, const cJSON *quantised,
                                   struct status_why *why)
{
    const cJSON *format = member(quantised, "format");
    const cJSON *sparse = member(member(quantised, "sparsity_config"), "format");
    const cJSON *turned = member(member(quantised, "transform_config"), "config_groups");
    if (!is_one_of(format, "float-quantized naive-quantized nvfp4-pack-quantized mixed-precision "
                           "dense"))
        return refuse(f, "compressed-tensors' format", format,
                      base_words_index("pack-quantized int-quantized",
                                       cJSON_IsString(format) ? format->valuestring : "") >= 0
                          ? ", or a GGUF file that llama.cpp's convert_hf_to_gguf.py makes"
                          : "",
                      why);
    if (!is_one_of(sparse, "dense"))
        return refuse(f, "compressed-tensors' sparse format", sparse, "", why);
    if (turned && turned->child)
        return model_config_fail(f, STATUS_UNSUPPORTED, why,
                                 "the activations are turned before they meet the weights "
                                 "(member 'transform_config'), which is not read; expected none");
    const cJSON *group;
    cJSON_ArrayForEach(group, member(quantised, "config_groups"))
    {
        enum status status = read_group(f, group, why);
        if (status)
            return status;
    }
    return STATUS_OK;
}

/** ModelOpt's description, which lies within a further object in hf_quant_config.json. */
static enum status read_modelopt(struct model_folder *f, const cJSON *quantised,
                                 struct status_why *why)
{
    static const char known[] = "FP8 NVFP4 MIXED_PRECISION FP8_PER_CHANNEL_PER_TOKEN";
    const cJSON *within = member(quantised, "quantization"), *layer;
    if (within)
        quantised = within;
    const cJSON *algorithm = member(quantised, "quant_algo");
    if (!is_one_of(algorithm, known))
        return refuse(f, "modelopt's quant_algo", algorithm, "", why);
    cJSON_ArrayForEach(layer, member(quantised, "quantized_layers"))
    {
        algorithm = member(layer, "quant_algo");
        if (!is_one_of(algorithm, known))
            return refuse(f, "modelopt's quant_algo", algorithm, "", why);
    }
    return STATUS_OK;
}

static enum status read_method(struct model_folder *f, const cJSON *quantised,
                               struct status_why *why)
{
    const cJSON *method = member(quantised, "quant_method");
    const char *name = cJSON_IsString(method) ? method->valuestring : "";
    if (strcmp(name, "fp8") == 0)
        return read_blocks(f, member(quantised, "weight_block_size"), why);
    if (strcmp(name, "compressed-tensors") == 0)
        return read_compressed(f, quantised, why);
    if (strcmp(name, "modelopt") == 0)
        return read_modelopt(f, quantised, why);
    if (strcmp(name, "mxfp4") == 0)
        return STATUS_OK;
    return refuse(f, "quant_method", method,
                  base_words_index("gptq bitnet", name) >= 0
                      ? ", or a GGUF file that llama.cpp's convert_hf_to_gguf.py makes"
                      : "",
                  why);
}

/** hf_quant_config.json, which counts where config.json says nothing. */
static enum status read_further(struct model_folder *f, struct status_why *why)
{
    static const char name[] = "hf_quant_config.json";
    struct gguf_map map;
    bool found;
    cJSON *root = NULL;
    enum status status = safetensors_map_json(&map, f->path, name, &found, why);
    if (status || !found)
        return status;
    status = base_json_has_nul(map.data, map.n_bytes)
                 ? STATUS_FORMAT
                 : base_json_parse(&root, map.data, map.n_bytes, NULL, why);
    gguf_map_close(&map);
    if (status == STATUS_FORMAT)
        status = status_fail(why, STATUS_FORMAT, "%s: %s: is no JSON", f->path, name);
    else if (!status)
        status = read_modelopt(f, root, why);
    cJSON_Delete(root);
    return status;
}

enum status model_config_quantisation(struct model_folder *f, struct status_why *why)
{
    const cJSON *quantised = model_config_any(f, "quantization_config compression_config");
    if (!quantised)
        return read_further(f, why);
    return read_method(f, quantised, why);
}
