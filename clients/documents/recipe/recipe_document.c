#include "clients/documents/recipe/recipe_document.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/strtab.h"
#include "clients/documents/schema.h"

static enum status read_files(struct doc_recipe *r, struct status_why *why)
{
    struct base_field root = doc_root(&r->document), item = {0};
    struct base_field list = doc_list(&r->n_files, root, "files");
    enum status status = doc_status(&r->document, why);
    if (!status && (r->n_files == 0 || r->n_files > DOC_MAX_MIXED + 1))
        status = status_fail(why, STATUS_FORMAT, "%s: has %zu files, expected 1 to %d",
                             r->document.json.file, r->n_files, (int)DOC_MAX_MIXED + 1);
    if (status)
        return status;
    if (base_array_new(r->files, r->n_files, "files", why))
        return STATUS_MEMORY;
    for (size_t i = 0; base_field_next(list, &item); i++)
        r->files[i] = doc_mixed_file(item, NULL);
    return doc_status(&r->document, why);
}

static enum status read_tensor(struct doc_recipe *r, struct base_field item,
                               struct base_strtab *names, struct status_why *why)
{
    struct doc_recipe_tensor *t = &r->tensors[item.index];
    *t = (struct doc_recipe_tensor){.name = base_field_text(item, "name"),
                                    .file = doc_count(item, "file"),
                                    .type = base_field_text_or(item, "type", NULL)};
    enum status status = doc_status(&r->document, why);
    int32_t number = 0;
    if (!status)
        status =
            base_strtab_add(names, (struct base_string){t->name, strlen(t->name)}, &number, why);
    if (!status && ((size_t)number != item.index || !*t->name))
        base_field_fail(item, STATUS_FORMAT, "has the name of a tensor before it, or none");
    if (!status && t->file >= r->n_files)
        base_field_fail_member(item, "file", STATUS_FORMAT, "is %zu, expected 0 to %zu", t->file,
                               r->n_files - 1);
    return status ? status : doc_status(&r->document, why);
}

enum status doc_recipe_take(struct doc_recipe *r, struct status_why *why)
{
    struct base_strtab names = {0};
    enum status status = read_files(r, why);
    if (status)
        return status;
    struct base_field root = doc_root(&r->document), item = {0};
    struct base_field list = doc_list(&r->n_tensors, root, "tensors");
    status = doc_status(&r->document, why);
    if (!status)
        status = base_array_new(r->tensors, r->n_tensors + 1, "tensors", why);
    while (!status && base_field_next(list, &item))
        status = read_tensor(r, item, &names, why);
    base_strtab_free(&names);
    return status;
}

enum status doc_recipe_read(struct doc_recipe *r, const char *path, char sha256[BASE_HEX],
                            struct status_why *why)
{
    enum status status = doc_read_as(&r->document, path, DOC_RECIPE_SCHEMA, sha256, why);
    return status ? status : doc_recipe_take(r, why);
}

void doc_recipe_free(struct doc_recipe *r)
{
    free(r->files);
    free(r->tensors);
    doc_free(&r->document);
    *r = (struct doc_recipe){0};
}
