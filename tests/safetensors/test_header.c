/* Headers: what is read of good ones, and the sentence about each bad one. */
#include "gguf/safetensors/header.h"
#include "tests/harness/cmocka.h"
#include "tests/safetensors/bytes.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */

#define A_TENSOR "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}"
#define TWO_OF(begin, end)                                                                         \
    "{" A_TENSOR ",\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}}"

static enum status read_text(const char *header, size_t n_data, struct status_why *why)
{
    size_t n;
    uint8_t *bytes = safetensors_bytes(header, n_data, &n);
    struct safetensors_header h;
    enum status status = safetensors_header_read(&h, bytes, n, why);
    safetensors_header_free(&h);
    free(bytes);
    return status;
}

static void test_reads(void **state)
{
    (void)state;
    static const char text[] =
        "{\"__metadata__\":{\"format\":\"pt\"},"
        "\"late\":{\"dtype\":\"BF16\",\"shape\":[2,3],\"data_offsets\":[4,16]},"
        "\"none\":{\"shape\":[0,7],\"dtype\":\"F32\",\"data_offsets\":[4,4]},"
        "\"one\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}   ";
    size_t n;
    uint8_t *bytes = safetensors_bytes(text, 16, &n);
    struct safetensors_header h;
    struct status_why why = {""};
    assert_int_equal(safetensors_header_read(&h, bytes, n, &why), STATUS_OK);
    assert_int_equal(h.names.n, 3);
    assert_string_equal(h.tensors[0].name, "late");
    assert_int_equal(h.tensors[0].type, SAFETENSORS_BF16);
    assert_int_equal(h.tensors[0].n_dims, 2);
    assert_int_equal(h.tensors[0].shape[1], 3);
    assert_int_equal(h.tensors[0].n_bytes, 12);
    assert_int_equal(*(const uint8_t *)h.tensors[0].data, 4);
    assert_int_equal(h.tensors[1].n_elements, 0);
    assert_int_equal(h.tensors[2].n_dims, 0);
    assert_int_equal(h.tensors[2].offset, n - 16);
    safetensors_header_free(&h);
    free(bytes);
}

static const struct {
    const char *header;
    size_t n_data;
    enum status status;
    const char *says;
} wrong[] = {
    {"{", 0, STATUS_FORMAT, "no JSON"},
    {"[1]", 0, STATUS_FORMAT, "is not a safetensors file"},
    {"{} x", 0, STATUS_FORMAT, "something else than spaces"},
    {"{\"a\\u0000b\":1}", 0, STATUS_FORMAT, "U+0000"},
    {"{}", 3, STATUS_FORMAT, "the last 3 bytes belong to no tensor"},
    {"{\"__metadata__\":3}", 0, STATUS_FORMAT, "expected an object, once"},
    {"{\"__metadata__\":{},\"__metadata__\":{}}", 0, STATUS_FORMAT, "there twice"},
    {"{\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, STATUS_FORMAT,
     "an empty name"},
    {"{\"a\":3}", 0, STATUS_FORMAT, "tensor 'a': is no object of 3 members"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0],\"dtype\":\"U8\"}}", 0,
     STATUS_FORMAT, "is no object of 3 members"},
    {"{\"a\":{\"dtype\":\"F33\",\"shape\":[0],\"data_offsets\":[0,0]}}", 0, STATUS_UNSUPPORTED,
     "has dtype 'F33'"},
    {"{\"a\":{\"dtype\":3,\"shape\":[0],\"data_offsets\":[0,0]}}", 0, STATUS_FORMAT,
     "has no dtype"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":1,\"data_offsets\":[0,0]}}", 0, STATUS_FORMAT,
     "has no shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[-1],\"data_offsets\":[0,0]}}", 0, STATUS_FORMAT,
     "dimension 0 is no whole number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1.5],\"data_offsets\":[0,0]}}", 0, STATUS_FORMAT,
     "dimension 0 is no whole number"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
     STATUS_FORMAT, "dimension 1 is 4294967296, expected a product"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,1]}}", 1,
     STATUS_UNSUPPORTED, "has 9 dimensions"},
    {"{\"a\":{\"dtype\":\"F4\",\"shape\":[3],\"data_offsets\":[0,2]}}", 2, STATUS_FORMAT,
     "expected whole bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, STATUS_FORMAT,
     "from byte 0 to 4, expected 8 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, STATUS_FORMAT,
     "from byte 8 to 0, expected 8 bytes"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, STATUS_FORMAT,
     "has no data_offsets"},
    {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8,8]}}", 8, STATUS_FORMAT,
     "has no data_offsets"},
    {"{" A_TENSOR "}", 7, STATUS_FORMAT, "the file has 7 bytes after the header"},
    {"{" A_TENSOR "," A_TENSOR "}", 8, STATUS_FORMAT, "tensor 'a': occurs twice"},
    {TWO_OF("6", "8"), 8, STATUS_FORMAT, "tensor 'b': has data from byte 6, expected 8: another"},
    {TWO_OF("9", "11"), 11, STATUS_FORMAT, "tensor 'b': has data from byte 9, expected 8: those"},
};

static void test_refuses(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct status_why why = {""};
        enum status status = read_text(wrong[i].header, wrong[i].n_data, &why);
        if (status != wrong[i].status || !strstr(why.text, wrong[i].says))
            fail_msg("%s: %d, %s; expected %s", wrong[i].header, status, why.text, wrong[i].says);
    }
}

/** Cut anywhere a file is refused, and a length that is wrong. */
static void test_lengths(void **state)
{
    (void)state;
    size_t n;
    uint8_t *bytes = safetensors_bytes("{" A_TENSOR "}", 8, &n);
    struct safetensors_header h;
    for (size_t cut = 0; cut < n; cut++) {
        uint8_t *copy = malloc(cut ? cut : 1);
        memcpy(copy, bytes, cut);
        assert_int_equal(safetensors_header_read(&h, copy, cut, NULL), STATUS_FORMAT);
        safetensors_header_free(&h);
        free(copy);
    }
    struct status_why why = {""};
    bytes[4] = 1; /* 4 GiB more */
    assert_int_equal(safetensors_header_read(&h, bytes, n, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "expected at most 100000000"));
    safetensors_header_free(&h);
    free(bytes);
    static const char pointer[] = "version https://git-lfs.github.com/spec/v1\noid sha256:00\n";
    assert_int_equal(safetensors_header_read(&h, (const uint8_t *)pointer, sizeof pointer, &why),
                     STATUS_FORMAT);
    assert_non_null(strstr(why.text, "Git LFS"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_reads),
        cmocka_unit_test(test_refuses),
        cmocka_unit_test(test_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
