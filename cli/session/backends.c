#include "cli/session/backends.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arithmetic.h"
#include "base/text/words.h"
#include "cli/process/say.h"
#include "cli/session/cluster.h"
#include "clients/activations/rounding.h"
#include "kernels/kernels.h"

enum { MAX_INDEX = 999 };

struct device {
    enum { DEVICE_CPU, DEVICE_CUDA, DEVICE_AUTO } kind;
    unsigned index; /* of a CUDA device */
    bool foreign;   /* another program's; the whole list is then as auto */
};

struct devices {
    struct device items[CLI_MAX_DEVICES];
    size_t n;
};

/** The number of a device, all of the text; -1 if it is not a number. */
static int index_of(const char *text)
{
    char *end;
    if (*text < '0' || *text > '9')
        return -1;
    long index = strtol(text, &end, 10);
    return *end || index > MAX_INDEX ? -1 : (int)index;
}

/** The number after "cuda:" or "CUDA", 0 after "cuda"; -1 if the name is another. */
static int cuda_index(const char *name)
{
    if (strncasecmp(name, "cuda", 4) != 0)
        return -1;
    return name[4] ? index_of(name + 4 + (name[4] == ':')) : 0;
}

/** Whether llama.cpp has such a device and this program has not: "Vulkan0", "BLAS", "RPC0[...]". */
static bool is_foreign(const char *name)
{
    static const char backends[] = "rocm hip metal mtl vulkan sycl cann musa opencl gpuopencl blas "
                                   "rpc kompute webgpu hexagon htp openvino zdnn zendnn virtgpu";
    char backend[16];
    snprintf(backend, sizeof backend, "%.*s", (int)strcspn(name, "0123456789[:"), name);
    return base_words_index_any_case(backends, backend) >= 0;
}

static enum status parse_name(struct device *out, const char *name, struct status_why *why)
{
    if (strcasecmp(name, "cpu") == 0 || strcmp(name, "none") == 0)
        return STATUS_OK;
    int index = cuda_index(name);
    if (is_foreign(name)) {
        *out = (struct device){.kind = DEVICE_AUTO, .foreign = true};
    } else if (strcmp(name, "auto") == 0) {
        out->kind = DEVICE_AUTO;
    } else if (index >= 0) {
        *out = (struct device){.kind = DEVICE_CUDA, .index = (unsigned)index};
    } else {
        return status_fail(why, STATUS_USAGE,
                           "--device: '%s' is not a device, expected cpu, cuda, cuda:N or auto",
                           name);
    }
    return STATUS_OK;
}

/** Layers on the device: there are none or all. */
static enum status parse_layers(struct device *out, const char *layers, struct status_why *why)
{
    char *end;
    long n = strtol(layers, &end, 10);
    bool word = strcmp(layers, "auto") == 0 || strcmp(layers, "all") == 0;
    if (!word && (end == layers || *end))
        return status_fail(why, STATUS_USAGE,
                           "-ngl: '%s' is not a number of layers, expected a number, auto or all",
                           layers);
    if (word || n != 0)
        out->kind = DEVICE_AUTO;
    return STATUS_OK;
}

/** Names with commas between them; "auto" stands alone. */
static enum status parse_list(struct devices *out, const char *list, struct status_why *why)
{
    out->n = 0;
    for (const char *at = list;; at++) {
        char name[64] = "";
        size_t n = strcspn(at, ",");
        if (out->n == CLI_MAX_DEVICES)
            return status_fail(why, STATUS_USAGE, "--device: more than %d devices are named",
                               CLI_MAX_DEVICES);
        snprintf(name, sizeof name, "%.*s", (int)(n < sizeof name ? n : sizeof name), at);
        struct device *device = &out->items[out->n++];
        *device = (struct device){.kind = DEVICE_CPU};
        enum status status = parse_name(device, name, why);
        if (!status && device->foreign) {
            cli_say("assay: note: --device %s: assay has no such device; as --device auto\n", list);
            *out = (struct devices){.items = {*device}, .n = 1};
            return STATUS_OK;
        }
        if (!status && device->kind == DEVICE_AUTO && strchr(list, ','))
            return status_fail(why, STATUS_USAGE,
                               "--device: 'auto' is one of several in '%s'; expected names of "
                               "devices, or auto alone",
                               list);
        at += n;
        if (status || *at == '\0')
            return status;
    }
}

static enum status parse_devices(struct devices *out, const struct cli_machine_settings *settings,
                                 struct status_why *why)
{
    *out = (struct devices){.items = {{.kind = DEVICE_CPU}}, .n = 1};
    if (settings->device)
        return parse_list(out, settings->device, why);
    return settings->gpu_layers ? parse_layers(&out->items[0], settings->gpu_layers, why)
                                : STATUS_OK;
}

