#include "clients/documents/recipe/swept.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "base/text/strtab.h"
#include "clients/documents/schema.h"

/* Largest sums: of bytes, elements and nats; all arithmetic with them is exact below. */
#define MOST_BYTES (UINT64_C(1) << 50)
static const double most_nats = 1e6;

static enum status fail_field(struct base_field field, struct status_why *why, const char *what)
{
    base_field_fail(field, STATUS_FORMAT, "%s", what);
    return base_json_status(field.reader, why);
}

struct doc_mixed_file doc_mixed_file(struct base_field object, const char *path)
{
    const char *file = base_field_text(object, "file");
    return (struct doc_mixed_file){path ? path : file, base_field_text_or(object, "id", NULL),
                                   base_field_text_or(object, "sha256", NULL)};
}

/* The files, whose paths are in `run`; elsewhere are names without folders. */
static enum status read_files(struct doc_swept *s, struct status_why *why)
{
    struct base_field root = doc_root(&s->document), item = {0};
    struct base_field base = base_field_need(root, "base"),
                      around = base_field_find(root, "around");
    const cJSON *path = base_field_get(root, "run.candidate_files").json;
    s->base = doc_mixed_file(base, base_field_text_or(root, "run.model_file", NULL));
    s->around_base = !around.json;
    struct base_field list = doc_list(&s->n_files, root, "candidates");
    if (s->n_files > DOC_MAX_MIXED)
        return status_fail(why, STATUS_FORMAT, "%s: has %zu candidates, expected %d at most",
                           s->document.json.file, s->n_files, (int)DOC_MAX_MIXED);
    if (base_array_new(s->files, ++s->n_files, "candidates", why))
        return STATUS_MEMORY;
    s->files[0] = s->around_base
                      ? s->base
                      : doc_mixed_file(around, base_field_text_or(root, "run.around_file", NULL));
    path = cJSON_IsArray(path) ? path->child : NULL;
    for (size_t i = 1; base_field_next(list, &item); i++) {
        s->files[i] = doc_mixed_file(item, cJSON_GetStringValue(path));
        path = path ? path->next : NULL;
    }
    return doc_status(&s->document, why);
}

/* The divergence of files[0], and how large it is. */
static enum status read_reference(struct doc_swept *s, struct status_why *why)
{
    struct base_field root = doc_root(&s->document);
    s->kld = base_field_real_or_null(root, "reference.kld.mean");
    s->kld_error = doc_error(root, "reference.kld.se");
    s->n_weights = doc_count(root, s->around_base ? "base.n_weights" : "around.n_weights");
    s->complete = !cJSON_IsFalse(base_field_get(root, "result.complete").json);
    enum status status = doc_status(&s->document, why);
    if (!status && !(fabs(s->kld) <= most_nats))
        return status_fail(why, STATUS_FORMAT,
                           "%s: reference.kld.mean is not a divergence that can be added to",
                           s->document.json.file);
    if (!status && (s->n_weights == 0 || s->n_weights > MOST_BYTES))
        return status_fail(why, STATUS_FORMAT, "%s: n_weights is %zu, expected 1 to 2^50",
                           s->document.json.file, (size_t)s->n_weights);
    return status;
}

/* A size, of which the sum of all stays small. */
static enum status read_size(uint64_t *out, struct base_field object, const char *path,
                             uint64_t *sum, struct status_why *why)
{
    *out = doc_count(object, path);
    enum status status = doc_status(doc_of(object), why);
    struct base_field field = base_field_need(object, path);
    if (!status && (*out == 0 || *out > MOST_BYTES - *sum))
        status = fail_field(field, why,
                            *out ? "makes more than 2^50 with those before it"
                                 : "is 0, expected a tensor's size");
    *sum += status ? 0 : *out;
    return status;
}

/* Whether its figure is that of another model's tensor, or of a damaged one. */
static bool is_odd(struct base_field choice)
{
    return base_field_is(base_field_get(choice, "below"), "no_version");
}

enum { SHOWN = 5 };

static void note_odd(struct doc_swept *s, const char *group, size_t file)
{
    char name[256], path[256];
    if (s->n_odd++ < SHOWN)
        base_buffer_format(&s->odd, "%s%s of %s", s->odd.n ? ", " : "",
                           base_printable_text(name, sizeof name, group),
                           base_printable_text(path, sizeof path, s->files[file].path));
    else if (s->n_odd == SHOWN + 1)
        base_buffer_format(&s->odd, ", ...");
}

static enum status read_choice(struct doc_swept *s, struct base_field item,
                               struct doc_swept_group *g, uint64_t *sum, struct status_why *why)
{
    struct doc_swept_choice c = {1 + doc_count(item, "candidate"), base_field_text(item, "type"), 0,
                                 0, 0};
    bool paired = base_field_find(item, "excess_kld").json;
    c.nats = paired ? base_field_real_or_null(item, "excess_kld.mean")
                    : base_field_real_or_null(item, "kld.mean") - s->kld;
    c.error = paired           ? doc_error(item, "excess_kld.se")
              : s->around_base ? doc_error(item, "kld.se")
                               : (double)NAN;
    enum status status = read_size(&c.n_bytes, item, "bytes", sum, why);
    if (status)
        return status;
    if (c.file >= s->n_files)
        return fail_field(item, why, "is of a candidate that the document does not list");
    for (size_t i = 1; i < g->n_choices; i++)
        if (s->choices[g->first + i].file == c.file)
            return fail_field(item, why, "is the second one of its candidate in this group");
    if (is_odd(item)) {
        note_odd(s, g->name, c.file);
        return STATUS_OK;
    }
    if (!isfinite(c.nats)) {
        s->n_left_out++;
        return STATUS_OK;
    }
    if (fabs(c.nats) > 2 * most_nats)
        return fail_field(item, why, "has a divergence of more than a million nats");
    s->choices[g->first + g->n_choices++] = c;
    return STATUS_OK;
}

