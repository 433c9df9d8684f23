/*
 * Every allocation on the way from bytes to a finished forward pass fails once: each time the
 * status is STATUS_MEMORY, and everything is released (run under AddressSanitizer).
 */
#include <stdlib.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "model/forward/forward.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/tiny_model.h"

/* The linker sends allocations through these (CMakeLists.txt). */
static size_t n_until_failure = SIZE_MAX; /* allocations that still succeed */
static bool has_failed;

void *__real_malloc(size_t n_bytes);
void *__real_calloc(size_t n, size_t n_bytes);
void *__real_realloc(void *old, size_t n_bytes);
void *__wrap_malloc(size_t n_bytes);
void *__wrap_calloc(size_t n, size_t n_bytes);
void *__wrap_realloc(void *old, size_t n_bytes);

static bool allow(void)
{
    if (n_until_failure == 0) {
        has_failed = true;
        return false;
    }
    if (n_until_failure != SIZE_MAX)
        n_until_failure--;
    return true;
}

void *__wrap_malloc(size_t n_bytes)
{
    return allow() ? __real_malloc(n_bytes) : NULL;
}

void *__wrap_calloc(size_t n, size_t n_bytes)
{
    return allow() ? __real_calloc(n, n_bytes) : NULL;
}

void *__wrap_realloc(void *old, size_t n_bytes)
{
    return allow() ? __real_realloc(old, n_bytes) : NULL;
}

enum { N_TOKENS = 3 };

static enum status evaluate(struct model *model, struct kern_backend *backend,
                            struct status_why *why)
{
    static const int32_t tokens[N_TOKENS] = {1, 5, 9};
    struct model_segment segment = {.n_tokens = N_TOKENS, .parent = -1};
    struct model_batch batch = {
        .tokens = tokens, .n_tokens = N_TOKENS, .segments = &segment, .n_segments = 1};
    struct model_session_options options = {.max_batch = N_TOKENS, .max_segment = N_TOKENS};
    struct model_session *session;
    void *x = NULL;
    size_t n_bytes = N_TOKENS * model_residual_width(model_hparams(model)) * sizeof(float);
    enum status status = model_session_open(&session, model, backend, &options, why);
    if (status == STATUS_OK)
        status = kern_alloc(backend, &x, n_bytes, why);
    if (status == STATUS_OK)
        status = model_embed(session, &batch, x, why);
    if (status == STATUS_OK)
        status = model_forward(session, &batch, 0, model_hparams(model)->n_layers, x, why);
    kern_free(backend, x);
    model_session_close(session);
    return status;
}

static enum status run(const struct tiny_model *bytes, struct kern_backend *backend,
                       struct status_why *why)
{
    static const char *const overrides[] = {"general.name=str:x", "general.note=int:3"};
    struct model_options options = {
        .overrides = overrides, .n_overrides = 2, .allow_unknown = true};
    struct gguf_file *file;
    struct model *model;
    enum status status = gguf_bytes_open(&file, bytes->data, bytes->n_bytes, "tiny", why);
    if (status != STATUS_OK)
        return status;
    status = model_open(&model, file, &options, why);
    if (status == STATUS_OK)
        status = evaluate(model, backend, why);
    model_close(model);
    return status;
}

static void test_every_allocation(void **state)
{
    (void)state;
    struct tiny_model bytes = tiny_model_make(&(struct tiny_model_options){
        .n_experts = 2, .n_experts_used = 1, .tied_head = true, .add_tensor = "extra"});
    struct kern_cpu_options options = {.n_threads = 1, .isa_cap = KERN_ISA_SCALAR + 1};
    struct kern_backend *backend;
    assert_int_equal(kern_cpu_open(&backend, &options, NULL), STATUS_OK);
    size_t n = 0;
    for (;; n++) {
        struct status_why why = {0};
        has_failed = false;
        n_until_failure = n;
        enum status status = run(&bytes, backend, &why);
        n_until_failure = SIZE_MAX;
        if (!has_failed) {
            assert_int_equal(status, STATUS_OK);
            break;
        }
        if (status != STATUS_MEMORY || why.text[0] == '\0')
            fail_msg("allocation %zu failed: %s, \"%s\"", n, status_name(status), why.text);
    }
    print_message("%zu allocations\n", n);
    kern_close(backend);
    free(bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
