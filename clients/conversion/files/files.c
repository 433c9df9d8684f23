#include "clients/conversion/files/files.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/strtab.h"
#include "clients/conversion/compare.h"
#include "kernels/kernels.h"

/* Beginnings of keys that nothing is computed from. */
static const char *const about[] = {"general.", "quantize.", "split.", "assay.", "imatrix."};

/*
 * The most of the bytes of tensors that differ where one program was compiled in two ways, whose
 * float32 sums of candidates for a scale differ in the last bits: at most 2.4 % did, and 11 to 40
 * % with another importance matrix or none (docs/comparing.md).
 */
static const double compiled_share = 0.05;

/*
 * How far numbers of two types without blocks may be apart, of the value, where both files have
 * rounded the same ones: half a unit of BF16 is 2^-9 of it at most, and both may have one.
 */
static const double plain_error = 0x1p-8;

static bool is_read(const struct gguf_kv *kv)
{
    for (size_t i = 0; i < sizeof about / sizeof *about; i++) {
        size_t n = strlen(about[i]);
        if (kv->key.n_bytes >= n && memcmp(kv->key.data, about[i], n) == 0)
            return kv->key.n_bytes == sizeof "general.architecture" - 1 &&
                   memcmp(kv->key.data, "general.architecture", kv->key.n_bytes) == 0;
    }
    return true;
}

/** Whether whole numbers have one value: readers take any type of them. */
static bool equal_int(const struct gguf_kv *a, const struct gguf_kv *b, uint64_t i)
{
    bool big_a = a->element_type == GGUF_VALUE_U64, big_b = b->element_type == GGUF_VALUE_U64;
    int64_t of_a = gguf_kv_int(a, i), of_b = gguf_kv_int(b, i);
    return of_a == of_b && (of_a >= 0 || big_a == big_b);
}

static bool equal(const struct gguf_kv *a, const struct gguf_kv *b)
{
    bool arrays = a->type == GGUF_VALUE_ARRAY, one_type = a->element_type == b->element_type;
    bool whole = gguf_value_is_int(a->element_type) && gguf_value_is_int(b->element_type);
    if (arrays != (b->type == GGUF_VALUE_ARRAY) || a->count != b->count || (!one_type && !whole))
        return false;
    for (uint64_t i = 0; i < a->count && !one_type; i++)
        if (!equal_int(a, b, i))
            return false;
    if (!one_type)
        return true;
    size_t n = gguf_kv_bytes(a);
    return n == gguf_kv_bytes(b) && memcmp(a->data, b->data, n) == 0;
}

static void add_key(struct conv_files *out, const struct gguf_kv *a, const struct gguf_kv *b)
{
    if (a && b && equal(a, b))
        return;
    bool read = is_read(a ? a : b);
    out->keys[out->n_keys++] = (struct conv_both_key){a, b, read};
    out->n_keys_read += read;
}

/** Keys of A in its order, then those of B alone. of_b: [keys of B], by their numbers in names. */
static enum status match_keys(struct conv_files *out, const struct conv_files_options *o,
                              struct base_strtab *names, const struct gguf_kv **of_b,
                              struct status_why *why)
{
    size_t n_a = gguf_n_kv(o->a), n_b = gguf_n_kv(o->b);
    enum status status = base_array_new(out->keys, n_a + n_b + 1, "keys", why);
    int32_t number = 0;
    for (size_t i = 0; i < n_b && !status; i++) {
        const struct gguf_kv *b = gguf_kv_at(o->b, i);
        status = base_strtab_add(names, b->key, &number, why);
        if (!status)
            of_b[number] = b;
    }
    for (size_t i = 0; i < n_a && !status; i++) {
        const struct gguf_kv *a = gguf_kv_at(o->a, i);
        number = base_strtab_find(names, a->key);
        add_key(out, a, number < 0 ? NULL : of_b[number]);
        if (number >= 0)
            of_b[number] = NULL;
    }
    for (size_t i = 0; i < n_b && !status; i++)
        if (of_b[i])
            add_key(out, NULL, of_b[i]);
    return status;
}

static enum status compare_keys(struct conv_files *out, const struct conv_files_options *o,
                                struct status_why *why)
{
    struct base_strtab names = {0};
    const struct gguf_kv **of_b;
    enum status status = base_array_new(of_b, gguf_n_kv(o->b) + 1, "keys", why);
    if (!status)
        status = match_keys(out, o, &names, of_b, why);
    base_strtab_free(&names);
    free(of_b);
    return status;
}

