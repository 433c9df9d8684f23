/* base/file/atomic_file.h: a file appears whole or not at all, and failures are told. */
#include "tests/harness/cmocka.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/atomic_file.h"
#include "base/system/system.h"

static char folder[] = "/tmp/assay-atomic-XXXXXX";
static char target[sizeof folder + 16];

static int make_folder(void **state)
{
    (void)state;
    memcpy(folder + sizeof folder - 7, "XXXXXX", 6);
    if (!mkdtemp(folder))
        return -1;
    snprintf(target, sizeof target, "%s/result", folder);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(target);
    return rmdir(folder); /* fails where a test left something behind */
}

static size_t entries_in_folder(void)
{
    size_t n = 0;
    DIR *listing = opendir(folder);
    assert_non_null(listing);
    for (struct dirent *entry; (entry = readdir(listing));)
        n += entry->d_name[0] != '.';
    closedir(listing);
    return n;
}

static void assert_content(const char *path, const char *expected)
{
    char content[64] = "";
    FILE *stream = fopen(path, "rb");
    assert_non_null(stream);
    size_t n = fread(content, 1, sizeof content - 1, stream);
    fclose(stream);
    content[n] = '\0';
    assert_string_equal(content, expected);
}

static void write_target(const char *text)
{
    struct base_file *file;
    struct status_why why;
    assert_int_equal(base_file_create(&file, target, NULL, &why), STATUS_OK);
    base_file_printf(file, "%s", text);
    assert_int_equal(base_file_commit(file, &why), STATUS_OK);
}

static void test_appears_only_at_the_commit(void **state)
{
    (void)state;
    struct base_file *file;
    struct status_why why;
    write_target("old");
    assert_int_equal(base_file_create(&file, target, NULL, &why), STATUS_OK);
    base_file_write(file, "new ", 4);
    base_file_printf(file, "%d", 42);
    assert_content(target, "old");
    assert_int_equal(base_file_commit(file, &why), STATUS_OK);
    assert_content(target, "new 42");
    assert_int_equal(entries_in_folder(), 1);
}

static void test_abandoning_leaves_the_old_file(void **state)
{
    (void)state;
    struct base_file *file;
    struct status_why why;
    write_target("old");
    assert_int_equal(base_file_create(&file, target, NULL, &why), STATUS_OK);
    base_file_write(file, "new", 3);
    base_file_abandon(file);
    base_file_abandon(NULL);
    assert_content(target, "old");
    assert_int_equal(entries_in_folder(), 1);
}

/* Where a nameless file's later name is taken, or file systems have none, there is a name at once.
 */
static void test_begins_with_a_name_where_it_must(void **state)
{
    (void)state;
    char taken[sizeof target + 32];
    snprintf(taken, sizeof taken, "%s.%ld.0.tmp", target, (long)getpid());
    FILE *stream = fopen(taken, "wb");
    assert_non_null(stream);
    fclose(stream);
    struct base_file *file;
    struct status_why why;
    write_target("old");
    assert_int_equal(base_file_create(&file, target, NULL, &why), STATUS_OK);
    assert_int_equal(entries_in_folder(), 3);
    base_file_abandon(file);
    assert_int_equal(entries_in_folder(), 2);
    assert_int_equal(base_file_create(&file, target, NULL, &why), STATUS_OK);
    base_file_write(file, "new", 3);
    assert_int_equal(base_file_commit(file, &why), STATUS_OK);
    assert_content(target, "new");
    assert_int_equal(entries_in_folder(), 2);
    unlink(taken);
}

/* Elsewhere a process that is killed leaves nothing behind. */
static void test_a_kill_leaves_nothing(void **state)
{
    (void)state;
    int probe = open(folder, O_TMPFILE | O_WRONLY, 0600);
    int nameless = base_system_nameless(folder);
    if (probe < 0 || (nameless < 0 && errno == ENOSYS)) /* base/system/posix.c never has one */
        skip();
    close(probe);
    close(nameless);
    write_target("old");
    struct base_file *file;
    struct status_why why;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (base_file_create(&file, target, NULL, &why) == STATUS_OK)
            base_file_write(file, "new", 3);
        raise(SIGKILL);
    }
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_content(target, "old");
    assert_int_equal(entries_in_folder(), 1);
}

