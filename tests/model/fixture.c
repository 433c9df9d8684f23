#include "tests/model/fixture.h"

#include <stdlib.h>

#include "kernels/backend.h"
#include "kernels/scoring.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/gguf_bytes.h"
#include "tests/harness/rng.h"

/* Threads spend more on waiting for each other than such models have work. What they may do to it,
 * test_forward_bits.c looks at, and ThreadSanitizer in all tests. */
#ifdef __has_feature /* clang says it so */
#if __has_feature(thread_sanitizer)
#define WATCHED
#endif
#endif
#if defined __SANITIZE_THREAD__ || defined WATCHED
enum { THREADS = 2 };
#else
enum { THREADS = 1 };
#endif

static void check(enum status status, const struct status_why *why)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), why->text);
}

static struct fixture open_model(struct gguf_file *file, struct tiny_model bytes,
                                 const struct model_options *options)
{
    struct fixture f = {.bytes = bytes};
    struct status_why why = {0};
    check(model_open(&f.model, file, options, &why), &why);
    fixture_use_backend(&f, THREADS, KERN_ISA_COUNT - 1);
    return f;
}

struct fixture fixture_open(const struct tiny_model_options *options)
{
    return fixture_open_bytes(tiny_model_make(options));
}

struct fixture fixture_open_bytes(struct tiny_model bytes)
{
    struct gguf_file *file;
    struct status_why why = {0};
    check(gguf_bytes_open(&file, bytes.data, bytes.n_bytes, "tiny.gguf", &why), &why);
    return open_model(file, bytes, &(struct model_options){0});
}

struct fixture fixture_open_file(const char *path, const struct model_options *options)
{
    struct gguf_file *file;
    struct status_why why = {0};
    check(gguf_open(&file, path, &why), &why);
    return open_model(file, (struct tiny_model){0}, options);
}

void fixture_use_backend(struct fixture *f, unsigned n_threads, enum kern_isa cap)
{
    kern_close(f->backend);
    struct kern_cpu_options options = {.n_threads = n_threads, .isa_cap = cap};
    struct status_why why = {0};
    check(kern_cpu_open(&f->backend, &options, &why), &why);
}

void fixture_close(struct fixture *f)
{
    model_close(f->model);
    kern_close(f->backend);
    free(f->bytes.data);
}

int32_t *fixture_tokens(const struct fixture *f, uint64_t seed, size_t n)
{
    struct rng r = rng_open(seed, n);
    int32_t *tokens = malloc(n * sizeof *tokens);
    assert_non_null(tokens);
    for (size_t i = 0; i < n; i++)
        tokens[i] = (int32_t)rng_below(&r, model_hparams(f->model)->n_vocab);
    return tokens;
}

struct model_batch fixture_window(const int32_t *tokens, size_t n, struct model_segment *segment)
{
    *segment = (struct model_segment){.n_tokens = n, .parent = -1};
    return (struct model_batch){
        .tokens = tokens, .n_tokens = n, .segments = segment, .n_segments = 1};
}

static void *backend_alloc(struct fixture *f, size_t n_bytes)
{
    void *memory;
    struct status_why why = {0};
    check(kern_alloc(f->backend, &memory, n_bytes, &why), &why);
    return memory;
}

static size_t longest(const struct model_batch *batch)
{
    size_t most = 0;
    for (size_t i = 0; i < batch->n_segments; i++) {
        const struct model_segment *s = &batch->segments[i];
        size_t end = (size_t)s->first_position + s->n_tokens;
        most = end > most ? end : most;
    }
    return most;
}

float *fixture_hidden(struct fixture *f, const struct model_batch *batch, struct fixture_run run)
{
    const struct model_hparams *h = model_hparams(f->model);
    struct model_session_options options = {.tile_tokens = run.tile_tokens,
                                            .max_batch = batch->n_tokens,
                                            .max_segment = longest(batch)};
    struct model_session *session;
    struct status_why why = {0};
    check(model_session_open(&session, f->model, f->backend, &options, &why), &why);
    size_t n_bytes = batch->n_tokens * h->n_embd * sizeof(float);
    float *x = backend_alloc(f, batch->n_tokens * model_residual_width(h) * sizeof(float));
    float *hidden = backend_alloc(f, n_bytes);
    float *out = malloc(n_bytes);
    uint32_t *rows = malloc(batch->n_tokens * sizeof *rows);
    assert_true(out && rows);
    for (size_t i = 0; i < batch->n_tokens; i++)
        rows[i] = (uint32_t)i;
    check(model_embed(session, batch, x, &why), &why);
    size_t step = run.split_layers ? run.split_layers : h->n_layers;
    for (size_t i = 0; i < h->n_layers; i += step) {
        size_t to = i + step < h->n_layers ? i + step : h->n_layers;
        check(model_forward(session, batch, i, to, x, &why), &why);
    }
    check(model_hidden(session, x, rows, batch->n_tokens, hidden, &why), &why);
    check(kern_download(f->backend, out, hidden, n_bytes, &why), &why);
    free(rows);
    kern_free(f->backend, x);
    kern_free(f->backend, hidden);
    model_session_close(session);
    return out;
}

double *fixture_log_probs(struct fixture *f, const float *hidden, const int32_t *targets, size_t n)
{
    const struct kern_weight *matrix = model_head(f->model);
    size_t n_bytes = n * matrix->n_cols * sizeof(float);
    struct status_why why = {0};
    float *on_backend = backend_alloc(f, n_bytes);
    check(kern_upload(f->backend, on_backend, hidden, n_bytes, &why), &why);
    struct kern_target *wanted = calloc(n, sizeof *wanted);
    struct kern_row_score *rows = calloc(n, sizeof *rows);
    struct kern_target_score *scores = calloc(n, sizeof *scores);
    double *log_probs = calloc(n, sizeof *log_probs);
    assert_true(wanted && rows && scores && log_probs);
    for (size_t i = 0; i < n; i++)
        wanted[i] = (struct kern_target){.row = (uint32_t)i, .token = targets[i]};
    struct kern_head head = model_kern_head(f->model);
    head.hidden = on_backend;
    struct kern_score op = {.n_heads = 1,
                            .heads = &head,
                            .n_rows = n,
                            .n_targets = n,
                            .targets = wanted,
                            .rows = rows,
                            .target_scores = scores};
    check(kern_score(f->backend, &op, &why), &why);
    for (size_t i = 0; i < n; i++)
        log_probs[i] = scores[i].log_prob;
    kern_free(f->backend, on_backend);
    free(wanted);
    free(rows);
    free(scores);
    return log_probs;
}
