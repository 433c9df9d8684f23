/** A model's file that is made of tensors of several: what it holds, byte by byte. */
#ifndef CLI_RECIPE_MIXTURE_H
#define CLI_RECIPE_MIXTURE_H

#include "cli/recipe/swept.h"
#include "gguf/layout.h"

/**
 * Zero-initialise, fill the first part, lay out; release with cli_mixture_free.
 * The metadata are those of files[0], the base, but for keys that would no longer be true.
 */
struct cli_mixture {
    const struct cli_mixed_file *names; /* [n_files] */
    struct gguf_file **files;           /* [n_files], opened; NULL: no tensor comes from it */
    size_t n_files;
    size_t *from; /* [n_tensors of the base]: the file that each comes from */

    /* By cli_mixture_lay_out. */

    const struct gguf_tensor **tensors; /* [n_tensors of the base] as their files have them */
    struct gguf_layout *layout;
    struct gguf_directory directory;
};

/** Allocate `from`: all tensors come from the base. Fails: STATUS_MEMORY. */
enum status cli_mixture_begin(struct cli_mixture *m, struct status_why *why);

/**
 * Check that the tensors have the same dimensions in all files that have them, and lay the file
 * out.   recipe_sha256: of the recipe, for the metadata. They have the same size whatever comes
 * from where (but for file types that have no number, which are left out).
 * Fails: STATUS_FORMAT (a tensor that is missing, or has other dimensions; another architecture;
 *        a tensor whose scales would be left behind), STATUS_UNSUPPORTED, STATUS_MEMORY.
 */
enum status cli_mixture_lay_out(struct cli_mixture *m, const char *recipe_sha256,
                                struct status_why *why);
void cli_mixture_free(struct cli_mixture *m);

/**
 * That an open file is the one that a document names: its id, and its digest where that has one.
 * checked: whether there was anything to check.
 * Fails: STATUS_FORMAT (the sentence has both), STATUS_MEMORY.
 */
enum status cli_mixed_check(const struct gguf_file *file, const struct cli_mixed_file *named,
                            bool *checked, struct status_why *why);

#endif
