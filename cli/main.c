/* assay: the command's name is the first argument; each command does the rest itself. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text/words.h"
#include "cli/commands.h"
#include "cli/options/args.h"
#include "cli/options/complete.h"
#include "cli/process/run.h"
#include "cli/process/say.h"
#include "clients/serve/serve_command.h"

static const struct cli_command *const commands[] = {
    &cli_command_perplexity, &cli_command_record,  &cli_command_kld,     &cli_command_best,
    &cli_command_check,      &cli_command_trace,   &cli_command_draft,   &cli_command_sweep,
    &cli_command_recipe,     &cli_command_mix,     &cli_command_imatrix, &cli_command_score,
    &cli_command_plan,       &serve_command,       &cli_command_compare, &cli_command_table,
    &cli_command_merge,      &cli_command_explain, &cli_command_report,  &cli_command_card,
    &cli_command_tokenize,   &cli_command_info,    &cli_command_dump,    &cli_command_version,
};
enum { N_COMMANDS = sizeof commands / sizeof commands[0] };

static void print_overview(FILE *to)
{
    fputs("usage: assay COMMAND [options]\n\n"
          "Tells exactly what quantisation did to a language model, from its GGUF file.\n\n",
          to);
    for (size_t i = 0; i < N_COMMANDS; i++)
        fprintf(to, "  %-12s %s\n", commands[i]->name, commands[i]->summary);
    fputs("  help         Print the options of a command: assay help COMMAND.\n\n"
          "Options without a command are those of assay perplexity, and so of llama-perplexity.\n",
          to);
}

static const struct cli_command *find_command(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0)
            return commands[i];

    char nearest[32] = "";
    size_t rank = SIZE_MAX;
    for (size_t i = 0; i < N_COMMANDS; i++)
        base_likely_name(name, commands[i]->name, nearest, sizeof nearest, &rank);
    if (cli_bare_is_model(name))
        cli_complain(
            "assay: '%s' is a model, and a command comes first: assay perplexity %s -f TEXT, "
            "assay info %s; assay help lists the commands\n",
            name, name, name);
    else if (*nearest)
        cli_complain("assay: unknown command '%s'; did you mean %s?\n", name, nearest);
    else
        cli_complain("assay: unknown command '%s'; assay help lists the commands\n", name);
    return NULL;
}

/*
 * Descriptors 0 to 2 may come closed. A file that is opened later would get such a number, and
 * what is printed would land in it. So they are taken, in the wrong direction: use still fails.
 */
static void occupy_standard_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
            (void)!open("/", O_RDONLY | O_DIRECTORY); /* neither read nor written */
}

/* Whether the program was called by a link that has the name of llama.cpp's. */
static bool stands_in(const char *called)
{
    const char *slash = strrchr(called, '/'), *name = slash ? slash + 1 : called;
    return strncmp(name, CLI_PEER, strlen(CLI_PEER)) == 0 || strcmp(name, "perplexity") == 0;
}

int main(int argc, char **argv)
{
    occupy_standard_streams();
    if (argc && stands_in(argv[0]))
        return cli_run(&cli_command_perplexity, argc, argv);
    if (argc < 2) {
        print_overview(stderr);
        return CLI_EXIT_USAGE;
    }
    const char *name = argv[1];
    bool asks_help =
        strcmp(name, "help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "--help") == 0;
    if (asks_help && (argc == 2 || strcmp(argv[2], "help") == 0)) {
        print_overview(stdout);
        return cli_end(CLI_EXIT_DONE);
    }
    if (strcmp(name, "complete") == 0) { /* for completions/, not for people */
        cli_complete(&(struct cli_command_list){commands, N_COMMANDS, &cli_command_perplexity},
                     argv + 2, (size_t)argc - 2);
        return cli_end(CLI_EXIT_DONE);
    }
    if (strcmp(name, "--version") == 0)
        name = "version";
    else if (*name == '-' && !asks_help)
        return cli_run(&cli_command_perplexity, argc, argv);

    const struct cli_command *command = find_command(asks_help ? argv[2] : name);
    if (!command)
        return CLI_EXIT_USAGE;
    if (asks_help) {
        cli_args_help(command);
        return cli_end(CLI_EXIT_DONE);
    }
    return cli_run(command, argc - 1, argv + 1);
}
