#include "cli/session/setup.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/run.h"

enum status cli_text_check(const struct cli_text_settings *s, struct status_why *why)
{
    int n_texts = (s->text_file != NULL) + (s->binary_file != NULL) + (s->prompt != NULL);
    if (n_texts != 1)
        return status_fail(why, STATUS_USAGE,
                           "expected exactly one text, by -f, -bf or -p; found %d", n_texts);
    return STATUS_OK;
}

/* The model computes with float32: what has no positive float32 is refused, not rounded away. */
enum status cli_model_check(const struct cli_model_settings *s, struct status_why *why)
{
    const struct {
        const char *name;
        double value;
        bool negative_allowed; /* llama-perplexity's way to say: as the file says */
    } numbers[] = {
        {"--rope-scale", s->rope_scale, false},
        {"--rope-freq-base", s->rope_freq_base, false},
        {"--rope-freq-scale", s->rope_freq_scale, false},
        {"--yarn-attn-factor", s->yarn_attn_factor, true},
        {"--yarn-beta-fast", s->yarn_beta_fast, true},
        {"--yarn-beta-slow", s->yarn_beta_slow, true},
    };
    const double least = (double)FLT_MIN, most = 1 / least;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        double value = numbers[i].value;
        bool as_the_file_says = isnan(value) || (value < 0 && numbers[i].negative_allowed);
        if (!as_the_file_says && !(value >= least && value <= most))
            return status_fail(why, STATUS_USAGE, "%s: %g is out of range, expected %g to %g",
                               numbers[i].name, value, least, most);
    }
    if (s->yarn_ext_factor > most)
        return status_fail(why, STATUS_USAGE, "--yarn-ext-factor: %g is out of range",
                           s->yarn_ext_factor);
    if (!isnan(s->rope_scale) && !isnan(s->rope_freq_scale))
        return status_fail(why, STATUS_USAGE,
                           "--rope-scale and --rope-freq-scale say the same thing; give one");
    return STATUS_OK;
}

static enum status open_backend(struct kern_backend **out, const struct cli_device *device,
                                const struct cli_machine_settings *s, struct status_why *why)
{
    static const enum kern_isa isas[] = {
        [CLI_ISA_SCALAR] = KERN_ISA_SCALAR,  [CLI_ISA_AVX2] = KERN_ISA_AVX2,
        [CLI_ISA_AVX512] = KERN_ISA_AVX512,  [CLI_ISA_AMX] = KERN_ISA_COUNT - 1,
        [CLI_ISA_AUTO] = KERN_ISA_COUNT - 1,
    };
    static const enum kern_precision precisions[] = {
        [CLI_PRECISION_HIGH] = KERN_PRECISION_HIGH,
        [CLI_PRECISION_EXACT] = KERN_PRECISION_EXACT,
        [CLI_PRECISION_FAST] = KERN_PRECISION_FAST,
    };
    int64_t n_threads = s->n_threads_batch ? s->n_threads_batch : s->n_threads;
    struct kern_cpu_options options = {
        .n_threads = n_threads > 0 ? (unsigned)n_threads : 0,
        .isa_cap = isas[s->isa],
        .gemm = s->gemm == CLI_GEMM_OPENBLAS ? KERN_GEMM_OPENBLAS : KERN_GEMM_OWN,
        .precision = precisions[s->precision],
        .amx = s->isa >= CLI_ISA_AMX ? KERN_AMX_HARDWARE : KERN_AMX_NONE,
    };
    enum status status = cli_device_open(out, device, s, options.precision, why);
    if (status == STATUS_OK && !*out)
        status = kern_cpu_open(out, &options, why);
    return status;
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

enum status cli_backends_open(struct cli_backends *out, const struct cli_machine_settings *s,
                              struct status_why *why)
{
    *out = (struct cli_backends){.n = 0};
    struct cli_devices devices;
    enum status status = cli_devices_parse(&devices, s, why);
    while (status == STATUS_OK && out->n < devices.n) {
        status = open_backend(&out->items[out->n], &devices.items[out->n], s, why);
        out->n += status == STATUS_OK;
    }
    if (status == STATUS_OK)
        status = check_same_products(out, why);
    if (status == STATUS_OK) /* of equal devices, they are the same */
        cli_print_remarks(kern_describe(out->items[0]).remarks);
    return status;
}

void cli_backends_close(struct cli_backends *backends)
{
    for (size_t i = 0; i < backends->n; i++)
        kern_close(backends->items[i]);
    *backends = (struct cli_backends){.n = 0};
}

/* A number of the command line; the model takes 0 for "as the file says". */
static float given_or_zero(double value)
{
    return value > 0 ? (float)value : 0; /* 0 for NaN, too */
}

static struct model_options model_options(const struct cli_model_settings *s, bool llama_compat)
{
    static const char *const scalings[] = {"none", "linear", "yarn"};
    double freq_scale = s->rope_scale > 0 ? 1 / s->rope_scale : s->rope_freq_scale;
    bool has_ext_factor = s->yarn_ext_factor >= 0; /* false for NaN, too */
    return (struct model_options){
        .tokenizer_pre = s->tokenizer_pre,
        .allow_unknown = s->allow_unknown,
        .ignore_sliding_window = llama_compat,
        .overrides = (const char *const *)s->overrides.items,
        .n_overrides = s->overrides.n,
        .rope_freq_base = given_or_zero(s->rope_freq_base),
        .rope_freq_scale = given_or_zero(freq_scale),
        .rope_scaling = s->rope_scaling >= 0 ? scalings[s->rope_scaling] : NULL,
        .has_yarn_ext_factor = has_ext_factor,
        .yarn_ext_factor = has_ext_factor ? (float)s->yarn_ext_factor : 0,
        .yarn_attn_factor = given_or_zero(s->yarn_attn_factor),
        .yarn_beta_fast = given_or_zero(s->yarn_beta_fast),
        .yarn_beta_slow = given_or_zero(s->yarn_beta_slow),
        .yarn_original_ctx = (uint32_t)s->yarn_original_ctx,
    };
}

enum status cli_model_open(struct cli_model *out, const char *path,
                           const struct cli_model_settings *settings, bool llama_compat, bool hash,
                           struct status_why *why)
{
    *out = (struct cli_model){.path = path};
    struct model_options options = model_options(settings, llama_compat);
    struct gguf_file *file;
    enum status status = gguf_open(&file, path, why);
    if (status == STATUS_OK)
        status = eval_model_id(out->id, file, why);
    if (status == STATUS_OK && hash)
        status = eval_file_hash(out->sha256, file, why);
    if (status != STATUS_OK) {
        gguf_close(file);
        return status;
    }
    status = model_open(&out->model, file, &options, why);
    if (status == STATUS_OK)
        cli_print_remarks(model_remarks(out->model));
    return status;
}

void cli_model_close(struct cli_model *model)
{
    model_close(model->model);
    *model = (struct cli_model){0};
}

struct cli_model_size cli_model_size(const struct cli_model *model)
{
    const struct gguf_file *file = model_file(model->model);
    struct cli_model_size size = {0};
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *tensor = gguf_tensor_at(file, i);
        size.n_weights += tensor->n_rows * tensor->ne[0];
        size.n_bytes += tensor->n_bytes;
    }
    size.bits_per_weight = 8 * (double)size.n_bytes / (double)size.n_weights;
    return size;
}