static enum status read_group(struct doc_swept *s, struct base_field item, uint64_t *sum,
                              struct base_strtab *names, struct status_why *why)
{
    struct doc_swept_group *g = &s->groups[item.index];
    struct doc_swept_choice own = {0, base_field_text(item, "around.type"), 0, 0, 0};
    struct base_field next = {0}, tensors = doc_list(&g->n_tensors, item, "tensors");
    size_t n;
    struct base_field list = doc_list(&n, item, "choices");
    g->name = base_field_text(item, "name");
    g->first = s->n_choices;
    g->n_choices = 1;
    g->tensors = s->tensors + s->n_tensors;
    enum status status = read_size(&own.n_bytes, item, "around.bytes", sum, why);
    s->choices[g->first] = own;
    if (!status && g->n_tensors == 0)
        status = fail_field(tensors, why, "is empty, expected the names of tensors");
    while (!status && base_field_next(tensors, &next)) {
        const char *name = cJSON_IsString(next.json) ? next.json->valuestring : "";
        int32_t number = 0;
        status = base_strtab_add(names, (struct base_string){name, strlen(name)}, &number, why);
        if (!status && (!*name || (size_t)number != s->n_tensors))
            status = fail_field(next, why, *name ? "is in two groups" : "is not a tensor's name");
        else if (!status)
            s->tensors[s->n_tensors++] = name;
    }
    next = (struct base_field){0};
    while (!status && base_field_next(list, &next))
        status = read_choice(s, next, g, sum, why);
    s->n_choices += g->n_choices;
    return status;
}

static enum status read_rest(struct doc_swept *s, uint64_t *sum, struct base_strtab *names,
                             struct status_why *why)
{
    struct base_field root = doc_root(&s->document), item = {0};
    struct base_field list = doc_list(&s->n_rest, root, "rest");
    enum status status = doc_status(&s->document, why);
    if (base_array_new(s->rest, s->n_rest + 1, "tensors", why))
        return STATUS_MEMORY;
    while (!status && base_field_next(list, &item)) {
        struct doc_swept_rest *r = &s->rest[item.index];
        r->name = base_field_text(item, "name");
        r->type = base_field_text(item, "type");
        int32_t number = 0;
        status = read_size(&r->n_bytes, item, "bytes", sum, why);
        if (!status)
            status = base_strtab_add(names, (struct base_string){r->name, strlen(r->name)}, &number,
                                     why);
        if (!status && (size_t)number != s->n_tensors + item.index)
            status = fail_field(item, why, "is a tensor that was there before");
    }
    return status;
}

/* How many values are in the lists `path` of all groups. */
static size_t count_all(struct base_field groups, const char *path)
{
    struct base_field item = {0};
    size_t n, sum = 0;
    while (base_field_next(groups, &item)) {
        doc_list(&n, item, path);
        sum += n;
    }
    return sum;
}

enum status doc_swept_take(struct doc_swept *s, struct status_why *why)
{
    struct base_field root = doc_root(&s->document), item = {0};
    struct base_strtab names = {0};
    uint64_t sum = 0;
    enum status status = read_files(s, why);
    if (!status)
        status = read_reference(s, why);
    if (status)
        return status;
    struct base_field groups = doc_list(&s->n_groups, root, "groups");
    size_t n_choices = count_all(groups, "choices") + s->n_groups;
    if (base_array_new(s->groups, s->n_groups, "groups", why) ||
        base_array_new(s->choices, n_choices, "choices", why) ||
        base_array_new(s->tensors, count_all(groups, "tensors"), "tensors", why))
        return STATUS_MEMORY;
    status = doc_status(&s->document, why);
    if (!status && s->n_groups == 0)
        status = status_fail(why, STATUS_FORMAT, "%s: has no groups: nothing was swept",
                             s->document.json.file);
    while (!status && base_field_next(groups, &item))
        status = read_group(s, item, &sum, &names, why);
    if (!status)
        status = read_rest(s, &sum, &names, why);
    base_strtab_free(&names);
    return status ? status : base_buffer_check(&s->odd, "a note", why);
}

enum status doc_swept_read(struct doc_swept *s, const char *path, char sha256[BASE_HEX],
                           struct status_why *why)
{
    enum status status = doc_read_as(&s->document, path, DOC_SWEEP_SCHEMA, sha256, why);
    return status ? status : doc_swept_take(s, why);
}

void doc_swept_free(struct doc_swept *s)
{
    free(s->files);
    free(s->groups);
    free(s->choices);
    free(s->rest);
    free(s->tensors);
    base_buffer_free(&s->odd);
    doc_free(&s->document);
    *s = (struct doc_swept){0};
}
