/** A recipe's document, "assay.recipe/1": which file each tensor comes from. Taken as hostile. */
#ifndef CLI_RECIPE_RECIPE_DOCUMENT_H
#define CLI_RECIPE_RECIPE_DOCUMENT_H

#include "cli/recipe/swept.h"

/** Texts point into the document. */
struct cli_recipe_tensor {
    const char *name, *type; /* type NULL: the document has none */
    size_t file;             /* of the recipe's files */
};

/** Zero-initialise; release with cli_recipe_document_free. */
struct cli_recipe_document {
    struct cli_document document;
    struct cli_mixed_file *files; /* [n_files]: the base first */
    struct cli_recipe_tensor *tensors;
    size_t n_files, n_tensors;
};

/** Take over what an open document says. Fails: STATUS_FORMAT, STATUS_MEMORY. */
enum status cli_recipe_take(struct cli_recipe_document *r, struct status_why *why);
/** Read and take over; sha256 as cli_document_read_as. Fails: also as that. */
enum status cli_recipe_read(struct cli_recipe_document *r, const char *path, char sha256[BASE_HEX],
                            struct status_why *why);
void cli_recipe_document_free(struct cli_recipe_document *r);

#endif
