/* assay dump: one tensor of a GGUF file, decoded, as a NumPy file. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/file/npy.h"
#include "base/text/words.h"
#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/session/outputs.h"
#include "gguf/gguf.h"
#include "kernels/kernels.h"
#include "model/model.h"

struct settings {
    const char *tensor, *output;
    bool force;
};

enum { SLAB_ELEMENTS = 1 << 16 }; /* decoded at a time */

/* The shape is ne reversed, because NumPy's last axis is the fastest. */
static void write_header(struct base_file *out, const struct gguf_tensor *tensor)
{
    char header[BASE_NPY_HEADER_BYTES];
    uint64_t shape[sizeof tensor->ne / sizeof *tensor->ne];
    for (uint32_t d = 0; d < tensor->n_dims; d++)
        shape[d] = tensor->ne[tensor->n_dims - 1 - d];
    base_file_write(out, header, base_npy_header(header, shape, tensor->n_dims));
}

static enum status write_values(struct base_file *out, const struct gguf_tensor *tensor,
                                struct status_why *why)
{
    if (!kern_quant_find(tensor->type->type))
        return status_fail(why, STATUS_UNSUPPORTED, "tensor '%s': type %s cannot be decoded",
                           tensor->name, tensor->type->name);
    float *values = malloc(SLAB_ELEMENTS * sizeof *values);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "out of memory");
    size_t n_cols = (size_t)tensor->ne[0];
    for (size_t row = 0; row < tensor->n_rows; row++)
        for (size_t col = 0; col < n_cols; col += SLAB_ELEMENTS) {
            size_t n = base_min(n_cols - col, SLAB_ELEMENTS);
            kern_tensor_decode(tensor, row, col, n, values);
            base_file_write(out, values, n * sizeof *values);
        }
    free(values);
    return STATUS_OK;
}

/* The name of the tensor that was most likely meant, for the sentence. */
static enum status fail_missing(const struct gguf_file *file, const char *name,
                                struct status_why *why)
{
    char nearest[64] = "";
    size_t distance = strlen(name) / 3 + 2;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        base_nearest_name(name, gguf_tensor_at(file, i)->name, nearest, sizeof nearest, &distance);
    if (*nearest)
        return status_fail(why, STATUS_USAGE, "%s: there is no tensor '%s'; did you mean '%s'?",
                           gguf_path(file), name, nearest);
    return status_fail(why, STATUS_USAGE,
                       "%s: there is no tensor '%s' among its %zu; assay info --tensors lists them",
                       gguf_path(file), name, gguf_n_tensors(file));
}

static enum status write_tensor(const struct gguf_file *file, const struct gguf_tensor *tensor,
                                const struct settings *settings, struct status_why *why)
{
    struct base_file *out;
    enum status status =
        cli_output_create(&out, settings->output, settings->force ? NULL : BASE_NPY, why);
    if (status)
        return status;
    write_header(out, tensor);
    status = write_values(out, tensor, why);
    return cli_output_commit(&out, status ? status : gguf_check_unchanged(file, why), why);
}

static enum status run_dump(const void *opaque, const struct cli_args *args, struct status_why *why)
{
    const struct settings *settings = opaque;
    assert(settings->tensor && settings->output);
    struct gguf_file *file;
    const struct cli_named_file output = {"-o", settings->output};
    const struct cli_named_file input = {"FILE", args->operands[0]};
    enum status status = cli_outputs_check(&output, 1, &input, 1, why);
    if (!status)
        status = model_file_open(&file, args->operands[0], NULL, why);
    if (status)
        return status;
    const struct gguf_tensor *tensor = gguf_tensor_find(file, settings->tensor);
    if (tensor)
        status = write_tensor(file, tensor, settings, why);
    else
        status = fail_missing(file, settings->tensor, why);
    gguf_close(file);
    return status;
}

static const struct cli_option options[] = {
    {"--tensor", CLI_TEXT, "NAME", "the tensor; assay info --tensors lists them",
     offsetof(struct settings, tensor), .required = true},
    {"-o --output", CLI_TEXT, "OUT.npy", "the file to write; - is standard output",
     offsetof(struct settings, output), .required = true},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = offsetof(struct settings, force)},
    {0},
};

const struct cli_command cli_command_dump = {
    .name = "dump",
    .usage = "FILE --tensor NAME -o OUT.npy",
    .n_operands = 1,
    .summary = "Decode a tensor of a GGUF file to float32 and write it as a NumPy file.",
    .description =
        "The array has the tensor's shape in NumPy's order: the fastest axis is the last. Any\n"
        "GGUF file will do, also one that holds no model.",
    .examples = "assay dump model.gguf --tensor output.weight -o output.npy\n"
                "One tensor, decoded, for NumPy.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_dump,
};
