/** What tests of include/assay.h share: the bundled models, and windows of random tokens. */
#ifndef TESTS_LIBRARY_MODELS_H
#define TESTS_LIBRARY_MODELS_H

#include <stdlib.h>

#include "include/assay.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"

enum { N_WINDOWS = 7, N_TOKENS = 21, FIRST = 5, N_POSITIONS = 11, N = N_WINDOWS * N_POSITIONS };

static struct assay_why why;

static inline void must(enum assay_status status)
{
    if (status != ASSAY_OK)
        fail_msg("%s: %s", assay_status_name(status), why.text);
}

static inline struct assay_model *open_with(const char *path, enum assay_precision precision,
                                            unsigned n_threads)
{
    struct assay_options options = ASSAY_OPTIONS;
    struct assay_model *m;
    options.precision = precision;
    options.n_threads = n_threads;
    must(assay_open(&m, path, &options, &why));
    return m;
}

static inline struct assay_description description(const struct assay_model *m)
{
    struct assay_description d = {.size = sizeof d};
    must(assay_describe(m, &d, &why));
    return d;
}

/** Windows of random tokens, and targets for their positions; free both. */
static inline struct assay_windows make_windows(const struct assay_model *m, uint64_t seed,
                                                int32_t **targets)
{
    struct rng r = rng_open(seed, 0);
    size_t n_vocab = description(m).n_vocab;
    int32_t *tokens = malloc(N_WINDOWS * N_TOKENS * sizeof *tokens);
    *targets = malloc(N * sizeof **targets);
    assert_true(tokens && *targets);
    for (size_t i = 0; i < N_WINDOWS * N_TOKENS; i++)
        tokens[i] = (int32_t)rng_below(&r, n_vocab);
    for (size_t i = 0; i < N; i++)
        (*targets)[i] = (int32_t)rng_below(&r, n_vocab);
    return (struct assay_windows){tokens, N_WINDOWS, N_TOKENS, FIRST, N_POSITIONS};
}

static inline void free_windows(struct assay_windows *w, int32_t *targets)
{
    free((void *)(uintptr_t)w->tokens);
    free(targets);
}

#endif
