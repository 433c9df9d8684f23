/* How a folder says that its weights are quantised: which methods are read, and blocks of scales.
 * Which tensors are quantised is not looked at here: what lies beside a tensor says it
 * (quantised.c). */
#include <math.h>
#include <string.h>

#include "base/text/words.h"
#include "model/folder/state.h"

/** What to do with a folder that is not read. */
static const char instead[] =
    "expected fp8, mxfp4, gptq, awq, modelopt (FP8, NVFP4) or compressed-tensors "
    "(float-quantized, pack-quantized, nvfp4-pack-quantized, mxfp4-pack-quantized); take the "
    "folder that it was made of";

static bool is_in(struct base_field item, const char *words)
{
    return cJSON_IsString(item.json) && base_words_index(words, item.json->valuestring) >= 0;
}

/** elsewhere: words of what a converter reads. */
static void refuse(const struct model_folder *f, const char *what, struct base_field item,
                   const char *elsewhere)
{
    struct base_field_shown shown;
    model_config_fail(
        f, STATUS_UNSUPPORTED, "the weights are quantised (%s %s), which is not read; %s%s", what,
        cJSON_IsString(item.json) ? base_field_show(&shown, item) : "'no text'", instead,
        is_in(item, elsewhere) ? ", or a GGUF file that llama.cpp's convert_hf_to_gguf.py makes"
                               : "");
}

/** A text must be one of these words. What is absent passes. */
static void check(const struct model_folder *f, const char *what, struct base_field item,
                  const char *words, const char *elsewhere)
{
    if (item.json && !is_in(item, words))
        refuse(f, what, item, elsewhere);
}

/** A shape that blocks of one scale may have.   from: whose value it is. */
static void add_blocks(struct model_folder *f, struct base_field from, double rows, double columns)
{
    if (!(rows >= 1 && rows <= INT32_MAX && columns >= 1 && columns <= INT32_MAX) ||
        rows != floor(rows) || columns != floor(columns)) {
        base_field_fail(from, STATUS_FORMAT, "is no list of two whole numbers from 1 to 2^31 - 1");
        return;
    }
    struct model_blocks blocks = {(uint64_t)rows, (uint64_t)columns};
    for (size_t i = 0; i < f->n_blocks; i++)
        if (f->blocks[i].rows == blocks.rows && f->blocks[i].columns == blocks.columns)
            return;
    if (f->n_blocks == MODEL_BLOCK_SHAPES)
        model_config_fail(f, STATUS_UNSUPPORTED, "more than %d shapes of blocks, expected fewer",
                          MODEL_BLOCK_SHAPES);
    else
        f->blocks[f->n_blocks++] = blocks;
}

/** The same of a list of rows and columns, where there is one. */
static void read_blocks(struct model_folder *f, struct base_field list)
{
    bool are = base_field_count(list) == 2;
    if (list.json)
        add_blocks(f, list, are ? model_config_at(list, 0) : 0, are ? model_config_at(list, 1) : 0);
}

/** One of compressed-tensors' groups.   format: of those that have none. */
static void read_group(struct model_folder *f, struct base_field group, struct base_field format)
{
    struct base_field weights = base_field_find(group, "weights");
    struct base_field size = base_field_find(weights, "group_size");
    struct base_field own = base_field_find(group, "format");
    check(f, "compressed-tensors' format", own,
          "float-quantized naive-quantized pack-quantized nvfp4-pack-quantized "
          "mxfp4-pack-quantized dense",
          "int-quantized");
    if (base_field_is(own.json ? own : format, "pack-quantized")) {
        model_schemes_group(f, weights);
        return;
    }
    check(f, "compressed-tensors' type", base_field_find(weights, "type"), "float", "");
    if (cJSON_IsNumber(size.json) && size.json->valuedouble > 0)
        add_blocks(f, size, 1, size.json->valuedouble);
    read_blocks(f, base_field_find(weights, "block_structure"));
}

