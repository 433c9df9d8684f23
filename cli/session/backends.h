/** What computes: the backends of the devices that the options name. */
#ifndef CLI_SESSION_BACKENDS_H
#define CLI_SESSION_BACKENDS_H

#include "cli/options/common.h"
#include "kernels/kernels.h"

struct act_rounding;
struct gguf_file;
struct kern_backend;

enum { CLI_MAX_DEVICES = 32 };

/** In the order in which the devices were named; one may be there twice. Zero-initialise. */
struct cli_backends {
    struct kern_backend *items[CLI_MAX_DEVICES];
    size_t n;
    struct act_rounding *rounding; /* of inputs of products (--activations); NULL: none */
};

/**
 * Open a backend for each device of --device and -ngl; llama-perplexity's names (none, CUDA0) are
 * understood, too. Release with cli_backends_close, also after a failure.
 * Notes go to standard error: what a backend remarks; why the CPU computes, with --device auto.
 * Fails: STATUS_USAGE (also several devices that would not give the same bits), STATUS_MEMORY,
 * STATUS_DEVICE.
 */
enum status cli_backends_open(struct cli_backends *out, const struct cli_machine_settings *settings,
                              struct status_why *why);
void cli_backends_close(struct cli_backends *backends);

/**
 * With --activations: products with the weights of this file see rounded inputs, from now on. Not
 * while a backend computes. Fails: STATUS_MEMORY, STATUS_FORMAT (a scale of inputs).
 */
enum status cli_backends_round(const struct cli_backends *backends, const struct gguf_file *file,
                               struct status_why *why);

/** Seconds by phase since they were opened, the sums over all of them. */
void cli_backends_times(const struct cli_backends *backends, struct kern_times *sums);

#endif
