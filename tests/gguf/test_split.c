/* Files in several parts: any part opens all; each way in which parts disagree has a sentence. */
#include "tests/harness/cmocka.h"
#include <setjmp.h> /* IWYU pragma: keep (cmocka.h wants these four) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/harness/gguf_bytes.h"
#include "tests/harness/gguf_writer.h"

static char folder[] = "/tmp/assay-test-XXXXXX";

/* What a part says of itself, where that is not what its place would have it say. */
struct part {
    const char *name; /* of the file; NULL: model-0000N-of-00003.gguf */
    uint32_t number;  /* from 1 */
    uint32_t count;
    uint32_t split_no;  /* + 1; 0: as the number */
    uint32_t n_tensors; /* of all parts; 0: 6 */
    const char *tensor; /* name of its second tensor; NULL: one of its own */
    bool without_count;
};

static const char *path_of(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static const char *path_of_part(uint32_t number)
{
    char name[64];
    snprintf(name, sizeof name, "model-%05u-of-00003.gguf", number);
    return path_of(name);
}

/* Two tensors per part: tN.weight (the number N in every element) and tN.bias. */
static void write_part(const struct part *part)
{
    struct gguf_writer *w;
    struct status_why why = {0};
    char weight[32], bias[32];
    float values[4];
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    if (part->number == 1)
        gguf_writer_string(w, "general.architecture", "sample");
    gguf_writer_u16(w, "split.no",
                    (uint16_t)(part->split_no ? part->split_no - 1 : part->number - 1));
    if (!part->without_count)
        gguf_writer_u16(w, "split.count", (uint16_t)part->count);
    gguf_writer_i32(w, "split.tensors.count", part->n_tensors ? (int32_t)part->n_tensors : 6);
    snprintf(weight, sizeof weight, "t%u.weight", part->number);
    snprintf(bias, sizeof bias, "t%u.bias", part->number);
    for (size_t i = 0; i < 4; i++)
        values[i] = (float)part->number;
    gguf_writer_tensor(w, weight, GGUF_TYPE_F32, (uint64_t[]){2, 2}, 2, values);
    gguf_writer_tensor(w, part->tensor ? part->tensor : bias, GGUF_TYPE_F32, (uint64_t[]){1}, 1,
                       values);
    const char *path = part->name ? path_of(part->name) : path_of_part(part->number);
    if (gguf_writer_finish(w, path, &why) != STATUS_OK)
        fail_msg("%s", why.text);
}

static int write_good_parts(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 3; number++)
        write_part(&(struct part){.number = number, .count = 3});
    return 0;
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 3; number++)
        unlink(path_of_part(number));
    unlink(path_of("renamed.gguf"));
    return rmdir(folder);
}

static void test_any_part_opens_all(void **state)
{
    (void)state;
    for (uint32_t number = 1; number <= 3; number++) {
        struct gguf_file *file;
        struct status_why why = {0};
        if (gguf_open(&file, path_of_part(number), &why) != STATUS_OK)
            fail_msg("%s", why.text);
        assert_string_equal(gguf_path(file), path_of_part(number));
        assert_int_equal(gguf_n_shards(file), 3);
        assert_int_equal(gguf_n_tensors(file), 6);
        assert_non_null(gguf_kv_find(file, "general.architecture")); /* the first part's */
        for (uint32_t i = 0; i < 6; i++) {
            const struct gguf_tensor *t = gguf_tensor_at(file, i);
            assert_ptr_equal(gguf_tensor_find(file, t->name), t);
            assert_int_equal(t->shard, i / 2);
            assert_int_equal(t->name[1], '1' + (int)(i / 2));
            assert_true(*(const float *)t->data == (float)(i / 2 + 1));
            uint64_t n_bytes, data_offset;
            const uint8_t *data = gguf_shard_data(file, t->shard, &n_bytes, &data_offset);
            assert_ptr_equal(data + t->offset, t->data);
            assert_string_equal(gguf_shard_path(file, i / 2), path_of_part(i / 2 + 1));
        }
        gguf_close(file);
    }
}

/* Opening `name` must fail; `expected` has %s where the folder stands. */
static void expect_refusal(const char *name, enum status status, const char *expected)
{
    struct gguf_file *file;
    struct status_why why = {0};
    char sentence[512];
    const char *mark = strstr(expected, "%s");
    snprintf(sentence, sizeof sentence, "%.*s%s%s", (int)(mark - expected), expected, folder,
             mark + 2);
    enum status found = gguf_open(&file, path_of(name), &why);
    assert_null(file);
    assert_string_equal(why.text, sentence);
    assert_int_equal(found, status);
}

