/** A model's file that is made of tensors of several: what it holds, byte by byte. */
#ifndef DOCUMENTS_RECIPE_MIXTURE_H
#define DOCUMENTS_RECIPE_MIXTURE_H

#include "clients/documents/recipe/swept.h"
#include "gguf/layout.h"

/**
 * Zero-initialise, fill the first part, lay out; release with doc_mixture_free.
 * The metadata are those of files[0], the base, but for keys that would no longer be true.
 */
struct doc_mixture {
    const struct doc_mixed_file *names; /* [n_files] */
    struct gguf_file **files;           /* [n_files], opened; NULL: no tensor comes from it */
    size_t n_files;
    size_t *from; /* [n_tensors of the base]: the file that each comes from */

    /* By doc_mixture_lay_out. */

    const struct gguf_tensor **tensors; /* [n_tensors of the base] as their files have them */
    struct gguf_layout *layout;
    struct gguf_directory directory;
};

/** Allocate `from`: all tensors come from the base. Fails: STATUS_MEMORY. */
enum status doc_mixture_begin(struct doc_mixture *m, struct status_why *why);

/**
 * Check that the tensors have the same dimensions in all files that have them, and lay the file
 * out.   recipe_sha256: of the recipe, for the metadata. They have the same size whatever comes
 * from where (but for file types that have no number, which are left out).
 * Fails: STATUS_FORMAT (a tensor that is missing, or has other dimensions; another architecture;
 *        a tensor whose scales would be lost), STATUS_UNSUPPORTED, STATUS_MEMORY.
 */
enum status doc_mixture_lay_out(struct doc_mixture *m, const char *recipe_sha256,
                                struct status_why *why);
void doc_mixture_free(struct doc_mixture *m);

/**
 * Check that an open file is the one that a document names: its id, and its digest where that has
 * one. checked: whether there was anything to check. Fails: STATUS_FORMAT (the sentence has both),
 * STATUS_MEMORY.
 */
enum status doc_mixed_check(const struct gguf_file *file, const struct doc_mixed_file *named,
                            bool *checked, struct status_why *why);

#endif
