/* Folders: which files are read, and what is said where they and their index disagree. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <unistd.h>

#include "gguf/safetensors/folder.h"
#include "tests/harness/temp.h"
#include "tests/safetensors/bytes.h"

#define ONE(name) "{\"" name "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"
#define INDEX     "model.safetensors.index.json"

enum { MAX_FILES = 4 };

/** A folder's files: a header each, or (names that end in .json, .bin) any text; and what is said
 * of it. says NULL: it is read, with n tensors. */
static const struct {
    struct {
        const char *name, *content;
    } files[MAX_FILES];
    size_t n;
    const char *says;
} folders[] = {
    {{{"model.safetensors", ONE("a")}, {"other.safetensors", ONE("b")}}, 1, NULL},
    {{{"model-1.safetensors", ONE("a")}, {"model-2.safetensors", ONE("b")}}, 2, NULL},
    {{{"x.safetensors", ONE("a")},
      {"model.safetensors", ONE("old")},
      {INDEX, "{\"weight_map\":{\"a\":\"x.safetensors\"}}\n"}},
     1,
     NULL},
    {{{"model-1.safetensors", ONE("a")}, {"model-2.safetensors", ONE("a")}},
     0,
     "model-2.safetensors: tensor 'a': is in "},
    {{{"model-00001-of-00002.safetensors", ONE("a")}}, 0, "but not model-00002-of-00002"},
    {{{INDEX, "{\"weight_map\":{\"a\":\"x.safetensors\"}}"}},
     0,
     "lacks 1 of the 1 files that its index names, the first of them 'x.safetensors'"},
    {{{"x.safetensors", ONE("b")}, {INDEX, "{\"weight_map\":{\"a\":\"x.safetensors\"}}"}},
     0,
     "tensor 'a': is in no file, expected it in 'x.safetensors'"},
    {{{"x.safetensors", "{\"a\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
                        "\"b\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}"},
      {INDEX, "{\"weight_map\":{\"a\":\"x.safetensors\"}}"}},
     0,
     "tensor 'b' is not in model.safetensors.index.json"},
    {{{INDEX, "{\"weight_map\":{\"a\":\"../x.safetensors\"}}"}},
     0,
     "expected a file of this folder"},
    {{{INDEX, "{\"weight_map\":{\"a\":\"/etc/passwd\"}}"}}, 0, "expected a file of this folder"},
    {{{INDEX, "{\"weight_map\":{\"a\":3}}"}}, 0, "tensor 'a': is no text"},
    {{{INDEX, "{\"weight_map\":{\"a\":\"x.safetensors\",\"a\":\"x.safetensors\"}}"}},
     0,
     "tensor 'a': occurs twice"},
    {{{INDEX, "{\"weight_map\":{}}"}}, 0, "weight_map is empty"},
    {{{INDEX, "{}"}}, 0, "has no member weight_map"},
    {{{INDEX, "{\"weight_map\":"}}, 0, "is no JSON from byte"},
    {{{INDEX, "{\"weight_map\":{\"\\u0000\":1}}"}}, 0, "U+0000"},
    {{{INDEX, "{\"weight_map\":{\"a\":\"x.safetensors\"}} more"}}, 0, "goes on after its JSON"},
    {{{"consolidated.safetensors", ONE("a")}}, 0, "Mistral's own format"},
    {{{"pytorch_model.bin", "x"}}, 0, "a pickle of PyTorch"},
    {{{"readme.bin", "x"}}, 0, "has no file model*.safetensors"},
};

static void write_file(const char *folder, const char *name, const char *content)
{
    char path[128];
    const char *end = strrchr(name, '.');
    size_t n = strlen(content);
    uint8_t *bytes = NULL;
    if (strcmp(end, ".safetensors") == 0)
        bytes = safetensors_bytes(content, 1, &n);
    temp_write(temp_path(path, folder, name), bytes ? (const void *)bytes : content, n);
    free(bytes);
}

static void test_folders(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        char folder[64], path[128];
        temp_make(folder);
        for (size_t f = 0; f < MAX_FILES && folders[i].files[f].name; f++)
            write_file(folder, folders[i].files[f].name, folders[i].files[f].content);
        struct safetensors_folder opened;
        struct status_why why = {""};
        enum status status = safetensors_folder_open(&opened, folder, &why);
        if (!folders[i].says != !status || (status && !strstr(why.text, folders[i].says)))
            fail_msg("folder %zu: %s; expected %s", i, why.text,
                     folders[i].says ? folders[i].says : "success");
        if (!status)
            assert_int_equal(opened.names.n, folders[i].n);
        assert_true(status || !folders[i].n || safetensors_find(&opened, "a"));
        safetensors_folder_close(&opened);
        for (size_t f = 0; f < MAX_FILES && folders[i].files[f].name; f++)
            unlink(temp_path(path, folder, folders[i].files[f].name));
        rmdir(folder);
    }
}

/** A file that is written to while it is open is seen to have changed. */
static void test_changed(void **state)
{
    (void)state;
    char folder[64], path[128];
    temp_make(folder);
    write_file(folder, "model.safetensors", ONE("a"));
    struct safetensors_folder opened;
    assert_int_equal(safetensors_folder_open(&opened, folder, NULL), STATUS_OK);
    const struct gguf_map *map = &opened.files[0].map;
    assert_int_equal(gguf_map_check_unchanged(map, "x", NULL), STATUS_OK);
    write_file(folder, "model.safetensors", ONE("longer"));
    assert_int_equal(gguf_map_check_unchanged(map, "x", NULL), STATUS_CHANGED);
    safetensors_folder_close(&opened);
    unlink(temp_path(path, folder, "model.safetensors"));
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folders),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
