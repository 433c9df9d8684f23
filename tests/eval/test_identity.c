/*
 * The identity of the bundled models. Expected: an independent reader of the format in Python
 * (hashlib over header, directory and the first 65536 bytes of each tensor) and sha256sum.
 */
#include <stdlib.h>

#include "eval/identity.h"
#include "eval/run/memory.h"
#include "gguf/about/identity.h"
#include "tests/harness/cmocka.h"

static const struct {
    const char *path, *id, *hash;
} models[] = {
    {ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf",
     "6e62e5dad75b079c9a07e13b8f4926a7baed6aa8fbd0fcc0c9cb57b439b8d020",
     "976c6b7fae59a0f613571f48649b86c0b0ded108c0ef0031429b46658bc890bd"},
    {ASSAY_SOURCE_DIR "/data/tiny.F16.gguf",
     "193eee0e0d2e8ae66c7f21fdec95845d8813160616d204b7edcced48f3ea57d3",
     "81f14b30937d01cf0d04d38eea90e5a30368db16b901f9097427b4416512e680"},
};

static void identities(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        struct gguf_file *file;
        struct status_why why = {0};
        char hex[BASE_HEX];
        if (gguf_open(&file, models[i].path, &why) != STATUS_OK)
            fail_msg("%s", why.text);
        assert_int_equal(gguf_model_id(hex, file, NULL), STATUS_OK);
        assert_string_equal(hex, models[i].id);
        assert_int_equal(gguf_file_hash(hex, file, NULL), STATUS_OK);
        assert_string_equal(hex, models[i].hash);
        gguf_close(file);
    }
}

/** Reading a mapped model does not count; memory that is written to does. */
static void present_memory(void **state)
{
    (void)state;
    struct gguf_file *file;
    char hex[BASE_HEX];
    assert_int_equal(gguf_open(&file, models[1].path, NULL), STATUS_OK);
    double before = eval_memory_present(file);
    assert_true(before > 100e3);
    assert_int_equal(gguf_file_hash(hex, file, NULL), STATUS_OK);
    double after_reading = eval_memory_present(file);
    assert_true(after_reading - before < 1e6);

    size_t n = 32 << 20;
    volatile char *block = malloc(n);
    assert_non_null(block);
    for (size_t i = 0; i < n; i += 512)
        block[i] = 1;
    double growth = eval_memory_present(file) - after_reading;
    free((void *)(uintptr_t)block);
    gguf_close(file);
    assert_true(growth > 31e6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(identities),
        cmocka_unit_test(present_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
