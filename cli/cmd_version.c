/* assay version: everything that a bug report should say about the program. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/run.h"
#include "cli/versions.h"
#include "kernels/cpu/isa.h"

static int run_version(const struct cli_command *self, int argc, char **argv)
{
    struct cli_args args;
    int exit_code;
    if (!cli_begin(self, argc, argv, NULL, &args, &exit_code))
        return exit_code;

    struct cli_versions versions;
    cli_versions_read(&versions);
    printf("assay     %s\n", versions.assay);
    printf("compiler  %s\n", versions.compiler);
    printf("build     %s\n", versions.build);
    printf("isa       %s (the best that this processor and this build have)\n",
           kern_isa_name(kern_isa_detect()));
    printf("pcre2     %s\n", versions.pcre2);
    printf("cjson     %s\n", versions.cjson);
    printf("openssl   %s\n", versions.openssl);
    printf("openblas  %s\n", *versions.openblas ? versions.openblas : "not built in");
    return cli_end(CLI_EXIT_DONE);
}

static const struct cli_option table[] = {{0}};

const struct cli_command cli_command_version = {
    .name = "version",
    .usage = "[options]",
    .summary = "Print the versions of the program and its parts, and the instruction set.",
    .description = "",
    .table = table,
    .run = run_version,
};
