#include "cli/session/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/inspect/version.h"

void cli_state_begin(struct base_json *json, const char *evaluator)
{
    struct cli_versions versions;
    cli_versions_read(&versions);
    base_json_begin(json);
    base_json_text(json, json->root, "evaluator", evaluator);
    base_json_text(json, json->root, "assay", versions.assay);
}

enum status cli_state_open(struct eval_journal **out, const char *path, struct base_json *json,
                           struct status_why *why)
{
    *out = NULL;
    enum status status = STATUS_OK;
    if (path && strcmp(path, "-") == 0)
        status = status_fail(why, STATUS_USAGE, "--state: expected the name of a file, found '-'");
    else if (path) {
        char *settings;
        status = base_json_text_of(json, &settings, why);
        if (status == STATUS_OK)
            status = eval_journal_open(out, path, settings, why);
        cJSON_free(settings);
    }
    base_json_free(json);
    return status;
}

enum status cli_state_resume(struct eval_journal *journal, struct eval_units *units,
                             struct status_why *why)
{
    if (!journal)
        return STATUS_OK;
    enum status status = eval_run_resume(units, journal, why);
    if (status)
        return status;
    uint64_t n = eval_journal_n(journal), n_behind = eval_journal_n_behind(journal);
    const char *path = eval_journal_path(journal);
    if (n)
        fprintf(stderr, "assay: %s: %" PRIu64 " of %zu %s%s %s finished before\n", path, n,
                units->n, units->kind->name, status_plural(units->n), n == 1 ? "was" : "were");
    if (n_behind && n < units->n)
        fprintf(stderr,
                "assay: note: %s: its last %" PRIu64 " bytes cannot be used and are cut off\n",
                path, n_behind);
    return STATUS_OK;
}

enum status cli_state_interrupted(const char *path, struct status_why *why)
{
    if (!path)
        return status_fail(why, STATUS_CANCELLED, "interrupted: the result is incomplete");
    return status_fail(why, STATUS_CANCELLED,
                       "interrupted: the result is incomplete; the same command goes on from %s",
                       path);
}