/** *out = NULL with STATUS_OK: there is no device that --device auto could use. */
static enum status open_cuda(struct kern_backend **out, const struct device *wanted,
                             const struct cli_machine_settings *s, enum kern_precision precision,
                             struct status_why *why)
{
    if (s->gemm == CLI_GEMM_OPENBLAS && wanted->kind == DEVICE_CUDA)
        return status_fail(why, STATUS_USAGE, "--gemm openblas is for --device cpu");
    struct kern_cuda_device *device;
    struct status_why why_not = {""};
    enum status status = kern_cuda_device_open(&device, wanted->index, &why_not);
    if (!status)
        return kern_cuda_open(out, device, &(struct kern_cuda_options){.precision = precision},
                              why);
    if (wanted->kind == DEVICE_CUDA)
        return status_fail(why, status, "%s", why_not.text);
    cli_say("assay: note: the CPU computes: %s\n", why_not.text);
    return STATUS_OK;
}

static enum status open_backend(struct kern_backend **out, const struct device *device,
                                const struct cli_machine_settings *s, struct status_why *why)
{
    static const enum kern_precision precisions[] = {
        [CLI_PRECISION_HIGH] = KERN_PRECISION_HIGH,
        [CLI_PRECISION_EXACT] = KERN_PRECISION_EXACT,
        [CLI_PRECISION_FAST] = KERN_PRECISION_FAST,
    };
    int64_t n_threads = s->n_threads_batch ? s->n_threads_batch : s->n_threads;
    struct kern_cpu_options options = {
        .n_threads = n_threads > 0 ? (unsigned)n_threads : 0,
        .isa_cap = (enum kern_isa)base_min(s->isa, KERN_ISA_COUNT - 1),
        .gemm = s->gemm == CLI_GEMM_OPENBLAS ? KERN_GEMM_OPENBLAS : KERN_GEMM_OWN,
        .precision = precisions[s->precision],
        .amx = s->isa >= KERN_ISA_COUNT ? KERN_AMX_HARDWARE : KERN_AMX_NONE,
    };
    *out = NULL;
    enum status status = STATUS_OK;
    if (device->kind != DEVICE_CPU)
        status = open_cuda(out, device, s, options.precision, why);
    return status || *out ? status : kern_cpu_open(out, &options, why);
}

/* Else results would depend on who happened to evaluate a window. */
static enum status check_same_products(const struct cli_backends *b, struct status_why *why)
{
    struct kern_description first = kern_describe(b->items[0]);
    for (size_t i = 1; i < b->n; i++) {
        struct kern_description other = kern_describe(b->items[i]);
        if (strcmp(first.products, other.products) != 0)
            return status_fail(why, STATUS_USAGE,
                               "--device: device 1 multiplies in %s, device %zu in %s, which is "
                               "not to the same bits; expected equal devices, or --precision exact",
                               first.products, i + 1, other.products);
    }
    return STATUS_OK;
}

enum status cli_backends_round(const struct cli_backends *b, const struct gguf_file *file,
                               struct status_why *why)
{
    return b->rounding ? act_rounding_add(b->rounding, file, why) : STATUS_OK;
}

enum status cli_backends_open(struct cli_backends *out, const struct cli_machine_settings *s,
                              struct status_why *why)
{
    *out = (struct cli_backends){.n = 0};
    struct devices devices;
    enum status status = cli_cluster_split(s->split, why);
    if (!status)
        status = parse_devices(&devices, s, why);
    const struct cli_cluster *cluster = cli_cluster();
    if (cluster->n_ranks > 1 && !status)
        devices = (struct devices){{devices.items[cluster->local_rank % devices.n]}, 1};
    while (!status && out->n < devices.n) {
        status = open_backend(&out->items[out->n], &devices.items[out->n], s, why);
        out->n += !status;
    }
    if (!status)
        status = check_same_products(out, why);
    if (!status) /* of equal devices, they are the same */
        cli_print_notes(kern_describe(out->items[0]).remarks);
    return status || !s->activations
               ? status
               : act_rounding_open(&out->rounding, s->activations, out->items, out->n, why);
}

void cli_backends_close(struct cli_backends *backends)
{
    act_rounding_close(backends->rounding);
    for (size_t i = 0; i < backends->n; i++)
        kern_close(backends->items[i]);
    *backends = (struct cli_backends){.n = 0};
}

void cli_backends_times(const struct cli_backends *backends, struct kern_times *sums)
{
    *sums = (struct kern_times){0};
    for (size_t k = 0; k < backends->n; k++) {
        struct kern_times times;
        kern_times_read(backends->items[k], &times);
        for (int i = 0; i < KERN_N_PHASES; i++)
            sums->seconds[i] += times.seconds[i];
    }
}