static void test_missing_part(void **state)
{
    (void)state;
    unlink(path_of_part(2));
    expect_refusal("model-00003-of-00003.gguf", STATUS_IO,
                   "part 2 of 3: %s/model-00002-of-00003.gguf: cannot be opened: No such file or "
                   "directory");
}

static void test_disagreeing_parts(void **state)
{
    static const struct {
        struct part part;
        const char *sentence; /* opening the first part */
    } rows[] = {
        {{.number = 2, .count = 4},
         "%s/model-00002-of-00003.gguf: is one of 4 parts (key 'split.count'), expected one of 3"},
        {{.number = 2, .without_count = true},
         "%s/model-00002-of-00003.gguf: is one of 1 parts (key 'split.count'), expected one of 3"},
        {{.number = 3, .count = 3, .split_no = 2},
         "%s/model-00003-of-00003.gguf: key 'split.no' is 1, expected 2 in part 3 of 3"},
        {{.number = 3, .count = 3, .n_tensors = 7},
         "%s/model-00003-of-00003.gguf: all parts together have 6 tensors, expected 7 (key "
         "'split.tensors.count')"},
        {{.number = 2, .count = 3, .tensor = "t1.bias"},
         "part 2 of 3: %s/model-00002-of-00003.gguf: tensor 't1.bias': occurs twice, expected "
         "every tensor once"},
        {{.number = 1, .count = 0},
         "%s/model-00001-of-00003.gguf: key 'split.count' is 0, expected 1 to 65535 parts"},
        {{.number = 1, .count = 2},
         "%s/model-00001-of-00003.gguf: is one of 2 parts (key 'split.count'), expected one of 3"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_good_parts(state);
        write_part(&rows[i].part);
        expect_refusal("model-00001-of-00003.gguf", STATUS_FORMAT, rows[i].sentence);
    }
}

/* Without the pattern in its name a part cannot find the others. */
static void test_renamed_part(void **state)
{
    (void)state;
    static const char *const names[] = {
        "renamed.gguf",
        "x",
        "part-0000x-of-00003.gguf",
        "part-00001-of-0000x.gguf",
        "part-00001_of-00003.gguf",
        "part_00001-of-00003.gguf",
        "part-00001-of-00003.ggml",
        "part-00000-of-00003.gguf",
        "part-00004-of-00003.gguf",
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char sentence[256];
        snprintf(sentence, sizeof sentence,
                 "%%s/%s: is one of 3 parts, expected a name that ends with -00001-of-00003.gguf "
                 "(or another part's number), by which the others can be found",
                 names[i]);
        write_part(&(struct part){.name = names[i], .number = 1, .count = 3});
        expect_refusal(names[i], STATUS_FORMAT, sentence);
        unlink(path_of(names[i]));
    }
}

/* One part of one is a whole file, and its keys are checked all the same. */
static void test_one_part(void **state)
{
    (void)state;
    struct gguf_file *file;
    write_part(&(struct part){.name = "renamed.gguf", .number = 1, .count = 1, .n_tensors = 2});
    assert_int_equal(gguf_open(&file, path_of("renamed.gguf"), NULL), STATUS_OK);
    assert_int_equal(gguf_n_shards(file), 1);
    gguf_close(file);
    write_part(&(struct part){.name = "renamed.gguf", .number = 1, .count = 1, .n_tensors = 3});
    expect_refusal("renamed.gguf", STATUS_FORMAT,
                   "%s/renamed.gguf: all parts together have 2 tensors, expected 3 (key "
                   "'split.tensors.count')");
}

static void test_parts_in_memory(void **state)
{
    (void)state;
    struct gguf_writer *w;
    void *data;
    size_t n_bytes;
    struct gguf_file *file;
    struct status_why why = {0};
    assert_int_equal(gguf_writer_new(&w, &why), STATUS_OK);
    gguf_writer_u16(w, "split.count", 2);
    assert_int_equal(gguf_writer_finish_memory(w, &data, &n_bytes, &why), STATUS_OK);
    assert_int_equal(gguf_bytes_open(&file, data, n_bytes, "bytes", &why), STATUS_UNSUPPORTED);
    assert_null(file);
    assert_string_equal(why.text, "bytes: is one of 2 parts, expected a whole file");
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_any_part_opens_all, write_good_parts),
        cmocka_unit_test_setup(test_missing_part, write_good_parts),
        cmocka_unit_test(test_disagreeing_parts),
        cmocka_unit_test(test_renamed_part),
        cmocka_unit_test(test_one_part),
        cmocka_unit_test(test_parts_in_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
