/*
 * Variants of a model on several backends, CPU and CUDA on a device made of the host's memory:
 * the tallies have the same bits, whoever evaluates and however windows are put into batches.
 */
#include <stdlib.h>
#include <string.h>

#include "eval/streams/variants.h"
#include "eval/units/trials.h"
#include "evaluation.h"
#include "kernels/backend.h"
#include "kernels/cuda/context.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/host_device.h"

enum { N_CTX = 32, N_WINDOWS = 3, N_VARIANTS = 5 };

static void must(enum status status, const struct status_why *why)
{
    if (status)
        fail_msg("%s", why->text);
}

static struct kern_backend *open_cuda(void)
{
    struct kern_backend *backend;
    struct status_why why = {""};
    struct kern_cuda_options options = {.precision = KERN_PRECISION_EXACT,
                                        .weight_bytes = 400 << 10, /* most of it is streamed */
                                        .panel_size = 64 << 10,
                                        .n_slots = 4,
                                        .product_tokens = 64,
                                        .product_step = 16};
    struct host_device_options way = {0};
    must(kern_cuda_open(&backend, host_device_open(&way, NULL), &options, &why), &why);
    return backend;
}

/** The base's tensors in order of their stages; the first variant is the model itself. */
static const char *const names[N_VARIANTS] = {NULL, "token_embd.weight", "blk.1.ffn_down.weight",
                                              "blk.3.attn_v.weight", "output.weight"};

/** The last tallies of all variants: [N_VARIANTS]. */
static void run(const struct evaluation *e, struct kern_backend *const *backends, size_t n_backends,
                size_t batch_windows, struct eval_trial *out)
{
    const struct gguf_file *file = model_file(e->candidates[0]);
    struct eval_swap swaps[N_VARIANTS];
    struct eval_variant items[N_VARIANTS] = {{0}};
    double costs[N_VARIANTS] = {1, 1, 1, 1, 1};
    for (size_t i = 1; i < N_VARIANTS; i++) {
        swaps[i] = (struct eval_swap){names[i], file, gguf_tensor_find(file, names[i])};
        items[i] = (struct eval_variant){&swaps[i], 1};
    }
    const struct model *swapped = e->model;
    struct eval_variants variants = {e->model, swapped, items, N_VARIANTS, &file, 1};
    const struct eval_stream_source streams = eval_variants_source(&variants);
    struct eval_models models = {.model = e->model,
                                 .candidates = &swapped,
                                 .n_candidates = 1,
                                 .streams = &streams,
                                 .backends = backends,
                                 .n_backends = n_backends};
    struct eval_trials trials = {.plan = &e->plan,
                                 .stream = &e->stream,
                                 .batch_windows = batch_windows,
                                 .n_variants = N_VARIANTS,
                                 .costs = costs,
                                 .has_reference = true};
    struct eval_run_options options = {0};
    struct status_why why = {""};
    must(eval_trials_open(&trials, &why), &why);
    assert_null(eval_trials_result(&trials, 0));
    must(eval_run_prepare(&trials.units, &models, 0, &why), &why);
    must(eval_run(&trials.units, &models, &options, NULL, &why), &why);
    for (size_t v = 0; v < N_VARIANTS; v++)
        out[v] = *eval_trials_result(&trials, v);
    eval_trials_close(&trials);
}

static void test_backends(void **state)
{
    (void)state;
    struct setup setup = setup_usual(ASSAY_SOURCE_DIR "/data/tiny.F16.gguf", N_CTX, N_WINDOWS);
    setup.candidates[0] = ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf";
    setup.n_candidates = 1;
    setup.cpu.n_threads = 1;
    setup.cpu.precision = KERN_PRECISION_EXACT;
    struct evaluation e;
    evaluation_open(&e, &setup);
    struct kern_backend *backends[] = {e.backend, open_cuda(), open_cuda()};
    struct eval_trial wanted[N_VARIANTS], found[N_VARIANTS];
    run(&e, backends, 1, 2, wanted);
    assert_true(wanted[0].tally.kld.sum == 0);
    for (size_t v = 0; v < N_VARIANTS; v++) {
        assert_int_equal(wanted[v].tally.n_windows, N_WINDOWS);
        assert_int_equal(wanted[v].tally.kld.n, N_WINDOWS * e.plan.n_scored);
        assert_true(v == 0 || wanted[v].tally.kld.sum > 0);
        assert_memory_equal(&wanted[v].excess, &wanted[v].tally.kld, sizeof wanted[v].excess);
    }
    const struct {
        size_t first, n, batch_windows;
    } ways[] = {{0, 1, 1}, {0, 1, N_WINDOWS}, {0, 3, 2}};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        run(&e, backends + ways[i].first, ways[i].n, ways[i].batch_windows, found);
        assert_memory_equal(found, wanted, sizeof wanted);
    }
    kern_close(backends[1]);
    kern_close(backends[2]);
    evaluation_close(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_backends)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
