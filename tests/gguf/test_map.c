/* Mappings and reading ahead: what the page cache holds before and after. */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gguf/map.h"
#include "tests/harness/cmocka.h"

enum { FILE_BYTES = 8 << 20 };

static char path[] = "test_map_XXXXXX";

static int make_file(void **state)
{
    (void)state;
    unsigned char *bytes = malloc(FILE_BYTES);
    int fd = mkstemp(path);
    assert_true(bytes && fd >= 0);
    for (size_t i = 0; i < FILE_BYTES; i++)
        bytes[i] = (unsigned char)(i >> 12);
    assert_int_equal(write(fd, bytes, FILE_BYTES), FILE_BYTES);
    assert_int_equal(fsync(fd), 0);
    close(fd);
    free(bytes);
    return 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

/** How many pages of the range are in memory; marks them in seen[], where there is one. */
static size_t n_present(const unsigned char *data, size_t n_bytes, bool *seen)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 0;
    unsigned char *present = malloc(n_bytes / page);
    assert_non_null(present);
    assert_int_equal(mincore((void *)(uintptr_t)data, n_bytes, present), 0);
    for (size_t i = 0; i < n_bytes / page; i++) {
        n += present[i] & 1;
        if (seen && present[i] & 1)
            seen[i] = true;
    }
    free(present);
    return n;
}

/** Read ahead until each page of the range has been seen in memory: how many have been. They need
 * not be there together, since a system that is short of memory lets go of what nobody uses. */
static size_t n_read_ahead(const unsigned char *data, size_t n_bytes)
{
    enum { TRIES = 1000, WAITS = 10 };
    size_t n = 0, n_pages = n_bytes / (size_t)sysconf(_SC_PAGESIZE);
    bool *seen = calloc(n_pages, sizeof *seen);
    assert_non_null(seen);
    for (int i = 0; i < TRIES && n < n_pages; i++) {
        if (i % WAITS == 0)
            gguf_map_read_ahead(data + 1, n_bytes - 2); /* both ends in the midst of a page */
        n_present(data, n_bytes, seen);
        n = 0;
        for (size_t k = 0; k < n_pages; k++)
            n += seen[k];
        if (n < n_pages)
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    free(seen);
    return n;
}

static void drop_file(void)
{
    int fd = open(path, O_RDONLY);
    assert_true(fd >= 0);
    assert_int_equal(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED), 0);
    close(fd);
}

static void test_read_ahead_reads(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), begin = FILE_BYTES / 2, n = FILE_BYTES / 4;
    struct gguf_map map;
    drop_file();
    assert_int_equal(gguf_map_open(&map, path, NULL), STATUS_OK);
    const unsigned char *data = map.data;
    if (n_present(data, FILE_BYTES, NULL) > 0) {
        print_message("this file system keeps files in memory: nothing to see\n");
        gguf_map_close(&map);
        skip();
    }
    if (posix_madvise(map.data, page, -1) == 0) { /* the kernel knows no such advice */
        print_message("an emulator keeps advice from the system: nothing to see\n");
        gguf_map_close(&map);
        skip();
    }
    assert_int_equal(n_read_ahead(data + begin, n), n / page);
    assert_int_equal(n_present(data, begin, NULL), 0);
    assert_int_equal(data[begin], (unsigned char)(begin >> 12));
    gguf_map_close(&map);
}

/** A hint may come for anything: nothing, a last byte, memory that is no mapping of a file. */
static void test_read_ahead_is_a_hint(void **state)
{
    (void)state;
    struct gguf_map map;
    assert_int_equal(gguf_map_open(&map, path, NULL), STATUS_OK);
    const unsigned char *data = map.data;
    gguf_map_read_ahead(data, 0);
    gguf_map_read_ahead(data + FILE_BYTES - 1, 1);
    gguf_map_read_ahead(data, FILE_BYTES);
    unsigned char own[2] = {1, 2};
    gguf_map_read_ahead(own, sizeof own);
    assert_int_equal(own[0] + own[1], 3);
    for (size_t i = 0; i < FILE_BYTES; i += 4096)
        assert_int_equal(data[i], (unsigned char)(i >> 12));
    gguf_map_close(&map);
}

/** What is kept stays, whatever becomes of the file; what was let go is no concern any more. */
static void test_keep_and_let_go(void **state)
{
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 2 * page + 1;
    struct gguf_map map;
    char copy[] = "test_map_XXXXXX";
    int fd = mkstemp(copy);
    assert_int_equal(gguf_map_open(&map, path, NULL), STATUS_OK);
    assert_int_equal(write(fd, map.data, 4 * page), 4 * page);
    gguf_map_close(&map);
    assert_int_equal(gguf_map_open(&map, copy, NULL), STATUS_OK);
    const unsigned char *data = map.data;
    assert_int_equal(gguf_map_keep(&map, n, copy, NULL), STATUS_OK);
    assert_int_equal(map.n_kept, 3 * page);
    assert_ptr_equal(map.data, data);
    assert_int_equal(gguf_map_check_unchanged(&map, copy, NULL), STATUS_OK);
    assert_int_equal(pwrite(fd, "other", 5, (off_t)page), 5);
    assert_int_equal(data[page], 1);
    assert_int_equal(data[3 * page], 3);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(gguf_map_check_unchanged(&map, copy, NULL), STATUS_CHANGED);
    assert_int_equal(data[2 * page], 2);
    gguf_map_let_go(&map);
    gguf_map_let_go(&map);
    assert_int_equal(gguf_map_check_unchanged(&map, copy, NULL), STATUS_OK);
    assert_int_equal(data[2 * page], 2);
    gguf_map_close(&map);
    assert_int_equal(ftruncate(fd, (off_t)page), 0);
    assert_int_equal(gguf_map_open(&map, copy, NULL), STATUS_OK);
    assert_int_equal(ftruncate(fd, 10), 0);
    assert_int_equal(gguf_map_keep(&map, page, copy, NULL), STATUS_CHANGED);
    gguf_map_close(&map);
    gguf_map_let_go(&map); /* an empty one */
    close(fd);
    unlink(copy);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_ahead_reads),
        cmocka_unit_test(test_read_ahead_is_a_hint),
        cmocka_unit_test(test_keep_and_let_go),
    };
    return cmocka_run_group_tests(tests, make_file, remove_file);
}
