#include "cli/session/state.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/inspect/versions.h"

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

/* What the journal had, and whether there is more that is no record or vouches for nothing. */
static void print_resumed(const struct eval_journal *journal, size_t n_total, const char *unit)
{
    uint64_t n = eval_journal_n(journal), n_behind = eval_journal_n_behind(journal);
    const char *path = eval_journal_path(journal);
    if (n)
        fprintf(stderr, "assay: %s: %" PRIu64 " of %zu %s%s %s finished before\n", path, n, n_total,
                unit, status_plural(n_total), n == 1 ? "was" : "were");
    if (n_behind && n < n_total)
        fprintf(stderr,
                "assay: note: %s: its last %" PRIu64 " bytes cannot be used and are cut off\n",
                path, n_behind);
}

enum status cli_state_resume_windows(const struct eval_resume *resume, struct status_why *why)
{
    if (!resume->journal)
        return STATUS_OK;
    enum status status = eval_resume_windows(resume, why);
    if (status == STATUS_OK)
        print_resumed(resume->journal, resume->tables[0].n_windows, "window");
    return status;
}

enum status cli_state_resume_tasks(struct eval_journal *journal, struct eval_choices *choices,
                                   struct status_why *why)
{
    if (!journal)
        return STATUS_OK;
    enum status status = eval_resume_tasks(journal, choices, why);
    if (status == STATUS_OK)
        print_resumed(journal, choices->n, "task");
    return status;
}

enum status cli_state_resume_requests(struct eval_journal *journal,
                                      struct eval_request_scores *scores, struct status_why *why)
{
    if (!journal)
        return STATUS_OK;
    enum status status = eval_resume_requests(journal, scores, why);
    if (status == STATUS_OK)
        print_resumed(journal, scores->n, "request");
    return status;
}

enum status cli_state_interrupted(const char *path, struct status_why *why)
{
    if (!path)
        return status_fail(why, STATUS_CANCELLED, "interrupted: the result is incomplete");
    return status_fail(why, STATUS_CANCELLED,
                       "interrupted: the result is incomplete; the same command goes on from %s",
                       path);
}
