/** A recipe's document, "assay-recipe": which file each tensor comes from. Taken as hostile. */
#ifndef DOCUMENTS_RECIPE_RECIPE_DOCUMENT_H
#define DOCUMENTS_RECIPE_RECIPE_DOCUMENT_H

#include "clients/documents/recipe/swept.h"

/** Texts point into the document. */
struct doc_recipe_tensor {
    const char *name, *type; /* type NULL: the document has none */
    size_t file;             /* of the recipe's files */
};

/** Zero-initialise; release with doc_recipe_free. */
struct doc_recipe {
    struct doc_document document;
    struct doc_mixed_file *files; /* [n_files]: the base first */
    struct doc_recipe_tensor *tensors;
    size_t n_files, n_tensors;
};

/** Take over what an open document says. Fails: STATUS_FORMAT, STATUS_MEMORY. */
enum status doc_recipe_take(struct doc_recipe *r, struct status_why *why);
/** Read and take over; sha256 as doc_read_as. Fails: also as that. */
enum status doc_recipe_read(struct doc_recipe *r, const char *path, char sha256[BASE_HEX],
                            struct status_why *why);
void doc_recipe_free(struct doc_recipe *r);

#endif