/** Count a piece of n bytes as a block. */
static void count_block(struct conv_both *t, uint64_t at, size_t n)
{
    const uint8_t *a = (const uint8_t *)t->a->data + at, *b = (const uint8_t *)t->b->data + at;
    uint64_t differ = 0;
    if (memcmp(a, b, n) != 0)
        for (size_t i = 0; i < n; i++)
            differ += a[i] != b[i];
    t->n_blocks++;
    t->n_blocks_differ += differ > 0;
    t->n_bytes_differ += differ;
}

static bool is_cancelled(const atomic_bool *cancel)
{
    return cancel && atomic_load_explicit(cancel, memory_order_relaxed);
}

/**
 * Count blocks, or what a bundle of rows has of a block's columns; what rows begin with is one,
 * too. Where it is cancelled the rest is not counted.
 */
static void count_blocks(struct conv_both *t, const atomic_bool *cancel)
{
    const struct gguf_type_info *type = t->a->type;
    uint64_t rows = t->a->n_rows % type->bundle_rows == 0 ? type->bundle_rows : 1;
    uint64_t bundle = rows * t->a->row_bytes, prefix = rows * type->row_prefix;
    size_t step = (size_t)(rows * type->block_bytes);
    t->n_bytes = t->a->n_bytes;
    for (uint64_t first = 0;
         first + bundle <= t->n_bytes - type->tail_bytes && !is_cancelled(cancel);
         first += bundle) {
        if (prefix)
            count_block(t, first, (size_t)prefix);
        for (uint64_t at = prefix; at < bundle; at += step)
            count_block(t, first + at, step);
    }
    if (type->tail_bytes)
        count_block(t, t->n_bytes - type->tail_bytes, type->tail_bytes);
}

struct comparing {
    struct conv_files *out;
    const struct conv_files_options *options;
    struct conv_work work;
    struct conv_sums differ, base[2]; /* of all values that differ */
};

static bool can_decode(const struct gguf_tensor *t)
{
    return kern_quant_find(t->type->type) != NULL;
}

/** Whether a type has more bits than another; of the two with 16, F16 has the finer steps. */
static bool is_finer(const struct gguf_type_info *a, const struct gguf_type_info *b)
{
    uint32_t of_a = a->block_bytes * b->block_elems, of_b = b->block_bytes * a->block_elems;
    return of_a > of_b || (of_a == of_b && a->type == GGUF_TYPE_F16 && b->type == GGUF_TYPE_BF16);
}

/**
 * Blocks are judged by their type's step. Numbers of one type without blocks are the same or are
 * not; those of two types are as near as rounding leaves them, which is coarse for small halves.
 */
static struct conv_judge judge_of(const struct gguf_type_info *found,
                                  const struct gguf_type_info *expected)
{
    bool half = found->type == GGUF_TYPE_F16 || expected->type == GGUF_TYPE_F16;
    if (found->block_elems > 1 || expected->block_elems > 1)
        return (struct conv_judge){CONV_STEP, found, 0};
    if (found == expected)
        return (struct conv_judge){CONV_EXACT, gguf_type_info(GGUF_TYPE_F32), 0};
    return (struct conv_judge){CONV_NEAR, half ? gguf_type_info(GGUF_TYPE_F16) : found,
                               plain_error};
}

/** Sum up a tensor and what it is held against. right: stays true where all matrices are. */
static enum status sum(const struct comparing *c, struct conv_sums *out, bool *right,
                       const struct gguf_file *file, const struct gguf_tensor *found,
                       const struct gguf_file *of_file, const struct gguf_tensor *expected,
                       struct status_why *why)
{
    struct conv_view view = conv_view_of(expected);
    const struct gguf_tensor *scales = conv_scales(of_file, expected);
    view.scales = scales ? scales->data : NULL;
    view.n_scales = scales ? scales->ne[0] : 0;
    struct conv_pair pair = conv_pair_of(file, found, &view);
    pair.judge = judge_of(found->type, expected->type);
    size_t n = conv_n_matrices(&pair.found);
    struct conv_sums *matrices;
    if (base_array_new(matrices, n, "matrices", why))
        return STATUS_MEMORY;
    enum status status = conv_compare_rows(&c->work, &pair, matrices, why);
    *out = conv_sums_of(matrices, status ? 0 : n);
    for (size_t i = 0; i < n && !status && right; i++)
        *right &= conv_judge_matrix(&pair.judge, &matrices[i]);
    free(matrices);
    return status;
}

