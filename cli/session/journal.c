#include "cli/session/journal.h"

#include <stdlib.h>
#include <string.h>

#include "base/content/written.h"
#include "base/json/parse.h"
#include "base/json/read.h"
#include "cli/session/outputs.h"
#include "eval/run.h"

/** Take a number from one object to another; its value before, -1 where there was none. */
static double take_number(cJSON *to, const cJSON *from, const char *object, const char *key)
{
    cJSON *old =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(to, object), key);
    const cJSON *new =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(from, object), key);
    double was = cJSON_IsNumber(old) ? old->valuedouble : -1;
    if (cJSON_IsNumber(old) && cJSON_IsNumber(new))
        cJSON_SetNumberValue(old, new->valuedouble);
    return was;
}

/** Whether settings are those of a run with fewer windows, and nothing else differs. */
static enum status is_shorter(bool *shorter, const char *old, const char *new,
                              struct status_why *why)
{
    cJSON *a = NULL, *b = NULL;
    enum status status = base_json_parse(&a, old, strlen(old), NULL, why);
    if (!status)
        status = base_json_parse(&b, new, strlen(new), NULL, why);
    const cJSON *n = base_json_member(b, "windows.n");
    take_number(a, b, "settings", "chunks");
    double was = take_number(a, b, "windows", "n");
    char *text_a = cJSON_PrintUnformatted(a), *text_b = cJSON_PrintUnformatted(b);
    *shorter = text_a && text_b && strcmp(text_a, text_b) == 0 && was > 0 && cJSON_IsNumber(n) &&
               was <= n->valuedouble && strcmp(old, new) != 0;
    cJSON_free(text_a);
    cJSON_free(text_b);
    cJSON_Delete(a);
    cJSON_Delete(b);
    return status == STATUS_FORMAT ? STATUS_OK : status;
}

static enum status copy(struct eval_journal *from, struct base_file *file, const char *settings,
                        struct status_why *why)
{
    struct eval_journal *to = NULL;
    enum status status = eval_journal_begin(&to, file, settings, why);
    for (bool more = true; more && !status;) {
        double *values = NULL;
        size_t n;
        status = eval_journal_next(from, &values, &n, why);
        more = values;
        if (!status && values)
            status = eval_journal_append(to, values, n, why);
        free(values);
    }
    eval_journal_close(to);
    return status;
}

enum status cli_journal_extend(const char *path, const char *settings, struct status_why *why)
{
    struct eval_journal *journal = NULL;
    struct base_file *file = NULL;
    char *old = NULL;
    bool shorter = false;
    enum status status = STATUS_OK;
    if (!eval_journal_look(&journal, path, &old, &(struct status_why){""}))
        status = is_shorter(&shorter, old, settings, why);
    if (!status && shorter)
        status = base_file_create(&file, path, BASE_JOURNAL, why);
    if (!status && shorter)
        status = cli_output_commit(&file, copy(journal, file, settings, why), why);
    base_file_abandon(file);
    eval_journal_close(journal);
    free(old);
    return status;
}
