/* Instruction sets: names, detection against the compiler's own, and the tables they select. */
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/kernels.h"
#include "tests/harness/cmocka.h"

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(kern_isa_name(KERN_ISA_SCALAR), "scalar");
#if defined __x86_64__
    assert_string_equal(kern_isa_name(KERN_ISA_AVX2), "avx2");
    assert_string_equal(kern_isa_name(KERN_ISA_AVX512), "avx512");
#elif defined __aarch64__
    assert_string_equal(kern_isa_name(KERN_ISA_NEON), "neon");
    assert_string_equal(kern_isa_name(KERN_ISA_DOTPROD), "dotprod");
    assert_string_equal(kern_isa_name(KERN_ISA_I8MM), "i8mm");
#endif
    assert_string_equal(kern_isa_name(KERN_ISA_COUNT), "unknown");
}

static void test_detection_agrees_with_the_compiler(void **state)
{
    (void)state;
    enum kern_isa expected = KERN_ISA_SCALAR;
#if defined __x86_64__
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                  __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    expected = avx512 ? KERN_ISA_AVX512 : avx2 ? KERN_ISA_AVX2 : KERN_ISA_SCALAR;
#elif defined __aarch64__
    uint64_t isar0, isar1; /* the processor's own words */
    __asm__("mrs %0, ID_AA64ISAR0_EL1" : "=r"(isar0));
    __asm__("mrs %0, ID_AA64ISAR1_EL1" : "=r"(isar1));
    bool dotprod = isar0 >> 44 & 15, i8mm = isar1 >> 52 & 15;
    expected = dotprod ? i8mm ? KERN_ISA_I8MM : KERN_ISA_DOTPROD : KERN_ISA_NEON;
#endif
    assert_int_equal(kern_isa_detect(), expected);
}

/** Rows of the built table come from the highest ISA below the cap that has them. */
static void test_table_is_capped(void **state)
{
    (void)state;
    for (int cap = 0; cap < KERN_ISA_COUNT; cap++) {
        struct kern_kernels table;
        enum kern_isa isa = kern_kernels_build(&table, (enum kern_isa)cap);
        assert_true(isa <= (enum kern_isa)cap && isa <= kern_isa_detect());
        assert_true(isa == (enum kern_isa)cap || isa == kern_isa_detect());
        kern_fma_tile_fn *expected = NULL;
        for (int i = 0; i <= (int)isa; i++)
            expected = kern_sets[i].own->fma_tile ? kern_sets[i].own->fma_tile : expected;
        assert_true(table.fma_tile == expected);
    }
}

static void test_backend_reports_what_it_uses(void **state)
{
    (void)state;
    struct kern_cpu_options options = {.n_threads = 3, .isa_cap = KERN_ISA_SCALAR};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    assert_string_equal(kern_describe(b).isa, "scalar");
    assert_int_equal(kern_describe(b).n_threads, 3);
    kern_close(b);
    kern_close(NULL);
}

static void test_memory_is_aligned_and_copied(void **state)
{
    (void)state;
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = KERN_ISA_COUNT - 1};
    struct kern_backend *b = NULL;
    assert_int_equal(kern_cpu_open(&b, &options, NULL), STATUS_OK);
    static const size_t sizes[] = {0, 1, 63, 65, 4 << 20, (4 << 20) + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        void *memory = NULL;
        assert_int_equal(kern_alloc(b, &memory, sizes[i], NULL), STATUS_OK);
        assert_int_equal((uintptr_t)memory % 64, 0);
        unsigned char *host = malloc(sizes[i] + 1), *back = malloc(sizes[i] + 1);
        memset(host, 0x5a, sizes[i] + 1);
        assert_int_equal(kern_upload(b, memory, host, sizes[i], NULL), STATUS_OK);
        assert_int_equal(kern_download(b, back, memory, sizes[i], NULL), STATUS_OK);
        assert_memory_equal(host, back, sizes[i]);
        free(host);
        free(back);
        kern_free(b, memory);
    }
    struct status_why why = {{0}};
    void *memory = b;
    assert_int_equal(kern_alloc(b, &memory, SIZE_MAX, &why), STATUS_MEMORY);
    assert_null(memory);
    assert_non_null(strstr(why.text, "no memory"));
    kern_free(b, NULL);
    kern_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_detection_agrees_with_the_compiler),
        cmocka_unit_test(test_table_is_capped),
        cmocka_unit_test(test_backend_reports_what_it_uses),
        cmocka_unit_test(test_memory_is_aligned_and_copied),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
