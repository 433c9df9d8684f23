#include "clients/documents/results/speeds/bench.h"

#include <stdint.h>

#include "base/json/lines.h"

enum { MOST_ROWS = 10000 };

static bool is_row(const cJSON *value)
{
    return cJSON_IsString(cJSON_GetObjectItemCaseSensitive(value, "model_filename")) &&
           !cJSON_GetObjectItemCaseSensitive(value, "schema");
}

bool doc_bench_is(const cJSON *value)
{
    return is_row(cJSON_IsArray(value) ? value->child : value);
}

struct rows {
    cJSON *list;
    size_t n;
};

static enum status take_row(void *user, const struct base_json_line *line, const cJSON *object,
                            struct status_why *why)
{
    struct rows *rows = user;
    if (rows->n++ == MOST_ROWS)
        return status_fail(why, STATUS_FORMAT, "line %zu: more than %d rows of llama-bench",
                           line->number, (int)MOST_ROWS);
    cJSON *copy = cJSON_Duplicate(object, true);
    return copy && cJSON_AddItemToArray(rows->list, copy)
               ? STATUS_OK
               : status_fail(why, STATUS_MEMORY, "no memory for rows of llama-bench");
}

enum status doc_bench_read(cJSON **out, struct base_string text, struct status_why *why)
{
    struct rows rows = {0};
    *out = cJSON_CreateObject();
    rows.list = *out ? cJSON_AddArrayToObject(*out, "rows") : NULL;
    enum status status = rows.list
                             ? STATUS_OK
                             : status_fail(why, STATUS_MEMORY, "no memory for rows of llama-bench");
    if (!status) /* the reader may write to what it was given, this one does not */
        status = base_json_objects_read((char *)(uintptr_t)text.data, text.n_bytes, take_row, &rows,
                                        why);
    if (status) {
        cJSON_Delete(*out);
        *out = NULL;
    }
    return status;
}
