/* assay info: what a GGUF file, or an importance matrix, holds. */
#include "cli/inspect/info.h"

#include <stdio.h>

#include "cli/commands.h"
#include "cli/imatrix/files/files.h"
#include "cli/input/models.h"
#include "cli/process/say.h"
#include "clients/imatrix/file/read.h"
#include "gguf/gguf.h"
#include "model/model.h"

struct settings {
    struct cli_list files;
    int64_t context;
    bool json, tensors;
};

/* A folder is listed although its tokens cannot be read. */
static void tell_of_tokens(const struct gguf_file *listed, const char *path)
{
    struct gguf_file *tokens = NULL;
    struct status_why why = {""};
    const struct gguf_tensor *embedding = gguf_tensor_find(listed, "token_embd.weight");
    if (gguf_is_folder(listed) && !gguf_kv_find(listed, "tokenizer.ggml.tokens") &&
        model_tokens_open(&tokens, path, embedding ? embedding->ne[1] : 0, &why))
        cli_say("assay: note: %s\n", why.text);
    gguf_close(tokens);
}

static enum status tell(const char *path, const struct settings *settings, bool again,
                        struct status_why *why)
{
    struct gguf_file *file = NULL;
    bool old = imat_kind_of(path) == IMAT_DAT;
    enum status status = old ? STATUS_OK : model_file_list(&file, path, why);
    struct cli_info info = {.n_context = (size_t)settings->context};
    if (!status && again && !settings->json)
        putchar('\n');
    if (!status && (old || (imat_is_matrix(file) && !settings->tensors))) {
        status = cli_imatrix_info(path, file, settings->json, why);
        gguf_close(file);
        return status;
    }
    if (!status)
        tell_of_tokens(file, path);
    if (!status)
        status = cli_info_gather(&info, file, why);
    if (!status && settings->json)
        status = cli_info_write_json(&info, settings->tensors, why);
    else if (!status)
        cli_info_print(&info, settings->tensors);
    if (!status)
        status = gguf_check_unchanged(file, why);
    cli_info_free(&info);
    gguf_close(file);
    return status;
}

/* A file that cannot be read keeps nobody from the others. */
static enum status run_info(const void *opaque, const struct cli_args *args, struct status_why *why)
{
    const struct settings *settings = opaque;
    size_t n = cli_models_once(&settings->files, NULL);
    enum status first = STATUS_OK;
    bool told = false;
    (void)args;
    for (size_t i = 0; i < n; i++) {
        struct status_why own = {""};
        enum status status = tell(settings->files.items[i], settings, told, &own);
        told |= !status;
        if (status && first) /* the last sentence is printed at the end */
            cli_complain("assay: %s\n", why->text);
        if (status) {
            first = first ? first : status;
            *why = own;
        }
    }
    return first;
}

static const struct cli_option options[] = {
    {"--tensors", CLI_ON, NULL, "also list every tensor", offsetof(struct settings, tensors)},
    {"--context", CLI_COUNT, "N",
     "also print how large a cache of keys and values for N tokens is in F16",
     offsetof(struct settings, context), 0, INT32_MAX},
    {"--json", CLI_ON, NULL, "print a JSON document instead; docs/json.md describes it",
     offsetof(struct settings, json)},
    {.type = CLI_OPERANDS,
     .help = "the files",
     .offset = offsetof(struct settings, files),
     .required = true},
    {0},
};

const struct cli_command cli_command_info = {
    .name = "info",
    .usage = "FILE ... [options]",
    .summary = "Print what a GGUF file holds: metadata, hyper-parameters, sizes and types.",
    .description =
        "FILE may be any file of a split model. No tensor is decoded, so types that cannot be\n"
        "evaluated are listed, too. Several files are described one after the other, also where\n"
        "one of them cannot be read. For an importance matrix (GGUF, or llama-imatrix's older\n"
        "format) the command prints statistics of each matrix, and says which experts had few\n"
        "rows or none; with --tensors it prints what the file holds.",
    .examples = "assay info *.gguf\n"
                "What files hold, one after the other.\n"
                "assay info --tensors model.gguf\n"
                "Tensor by tensor.\n"
                "assay info imatrix.gguf\n"
                "Statistics of an importance matrix.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_info,
};
