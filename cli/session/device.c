#include "cli/session/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

enum { MAX_INDEX = 999 };

/** The number of a device, all of the text; -1 if it is none. */
static int index_of(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    long index = strtol(text, &end, 10);
    return *end || index > MAX_INDEX ? -1 : (int)index;
}

/** The number behind "cuda:" or "CUDA", 0 behind "cuda"; -1 if the name is another. */
static int cuda_index(const char *name)
{
    if (strcmp(name, "cuda") == 0)
        return 0;
    if (strncmp(name, "cuda:", 5) == 0)
        return index_of(name + 5);
    return strncmp(name, "CUDA", 4) == 0 ? index_of(name + 4) : -1;
}

static enum status parse_name(struct cli_device *out, const char *name, struct status_why *why)
{
    if (strcmp(name, "cpu") == 0 || strcmp(name, "none") == 0)
        return STATUS_OK;
    int index = cuda_index(name);
    if (strcmp(name, "auto") == 0) {
        out->kind = CLI_DEVICE_AUTO;
    } else if (index >= 0) {
        *out = (struct cli_device){CLI_DEVICE_CUDA, (unsigned)index};
    } else {
        return status_fail(why, STATUS_USAGE,
                           "--device: '%s' is no device, expected cpu, cuda, cuda:N or auto", name);
    }
    return STATUS_OK;
}

/** Layers on the device: there are none or all. */
static enum status parse_layers(struct cli_device *out, const char *layers, struct status_why *why)
{
    char *end;
    long n = strtol(layers, &end, 10);
    bool word = strcmp(layers, "auto") == 0 || strcmp(layers, "all") == 0;
    if (!word && (end == layers || *end))
        return status_fail(why, STATUS_USAGE,
                           "-ngl: '%s' is no number of layers, expected a number, auto or all",
                           layers);
    if (word || n != 0)
        out->kind = CLI_DEVICE_AUTO;
    return STATUS_OK;
}

/** Names with commas between them; "auto" stands alone. */
static enum status parse_list(struct cli_devices *out, const char *list, struct status_why *why)
{
    out->n = 0;
    for (const char *at = list;; at++) {
        char name[64] = "";
        size_t n = strcspn(at, ",");
        if (out->n == CLI_MAX_DEVICES)
            return status_fail(why, STATUS_USAGE, "--device: more than %d devices are named",
                               CLI_MAX_DEVICES);
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), at);
        struct cli_device *device = &out->items[out->n++];
        *device = (struct cli_device){CLI_DEVICE_CPU, 0};
        enum status status = parse_name(device, name, why);
        if (status == STATUS_OK && device->kind == CLI_DEVICE_AUTO && strchr(list, ','))
            return status_fail(why, STATUS_USAGE,
                               "--device: 'auto' is one of several in '%s'; expected names of "
                               "devices, or auto alone",
                               list);
        at += n;
        if (status != STATUS_OK || *at == '\0')
            return status;
    }
}

enum status cli_devices_parse(struct cli_devices *out, const struct cli_machine_settings *settings,
                              struct status_why *why)
{
    *out = (struct cli_devices){.items = {{CLI_DEVICE_CPU, 0}}, .n = 1};
    if (settings->device)
        return parse_list(out, settings->device, why);
    return settings->gpu_layers ? parse_layers(&out->items[0], settings->gpu_layers, why)
                                : STATUS_OK;
}

enum status cli_device_open(struct kern_backend **out, const struct cli_device *wanted,
                            const struct cli_machine_settings *settings,
                            enum kern_precision precision, struct status_why *why)
{
    *out = NULL;
    if (wanted->kind == CLI_DEVICE_CPU)
        return STATUS_OK;
    if (settings->gemm == CLI_GEMM_OPENBLAS && wanted->kind == CLI_DEVICE_CUDA)
        return status_fail(why, STATUS_USAGE, "--gemm openblas is for --device cpu");
    struct kern_cuda_device *device;
    struct status_why why_not = {""};
    enum status status = kern_cuda_device_open(&device, wanted->index, &why_not);
    if (status == STATUS_OK)
        return kern_cuda_open(out, device, &(struct kern_cuda_options){.precision = precision},
                              why);
    if (wanted->kind == CLI_DEVICE_CUDA)
        return status_fail(why, status, "%s", why_not.text);
    fprintf(stderr, "assay: note: the CPU computes: %s\n", why_not.text);
    return STATUS_OK;
}
