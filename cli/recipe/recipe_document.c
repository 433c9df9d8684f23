#include "cli/recipe/recipe_document.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/strtab.h"

static enum status read_files(struct cli_recipe_document *r, struct status_why *why)
{
    struct cli_field root = cli_document_root(&r->document), item = {0};
    struct cli_field list = cli_field_list(&r->n_files, &root, "files");
    enum status status = cli_document_status(&r->document, why);
    if (!status && (r->n_files == 0 || r->n_files > CLI_MAX_MIXED + 1))
        status = status_fail(why, STATUS_FORMAT, "%s: has %zu files, expected 1 to %d",
                             r->document.file, r->n_files, (int)CLI_MAX_MIXED + 1);
    if (status)
        return status;
    if (base_array_new(r->files, r->n_files, "files", why))
        return STATUS_MEMORY;
    for (size_t i = 0; cli_field_next(&list, &item); i++)
        r->files[i] = cli_mixed_file(&item, NULL);
    return cli_document_status(&r->document, why);
}

static enum status read_tensor(struct cli_recipe_document *r, const struct cli_field *item,
                               struct base_strtab *names, struct status_why *why)
{
    struct cli_field type;
    struct cli_recipe_tensor *t = &r->tensors[item->index];
    *t = (struct cli_recipe_tensor){.name = cli_field_text(item, "name"),
                                    .file = cli_field_count(item, "file")};
    if (cli_field_find(&type, item, "type"))
        t->type = cli_field_text(item, "type");
    enum status status = cli_document_status(&r->document, why);
    int32_t number = 0;
    if (!status)
        status =
            base_strtab_add(names, (struct base_string){t->name, strlen(t->name)}, &number, why);
    if (!status && ((size_t)number != item->index || !*t->name))
        return status_fail(why, STATUS_FORMAT, "%s: %s has the name of a tensor before it, or none",
                           r->document.file, item->name);
    if (!status && t->file >= r->n_files)
        return status_fail(why, STATUS_FORMAT, "%s: %s.file is %zu, expected 0 to %zu",
                           r->document.file, item->name, t->file, r->n_files - 1);
    return status;
}

enum status cli_recipe_take(struct cli_recipe_document *r, struct status_why *why)
{
    struct base_strtab names = {0};
    enum status status = read_files(r, why);
    if (status)
        return status;
    struct cli_field root = cli_document_root(&r->document), item = {0};
    struct cli_field list = cli_field_list(&r->n_tensors, &root, "tensors");
    status = cli_document_status(&r->document, why);
    if (!status)
        status = base_array_new(r->tensors, r->n_tensors + 1, "tensors", why);
    while (!status && cli_field_next(&list, &item))
        status = read_tensor(r, &item, &names, why);
    base_strtab_free(&names);
    return status;
}

enum status cli_recipe_read(struct cli_recipe_document *r, const char *path, char sha256[BASE_HEX],
                            struct status_why *why)
{
    enum status status = cli_document_read_as(&r->document, path, CLI_RECIPE_SCHEMA, sha256, why);
    return status ? status : cli_recipe_take(r, why);
}

void cli_recipe_document_free(struct cli_recipe_document *r)
{
    free(r->files);
    free(r->tensors);
    cli_document_free(&r->document);
    *r = (struct cli_recipe_document){0};
}