/** Whether tensors are as near as versions of one matrix, by the type of the coarser one. */
static enum status judge(const struct comparing *c, struct conv_both *t, struct status_why *why)
{
    const struct conv_files_options *o = c->options;
    struct conv_sums turned;
    bool right = true, b_is_fine = is_finer(t->b->type, t->a->type);
    t->judged = true;
    enum status status = sum(c, &t->sums, b_is_fine ? NULL : &right, o->b, t->b, o->a, t->a, why);
    if (!status && b_is_fine)
        status = sum(c, &turned, &right, o->a, t->a, o->b, t->b, why);
    if (status)
        return status;
    const struct conv_sums *judged = b_is_fine ? &turned : &t->sums;
    t->n_rows_far = judged->n_rows_wrong;
    t->first_row_far = judged->first_row;
    t->n_finite_once = t->sums.n_nonfinite + t->sums.n_made_finite;
    t->version = right && t->n_finite_once == 0;
    const struct gguf_tensor *base = o->base ? gguf_tensor_find(o->base, t->a->name) : NULL;
    t->has_base = base && can_decode(base) && memcmp(base->ne, t->a->ne, sizeof base->ne) == 0;
    for (size_t side = 0; side < 2 && t->has_base && !status; side++)
        status = sum(c, &t->base[side], NULL, side ? o->b : o->a, side ? t->b : t->a, o->base, base,
                     why);
    return status;
}

static enum status compare_pair(struct comparing *c, struct conv_both *t, struct status_why *why)
{
    struct conv_files *out = c->out;
    bool one_type = t->a->type == t->b->type;
    if (memcmp(t->a->ne, t->b->ne, sizeof t->a->ne) != 0)
        t->pairing = CONV_OTHER_SHAPE;
    else if (!one_type)
        t->pairing = CONV_OTHER_TYPE;
    else {
        count_blocks(t, c->options->cancel);
        t->pairing = t->n_blocks_differ ? CONV_OTHER_BYTES : CONV_SAME;
        out->n_bytes += t->n_bytes;
        out->n_bytes_differ += t->n_bytes_differ;
        out->n_blocks += t->n_blocks;
        out->n_blocks_differ += t->n_blocks_differ;
    }
    bool matrix = t->a->n_rows > 1;
    out->n_matrices += matrix && t->pairing != CONV_OTHER_SHAPE;
    if (t->pairing == CONV_SAME || t->pairing == CONV_OTHER_SHAPE)
        return STATUS_OK;
    out->n_bytes_of_differing += one_type ? t->n_bytes : 0;
    if (!can_decode(t->a) || !can_decode(t->b)) { /* tables, which have no nearly */
        out->n_far++;
        return STATUS_OK;
    }
    enum status status = judge(c, t, why);
    if (status)
        return status;
    out->n_far += !t->version;
    out->n_unrelated += matrix && conv_judge_unrelated(&t->sums);
    conv_sums_add(&c->differ, &t->sums);
    for (size_t side = 0; side < 2 && t->has_base; side++)
        conv_sums_add(&c->base[side], &t->base[side]);
    return STATUS_OK;
}

static enum status compare_tensors(struct comparing *c, struct status_why *why)
{
    const struct conv_files_options *o = c->options;
    struct conv_files *out = c->out;
    size_t n_a = gguf_n_tensors(o->a), n_b = gguf_n_tensors(o->b);
    enum status status = base_array_new(out->tensors, n_a + n_b + 1, "tensors", why);
    for (size_t i = 0; i < n_a && !status; i++) {
        struct conv_both *t = &out->tensors[out->n_tensors++];
        t->pairing = CONV_ONLY_A;
        t->a = gguf_tensor_at(o->a, i);
        t->b = gguf_tensor_find(o->b, t->a->name);
        if (t->b)
            status = compare_pair(c, t, why);
        if (!status && is_cancelled(o->cancel))
            status = status_fail(why, STATUS_CANCELLED, "interrupted: there is no result");
        out->n[t->pairing]++;
        if (o->progress)
            o->progress(o->user, (double)(i + 1) / (double)n_a);
    }
    for (size_t i = 0; i < n_b && !status; i++) {
        const struct gguf_tensor *b = gguf_tensor_at(o->b, i);
        if (gguf_tensor_find(o->a, b->name))
            continue;
        out->tensors[out->n_tensors++] = (struct conv_both){.pairing = CONV_ONLY_B, .b = b};
        out->n[CONV_ONLY_B]++;
    }
    return status;
}

