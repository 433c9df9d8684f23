/* base/file/name.h: names that lead elsewhere, files that changed. */
#include "tests/harness/cmocka.h"
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file/name.h"
#include "tests/harness/temp.h"

static char folder[64], path[128], other[128];

static int make_files(void **state)
{
    (void)state;
    temp_make(folder);
    temp_path(path, folder, "file");
    temp_path(other, folder, "other");
    temp_write(path, "content", 7);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(path);
    unlink(other);
    return rmdir(folder);
}

static void test_rename(void **state)
{
    (void)state;
    temp_write(other, "other", 5);
    assert_int_equal(base_file_rename(path, other, false), -1);
    assert_int_equal(errno, EEXIST);
    struct stat about;
    assert_int_equal(stat(other, &about), 0);
    assert_int_equal(about.st_size, 5);
    assert_int_equal(base_file_rename(path, other, true), 0);
    assert_int_equal(stat(other, &about), 0);
    assert_int_equal(about.st_size, 7);
    assert_int_equal(base_file_rename(other, path, false), 0);
    assert_int_equal(access(other, F_OK), -1);
    assert_int_equal(symlink("nothing", other), 0);
    assert_int_equal(base_file_rename(path, other, false), -1);
}

static enum status check(int fd, const struct stat *opened)
{
    struct status_why why = {""};
    enum status status = base_file_check_unchanged(fd, opened, path, &why);
    assert_true(!status ||
                (strstr(why.text, path) && strstr(why.text, "changed while it was read")));
    return status;
}

/** Times of files go in steps: until the next one. */
static void await_next_time(void)
{
    struct stat first, now;
    char probe[128];
    temp_path(probe, folder, "probe");
    temp_write(probe, "x", 1);
    assert_int_equal(stat(probe, &first), 0);
    do {
        usleep(1000);
        temp_write(probe, "x", 1);
        assert_int_equal(stat(probe, &now), 0);
    } while (first.st_mtim.tv_sec == now.st_mtim.tv_sec &&
             first.st_mtim.tv_nsec == now.st_mtim.tv_nsec);
    unlink(probe);
}

/* Whatever writes to the file is seen, and whatever only names it is not. */
static void test_changes(void **state)
{
    (void)state;
    struct stat opened;
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_int_equal(fstat(fd, &opened), 0);
    assert_true(base_file_is_at(fd, path));
    assert_int_equal(check(fd, &opened), STATUS_OK);
    await_next_time();

    assert_int_equal(link(path, other), 0);
    assert_int_equal(check(fd, &opened), STATUS_OK);
    assert_int_equal(unlink(other), 0);
    assert_int_equal(fstat(fd, &opened), 0);
    await_next_time();
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(check(fd, &opened), STATUS_OK);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(check(fd, &opened), STATUS_OK);
    assert_false(base_file_is_at(fd, path));
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(fstat(fd, &opened), 0);
    await_next_time();

    const struct timespec times[2] = {opened.st_atim, opened.st_mtim};
    assert_int_equal(pwrite(fd, "C", 1, 0), 1);
    assert_int_equal(check(fd, &opened), STATUS_CHANGED);
    assert_int_equal(futimens(fd, times), 0); /* the time put back */
    assert_int_equal(check(fd, &opened), STATUS_CHANGED);
    assert_int_equal(fstat(fd, &opened), 0);
    assert_int_equal(ftruncate(fd, 3), 0);
    assert_int_equal(check(fd, &opened), STATUS_CHANGED);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rename, make_files, remove_files),
        cmocka_unit_test_setup_teardown(test_changes, make_files, remove_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
