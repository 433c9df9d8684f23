#include <string.h>
#include <sys/stat.h>

#include "base/content/kind.h"
#include "base/text/words.h"
#include "cli/options/args.h"
#include "eval/reference.h"
#include "model/model.h"

bool cli_bare_is_model(const char *argument)
{
    return base_ends_with(argument, ".gguf") || base_file_begins(argument, "GGUF\2\0\0") ||
           base_file_begins(argument, "GGUF\3\0\0") || model_is_folder(argument);
}

/* Whether the command has an option that takes a value. */
static bool takes(const struct cli_command *command, const char *option)
{
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        if (row->names && row->value && row->type < CLI_IGNORED &&
            base_words_index(row->names, option) >= 0)
            return true;
    return false;
}

/* Files that are to be written, or texts that were mistyped. */
static const struct {
    const char *end, *option;
} names[] = {
    {".json", "--json"},   {".tsv", "--per-token"}, {".tsv", "--tsv"},
    {".svg", "--heatmap"}, {".state", "--state"},   {".txt", "-f"},
    {".md", "-f"},         {".raw", "-f"},          {".jsonl", "-f"},
};

const char *cli_bare_option(const struct cli_command *command, const char *argument)
{
    static const char *const of_rows[] = {"--base", "--kl-divergence-base"};
    struct stat about;
    bool is_rows = base_file_begins(argument, eval_logits_magic) ||
                   base_file_begins(argument, EVAL_COMPACT_MAGIC);
    for (size_t i = 0; i < sizeof of_rows / sizeof *of_rows && is_rows; i++)
        if (takes(command, of_rows[i]))
            return of_rows[i];
    if (stat(argument, &about) == 0)
        return !is_rows && takes(command, "-f") ? "-f" : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (base_ends_with(argument, names[i].end) && takes(command, names[i].option))
            return names[i].option;
    return NULL;
}
