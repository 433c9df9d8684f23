#include "cli/outputs.h"

#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>

/** Whether two paths lead to one regular file; false where either does not exist. */
static bool same_file(const char *a, const char *b)
{
    struct stat of_a, of_b;
    return stat(a, &of_a) == 0 && stat(b, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino && S_ISREG(of_a.st_mode);
}

enum status cli_outputs_check(const struct cli_named_file *outputs, size_t n_outputs,
                              const struct cli_named_file *inputs, size_t n_inputs,
                              struct status_why *why)
{
    for (size_t i = 0; i < n_outputs; i++) {
        const struct cli_named_file *out = &outputs[i];
        if (!out->path)
            continue;
        for (size_t j = 0; j < n_inputs; j++)
            if (inputs[j].path && same_file(out->path, inputs[j].path))
                return status_fail(why, STATUS_USAGE, "%s %s would replace the file that %s reads",
                                   out->option, out->path, inputs[j].option);
        for (size_t j = 0; j < i; j++)
            if (outputs[j].path &&
                (strcmp(out->path, outputs[j].path) == 0 || same_file(out->path, outputs[j].path)))
                return status_fail(why, STATUS_USAGE, "%s and %s both write to %s",
                                   outputs[j].option, out->option, out->path);
    }
    return STATUS_OK;
}
