/* assay info: what a GGUF file holds. */
#include "cli/commands.h"
#include "cli/inspect/info.h"

struct settings {
    bool json, tensors;
};

static enum status run_info(const void *opaque, const struct cli_args *args, struct status_why *why)
{
    const struct settings *settings = opaque;
    struct gguf_file *file;
    enum status status = gguf_open(&file, args->operands[0], why);
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

static const struct cli_option options[] = {
    {"--tensors", CLI_ON, NULL, "also list every tensor", offsetof(struct settings, tensors)},
    {"--json", CLI_ON, NULL, "print a JSON document instead; docs/json.md describes it",
     offsetof(struct settings, json)},
    {0},
};

const struct cli_command cli_command_info = {
    .name = "info",
    .usage = "FILE [options]",
    .n_operands = 1,
    .summary = "Print what a GGUF file holds: metadata, hyper-parameters, sizes and types.",
    .description = "FILE may be any part of a split file. No tensor is decoded.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_info,
};
