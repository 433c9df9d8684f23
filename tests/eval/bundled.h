/** The bundled model on the CPU, for tests that need it all the time: group fixtures. */
#ifndef TESTS_EVAL_BUNDLED_H
#define TESTS_EVAL_BUNDLED_H

#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "model/model.h"

static struct model *model;
static struct kern_backend *backend;

static int bundled_open(void **state)
{
    (void)state;
    struct gguf_file *file;
    struct model_options options = {0};
    struct kern_cpu_options cpu = {.isa_cap = KERN_ISA_COUNT - 1};
    return gguf_open(&file, ASSAY_SOURCE_DIR "/data/tiny.F16.gguf", NULL) ||
           model_open(&model, file, &options, NULL) || kern_cpu_open(&backend, &cpu, NULL);
}

static int bundled_close(void **state)
{
    (void)state;
    kern_close(backend);
    model_close(model);
    return 0;
}

#endif
