/* assay merge: journals of ranges of windows into the journal that one run would have left. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/content/text.h"
#include "cli/commands.h"
#include "cli/imatrix/files/files.h"
#include "cli/options/common.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/session/outputs.h"
#include "clients/cluster/merge.h"
#include "clients/documents/results/document.h"

struct settings {
    struct cli_list parts;
    const char *out_file;
    int64_t n_chunks; /* 0: all */
    bool force;
};

/* The journal that a result of a run names, from the result's folder; malloc. */
static enum status journal_of(char **out, const char *path, struct status_why *why)
{
    struct doc_document document;
    enum status status = doc_read(&document, path, why);
    if (status)
        return status;
    const char *name = base_field_string(doc_root(&document), "run.state_file");
    if (!name)
        status = status_fail(why, STATUS_USAGE,
                             "%s: the result of a run without --state: its document has sums of "
                             "windows only, and merging needs each token's numbers, which are in "
                             "the journal",
                             path);
    else {
        const char *slash = strrchr(path, '/');
        int n = *name != '/' && slash ? (int)(slash + 1 - path) : 0;
        if (asprintf(out, "%.*s%s", n, path, name) < 0)
            status = status_fail(why, STATUS_MEMORY, "out of memory");
    }
    doc_free(&document);
    return status;
}

/* A part is a journal, or a document that names one. */
static enum status find_journal(char **out, const char *path, struct status_why *why)
{
    char first = '\0';
    FILE *file = fopen(path, "rb");
    if (file) {
        first = (char)fgetc(file);
        fclose(file);
    }
    *out = NULL;
    if (first == '{')
        return journal_of(out, path, why);
    *out = strdup(path);
    return *out ? STATUS_OK : status_fail(why, STATUS_MEMORY, "out of memory");
}

/* No part is replaced. */
static enum status check_output(const char *path, const struct cli_list *operands,
                                const struct cli_list *journals, struct status_why *why)
{
    const struct cli_named_file out = {"-o", path};
    enum status status = cli_outputs_check_list(&out, 1, "the merge", operands, why);
    return status ? status : cli_outputs_check_list(&out, 1, "the merge", journals, why);
}

/* The journals of the parts into FILE. */
static enum status merge(const struct settings *s, const struct cli_list *journals,
                         struct status_why *why)
{
    struct cluster_merge merge = {.parts = (const char *const *)journals->items,
                                  .n_parts = journals->n,
                                  .n_windows = (size_t)s->n_chunks,
                                  .cancel = cli_interrupt_catch()};
    struct base_file *file = NULL;
    size_t n_windows = 0;
    char chunks[48] = "";
    if (s->n_chunks)
        snprintf(chunks, sizeof chunks, " and --chunks %" PRId64, s->n_chunks);
    enum status status = check_output(s->out_file, &s->parts, journals, why);
    if (!status)
        status = cli_output_create(&file, s->out_file, s->force ? NULL : BASE_JOURNAL, why);
    if (!status)
        status = cli_output_commit(&file, cluster_merge(&merge, file, &n_windows, why), why);
    if (!status && base_file_stream(s->out_file) < 0)
        cli_say("assay: %s: %zu windows of %zu part%s; the command of the parts without "
                "--chunk-from and --chunks, with --state %s%s, writes the results\n",
                s->out_file, n_windows, s->parts.n, status_plural(s->parts.n), s->out_file, chunks);
    return status;
}

/* Importance matrices, which are added up. Returns whether the parts are such. */
static bool are_matrices(const struct settings *s, struct status_why *why, enum status *status)
{
    size_t n = 0, other = 0;
    for (size_t i = 0; i < s->parts.n; i++) {
        bool is = cli_imatrix_is(s->parts.items[i]);
        n += is;
        other = is ? other : i;
    }
    if (!n)
        return false;
    if (n < s->parts.n)
        *status = cli_imatrix_refuse(s->parts.items[other], why);
    else if (s->n_chunks)
        *status = status_fail(why, STATUS_USAGE,
                              "--chunks: the parts are importance matrices, which are added whole");
    else
        *status = check_output(s->out_file, &s->parts, &s->parts, why);
    if (!*status)
        *status = cli_imatrix_merge(&s->parts, s->out_file, s->force, why);
    return true;
}

static enum status run_merge(const void *opaque, const struct cli_args *args,
                             struct status_why *why)
{
    (void)args;
    const struct settings *s = opaque;
    struct cli_list journals = {.n = s->parts.n};
    enum status status = STATUS_OK;
    if (are_matrices(s, why, &status))
        return status;
    status = base_array_new(journals.items, journals.n, "parts", why);
    for (size_t i = 0; i < s->parts.n && !status; i++)
        status = find_journal(&journals.items[i], s->parts.items[i], why);
    if (!status)
        status = merge(s, &journals, why);
    for (size_t i = 0; journals.items && i < journals.n; i++)
        free(journals.items[i]);
    free(journals.items);
    return status;
}

#define AT(member) offsetof(struct settings, member)

static const struct cli_option options[] = {
    {"-o --output", CLI_TEXT, "FILE", "the journal, or importance matrix, to write", AT(out_file),
     .required = true},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = AT(force)},
    {"--chunks", CLI_COUNT, "N",
     "the parts have the first N windows only, as of a run with --chunks N (default: all of the "
     "text)",
     AT(n_chunks), 1, INT32_MAX},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error"},
    {.type = CLI_OPERANDS, .help = "the parts", .offset = AT(parts), .required = true},
    {0},
};

const struct cli_command cli_command_merge = {
    .name = "merge",
    .usage = "PART ... -o FILE [options]",
    .summary = "Merge runs over ranges of windows into one, or add importance matrices up.",
    .description =
        "A part is the journal (--state) of a run with --chunk-from and --chunks, or the\n"
        "document (--json) of such a run, which names its journal. Model, text, settings and\n"
        "program must agree, and each window must be there once. FILE is the journal that one\n"
        "run over all windows would have left. That run's command with --state FILE, without\n"
        "--chunk-from and --chunks, then writes every result and evaluates nothing.\n\n"
        "Parts may also be importance matrices (GGUF, or the older format): their sums and\n"
        "counts are added. The parts of one run of assay imatrix give the same bytes as the\n"
        "whole run.",
    .examples = "assay merge part1.journal part2.journal -o all.journal\n"
                "Runs over ranges of windows become the journal of one run; the command of that "
                "run with --state all.journal writes every result.\n"
                "assay merge part1.gguf part2.gguf -o imatrix.gguf\n"
                "Importance matrices of several texts or machines in one.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_merge,
};
