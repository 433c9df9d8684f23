/*
 * Every byte of a model's header changed, and every key set to values that it should not have:
 * the file is refused with a sentence, or evaluated; nothing crashes (run under sanitizers).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "model/forward/forward.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/tiny_model.h"

enum { N_TOKENS = 5 };

/** Small, with as many kinds of keys and tensors as fit one file. */
static const struct tiny_model_options subjects[] = {
    {.n_layers = 1,
     .n_embd = 16,
     .n_ff = 16,
     .n_vocab = 260,
     .biases = true,
     .rope_factors = true,
     .rope_scaling = "yarn",
     .rope_original_ctx = 16,
     .head_size = 4,
     .n_rot = 4},
    {.n_layers = 2,
     .n_embd = 16,
     .n_ff = 16,
     .n_vocab = 260,
     .n_experts = 3,
     .n_experts_used = 2,
     .vary_layers = true,
     .tied_head = true,
     .sliding_window = 3,
     .scales = true},
};
enum { N_SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct bench {
    struct kern_backend *backend;
    size_t n_refused, n_evaluated;
};

/** A few tokens through the model; whatever comes out will do. */
static void evaluate(struct bench *b, struct model *model)
{
    int32_t tokens[N_TOKENS] = {1, 0, 2, 1, 0};
    struct model_segment segment = {.n_tokens = N_TOKENS, .parent = -1};
    struct model_batch batch = {
        .tokens = tokens, .n_tokens = N_TOKENS, .segments = &segment, .n_segments = 1};
    struct model_session_options options = {.max_batch = N_TOKENS, .max_segment = N_TOKENS};
    struct model_session *session;
    const struct model_hparams *h = model_hparams(model);
    void *x;
    assert_int_equal(model_session_open(&session, model, b->backend, &options, NULL), STATUS_OK);
    size_t n_bytes = N_TOKENS * model_residual_width(h) * sizeof(float);
    assert_int_equal(kern_alloc(b->backend, &x, n_bytes, NULL), STATUS_OK);
    assert_int_equal(model_embed(session, &batch, x, NULL), STATUS_OK);
    assert_int_equal(model_forward(session, &batch, 0, h->n_layers, x, NULL), STATUS_OK);
    kern_free(b->backend, x);
    model_session_close(session);
}

static void try_model(struct bench *b, const void *data, size_t n_bytes,
                      const struct model_options *options)
{
    struct gguf_file *file;
    struct model *model;
    struct status_why why = {0};
    enum status status = gguf_bytes_open(&file, data, n_bytes, "mutant", &why);
    if (status == STATUS_OK)
        status = model_open(&model, file, options, &why);
    if (status != STATUS_OK) {
        assert_true(why.text[0] != '\0');
        assert_true(status == STATUS_FORMAT || status == STATUS_UNSUPPORTED);
        b->n_refused++;
        return;
    }
    evaluate(b, model);
    model_close(model);
    b->n_evaluated++;
}

static struct bench open_bench(void)
{
    struct bench b = {0};
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = KERN_ISA_SCALAR + 1};
    assert_int_equal(kern_cpu_open(&b.backend, &options, NULL), STATUS_OK);
    return b;
}

static void close_bench(struct bench *b)
{
    print_message("%zu refused, %zu evaluated\n", b->n_refused, b->n_evaluated);
    assert_true(b->n_refused > 0 && b->n_evaluated > 0);
    kern_close(b->backend);
}

/** Where the tensor data begins. */
static size_t header_bytes(const struct tiny_model *bytes)
{
    struct gguf_file *file;
    uint64_t n_bytes;
    uint64_t data_offset;
    assert_int_equal(gguf_bytes_open(&file, bytes->data, bytes->n_bytes, "x", NULL), STATUS_OK);
    gguf_shard_data(file, 0, &n_bytes, &data_offset);
    gguf_close(file);
    return (size_t)data_offset;
}

static void test_bytes(void **state)
{
    (void)state;
    struct bench b = open_bench();
    static const uint8_t flips[] = {0x01, 0x80, 0xff};
    for (size_t s = 0; s < N_SUBJECTS; s++) {
        struct tiny_model bytes = tiny_model_make(&subjects[s]);
        size_t n = header_bytes(&bytes);
        for (size_t i = 0; i < n; i++) {
            uint8_t *byte = (uint8_t *)bytes.data + i;
            *byte ^= flips[i % sizeof flips];
            try_model(&b, bytes.data, bytes.n_bytes,
                      &(struct model_options){.allow_unknown = i % 2 == 1});
            *byte ^= flips[i % sizeof flips];
        }
        free(bytes.data);
    }
    close_bench(&b);
}

static void test_keys(void **state)
{
    (void)state;
    static const char *const values[] = {
        "int:0",     "int:1",    "int:2",          "int:3",          "int:4",          "int:8",
        "int:16",    "int:32",   "int:2147483647", "int:2147483648", "int:4294967295", "int:-1",
        "float:0",   "float:-1", "float:1e-45",    "float:1e38",     "float:1e300",    "bool:false",
        "bool:true", "str:",     "str:none",       "str:linear",     "str:yarn"};
    struct bench b = open_bench();
    for (size_t s = 0; s < N_SUBJECTS; s++) {
        struct tiny_model bytes = tiny_model_make(&subjects[s]);
        struct gguf_file *file;
        assert_int_equal(gguf_bytes_open(&file, bytes.data, bytes.n_bytes, "x", NULL), STATUS_OK);
        for (size_t i = 0; i < gguf_n_kv(file); i++)
            for (size_t k = 0; k < sizeof values / sizeof values[0]; k++) {
                struct base_string key = gguf_kv_at(file, i)->key;
                char line[256];
                snprintf(line, sizeof line, "%.*s=%s", (int)key.n_bytes, key.data, values[k]);
                const char *const lines[] = {line};
                try_model(&b, bytes.data, bytes.n_bytes,
                          &(struct model_options){.overrides = lines, .n_overrides = 1});
            }
        gguf_close(file);
        free(bytes.data);
    }
    close_bench(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_keys),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
