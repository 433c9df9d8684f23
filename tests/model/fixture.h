/** A tiny model opened on a CPU backend, and ways to run batches through it. cmocka inside. */
#ifndef TESTS_MODEL_FIXTURE_H
#define TESTS_MODEL_FIXTURE_H

#include "kernels/cpu/cpu.h"
#include "model/forward/forward.h"
#include "tests/harness/tiny_model.h"

struct fixture {
    struct tiny_model bytes; /* empty if the model came from a file */
    struct model *model;
    struct kern_backend *backend;
};

/** Open, or fail the test with the sentence. ISA: the best there is; threads: 2. */
struct fixture fixture_open(const struct tiny_model_options *options);
/** Open a file in memory, which the fixture frees. */
struct fixture fixture_open_bytes(struct tiny_model bytes);
/** From a file of the reference material. */
struct fixture fixture_open_file(const char *path, const struct model_options *options);
/** Another backend in place of the fixture's. */
void fixture_use_backend(struct fixture *f, unsigned n_threads, enum kern_isa cap);
void fixture_close(struct fixture *f);

/** n ids of the fixture's vocabulary; free(). */
int32_t *fixture_tokens(const struct fixture *f, uint64_t seed, size_t n);

/** One segment from position 0 over n tokens. */
struct model_batch fixture_window(const int32_t *tokens, size_t n, struct model_segment *segment);

/** How a batch is run. */
struct fixture_run {
    size_t tile_tokens;  /* 0: default */
    size_t split_layers; /* layers per call of model_forward; 0: all in one */
};

/** Hidden rows (after the output norm) of every token of the batch: [n_tokens, D]; free(). */
float *fixture_hidden(struct fixture *f, const struct model_batch *batch, struct fixture_run run);

/** ln p of targets[i] after hidden row i, n rows from fixture_hidden; free(). */
double *fixture_log_probs(struct fixture *f, const float *hidden, const int32_t *targets, size_t n);

#endif
