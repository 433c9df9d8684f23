/* Blocks after the layers: two counts and the tensors must say the same. */
#include <stdlib.h>
#include <string.h>

#include "model/model.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/tiny_model.h"

#define COUNT(text)   "llama.block_count=int:" text
#define FURTHER(text) "llama.nextn_predict_layers=int:" text
#define REAL(i, further, count)                                                                    \
    "tiny.gguf: block " i " has the tensors of a layer ('blk." i ".attn_norm.weight') and none "   \
    "of a block that predicts further tokens ('blk." i ".nextn.*'), but it is one by key "         \
    "'llama.nextn_predict_layers' (" further ") and key 'llama.block_count' (" count               \
    "), expected other counts"
#define OF_NEXTN(i, further, count)                                                                \
    "tiny.gguf: tensor 'blk." i ".nextn.enorm.weight' is of a block that predicts further "        \
    "tokens, but block " i " is a layer by key 'llama.nextn_predict_layers' (" further ") and "    \
    "key 'llama.block_count' (" count "), expected other counts"

/** A file of blocks 0 and 1, both real, a tensor beside them, and what is said of them. */
static const struct {
    const char *tensor, *overrides[2], *sentence; /* sentence NULL: it opens */
} cases[] = {
    {NULL, {COUNT("2"), FURTHER("0")}, NULL},
    {NULL, {COUNT("3"), FURTHER("1")}, NULL}, /* the block was left out */
    {NULL, {COUNT("4"), FURTHER("2")}, NULL},
    {NULL, {COUNT("2"), FURTHER("1")}, REAL("1", "1", "2")},
    {NULL, {COUNT("3"), FURTHER("2")}, REAL("1", "2", "3")},
    {"blk.2.nextn.enorm.weight", {COUNT("3"), FURTHER("1")}, NULL},
    {"blk.2.nextn.enorm.weight", {COUNT("3"), FURTHER("2")}, REAL("1", "2", "3")},
    {"blk.2.nextn.enorm.weight", {COUNT("2"), FURTHER("1")}, REAL("1", "1", "2")},
    {"blk.2.nextn.enorm.weight", {COUNT("3"), FURTHER("0")}, OF_NEXTN("2", "0", "3")},
    {"blk.2.nextn.enorm.weight", {COUNT("4"), FURTHER("1")}, OF_NEXTN("2", "1", "4")},
    {"blk.2.nextn.enorm.weight",
     {COUNT("2"), FURTHER("0")},
     "tiny.gguf: key 'llama.block_count' is 2, but there is a tensor 'blk.2.nextn.enorm.weight', "
     "expected a count of 3 or more"},
};

static void test_counts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct tiny_model_options tiny = {.add_tensor = cases[i].tensor};
        struct tiny_model bytes = tiny_model_make(&tiny);
        struct gguf_file *file;
        struct model *model;
        struct status_why why = {0};
        struct model_options options = {.overrides = cases[i].overrides, .n_overrides = 2};
        assert_int_equal(gguf_bytes_open(&file, bytes.data, bytes.n_bytes, "tiny.gguf", &why), 0);
        enum status status = model_open(&model, file, &options, &why);
        assert_int_equal(status, cases[i].sentence ? STATUS_FORMAT : STATUS_OK);
        if (status)
            assert_string_equal(why.text, cases[i].sentence);
        model_close(model);
        free(bytes.data);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
