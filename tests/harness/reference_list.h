/**
 * Files of the reference material that a test reads, by name: what else lies beside them is none
 * of its concern.
 */
#ifndef TESTS_HARNESS_REFERENCE_LIST_H
#define TESTS_HARNESS_REFERENCE_LIST_H

#include <stdbool.h>
#include <stdio.h>

enum { REFERENCE_PATH_BYTES = 512 };

struct reference_list {
    FILE *rows;
    char folder[64];                 /* "models-arch" */
    char path[REFERENCE_PATH_BYTES]; /* of the file that was reached */
    const char *name;                /* its last part */
    size_t n;                        /* that were reached */
};

/**
 * Begin with the files of a folder of the material, "models" or "reference/arch". False: it is
 * not there. The first column of tests/golden/bits.tsv names models;
 * tests/data/reference-results.txt names results.
 */
bool reference_list_open(struct reference_list *list, const char *folder);
/** The next one; false: that was the last, and the list is closed. Aborts where a file is absent.
 */
bool reference_list_next(struct reference_list *list);

#endif