static enum conv_kin kin_of(const struct conv_files *f)
{
    size_t alone = f->n[CONV_ONLY_A] + f->n[CONV_ONLY_B];
    size_t apart = alone + f->n[CONV_OTHER_SHAPE];
    if (f->n[CONV_SAME] == f->n_tensors)
        return !f->n_keys ? CONV_KIN_SAME : f->n_keys_read ? CONV_KIN_KEYS : CONV_KIN_METADATA;
    if (2 * apart > f->n_tensors || (f->n_matrices > 0 && 2 * f->n_unrelated > f->n_matrices))
        return CONV_KIN_NONE;
    if (f->n_far > 0 || f->n[CONV_OTHER_SHAPE] > 0)
        return CONV_KIN_WEIGHTS;
    if (f->n[CONV_OTHER_TYPE] > 0 || alone > 0)
        return CONV_KIN_RECIPE;
    bool few = (double)f->n_bytes_differ <= compiled_share * (double)f->n_bytes_of_differing;
    return few ? CONV_KIN_COMPILER : CONV_KIN_MATRIX;
}

enum status conv_files_compare(struct conv_files *out, const struct conv_files_options *options,
                               struct status_why *why)
{
    struct comparing c = {.out = out, .options = options, .differ = conv_sums_none()};
    c.base[0] = c.base[1] = conv_sums_none();
    enum status status = compare_keys(out, options, why);
    if (!status)
        status = conv_work_open(&c.work, options->n_threads, options->cancel, why);
    if (!status)
        status = compare_tensors(&c, why);
    conv_work_close(&c.work);
    out->kin = kin_of(out);
    out->error = c.differ.n ? conv_error(&c.differ) : 0;
    for (size_t side = 0; side < 2; side++)
        out->base_error[side] = c.base[side].n ? conv_error(&c.base[side]) : (double)NAN;
    return status;
}

void conv_files_free(struct conv_files *files)
{
    free(files->tensors);
    free(files->keys);
    *files = (struct conv_files){0};
}

const char *conv_pairing_name(enum conv_pairing pairing)
{
    static const char *const names[CONV_N_PAIRINGS] = {"same",  "values", "type",
                                                       "shape", "only_a", "only_b"};
    return names[pairing];
}

const char *conv_kin_name(enum conv_kin kin)
{
    static const char *const names[CONV_N_KINS] = {"same",   "metadata", "keys",    "compiler",
                                                   "matrix", "recipe",   "weights", "none"};
    return names[kin];
}

const char *conv_files_sentence(char out[CONV_SENTENCE_BYTES], const struct conv_files *f,
                                const char *a, const char *b)
{
    static const char *const words[CONV_N_KINS] = {
        "the same keys and tensors",
        "the same file but for metadata",
        "the same tensors, but keys differ that are read",
        "the same recipe from another compiler, version or machine",
        ("the same types, and values as near as another importance matrix, another program or a "
         "small change of the weights makes them"),
        "the same model by another recipe",
        "other weights (a fine-tune, a merge, or a tensor that is wrong)",
        "another model",
    };
    const struct {
        bool of_kin;
        size_t n;
        const char *one, *many;
    } parts[] = {
        {true, f->n[CONV_OTHER_TYPE], "tensor has another type", "tensors have another type"},
        {true, f->n[CONV_OTHER_SHAPE], "tensor has another shape", "tensors have another shape"},
        {true, f->n[CONV_ONLY_A] + f->n[CONV_ONLY_B], "tensor is in one of them only",
         "tensors are in one of them only"},
        {f->kin == CONV_KIN_WEIGHTS, f->n_far, "is further from the other than their types explain",
         "are further from each other than their types explain"},
        {f->kin > CONV_KIN_KEYS, f->n_keys_read, "key differs that is read",
         "keys differ that are read"},
    };
    snprintf(out, CONV_SENTENCE_BYTES, "%.300s and %.300s: %s", a, b, words[f->kin]);
    size_t used = strlen(out);
    if (f->kin == CONV_KIN_COMPILER || f->kin == CONV_KIN_MATRIX)
        snprintf(out + used, CONV_SENTENCE_BYTES - used,
                 "; %.2g %% of bytes differ, in %zu of %zu tensors",
                 100 * (double)f->n_bytes_differ / (double)f->n_bytes, f->n[CONV_OTHER_BYTES],
                 f->n_tensors);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        used = strlen(out);
        if (parts[i].of_kin && parts[i].n)
            snprintf(out + used, CONV_SENTENCE_BYTES - used, "; %zu %s", parts[i].n,
                     parts[i].n == 1 ? parts[i].one : parts[i].many);
    }
    return out;
}
