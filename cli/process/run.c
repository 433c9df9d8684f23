#include "cli/process/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/process/faults.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"

static int exit_code_of(enum status status)
{
    switch (status) {
    case STATUS_OK:
        return CLI_EXIT_DONE;
    case STATUS_USAGE:
    case STATUS_IO:
    case STATUS_FORMAT:
    case STATUS_UNSUPPORTED:
        return CLI_EXIT_USAGE;
    case STATUS_CHANGED:
    case STATUS_MEMORY:
    case STATUS_NONFINITE:
    case STATUS_EXCEEDED:
        return CLI_EXIT_FAILED;
    case STATUS_DEVICE:
        return CLI_EXIT_DEVICE;
    case STATUS_CANCELLED:
        return CLI_EXIT_INTERRUPTED;
    }
    return CLI_EXIT_FAILED;
}

bool cli_same_stream(void)
{
    struct stat out, err;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino;
}

/* The first error of standard output: the stream itself only knows that there was one. */
static int stdout_error;

void cli_flush(void)
{
    if (fflush(stdout) != 0 && stdout_error == 0)
        stdout_error = errno;
}

int cli_end(int exit_code)
{
    cli_flush();
    if (!ferror(stdout) && stdout_error == 0)
        return exit_code;
    bool given_up = cli_interrupted() && exit_code == CLI_EXIT_DONE;
    fprintf(stderr, "assay: %sstandard output: writing failed%s%s\n",
            given_up ? "interrupted: " : "", stdout_error ? ": " : "",
            stdout_error ? strerror(stdout_error) : "");
    if (given_up)
        return CLI_EXIT_INTERRUPTED;
    return exit_code == CLI_EXIT_DONE ? CLI_EXIT_USAGE : exit_code;
}

/* Print the sentence and return the exit code that the status leads to. */
static int fail(enum status status, const struct status_why *why)
{
    cli_flush();
    bool told = *why->text || status != STATUS_CANCELLED;
    bool broken_off = status == STATUS_IO && cli_interrupted();
    if (told || !cli_interrupt_is_told_elsewhere())
        cli_complain("assay: %s%s\n", broken_off ? "interrupted: " : "",
                     told ? why->text : "interrupted: there is no result");
    return broken_off ? CLI_EXIT_INTERRUPTED : exit_code_of(status);
}

static int run_with(const struct cli_command *command, int argc, char **argv, void *settings)
{
    struct status_why why = {""};
    struct cli_args args;
    enum status status = cli_args_parse(command, argc, argv, settings, &args, &why);
    if (!status && args.help) {
        cli_args_help(command);
        return cli_end(CLI_EXIT_DONE);
    }
    if (!status && args.answer) {
        puts(args.answer);
        return cli_end(CLI_EXIT_DONE);
    }
    cli_be_quiet(args.quiet);
    if (!status && *args.ignored)
        cli_say("assay: ignored, because no result depends on it: %s\n", args.ignored);
    if (!status && command->after)
        command->after(&args);
    cli_print_notes(args.notes); /* also where a value that they are about is refused */
    if (status)
        return fail(status, &why);
    status = command->run(settings, &args, &why);
    return status ? fail(status, &why) : cli_end(CLI_EXIT_DONE);
}

/* A model may come in a file for each of its tensors, and all of them stay open. */
static void allow_many_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int cli_run(const struct cli_command *command, int argc, char **argv)
{
    allow_many_files();
    cli_interrupt_begin();
    cli_mapping_fault_catch();
    void *settings = calloc(1, command->settings_bytes + 1);
    if (!settings)
        return fail(STATUS_MEMORY, &(struct status_why){"out of memory"});
    if (command->defaults)
        command->defaults(settings);
    int exit_code = run_with(command, argc, argv, settings);
    cli_args_release(command, settings);
    free(settings);
    return exit_code;
}
