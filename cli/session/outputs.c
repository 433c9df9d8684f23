#include "cli/session/outputs.h"

#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/run.h"
#include "cli/process/say.h"

/** The file that the name of an output leads to, if there is one. */
static bool output_exists(const char *path, struct stat *about)
{
    int stream = base_file_stream(path);
    return (stream >= 0 ? fstat(stream, about) : stat(path, about)) == 0;
}

/** Whether an output and an input lead to one regular file; false where either does not exist. */
static bool same_file(const char *output, const char *input)
{
    struct stat of_a, of_b;
    return output_exists(output, &of_a) && stat(input, &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
           of_a.st_ino == of_b.st_ino && S_ISREG(of_a.st_mode);
}

/** Whether two names that nothing has yet are one: the same last part, in the same folder. */
static bool same_place(const char *a, const char *b)
{
    char *of_a = base_file_target(a), *of_b = base_file_target(b);
    char *copies[] = {of_a ? strdup(of_a) : NULL, of_b ? strdup(of_b) : NULL};
    struct stat in_a, in_b;
    bool same = copies[0] && copies[1] && strcmp(basename(of_a), basename(of_b)) == 0 &&
                stat(dirname(copies[0]), &in_a) == 0 && stat(dirname(copies[1]), &in_b) == 0 &&
                in_a.st_dev == in_b.st_dev && in_a.st_ino == in_b.st_ino;
    free(of_a);
    free(of_b);
    free(copies[0]);
    free(copies[1]);
    return same;
}

/** Whether two outputs would be one file or stream. A device may well be written to twice. */
static bool same_output(const char *a, const char *b)
{
    struct stat of_a, of_b;
    int stream = base_file_stream(a);
    if (stream >= 0 && stream == base_file_stream(b))
        return true;
    bool a_exists = output_exists(a, &of_a), b_exists = output_exists(b, &of_b);
    if (a_exists && b_exists)
        return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino && !S_ISCHR(of_a.st_mode);
    return !a_exists && !b_exists && (strcmp(a, b) == 0 || same_place(a, b));
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
            if (outputs[j].path && same_output(out->path, outputs[j].path))
                return status_fail(why, STATUS_USAGE, "%s %s and %s %s are the same file",
                                   outputs[j].option, outputs[j].path, out->option, out->path);
    }
    return STATUS_OK;
}

enum status cli_outputs_check_model(const struct cli_named_file *outputs, size_t n_outputs,
                                    const char *option, const struct gguf_file *file,
                                    struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < gguf_n_shards(file) && !status; i++) {
        const struct cli_named_file part = {option, gguf_shard_path(file, i)};
        status = cli_outputs_check(outputs, n_outputs, &part, 1, why);
    }
    return status;
}

enum status cli_outputs_check_list(const struct cli_named_file *outputs, size_t n_outputs,
                                   const char *option, const struct cli_list *paths,
                                   struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < paths->n && !status; i++) {
        const struct cli_named_file input = {option, paths->items[i]};
        status = cli_outputs_check(outputs, n_outputs, &input, 1, why);
    }
    return status;
}

/* An output of its own has standard output to itself: everything else goes to standard error. */
static void give_standard_output_away(const char *path)
{
    if (base_file_stream(path) != STDOUT_FILENO)
        return;
    cli_flush();
    /* A standard error that came closed, or is for errors only: what is printed is dropped. */
    bool dropped = cli_is_quiet() || (fcntl(STDERR_FILENO, F_GETFL) & O_ACCMODE) == O_RDONLY;
    int to = dropped ? open("/dev/null", O_WRONLY | O_CLOEXEC) : STDERR_FILENO;
    dup2(to, STDOUT_FILENO);
    if (dropped && to >= 0)
        close(to);
}

enum status cli_output_create(struct base_file **out, const char *path, const char *kind,
                              struct status_why *why)
{
    *out = NULL;
    enum status status = path ? base_file_create(out, path, kind, why) : STATUS_OK;
    if (*out)
        give_standard_output_away(path);
    return status;
}

void cli_output_remove(const char *path, const char *kind)
{
    char *target = path && base_file_stream(path) < 0 ? base_file_target(path) : NULL;
    struct stat about;
    if (target && stat(target, &about) == 0 && S_ISREG(about.st_mode) &&
        !base_written_check(target, kind, NULL))
        (void)unlink(target); /* writing it will fail, and say why */
    free(target);
}

enum status cli_output_commit(struct base_file **file, enum status filled, struct status_why *why)
{
    struct base_file *done = *file;
    *file = NULL;
    if (!filled)
        return base_file_commit(done, why);
    base_file_abandon(done);
    return filled;
}