static void read_compressed(struct model_folder *f, struct base_field quantised)
{
    struct base_field turned = base_field_find(quantised, "transform_config.config_groups");
    struct base_field format = base_field_find(quantised, "format");
    check(f, "compressed-tensors' format", format,
          "float-quantized naive-quantized pack-quantized nvfp4-pack-quantized "
          "mxfp4-pack-quantized mixed-precision dense",
          "int-quantized");
    check(f, "compressed-tensors' sparse format",
          base_field_find(quantised, "sparsity_config.format"), "dense", "");
    if (turned.json && turned.json->child)
        model_config_fail(f, STATUS_UNSUPPORTED,
                          "the activations are turned before they meet the weights (member "
                          "'transform_config'), which is not read; expected none");
    struct base_field groups = base_field_find(quantised, "config_groups");
    for (struct base_field group = {0}; base_field_next(groups, &group);)
        read_group(f, group, format);
    if (f->packing.packer)
        f->packing.kept = base_field_find(quantised, "ignore");
}

/** ModelOpt's description, which lies within a further object in hf_quant_config.json. */
static void read_modelopt(struct model_folder *f, struct base_field quantised)
{
    static const char known[] = "FP8 NVFP4 MIXED_PRECISION FP8_PER_CHANNEL_PER_TOKEN";
    static const char what[] = "modelopt's quant_algo";
    struct base_field within = base_field_find(quantised, "quantization");
    quantised = within.json ? within : quantised;
    check(f, what, base_field_find(quantised, "quant_algo"), known, "");
    struct base_field layers = base_field_find(quantised, "quantized_layers");
    for (struct base_field layer = {0}; base_field_next(layers, &layer);)
        check(f, what, base_field_find(layer, "quant_algo"), known, "");
}

static void read_method(struct model_folder *f, struct base_field quantised)
{
    struct base_field method = base_field_get(quantised, "quant_method");
    const char *name = cJSON_IsString(method.json) ? method.json->valuestring : "";
    if (strcmp(name, "fp8") == 0)
        read_blocks(f, base_field_find(quantised, "weight_block_size"));
    else if (strcmp(name, "compressed-tensors") == 0)
        read_compressed(f, quantised);
    else if (strcmp(name, "modelopt") == 0)
        read_modelopt(f, quantised);
    else if (strcmp(name, "gptq") == 0)
        model_schemes_gptq(f, quantised);
    else if (strcmp(name, "awq") == 0)
        model_schemes_awq(f, quantised);
    else if (strcmp(name, "mxfp4") != 0)
        refuse(f, "quant_method", method, "bitnet");
}

/** Files beside config.json that say it, by who writes them. */
static const struct further {
    const char *file;
    void (*read)(struct model_folder *f, struct base_field quantised);
} further[] = {{"hf_quant_config.json", read_modelopt},
               {"quantize_config.json", model_schemes_gptq},
               {"quant_config.json", model_schemes_awq}};

/** One of these files. Returns whether it is there. */
static bool read_further(struct model_folder *f, const struct further *from)
{
    struct base_json_reader json = {.file = from->file};
    struct status_why why = {""};
    struct gguf_map map;
    bool found;
    enum status status = safetensors_map_json(&map, f->path, json.file, &found, &why);
    if (!status && found) {
        base_json_open(&json, map.data, map.n_bytes);
        gguf_map_close(&map);
        status = base_json_status(&json, &why);
    }
    base_json_keep(&f->json, status, &why);
    if (!status && found) {
        from->read(f, base_json_root(&json));
        f->packing.kept = (struct base_field){0}; /* which ends with the file */
        status = base_json_status(&json, &why);
        base_json_keep(&f->json, status, &why);
    }
    base_json_close(&json);
    return found;
}

void model_config_quantisation(struct model_folder *f)
{
    struct base_field quantised = model_config_find(f, "quantization_config compression_config");
    bool found = quantised.json != NULL;
    if (found)
        read_method(f, quantised);
    for (size_t i = 0; !found && i < sizeof further / sizeof *further; i++)
        found = read_further(f, &further[i]);
}