static void test_keeps_permissions_and_links(void **state)
{
    (void)state;
    char link_path[sizeof target + 8];
    snprintf(link_path, sizeof link_path, "%s.link", target);
    write_target("old");
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink(target, link_path), 0);

    struct base_file *file;
    struct status_why why;
    assert_int_equal(base_file_create(&file, link_path, NULL, &why), STATUS_OK);
    base_file_write(file, "through the link", 16);
    assert_int_equal(base_file_commit(file, &why), STATUS_OK);

    struct stat info;
    assert_int_equal(lstat(link_path, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0640);
    assert_content(target, "through the link");
    unlink(link_path);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct base_file *file;
    struct status_why why;
    assert_int_equal(base_file_create(&file, "/dev/full", NULL, &why), STATUS_OK);
    for (int i = 0; i < 10000; i++)
        base_file_printf(file, "%d\n", i);
    assert_int_equal(base_file_commit(file, &why), STATUS_IO);
    assert_string_equal(why.text, "/dev/full: writing failed: No space left on device");
}

static void test_devices_are_written_directly(void **state)
{
    (void)state;
    struct base_file *file;
    struct status_why why;
    assert_int_equal(base_file_create(&file, "/dev/null", NULL, &why), STATUS_OK);
    base_file_printf(file, "gone");
    assert_int_equal(base_file_commit(file, &why), STATUS_OK);
    struct stat info;
    assert_int_equal(stat("/dev/null", &info), 0);
    assert_true(S_ISCHR(info.st_mode));
}

static void assert_refused(const char *path, const char *sentence)
{
    struct base_file *file;
    struct status_why why;
    assert_int_equal(base_file_create(&file, path, NULL, &why), STATUS_IO);
    assert_null(file);
    assert_non_null(strstr(why.text, sentence));
}

static void write_whole(const char *text)
{
    FILE *stream = fopen(target, "wb");
    assert_non_null(stream);
    fputs(text, stream);
    fclose(stream);
}

/* At the beginning and at the end: what another kind is stays; --force is no kind. */
static void test_replaces_its_own_kind(void **state)
{
    (void)state;
    struct base_file *file;
    struct status_why why;
    const char *const replaced[] = {"", "{\"schema\": \"assay-kld\", \"x\": 1}"};
    for (size_t i = 0; i < sizeof replaced / sizeof *replaced; i++) {
        write_whole(replaced[i]);
        assert_int_equal(base_file_create(&file, target, "assay-kld", &why), STATUS_OK);
        base_file_printf(file, "new");
        assert_int_equal(base_file_commit(file, &why), STATUS_OK);
        assert_content(target, "new");
    }
    assert_int_equal(base_file_create(&file, target, "assay-kld", &why), STATUS_USAGE);
    assert_null(file);
    assert_non_null(strstr(why.text, "result: is a text, expected a new file or a document "
                                     "(assay-kld); give another name, or --force"));

    write_whole(replaced[1]);
    assert_int_equal(base_file_create(&file, target, "assay-kld", &why), STATUS_OK);
    base_file_printf(file, "new");
    write_whole("notes");
    assert_int_equal(base_file_commit(file, &why), STATUS_IO);
    assert_content(target, "notes");
    const char *kept = strstr(why.text, "this output is in ");
    assert_non_null(kept);
    kept += strlen("this output is in ");
    assert_content(kept, "new");
    unlink(kept);
}

static void test_in_memory(void **state)
{
    (void)state;
    size_t n_bytes;
    struct base_file *file = base_file_in_memory();
    assert_non_null(file);
    base_file_write(file, "a\0b", 3);
    base_file_printf(file, "%d", 42);
    char *bytes = base_file_take(file, &n_bytes);
    assert_int_equal(n_bytes, 5);
    assert_memory_equal(bytes, "a\0b42", 6);
    free(bytes);
    bytes = base_file_take(base_file_in_memory(), &n_bytes);
    assert_int_equal(n_bytes, 0);
    assert_string_equal(bytes, "");
    free(bytes);
}

static void test_unwritable_places(void **state)
{
    (void)state;
    assert_refused(folder, "is a directory, expected the name of a file");
    assert_refused("/nonexistent-folder/file", "cannot be written: No such file or directory");
    assert_refused("/proc/version/file", "cannot be written: Not a directory");
    assert_refused("", "the name of the file to be written is empty");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_appears_only_at_the_commit, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_abandoning_leaves_the_old_file, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_begins_with_a_name_where_it_must, make_folder,
                                        remove_folder),
        cmocka_unit_test_setup_teardown(test_a_kill_leaves_nothing, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_keeps_permissions_and_links, make_folder,
                                        remove_folder),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_devices_are_written_directly),
        cmocka_unit_test(test_in_memory),
        cmocka_unit_test_setup_teardown(test_replaces_its_own_kind, make_folder, remove_folder),
        cmocka_unit_test_setup_teardown(test_unwritable_places, make_folder, remove_folder),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
