/** A CPU backend and a CUDA backend, on a device made of host memory or a real one, side by side.
 */
#ifndef TESTS_KERNELS_CUDA_PAIR_H
#define TESTS_KERNELS_CUDA_PAIR_H

#include <stdbool.h>

#include "kernels/backend.h"
#include "kernels/cuda/cuda.h"
#include "tests/harness/host_device.h"

struct cuda_pair {
    struct kern_backend *cpu, *cuda;
    struct host_device_log log;
};

/**
 * Pairs opened from now on have the first real device; host_device_options do not matter then.
 * false, said on standard output: there is none.
 */
bool cuda_pair_use_real_device(void);
/** Whether they have: its work cannot be counted. */
bool cuda_pair_is_real(void);

/**
 * Open both; a failure ends the test. Little memory in small panels, so that everything that the
 * backend does for large models happens: panels are streamed through slots, tokens cut in chunks.
 */
void cuda_pair_open(struct cuda_pair *p, enum kern_precision precision,
                    const struct host_device_options *options);
/** The same with panels of that many bytes, and room for 8 of them. */
void cuda_pair_open_panels(struct cuda_pair *p, enum kern_precision precision,
                           const struct host_device_options *options, size_t panel_size);
/** The same in `high`, with products of quantised weights in integers on both. */
void cuda_pair_open_integers(struct cuda_pair *p, const struct host_device_options *options,
                             size_t panel_size);
/** Fail if device memory was lost. */
void cuda_pair_close(struct cuda_pair *p);

/** A copy of n floats in the CUDA backend's memory. */
float *cuda_pair_put(struct cuda_pair *p, const float *x, size_t n);
/** Free such a copy; its floats, once all queued work is done, to `to` if that is not NULL. */
void cuda_pair_take(struct cuda_pair *p, float *copy, float *to, size_t n);

/**
 * The ways in which the device may do its work: every order, forwards and backwards. The next way
 * is i + cuda_pair_step(): where kernels run slowly, the first and the last way have to do.
 */
enum { CUDA_PAIR_N_WAYS = 6 };
size_t cuda_pair_step(void);
struct host_device_options cuda_pair_way(size_t i);

#endif
