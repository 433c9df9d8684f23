#include "tests/gguf/sample.h"

#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_bytes.h"

/* A pair of any type, through the writer's copy. */
static void put(struct gguf_writer *w, const char *key, enum gguf_value_type type,
                enum gguf_value_type element_type, uint64_t count, const void *value)
{
    struct gguf_kv kv = {
        .key = {key, strlen(key)},
        .type = type,
        .element_type = element_type,
        .count = count,
        .data = value,
    };
    gguf_writer_copy(w, &kv);
}

static void put_scalar(struct gguf_writer *w, const char *key, enum gguf_value_type type,
                       const void *value)
{
    put(w, key, type, type, 1, value);
}

static void put_pairs(struct gguf_writer *w)
{
    gguf_writer_string(w, "general.architecture", "sample");
    gguf_writer_u32(w, "general.alignment", 32);
    put_scalar(w, "t.u8", GGUF_VALUE_U8, &(uint8_t){200});
    put_scalar(w, "t.i8", GGUF_VALUE_I8, &(int8_t){-100});
    gguf_writer_u16(w, "t.u16", 60000);
    put_scalar(w, "t.i16", GGUF_VALUE_I16, &(int16_t){-30000});
    gguf_writer_u32(w, "t.u32", 4000000000u);
    gguf_writer_i32(w, "t.i32", -2000000000);
    gguf_writer_f32(w, "t.f32", 0.15625f);
    gguf_writer_bool(w, "t.bool", true);
    put_scalar(w, "t.u64", GGUF_VALUE_U64, &(uint64_t){UINT64_MAX});
    put_scalar(w, "t.i64", GGUF_VALUE_I64, &(int64_t){INT64_MIN});
    put_scalar(w, "t.f64", GGUF_VALUE_F64, &(double){0.1});
    struct base_string strings[] = {{"one", 3}, {"", 0}, {"three", 5}};
    gguf_writer_strings(w, "t.strings", strings, 3);
    gguf_writer_i32s(w, "t.i32s", (int32_t[]){1, -2, 3}, 3);
    gguf_writer_f32s(w, "t.f32s", (float[]){0.5f, -0.25f}, 2);
    put(w, "t.bools", GGUF_VALUE_ARRAY, GGUF_VALUE_BOOL, 2, (uint8_t[]){1, 0});
    put(w, "t.none", GGUF_VALUE_ARRAY, GGUF_VALUE_STRING, 0, "");
}

struct sample sample_make(void)
{
    static const struct {
        const char *name;
        enum gguf_type type;
        uint32_t n_dims;
        uint64_t ne[3];
    } tensors[] = {
        {"a.weight", GGUF_TYPE_F32, 2, {8, 2}},
        {"b.weight", GGUF_TYPE_Q4_0, 2, {32, 3}},
        {"c.weight", GGUF_TYPE_F16, 3, {4, 2, 2}},
        {"d.bias", GGUF_TYPE_F32, 1, {3}},
    };
    uint8_t bytes[4][64];
    struct gguf_writer *w;
    struct status_why why;
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    put_pairs(w);
    for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; i++) {
        for (size_t k = 0; k < sizeof bytes[i]; k++)
            bytes[i][k] = (uint8_t)(k + (uint8_t)tensors[i].name[0]);
        gguf_writer_tensor(w, tensors[i].name, tensors[i].type, tensors[i].ne, tensors[i].n_dims,
                           bytes[i]);
    }
    void *data;
    struct sample sample;
    assert_int_equal(gguf_writer_finish_memory(w, &data, &sample.n_bytes, &why), STATUS_OK);
    /* A block of exactly this size, so that sanitizers see a read beyond it. */
    sample.data = malloc(sample.n_bytes);
    assert_non_null(sample.data);
    memcpy(sample.data, data, sample.n_bytes);
    free(data);
    return sample;
}

struct sample sample_read(const char *path)
{
    struct sample bytes = {0};
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    assert_int_equal(fseek(stream, 0, SEEK_END), 0);
    bytes.n_bytes = (size_t)ftell(stream);
    rewind(stream);
    bytes.data = malloc(bytes.n_bytes);
    assert_non_null(bytes.data);
    assert_int_equal(fread(bytes.data, 1, bytes.n_bytes, stream), bytes.n_bytes);
    fclose(stream);
    return bytes;
}

struct gguf_file *sample_open(const struct sample *sample)
{
    struct gguf_file *file;
    struct status_why why = {0};
    if (gguf_bytes_open(&file, sample->data, sample->n_bytes, "sample", &why) != STATUS_OK)
        fail_msg("%s", why.text);
    return file;
}

size_t sample_after(const struct sample *sample, const char *text)
{
    const uint8_t *found = memmem(sample->data, sample->n_bytes, text, strlen(text));
    if (!found)
        fail_msg("the sample has no '%s'", text);
    return (size_t)(found - sample->data) + strlen(text);
}
