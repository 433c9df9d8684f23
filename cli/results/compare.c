/* assay compare: whether two results on the same inputs differ by more than chance. */
#include "cli/results/compare.h"

#include "cli/commands.h"
#include "cli/imatrix/files/files.h"
#include "cli/options/common.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"

enum { MOST_RESAMPLES = 1000000, DEFAULT_RESAMPLES = 10000, DEFAULT_SEED = 1, NOT_GIVEN = -1 };

struct settings {
    struct doc_compare_settings compare;
    struct cli_compare_files_settings files;
    const char *json_file;
    bool force;
};

static void defaults(void *settings)
{
    *(struct settings *)settings =
        (struct settings){.compare = {.n_resamples = NOT_GIVEN, .seed = NOT_GIVEN}};
}

/** Refuse what is about results. what: the operands, in the plural. */
static enum status refuse_of_results(const struct settings *s, const char *what,
                                     struct status_why *why)
{
    const struct doc_compare_settings *c = &s->compare;
    if (c->candidates[0] || c->candidates[1])
        return status_fail(why, STATUS_USAGE,
                           "--candidate-a and --candidate-b choose a model of a result; these are "
                           "%s",
                           what);
    if (c->n_resamples != NOT_GIVEN || c->seed != NOT_GIVEN)
        return status_fail(why, STATUS_USAGE,
                           "--resamples and --seed are of the intervals of two results; these are "
                           "%s",
                           what);
    return STATUS_OK;
}

static enum status compare_matrices(const struct settings *s, const char *const *paths,
                                    struct status_why *why)
{
    enum status status = refuse_of_results(s, "importance matrices", why);
    for (size_t i = 0; i < 2 && !status; i++)
        if (!cli_imatrix_is(paths[i]))
            status = cli_imatrix_refuse(paths[i], why);
    return status ? status : cli_imatrix_compare(paths, s->json_file, s->force, why);
}

static enum status compare_files(const struct settings *s, const char *const *paths,
                                 struct status_why *why)
{
    enum status status = refuse_of_results(s, "models", why);
    for (size_t i = 0; i < 2 && !status; i++)
        if (cli_imatrix_is(paths[i]))
            status = status_fail(why, STATUS_USAGE,
                                 "%s is an importance matrix and %s a model; expected two of one "
                                 "kind",
                                 paths[i], paths[1 - i]);
    return status ? status : cli_compare_files(paths, &s->files, s->json_file, s->force, why);
}

static enum status run_compare(const void *settings, const struct cli_args *args,
                               struct status_why *why)
{
    const struct settings *s = settings;
    struct doc_compare c = {.settings = s->compare};
    const struct cli_named_file output = {"--json", s->json_file};
    const struct cli_named_file inputs[] = {{"A", args->operands[0]}, {"B", args->operands[1]}};
    struct base_file *json_file = NULL;
    enum status status = cli_outputs_check(&output, 1, inputs, 2, why);
    if (!status && (cli_compare_is_model(inputs[0].path) || cli_compare_is_model(inputs[1].path)))
        return compare_files(s, args->operands, why);
    if (!status && (s->files.base || s->files.n_threads))
        return status_fail(why, STATUS_USAGE, "%s is for two GGUF files",
                           s->files.base ? "--base" : "--threads");
    if (!status && (cli_imatrix_is(inputs[0].path) || cli_imatrix_is(inputs[1].path)))
        return compare_matrices(s, args->operands, why);
    if (c.settings.n_resamples == NOT_GIVEN)
        c.settings.n_resamples = DEFAULT_RESAMPLES;
    if (c.settings.seed == NOT_GIVEN)
        c.settings.seed = DEFAULT_SEED;
    for (size_t side = 0; side < 2 && !status; side++)
        status = doc_read(&c.sides[side].document, args->operands[side], why);
    if (!status)
        status = doc_compare_make(&c, why);
    if (!status)
        status =
            cli_output_create(&json_file, s->json_file, s->force ? NULL : DOC_COMPARE_SCHEMA, why);
    if (!status)
        cli_compare_print(&c);
    if (json_file)
        status = cli_output_commit(&json_file, cli_compare_write_json(&c, json_file, why), why);
    if (!status)
        status = doc_compare_verdict(&c, why);
    doc_compare_close(&c);
    return status;
}

#define AT(member) offsetof(struct settings, member)

static const struct cli_option options[] = {
    {"--candidate-a", CLI_TEXT, "MODEL",
     "which model of A, a result of assay kld of several: its name in the table, or its number in "
     "the file, from 1",
     AT(compare.candidates[0])},
    {"--candidate-b", CLI_TEXT, "MODEL", "which model of B; A and B may be the same file",
     AT(compare.candidates[1])},
    {"--resamples", CLI_COUNT, "N",
     "resamples of the block bootstrap over windows (default: 10000)", AT(compare.n_resamples), 1,
     MOST_RESAMPLES},
    {"--seed", CLI_COUNT, "N",
     "seed of its generator; the same seed gives the same intervals (default: 1)", AT(compare.seed),
     0, UINT32_MAX},
    {"--base", CLI_TEXT, "MODEL",
     "of two GGUF files: what both were quantised from, a GGUF file or a published folder; the "
     "error of each from it is told, too",
     AT(files.base)},
    {"-t --threads", CLI_COUNT, "N", "threads that compare GGUF files (default: all processors)",
     AT(files.n_threads), 1, 4096},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error"},
    {.type = CLI_GROUP, .group = cli_json_options, .offset = AT(json_file)},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {0},
};

const struct cli_command cli_command_compare = {
    .name = "compare",
    .usage = "A B [options]",
    .n_operands = 2,
    .summary = "Tell whether two results differ by more than chance, or where two GGUF files or "
               "importance matrices do.",
    .description =
        "A and B are two results of one command on the same inputs, as --json wrote them;\n"
        "results of different inputs are refused. Choice tasks are compared by McNemar's test,\n"
        "perplexity and KL divergence by a block bootstrap over windows.\n\n"
        "A and B may also be importance matrices. Then the command says how far their means are\n"
        "apart, and in which matrices.\n\n"
        "A and B may also be GGUF files of models. Then the command says which keys and tensors\n"
        "differ, in how many blocks, and what the two are to each other.",
    .examples = "assay compare q4.json q5.json\n"
                "Whether two results on the same text differ by more than chance.\n"
                "assay compare a.imatrix.gguf b.imatrix.gguf\n"
                "Where two importance matrices differ.\n"
                "assay compare mine.gguf theirs.gguf --base f16.gguf\n"
                "Whether two files are one recipe, and which is nearer to what they were made of.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .defaults = defaults,
    .run = run_compare,
};
