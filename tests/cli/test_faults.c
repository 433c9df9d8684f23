/* cli/process/faults.h: a mapped file that becomes shorter while threads read it. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/process/faults.h"
#include "tests/harness/cmocka.h"

enum { N_PAGES = 64, N_THREADS = 4, N_ROUNDS = 50 };

static size_t page;

/** Reads what another thread replaces, as pages that are lost are: ThreadSanitizer need not say so.
 */
__attribute__((no_sanitize("thread"))) static void *sum_up(void *data)
{
    const volatile unsigned char *bytes = data;
    size_t sum = 0;
    for (size_t i = 0; i < N_PAGES; i++)
        sum += bytes[i * page];
    return (void *)sum;
}

static void test_pages_that_are_lost(void **state)
{
    (void)state;
    page = (size_t)sysconf(_SC_PAGESIZE);
    char path[] = "test_faults_XXXXXX";
    int fd = mkstemp(path);
    unsigned char *full = malloc(N_PAGES * page);
    assert_true(fd >= 0 && full);
    for (size_t i = 0; i < N_PAGES * page; i++)
        full[i] = 1;
    cli_mapping_fault_catch();
    cli_mapping_fault_survive();
    for (int round = 0; round < N_ROUNDS; round++) {
        size_t kept = (size_t)round % 8, before = cli_mapping_faults();
        assert_int_equal(pwrite(fd, full, N_PAGES * page, 0), N_PAGES * page);
        char *data = mmap(NULL, N_PAGES * page, PROT_READ, MAP_SHARED, fd, 0);
        assert_ptr_not_equal(data, MAP_FAILED);
        assert_int_equal((size_t)sum_up(data), N_PAGES);
        assert_false(cli_mapping_lost(data, N_PAGES * page));
        assert_int_equal(ftruncate(fd, (off_t)(kept * page)), 0);
        pthread_t threads[N_THREADS];
        for (int t = 0; t < N_THREADS; t++)
            assert_int_equal(pthread_create(&threads[t], NULL, sum_up, data), 0);
        for (int t = 0; t < N_THREADS; t++) {
            void *sum;
            assert_int_equal(pthread_join(threads[t], &sum), 0);
            assert_int_equal((size_t)sum, kept);
        }
        assert_true(cli_mapping_faults() > before);
        assert_true(cli_mapping_lost(data, N_PAGES * page));
        assert_true(cli_mapping_lost(data + kept * page, 1));
        assert_int_equal(cli_mapping_lost(data, kept * page), false);
        cli_mapping_forget(data, N_PAGES * page);
        assert_false(cli_mapping_lost(data, N_PAGES * page));
        munmap(data, N_PAGES * page);
    }
    free(full);
    close(fd);
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pages_that_are_lost)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
