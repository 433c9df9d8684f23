/* assay version: everything that a bug report should say about the program. */
#include <stdio.h>

#include "cli/commands.h"
#include "cli/process/version.h"
#include "kernels/kernels.h"

static enum status run_version(const void *settings, const struct cli_args *args,
                               struct status_why *why)
{
    (void)settings, (void)args, (void)why;

    struct cli_versions versions;
    cli_versions_read(&versions);
    printf("assay     %s\n", versions.assay);
    printf("commit    %s\n",
           *versions.commit ? versions.commit : "unknown (built without git, or not a checkout)");
    printf("compiler  %s\n", versions.compiler);
    printf("build     %s\n", versions.build);
    printf("isa       %s (the best that this processor and this build have)\n",
           kern_amx_detect() ? "amx" : kern_isa_name(kern_isa_detect()));
    printf("pcre2     %s\n", versions.pcre2);
    printf("cjson     %s\n", versions.cjson);
    printf("openssl   %s\n", versions.openssl);
    printf("openblas  %s\n",
           *versions.openblas ? versions.openblas : "not loaded (--gemm openblas loads it)");
    return STATUS_OK;
}

static const struct cli_option options[] = {{0}};

const struct cli_command cli_command_version = {
    .name = "version",
    .usage = "[options]",
    .summary = "Print the versions of the program and its parts, and the instruction set.",
    .description = "",
    .examples = "assay version\n"
                "The version and the commit of the program, versions of its libraries, the "
                "instruction set in use.",
    .options = options,
    .run = run_version,
};
