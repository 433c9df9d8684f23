/* What is said of a run beside its lines. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/evaluate.h"
#include "cli/process/say.h"
#include "gguf/gguf.h"

void cli_remark(struct cli_evaluation *e, const char *format, ...)
{
    char line[512];
    va_list values;
    va_start(values, format);
    vsnprintf(line, sizeof line, format, values);
    va_end(values);
    cli_print_notes(line);
    size_t used = strlen(e->remarks);
    snprintf(e->remarks + used, sizeof e->remarks - used, "%s\n", line);
}

/* A base is rarely the smaller one; a hundredth is what other types of norms and biases make. */
bool cli_remark_swapped(struct cli_evaluation *e, const char *base_path, struct cli_model_size base,
                        const struct cli_model *candidate)
{
    struct cli_model_size other = cli_model_size(candidate);
    if (other.bits_per_weight <= 1.01 * base.bits_per_weight &&
        other.n_bytes <= base.n_bytes + base.n_bytes / 100)
        return false;
    const struct gguf_file *file = model_file(candidate->model);
    cli_remark(e,
               "the base, %.100s, has %.1f MB of tensors (%.2f bits per weight), %.100s, which is "
               "%s, has %.1f MB (%.2f): are they swapped? The divergence of a model from its base "
               "is not that of the base from it",
               base_file_name(base_path), (double)base.n_bytes / 1e6, base.bits_per_weight,
               base_file_name(candidate->path), gguf_quantisation(file).name,
               (double)other.n_bytes / 1e6, other.bits_per_weight);
    return true;
}

void cli_print_speed(const struct cli_evaluation *e)
{
    size_t n = e->stats.n_inputs;
    double seconds = e->stats.seconds;
    cli_say("assay: %zu token%s evaluated in %.1f s, %.1f tokens/s\n", n, status_plural(n), seconds,
            seconds > 0 ? (double)n / seconds : 0);
}
