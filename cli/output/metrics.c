#include "cli/output/metrics.h"

#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/output/json_parts.h"

struct base_estimate cli_metric_value(const struct doc_metric *row, const void *result)
{
    const char *at = (const char *)result + row->place;
    struct base_estimate x = {0};
    memcpy(&x, at, row->kind == DOC_ESTIMATE ? sizeof x : sizeof x.value);
    return x;
}

/* The object that a member lies in; name: receives its own name. */
static cJSON *object_of(struct base_json *json, cJSON *parent, const char *path, const char **name)
{
    const char *dot = strchr(path, '.');
    char object[32];
    *name = dot ? dot + 1 : path;
    if (!dot)
        return parent;
    snprintf(object, sizeof object, "%.*s", (int)(dot - path), path);
    cJSON *found = cJSON_GetObjectItemCaseSensitive(parent, object);
    return found ? found : base_json_object(json, parent, object);
}

void cli_json_metrics(struct base_json *json, cJSON *parent, const struct cli_metrics *f)
{
    for (unsigned nth = 0; nth < DOC_MOST_PLACES; nth++)
        for (size_t i = 0; i < f->n; i++) {
            const struct doc_metric *row = &f->rows[i];
            const char *name;
            if (row->nth_member != nth || row->flags & f->hidden & DOC_WITH_JS)
                continue;
            cJSON *object = object_of(json, parent, row->path, &name);
            struct base_estimate x = cli_metric_value(row, f->result);
            if (row->kind == DOC_ESTIMATE)
                cli_json_estimate(json, object, name, x);
            else
                base_json_real(json, object, name, x.value);
        }
}

static void print(const struct doc_metric *row, struct base_estimate x, bool of_lots)
{
    const struct doc_format *as = row->as;
    int n = as->n_decimals;
    double value = row->flags & DOC_NOT_NEGATIVE && x.value < 0 ? 0 : x.value;
    double error = of_lots ? base_estimate_error(x) : x.error;
    printf("%s%*.*f", row->line, as->width, n, base_shown(as->scale * value, n));
    if (row->kind == DOC_ESTIMATE && !(row->flags & DOC_NO_ERROR))
        printf(" ± %*.*f%s", as->error_width, n, base_shown(as->scale * error, n),
               *as->unit ? " " : "");
    printf("%s\n", as->unit);
}

void cli_print_metrics(const struct cli_metrics *f, enum doc_block block, bool of_lots)
{
    for (unsigned nth = 0; nth < DOC_MOST_PLACES; nth++)
        for (size_t i = 0; i < f->n; i++) {
            const struct doc_metric *row = &f->rows[i];
            if (row->block == block && row->nth_line == nth && !(row->flags & f->hidden))
                print(row, cli_metric_value(row, f->result), of_lots);
        }
}
