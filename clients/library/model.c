/* Opening and closing models; what they are. */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/library/library.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"

#define SAME(name)                                                                                 \
    _Static_assert((int)ASSAY_##name == (int)STATUS_##name, "the header has the core's numbers")
SAME(OK);
SAME(USAGE);
SAME(IO);
SAME(FORMAT);
SAME(UNSUPPORTED);
SAME(CHANGED);
SAME(MEMORY);
SAME(DEVICE);
SAME(NONFINITE);
SAME(CANCELLED);
#undef SAME
_Static_assert(sizeof(struct assay_why) == sizeof(struct status_why), "a sentence fits");

int assay_abi(void)
{
    return ASSAY_ABI;
}

const char *assay_version(void)
{
    return ASSAY_VERSION;
}

const char *assay_status_name(enum assay_status status)
{
    return status_name((enum status)status);
}

enum assay_status assay_own_end(enum status status, const struct status_why *own,
                                struct assay_why *why)
{
    if (!status || !why)
        return (enum assay_status)status;
    snprintf(why->text, sizeof why->text, "%s", *own->text ? own->text : "the call was cancelled");
    return (enum assay_status)status;
}

enum status assay_own_given(const void *pointer, const char *what, struct status_why *why)
{
    return pointer ? STATUS_OK : status_fail(why, STATUS_USAGE, "%s is NULL", what);
}

enum status assay_own_options(struct assay_options *own, const struct assay_options *given,
                              struct status_why *why)
{
    *own = (struct assay_options)ASSAY_OPTIONS;
    if (!given)
        return STATUS_OK;
    if (given->size != sizeof *own)
        return status_fail(why, STATUS_USAGE,
                           "options of %zu bytes, expected %zu: size is to be set to sizeof "
                           "(struct assay_options) of this library's header",
                           given->size, sizeof *own);
    *own = *given;
    if ((unsigned)own->precision > ASSAY_FAST)
        return status_fail(why, STATUS_USAGE, "precision %d, expected 0 to %d", (int)own->precision,
                           ASSAY_FAST);
    return STATUS_OK;
}

/** Limit the CPU to an instruction set; what the options hold is any. */
static enum status limit_isa(struct kern_cpu_options *cpu, const char *name, struct status_why *why)
{
    if (strcmp(name, "amx") == 0)
        return STATUS_OK;
    cpu->amx = KERN_AMX_NONE;
    for (int i = 0; i < KERN_ISA_COUNT; i++)
        if (strcmp(name, kern_isa_name((enum kern_isa)i)) == 0) {
            cpu->isa_cap = (enum kern_isa)i;
            return STATUS_OK;
        }
    return status_fail(
        why, STATUS_USAGE, "there is no instruction set '%s', expected %s to %s, or amx", name,
        kern_isa_name(KERN_ISA_SCALAR), kern_isa_name((enum kern_isa)(KERN_ISA_COUNT - 1)));
}

/** The number of "cuda" or "cuda:N"; *is_cuda false: "cpu". */
static enum status find_device(bool *is_cuda, unsigned *index, const char *name,
                               struct status_why *why)
{
    char *end = NULL;
    *is_cuda = strncmp(name, "cuda", 4) == 0;
    *index = 0;
    if (strcmp(name, "cpu") == 0 || strcmp(name, "cuda") == 0)
        return STATUS_OK;
    if (*is_cuda && name[4] == ':' && name[5] >= '0' && name[5] <= '9') {
        unsigned long number = strtoul(name + 5, &end, 10);
        *index = (unsigned)number;
        if (*end == '\0' && number <= INT_MAX)
            return STATUS_OK;
    }
    return status_fail(why, STATUS_USAGE, "'%s' is not a device, expected cpu, cuda or cuda:N",
                       name);
}

static enum status open_device(struct kern_backend **out, const struct assay_options *options,
                               struct status_why *why)
{
    static const enum kern_precision precisions[] = {
        [ASSAY_HIGH] = KERN_PRECISION_HIGH,
        [ASSAY_EXACT] = KERN_PRECISION_EXACT,
        [ASSAY_FAST] = KERN_PRECISION_FAST,
    };
    struct kern_cpu_options cpu = {.n_threads = options->n_threads,
                                   .isa_cap = KERN_ISA_COUNT - 1,
                                   .precision = precisions[options->precision],
                                   .amx = KERN_AMX_HARDWARE};
    bool is_cuda;
    unsigned index;
    enum status status =
        find_device(&is_cuda, &index, options->device ? options->device : "cpu", why);
    if (!status && options->isa && is_cuda)
        status = status_fail(why, STATUS_USAGE, "isa '%s' goes with the device cpu, not with '%s'",
                             options->isa, options->device);
    if (!status && options->isa)
        status = limit_isa(&cpu, options->isa, why);
    if (status || !is_cuda)
        return status ? status : kern_cpu_open(out, &cpu, why);
    struct kern_cuda_device *device;
    status = kern_cuda_device_open(&device, index, why);
    return status ? status
                  : kern_cuda_open(out, device,
                                   &(struct kern_cuda_options){.precision = cpu.precision}, why);
}

enum status assay_own_backend(struct kern_backend **out, const struct assay_options *options,
                              struct status_why *why)
{
    static const int faults[] = {SIGBUS, SIGFPE, SIGILL, SIGSEGV,
                                 SIGTRAP}; /* of the thread's own */
    sigset_t blocked, before;
    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
        sigdelset(&blocked, faults[i]);
    *out = NULL;
    pthread_sigmask(SIG_BLOCK, &blocked, &before);
    enum status status = open_device(out, options, why);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return status;
}

static enum status open_model(struct assay_model **out, const char *path,
                              const struct assay_options *given, struct status_why *why)
{
    struct assay_options options;
    struct gguf_file *file;
    enum status status = assay_own_given(path, "the path", why);
    if (!status)
        status = assay_own_options(&options, given, why);
    struct assay_model *m = status ? NULL : calloc(1, sizeof *m);
    if (!m)
        return status ? status : status_fail(why, STATUS_MEMORY, "no memory for a model");
    atomic_init(&m->cancel, false);
    m->progress = options.progress;
    m->user = options.user;
    if (!options.tokens && model_is_folder(path))
        options.tokens = path;
    status = model_file_open(&file, path, options.tokens, why);
    if (!status)
        status = model_open(&m->model, file, &(struct model_options){0}, why);
    if (!status)
        status = assay_own_backend(&m->backend, &options, why);
    if (status) {
        assay_close(m);
        return status;
    }
    kern_set_cancel(m->backend, &m->cancel);
    *out = m;
    return STATUS_OK;
}

enum assay_status assay_open(struct assay_model **out, const char *path,
                             const struct assay_options *options, struct assay_why *why)
{
    struct status_why own = {""};
    enum status status = assay_own_given(out, "the place of the model", &own);
    if (!status)
        *out = NULL;
    return assay_own_end(status ? status : open_model(out, path, options, &own), &own, why);
}

void assay_close(struct assay_model *m)
{
    if (!m)
        return;
    kern_close(m->backend);
    model_close(m->model);
    free(m);
}

void assay_cancel(struct assay_model *m, int cancel)
{
    if (m)
        atomic_store(&m->cancel, cancel != 0);
}

static enum status describe(const struct assay_model *m, struct assay_description *out,
                            struct status_why *why)
{
    enum status status = assay_own_given(m, "the model", why);
    if (!status)
        status = assay_own_given(out, "the description", why);
    if (!status && out->size != sizeof *out)
        status = status_fail(why, STATUS_USAGE,
                             "a description of %zu bytes, expected %zu: size is to be set to "
                             "sizeof (struct assay_description) of this library's header",
                             out->size, sizeof *out);
    if (status)
        return status;
    const struct gguf_file *file = model_file(m->model);
    const struct model_hparams *h = model_hparams(m->model);
    const struct model_tokenizer *tokenizer = model_tokenizer(m->model);
    struct kern_description d = kern_describe(m->backend);
    *out = (struct assay_description){.size = sizeof *out,
                                      .path = gguf_path(file),
                                      .architecture = h->architecture,
                                      .tokenizer = model_tokenizer_kind(tokenizer),
                                      .remarks = model_remarks(m->model),
                                      .device = d.device,
                                      .isa = d.isa,
                                      .products = d.products,
                                      .n_tensors = gguf_n_tensors(file),
                                      .n_vocab = h->n_vocab,
                                      .n_layers = h->n_layers,
                                      .width = h->n_embd,
                                      .streams = h->n_streams,
                                      .n_ctx = h->n_ctx_train,
                                      .n_threads = d.n_threads,
                                      .bos = model_token_bos(tokenizer),
                                      .eos = model_token_eos(tokenizer),
                                      .adds_bos = model_adds_bos(tokenizer)};
    for (size_t i = 0; i < out->n_tensors; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        out->n_weights += t->n_rows * t->ne[0];
    }
    return STATUS_OK;
}

enum assay_status assay_describe(const struct assay_model *model, struct assay_description *out,
                                 struct assay_why *why)
{
    struct status_why own = {""};
    return assay_own_end(describe(model, out, &own), &own, why);
}
