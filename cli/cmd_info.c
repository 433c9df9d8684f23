/* assay info: what a GGUF file holds. */
#include "cli/commands.h"
#include "cli/info.h"
#include "cli/run.h"

struct settings {
    bool json, tensors;
};

static enum status inform(const char *path, const struct settings *settings, struct status_why *why)
{
    struct gguf_file *file;
    enum status status = gguf_open(&file, path, why);
    struct cli_info info;
    if (status == STATUS_OK)
        status = cli_info_read(&info, file, why);
    if (status == STATUS_OK && settings->json)
        status = cli_info_write_json(&info, settings->tensors, why);
    else if (status == STATUS_OK)
        cli_info_print(&info, settings->tensors);
    gguf_close(file);
    return status;
}

static int run_info(const struct cli_command *self, int argc, char **argv)
{
    struct settings settings = {0};
    struct cli_args args;
    int exit_code;
    if (!cli_begin(self, argc, argv, &settings, &args, &exit_code))
        return exit_code;
    struct status_why why = {""};
    enum status status = inform(args.operands[0], &settings, &why);
    return status == STATUS_OK ? cli_end(CLI_EXIT_DONE) : cli_fail(status, &why);
}

static const struct cli_option table[] = {
    {.names = "--tensors",
     CLI_ON,
     NULL,
     "also list every tensor",
     offsetof(struct settings, tensors)},
    {.names = "--json",
     CLI_ON,
     NULL,
     "print a JSON document instead; docs/json.md describes it",
     offsetof(struct settings, json)},
    {0},
};

const struct cli_command cli_command_info = {
    .name = "info",
    .usage = "FILE [options]",
    .n_operands = 1,
    .summary = "Print what a GGUF file holds: metadata, hyper-parameters, sizes and types.",
    .description = "FILE may be any part of a split file. No tensor is decoded.",
    .table = table,
    .run = run_info,
};
