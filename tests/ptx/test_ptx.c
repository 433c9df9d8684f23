/*
 * The interpreter itself: the kernels of samples.ptx, each in a process of its own, for a finding
 * ends it. They have what nvcc does not make of the backend's kernels yet, and one error each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"
#include "tests/ptx/machine.h"

enum { THREADS = 64, SHARED_BYTES = 1024, EXIT_WRONG = 1, EXIT_FINDING = 3 };

typedef uint32_t expected_fn(uint32_t t, uint32_t in);

/** A kernel, and what it leaves in `out` or, where that is NULL, what is found. */
struct sample {
    const char *name;
    expected_fn *expected;
    const char *finding;
    size_t n_blocks;
};

static uint32_t lanes(uint32_t t, uint32_t in)
{
    (void)in;
    return 0xaaaaaaaau + (t ^ 1) + (t % 32 == 31 ? 0 : 1000);
}

static uint32_t parted(uint32_t t, uint32_t in)
{
    (void)in;
    return t % 2 ? 0 : t + 1;
}

static uint32_t matrix(uint32_t t, uint32_t in)
{
    uint32_t lane = t % 32, row = lane / 4, column = lane % 4 * 2;
    (void)in;
    return (8 * column + row) << 16 | (8 * row + column);
}

static uint32_t twice(uint32_t t, uint32_t in)
{
    (void)t;
    return 2 * in;
}

static uint32_t count(uint32_t t, uint32_t in)
{
    return t ? in : THREADS;
}

static uint32_t neighbour(uint32_t t, uint32_t in)
{
    (void)in;
    return t ^ 1;
}

static uint32_t own(uint32_t t, uint32_t in)
{
    (void)in;
    return t;
}

static uint32_t bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/** Floats have steps of 2 from 2^24 on. */
static uint32_t truncated(uint32_t t, uint32_t in)
{
    (void)in;
    float x = 0.75f * (float)t - 20.0f;
    int32_t most = t < 17 ? INT32_MIN : t > 37 ? INT32_MAX : (int32_t)(x * 0x1p28f);
    double sum = 2 * floor((0x1p24 + 2 + fabs((double)x)) / 2);
    return bits_of(copysignf((float)sum, x)) ^ bits_of(truncf(x)) ^ (uint32_t)(int32_t)x ^
           (uint32_t)most;
}

static const struct sample samples[] = {
    {"lanes", lanes, NULL, 1},
    {"truncated", truncated, NULL, 1},
    {"parted", parted, NULL, 1},
    {"matrix", matrix, NULL, 1},
    {"copies", twice, NULL, 1},
    {"atomics", count, NULL, 1},
    {"ordered_lanes", neighbour, NULL, 1},
    {"bytes", own, NULL, 1},
    {"local", own, NULL, 1},
    {"local_never_written", NULL, "reads local memory at 0x4: nobody wrote that", 1},
    {"beyond_local", NULL, "beyond what the thread has", 1},
    {"copy_not_waited_for", NULL, "a copy to there was not waited for", 1},
    {"atomic_race", NULL, "a race within the block", 1},
    {"race_of_lanes", NULL, "a race within the block", 1},
    {"race_of_warps", NULL, "a race within the block", 1},
    {"race_of_blocks", NULL, "a race between blocks", 2},
    {"race_of_readers", NULL, "a race between blocks", 2},
    {"never_written", NULL, "nobody wrote that", 1},
    {"register_never_written", NULL, "a register that was never written", 1},
    {"not_aligned", NULL, "not aligned", 1},
    {"beyond_global", NULL, "in no allocation", 1},
    {"beyond_shared", NULL, "beyond what the launch gives the block", 1},
    {"constant", NULL, "it is constant", 1},
    {"not_constant", NULL, "is read as a constant", 1},
    {"barrier_of_some", NULL, "this barrier, but thread 0 ended in", 1},
    {"shuffle_of_some", NULL, "waits for its warp, but thread", 1},
};

/** Run a sample; 0, or EXIT_WRONG. A finding ends the process with EXIT_FINDING. */
static int run_sample(const struct sample *s, enum ptx_order order)
{
    static const char *const files[] = {ASSAY_SOURCE_DIR "/tests/ptx/samples.ptx"};
    struct ptx_machine m;
    ptx_machine_open(&m, files, 1, order);
    uint32_t *out = aligned_alloc(256, THREADS * sizeof *out);
    if (!out)
        return EXIT_WRONG;
    for (uint32_t t = 0; t < THREADS; t++)
        out[t] = 3 * t + 5;
    ptx_space_add(&m.space, out, THREADS * sizeof *out);
    ptx_shadow_write(&m.space.list[m.space.n - 1].shadow, 0, THREADS * sizeof *out);
    struct ptx_launch launch = {.kernel = ptx_machine_find(&m, s->name),
                                .params = &out,
                                .n_blocks = s->n_blocks,
                                .shared_bytes = SHARED_BYTES,
                                .n_threads = THREADS};
    ptx_machine_launch(&m, &launch);
    int result = 0;
    for (uint32_t t = 0; t < THREADS && s->expected && !result; t++) {
        uint32_t expected = s->expected(t, 3 * t + 5);
        if (out[t] == expected)
            continue;
        fprintf(stderr, "%s: thread %u has %u, expected %u\n", s->name, t, out[t], expected);
        result = EXIT_WRONG;
    }
    ptx_machine_close(&m);
    free(out);
    return result;
}

/** In a child, whose messages come through a pipe. */
static int run_apart(const struct sample *s, enum ptx_order order, char *said, size_t size)
{
    int ends[2], status = 0;
    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        dup2(ends[1], 2);
        _exit(run_sample(s, order));
    }
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n < size - 1; n += (size_t)got) {
        got = read(ends[0], said + n, size - 1 - n);
        if (got < 0)
            break;
    }
    said[n] = 0;
    close(ends[0]);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void test_samples(void **state)
{
    (void)state;
    static const enum ptx_order orders[] = {PTX_FORWARDS, PTX_BACKWARDS, PTX_RANDOM};
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        for (size_t k = 0; k < 3; k++) {
            const struct sample *s = &samples[i];
            char said[4096];
            int code = run_apart(s, orders[k], said, sizeof said);
            if (code != (s->finding ? EXIT_FINDING : 0) ||
                (s->finding && !strstr(said, s->finding)))
                fail_msg("%s, order %zu: ended with %d and said: %s", s->name, k, code, said);
        }
    }
}

int main(void)
{
    rng_seed(); /* here, so that the children have the one that is printed */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_samples)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
