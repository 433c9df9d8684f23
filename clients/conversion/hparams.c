/* Hyper-parameters as the model reads them: keys that a file leaves out have their defaults. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "clients/conversion/keys.h"
#include "model/hparams/table.h"

static double value_of(const struct model_hparam *row, const void *object)
{
    const char *at = (const char *)object + row->at;
    float f32;
    uint32_t u32;
    double f64;
    switch (row->kind) {
    case MODEL_HPARAM_F32:
    case MODEL_HPARAM_CAP:
        memcpy(&f32, at, sizeof f32);
        return (double)f32;
    case MODEL_HPARAM_F64:
        memcpy(&f64, at, sizeof f64);
        return f64;
    case MODEL_HPARAM_BOOL:
        return *at != 0;
    default: /* enumerations have the size of an int, here */
        memcpy(&u32, at, sizeof u32);
        return u32;
    }
}

/** A product of logarithms may be rounded in more than one way; what is stored may not. */
static bool same(const struct model_hparam *row, double a, double b)
{
    return a == b || (row->kind == MODEL_HPARAM_F64 && fabs(a - b) <= 1e-6 * fabs(a));
}

static void write_value(char text[CONV_VALUE_BYTES], const struct model_hparam *row, double value,
                        int64_t layer)
{
    static const char *const scalings[] = {"none", "linear", "yarn", "longrope"};
    size_t used = 0;
    if (row->kind == MODEL_HPARAM_BOOL)
        used = (size_t)snprintf(text, CONV_VALUE_BYTES, "%s", value != 0 ? "true" : "false");
    else if (row->kind == MODEL_HPARAM_SCALING && value >= 0 && value < 4)
        used = (size_t)snprintf(text, CONV_VALUE_BYTES, "%s", scalings[(int)value]);
    else
        used = (size_t)snprintf(text, CONV_VALUE_BYTES, "%.9g", value);
    if (layer >= 0)
        snprintf(text + used, CONV_VALUE_BYTES - used, " (layer %d)", (int)layer);
}

struct both {
    struct conv_result *out;
    const struct model_hparams *folder, *file;
    const struct gguf_file *read_from;
    bool lacks_windows; /* the file has no key of windows, which its reader has by default */
};

static bool has_key(const struct gguf_file *file, const char *architecture, const char *suffix)
{
    char key[CONV_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s", architecture, suffix);
    return gguf_kv_find(file, key) != NULL;
}

static void differ(const struct both *b, const struct model_hparam *row, const char *use,
                   const double values[2], int64_t layer)
{
    char texts[2][CONV_VALUE_BYTES], key[CONV_KEY_BYTES];
    snprintf(key, sizeof key, "%s.%s%s", b->folder->architecture, row->suffix, use);
    write_value(texts[0], row, values[0], layer);
    write_value(texts[1], row, values[1], layer);
    conv_differ_text(b->out, CONV_HPARAM, key, texts[0], texts[1]);
}

/** Whether a row is of this place, and worth a look. */
static bool is_at(const struct both *b, const struct model_hparam *row,
                  enum model_hparam_place place)
{
    return row->place == place &&
           (!row->own || has_key(b->read_from, b->file->architecture, row->suffix));
}

/** Rows of one place, whose members the two objects have; use: of RoPE, an ending of the key. */
static void compare_members(const struct both *b, enum model_hparam_place place, const char *use,
                            const void *folder, const void *file)
{
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++) {
        if (!is_at(b, row, place))
            continue;
        const double values[2] = {value_of(row, folder), value_of(row, file)};
        b->out->n_hparams++;
        if (!same(row, values[0], values[1]))
            differ(b, row, use, values, -1);
    }
}

/** The first layer in which a row differs. */
static void compare_layers(const struct both *b, const struct model_hparam *row)
{
    uint32_t n = b->folder->n_layers < b->file->n_layers ? b->folder->n_layers : b->file->n_layers;
    bool of_windows = row->at == offsetof(struct model_layer_shape, window) ||
                      row->at == offsetof(struct model_layer_shape, slides);
    b->out->n_hparams++;
    for (uint32_t i = 0; i < n; i++) {
        const double values[2] = {value_of(row, &b->folder->layers[i]),
                                  value_of(row, &b->file->layers[i])};
        bool unsaid = of_windows && b->lacks_windows && b->folder->layers[i].window == 0;
        if (!unsaid && !same(row, values[0], values[1])) {
            differ(b, row, "", values, i);
            return;
        }
    }
}

static void compare_all_layers(const struct both *b, enum model_hparam_place place)
{
    for (const struct model_hparam *row = model_hparam_table; row->suffix; row++)
        if (is_at(b, row, place))
            compare_layers(b, row);
}

static bool uses(const struct model_hparams *h, int rope)
{
    bool does = false;
    for (uint32_t i = 0; i < h->n_layers; i++)
        does |= h->layers[i].rope == rope;
    return does;
}

static void compare_ropes(const struct both *b)
{
    for (int use = 0; use < MODEL_N_ROPES; use++) {
        const struct model_rope *folder = &b->folder->ropes[use], *file = &b->file->ropes[use];
        const char *suffix = use == MODEL_ROPE_SLIDING ? "_swa" : "";
        if (!uses(b->folder, use) && !uses(b->file, use))
            continue;
        compare_members(b, MODEL_HPARAM_OF_ROPES, suffix, folder, file);
        if (folder->scaling != MODEL_ROPE_NONE && folder->scaling == file->scaling)
            compare_members(b, MODEL_HPARAM_OF_SCALED, suffix, folder, file);
    }
}

void conv_compare_hparams(struct conv_result *out, const struct model_hparams *folder,
                          const struct gguf_file *file, const struct model_hparams *read)
{
    struct both b = {out, folder, read, file,
                     !has_key(file, read->architecture, "attention.sliding_window")};
    if (strcmp(folder->architecture, read->architecture) != 0)
        conv_differ_text(out, CONV_HPARAM, "general.architecture", folder->architecture,
                         read->architecture);
    compare_members(&b, MODEL_HPARAM_OF_MODEL, "", folder, read);
    compare_all_layers(&b, MODEL_HPARAM_OF_LAYERS);
    if (folder->compressed_keys == read->compressed_keys)
        compare_all_layers(&b, MODEL_HPARAM_OF_HEADS);
    compare_ropes(&b);
}
