/** Which device computes: from words to a backend. */
#ifndef CLI_SESSION_DEVICE_H
#define CLI_SESSION_DEVICE_H

#include "cli/options/common.h"
#include "kernels/backend.h"

enum cli_device_kind { CLI_DEVICE_CPU, CLI_DEVICE_CUDA, CLI_DEVICE_AUTO };

struct cli_device {
    enum cli_device_kind kind;
    unsigned index; /* of a CUDA device */
};

enum { CLI_MAX_DEVICES = 32 };

/** In the order given; one may be there twice. */
struct cli_devices {
    struct cli_device items[CLI_MAX_DEVICES];
    size_t n;
};

/**
 * What --device and -ngl ask for; llama-perplexity's names (none, CUDA0) are understood, too.
 * Fails: STATUS_USAGE.
 */
enum status cli_devices_parse(struct cli_devices *out, const struct cli_machine_settings *settings,
                              struct status_why *why);

/**
 * Open a CUDA backend if that is what is asked for. *out = NULL with STATUS_OK: the CPU is to
 * compute; if a device was hoped for, a note on standard error says why there is none.
 */
enum status cli_device_open(struct kern_backend **out, const struct cli_device *wanted,
                            const struct cli_machine_settings *settings,
                            enum kern_precision precision, struct status_why *why);

#endif
