/** What assay info tells of an importance matrix, gathered once and printed as text or JSON. */
#ifndef CLI_IMATRIX_FILES_INFO_H
#define CLI_IMATRIX_FILES_INFO_H

#include "clients/imatrix/statistics.h"

/** An entry of the matrix. */
struct cli_imatrix_row {
    const struct imat_entry *entry;
    const char *rest; /* the name without "blk.N." */
    int64_t block;    /* -1: none */
    struct imat_statistics statistics;
    double cosine, cosine_sums; /* with the same matrix one block earlier; NaN: none */
};

/** Means over the matrices of a block, weighted by how many a_j they have. */
struct cli_imatrix_block {
    int64_t block;
    double n, total, outlying;
    double n_cosine, cosine; /* over those that have one */
};

/** How rows fell on a mixture's experts. Of matrices with the same counts it is the first. */
struct cli_imatrix_experts {
    const struct imat_entry *entry;
    int64_t block; /* -1: none */
    struct imat_use use;
};

struct cli_imatrix_info {
    const char *path;
    bool is_gguf;
    struct imat_matrix matrix;
    struct cli_imatrix_row *rows; /* [matrix.n], by the rest of the name, then total, descending */
    struct cli_imatrix_block *blocks; /* ascending */
    size_t n_blocks;
    struct cli_imatrix_experts *experts; /* by block, then name; none where counts are lost */
    size_t n_experts;
};

void cli_imatrix_print(const struct cli_imatrix_info *info);
/** To standard output. Fails: STATUS_MEMORY, STATUS_IO. */
enum status cli_imatrix_write_json(const struct cli_imatrix_info *info, struct status_why *why);

#endif