static enum status read_text(struct eval_text *out, const struct cli_text_settings *s,
                             struct status_why *why)
{
    if (s->prompt)
        return eval_text_copy(out, s->prompt, strlen(s->prompt), why);
    if (s->binary_file)
        return eval_text_read_whole(out, s->binary_file, EVAL_TEXT_MAX_BYTES, why);
    return eval_text_read(out, s->text_file, EVAL_TEXT_MAX_BYTES, why);
}

enum status cli_text_open(struct eval_text *out, const struct cli_text_settings *s,
                          struct status_why *why)
{
    enum status status = read_text(out, s, why);
    if (status == STATUS_OK && s->escape)
        eval_text_unescape(out);
    return status;
}

struct eval_plan_options cli_plan_options(const struct cli_window_settings *s,
                                          const struct model_tokenizer *tokenizer)
{
    return (struct eval_plan_options){
        .protocol = EVAL_PROTOCOL_DEFAULT,
        .n_ctx = (size_t)s->n_ctx,
        .skip_windows = (size_t)s->chunk_from,
        .max_windows = s->n_chunks > 0 ? (size_t)s->n_chunks : 0,
        .bos = model_adds_bos(tokenizer) ? model_token_bos(tokenizer) : -1,
    };
}

void cli_print_memory(const struct eval_memory *m, size_t n_models)
{
    const double megabyte = 1e6;
    if (m->on_device) {
        fprintf(stderr,
                "assay: memory: on the device at most %.1f MB beside weights; on the host model "
                "file%s %.1f, program %.1f, scores %.1f, and what CUDA takes\n",
                m->scorer / megabyte, n_models == 1 ? "" : "s", m->weights / megabyte,
                m->present / megabyte, m->scores / megabyte);
        return;
    }
    fprintf(stderr,
            "assay: memory: at most %.1f MB: model file%s %.1f, program %.1f, batch %.1f, scores "
            "%.1f\n",
            m->total / megabyte, n_models == 1 ? "" : "s", m->weights / megabyte,
            m->present / megabyte, m->scorer / megabyte, m->scores / megabyte);
}

void cli_print_remarks(const char *lines)
{
    while (*lines) {
        size_t n = strcspn(lines, "\n");
        fprintf(stderr, "assay: note: %.*s\n", (int)n, lines);
        lines += n + (lines[n] == '\n');
    }
}

/* An output of its own has standard output to itself: everything else goes to standard error. */
static void give_standard_output_away(const char *path)
{
    if (strcmp(path, "-") != 0 && strcmp(path, "/dev/stdout") != 0)
        return;
    cli_flush();
    dup2(STDERR_FILENO, STDOUT_FILENO);
}

enum status cli_output_create(struct base_file **out, const char *path, struct status_why *why)
{
    *out = NULL;
    enum status status = path ? base_file_create(out, path, why) : STATUS_OK;
    if (*out)
        give_standard_output_away(path);
    return status;
}

enum status cli_output_commit(struct base_file **file, enum status filled, struct status_why *why)
{
    struct base_file *done = *file;
    *file = NULL;
    if (filled == STATUS_OK)
        return base_file_commit(done, why);
    base_file_abandon(done);
    return filled;
}
