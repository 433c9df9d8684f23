/* The clocks of a backend: each operation counts into its phase, parts stay within operations. */
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "kernels/operations.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"

enum { WIDTH = 256, ROWS = 512, TOKENS = 64, HEADS = 4 };

struct fixture {
    struct kern_backend *backend;
    struct kern_weight weight, gain;
    float *w, *x, *y, *z;
};

static int open_all(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);
    struct kern_cpu_options options = {.n_threads = 2, .isa_cap = KERN_ISA_COUNT - 1};
    assert_non_null(f);
    assert_int_equal(kern_cpu_open(&f->backend, &options, NULL), STATUS_OK);
    f->w = calloc(ROWS * WIDTH, sizeof *f->w);
    f->x = calloc(TOKENS * WIDTH, sizeof *f->x);
    f->y = calloc(TOKENS * ROWS, sizeof *f->y);
    f->z = calloc(TOKENS * ROWS, sizeof *f->z);
    assert_true(f->w && f->x && f->y && f->z);
    f->weight = (struct kern_weight){.type = GGUF_TYPE_F32,
                                     .n_rows = ROWS,
                                     .n_cols = WIDTH,
                                     .row_bytes = WIDTH * sizeof(float),
                                     .data = f->w,
                                     .scale = 1};
    f->gain = f->weight;
    f->gain.n_rows = 1;
    *state = f;
    return 0;
}

static int close_all(void **state)
{
    struct fixture *f = *state;
    kern_close(f->backend);
    free(f->w);
    free(f->x);
    free(f->y);
    free(f->z);
    free(f);
    return 0;
}

static enum status do_linear(struct fixture *f)
{
    struct kern_linear op = {
        .weight = &f->weight, .x = f->x, .y = f->y, .y_stride = ROWS, .n_tokens = TOKENS};
    return kern_linear(f->backend, &op, NULL);
}

static enum status do_attention(struct fixture *f)
{
    struct kern_query_range range = {.n_q = TOKENS};
    struct kern_attention op = {.q = f->x,
                                .k = f->x,
                                .v = f->x,
                                .out = f->y,
                                .n_heads = HEADS,
                                .n_kv_heads = HEADS,
                                .head_size = WIDTH / HEADS,
                                .value_size = WIDTH / HEADS,
                                .scale = 1,
                                .ranges = &range,
                                .n_ranges = 1};
    return kern_attention(f->backend, &op, NULL);
}

static enum status do_score(struct fixture *f)
{
    struct kern_head head = {.hidden = f->x, .matrix = &f->weight};
    struct kern_row_score rows[TOKENS];
    struct kern_score op = {.n_heads = 1, .heads = &head, .n_rows = TOKENS, .rows = rows};
    return kern_score(f->backend, &op, NULL);
}

static enum status do_norm(struct fixture *f)
{
    struct kern_norm op = {.gain = &f->gain,
                           .eps = 1e-5f,
                           .x = f->x,
                           .y = f->y,
                           .n_rows = TOKENS,
                           .width = f->gain.n_cols,
                           .n_groups = 1};
    return kern_norm(f->backend, &op, NULL);
}

static enum status do_rope(struct fixture *f)
{
    int32_t positions[TOKENS] = {0};
    struct kern_rope op = {.x = f->x,
                           .stride = WIDTH,
                           .n_tokens = TOKENS,
                           .n_heads = HEADS,
                           .head_size = WIDTH / HEADS,
                           .n_pairs = WIDTH / HEADS / 2,
                           .angles = f->w,
                           .n_positions = 1,
                           .positions = positions};
    return kern_rope(f->backend, &op, NULL);
}

static enum status do_gate(struct fixture *f)
{
    struct kern_activate op = {.gate = f->y, .up = f->z, .n = (size_t)TOKENS * ROWS};
    return kern_activate(f->backend, &op, NULL);
}

static enum status do_gather(struct fixture *f)
{
    struct kern_gather op = {f->x, (uint32_t[]){1, 0}, 2, WIDTH, f->y};
    return kern_gather(f->backend, &op, NULL);
}

/** An operation, its phase, and the parts that it has, as bits. */
static const struct {
    enum status (*run)(struct fixture *f);
    enum kern_phase phase;
    unsigned parts;
} operations[] = {
    {do_linear, KERN_PHASE_LINEAR, 1u << KERN_PHASE_DECODE | 1u << KERN_PHASE_PACK},
    {do_attention, KERN_PHASE_ATTENTION, 0},
    {do_score, KERN_PHASE_SCORE,
     1u << KERN_PHASE_DECODE | 1u << KERN_PHASE_PACK | 1u << KERN_PHASE_FOLD},
    {do_norm, KERN_PHASE_NORM, 0},
    {do_rope, KERN_PHASE_ROPE, 0},
    {do_gate, KERN_PHASE_GATE, 0},
    {do_gather, KERN_PHASE_OTHER, 0},
};

static void test_each_operation_counts_into_its_phase(void **state)
{
    struct fixture *f = *state;
    for (size_t i = 0; i < sizeof operations / sizeof *operations; i++) {
        struct kern_times before, after;
        kern_times_read(f->backend, &before);
        uint64_t begun = kern_clock_now();
        assert_int_equal(operations[i].run(f), STATUS_OK);
        double passed = 1e-9 * (double)(kern_clock_now() - begun);
        kern_times_read(f->backend, &after);
        unsigned expected = operations[i].parts | 1u << operations[i].phase;
        double parts = 0;
        for (unsigned p = 0; p < KERN_N_PHASES; p++) {
            double seconds = after.seconds[p] - before.seconds[p];
            assert_int_equal(seconds > 0, expected >> p & 1);
            parts += p >= KERN_PHASE_DECODE ? seconds : 0;
        }
        double whole = after.seconds[operations[i].phase] - before.seconds[operations[i].phase];
        /* The clocks tick in nanoseconds; sums of doubles below 1 s are good to far less. */
        assert_true(whole <= passed + 1e-9);
        assert_true(parts <= whole + 1e-9);
    }
}

static void test_nothing_done_counts_nothing(void **state)
{
    struct fixture *f = *state;
    struct kern_times before, after;
    kern_times_read(f->backend, &before);
    struct kern_linear op = {.weight = &f->weight, .y_stride = ROWS};
    assert_int_equal(kern_linear(f->backend, &op, NULL), STATUS_OK);
    struct kern_activate nothing = {.gate = f->y, .up = f->z};
    assert_int_equal(kern_activate(f->backend, &nothing, NULL), STATUS_OK);
    kern_times_read(f->backend, &after);
    assert_memory_equal(&before, &after, sizeof before);
}

static void test_phases_have_names(void **state)
{
    (void)state;
    for (int i = 0; i < KERN_N_PHASES; i++) {
        assert_true(strlen(kern_phase_name((enum kern_phase)i)) > 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(kern_phase_name((enum kern_phase)i),
                                    kern_phase_name((enum kern_phase)j));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_operation_counts_into_its_phase),
        cmocka_unit_test(test_nothing_done_counts_nothing),
        cmocka_unit_test(test_phases_have_names),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
