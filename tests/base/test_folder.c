/* Lists of a folder's files: their order, and what is no file; its end. */
#include "tests/harness/cmocka.h"
#include <sys/stat.h>

#include "base/file/folder.h"
#include "tests/harness/temp.h"

static char folder[64];

static int setup(void **state)
{
    (void)state;
    temp_make(folder);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return (int)base_folder_remove(folder, NULL);
}

static const char *at(const char *name)
{
    static char path[128];
    return temp_path(path, folder, name);
}

static void lists_regular_files(void **state)
{
    (void)state;
    struct base_folder found;
    assert_int_equal(base_folder_list(&found, folder, NULL), STATUS_OK);
    assert_int_equal(found.n, 0);
    static const char *const names[] = {"b", "B", "\xc3\xa9", ".hidden", "a b", "10", "9"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        temp_write(at(names[i]), "x", 1);
    assert_int_equal(mkdir(at("sub"), 0700) | mkfifo(at("pipe"), 0600), 0);
    assert_int_equal(symlink("b", at("link")) | symlink(".", at("loop")), 0);
    char slash[80];
    snprintf(slash, sizeof slash, "%s/", folder);
    for (int i = 0; i < 2; i++) {
        static const char *const expected[] = {"10", "9", "B", "a b", "b", "link", "\xc3\xa9"};
        assert_int_equal(base_folder_list(&found, i ? slash : folder, NULL), STATUS_OK);
        assert_int_equal(found.n, 7);
        assert_int_equal(found.n_others, 3);
        for (size_t k = 0; k < 7; k++)
            assert_string_equal(found.paths[k], at(expected[k]));
        base_folder_free(&found);
    }
    assert_true(base_is_folder(folder) && base_is_folder(at("loop")) && !base_is_folder(at("b")));
}

static void refusals(void **state)
{
    (void)state;
    struct base_folder found;
    struct status_why why = {""};
    assert_int_equal(symlink("self", at("self")), 0);
    assert_int_equal(base_folder_list(&found, folder, &why), STATUS_IO);
    assert_non_null(strstr(why.text, "/self: cannot be opened: Too many levels of symbolic links"));
    assert_null(found.paths);
    assert_int_equal(base_folder_list(&found, at("9"), &why), STATUS_IO);
    assert_non_null(strstr(why.text, "Not a directory"));
    assert_false(base_is_folder(at("self")));
}

static void removes_what_is_in_it(void **state)
{
    (void)state;
    char other[64];
    char kept[128];
    temp_make(other);
    temp_write(temp_path(kept, other, "kept"), "x", 1);
    assert_int_equal(mkdir(at("tree"), 0700) | mkdir(at("tree/.a"), 0700), 0);
    assert_int_equal(mkdir(at("tree/.a/b"), 0700) | mkfifo(at("tree/.a/b/pipe"), 0600), 0);
    assert_int_equal(symlink(other, at("tree/out")) | symlink("nowhere", at("tree/.a/none")), 0);
    temp_write(at("tree/.a/b/file"), "x", 1);
    assert_int_equal(base_folder_remove(at("tree"), NULL), STATUS_OK);
    assert_false(base_is_folder(at("tree")));
    assert_int_equal(access(kept, F_OK), 0);
    assert_int_equal(base_folder_remove(other, NULL), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_regular_files),
        cmocka_unit_test(refusals),
        cmocka_unit_test(removes_what_is_in_it),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
