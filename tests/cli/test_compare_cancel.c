/* Files without a tensor that differs are compared byte by byte alone; that ends, too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "clients/conversion/files/files.h"

static enum status compare(struct gguf_file *file, const atomic_bool *cancel)
{
    struct conv_files files = {0};
    struct status_why why = {""};
    const struct conv_files_options options = {
        .a = file, .b = file, .n_threads = 1, .cancel = cancel};
    enum status status = conv_files_compare(&files, &options, &why);
    conv_files_free(&files);
    return status;
}

static void test_cancel(void **state)
{
    (void)state;
    struct gguf_file *file;
    struct status_why why = {""};
    atomic_bool cancel = false;
    assert_int_equal(gguf_open(&file, ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", &why), STATUS_OK);
    assert_int_equal(compare(file, &cancel), STATUS_OK);
    atomic_store(&cancel, true);
    assert_int_equal(compare(file, &cancel), STATUS_CANCELLED);
    gguf_close(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_cancel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
