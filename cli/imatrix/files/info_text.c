#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"
#include "cli/imatrix/files/info.h"

enum { NAME_BYTES = 300, LISTED = 16 };

static void print_head(const struct cli_imatrix_info *info)
{
    char text[BASE_PATH_BYTES];
    const struct imat_matrix *m = &info->matrix;
    printf("%s: an importance matrix, %s\n", base_printable_text(text, sizeof text, info->path),
           !info->is_gguf   ? "in the older format: counts of rows are lost"
           : m->counts_lost ? "added up from files of the older format: counts of rows are lost"
           : m->exact       ? "with exact sums"
                            : "with sums rounded to floats");
    for (size_t i = 0; i < m->n_datasets; i++) {
        printf("dataset: %s", base_printable_text(text, sizeof text, m->datasets[i]));
        if (m->hashes)
            printf(", SHA-256 %s", base_printable_text(text, sizeof text, m->hashes[i]));
        putchar('\n');
    }
    for (size_t i = 0; i < m->n_ranges; i++)
        printf("windows: %" PRIu64 " to %" PRIu64 " of %s\n", m->ranges[i].begin,
               m->ranges[i].end - 1,
               base_printable_text(text, sizeof text, m->datasets[m->ranges[i].text]));
    printf("chunks: %" PRIu64, m->n_chunks);
    if (m->chunk_size > 1)
        printf(" of %" PRIu64 " tokens", m->chunk_size);
    printf("\nmatrices: %zu\n", m->n);
}

static void print_cosine(double cosine)
{
    if (isnan(cosine))
        printf(" %8s", "-");
    else
        printf(" %8.4f", cosine);
}

static void print_rows(const struct cli_imatrix_info *info)
{
    printf("\nmeans of squares; the cosine is with the same matrix one layer earlier\n"
           "%-36s %12s %11s %11s %11s %11s %9s %9s %9s %7s %7s %8s\n",
           "matrix", "total", "min", "max", "mean", "deviation", "active %", "n", "entropy",
           "norm %", "ZD %", "cosine");
    for (size_t i = 0; i < info->matrix.n; i++) {
        char name[NAME_BYTES];
        const struct cli_imatrix_row *r = &info->rows[i];
        const struct imat_statistics *s = &r->statistics;
        printf("%-36s %12.4f %11.4g %11.4g %11.4g %11.4g %9.2f %9" PRIu64 " %9.4f %7.2f %7.2f",
               base_printable_text(name, sizeof name, r->entry->name), s->total, s->min, s->max,
               s->mean, s->deviation, 100 * s->active, s->n, s->entropy, 100 * s->entropy_norm,
               100 * s->outlying);
        print_cosine(r->cosine);
        putchar('\n');
    }
    if (info->n_blocks)
        printf("\n%-6s %12s %7s %8s   means over its matrices, weighted by n\n", "layer", "total",
               "ZD %", "cosine");
    for (size_t i = 0; i < info->n_blocks; i++) {
        const struct cli_imatrix_block *b = &info->blocks[i];
        printf("%-6" PRId64 " %12.4f %7.2f", b->block, b->total, 100 * b->outlying);
        print_cosine(b->cosine);
        putchar('\n');
    }
}

/* A list of the matrices without rows, or of the others that have few. */
static uint64_t print_list(const struct imat_entry *e, bool none)
{
    uint64_t n = 0;
    for (uint64_t k = 0; k < e->n_matrices; k++) {
        if (!imat_is_rare(e, k) || (e->counts[k] == 0) != none)
            continue;
        if (n < LISTED)
            printf("%s%" PRIu64, n ? ", " : none ? " no rows: " : " few rows: ", k);
        if (n < LISTED && !none)
            printf(" (%" PRIu64 ")", e->counts[k]);
        n++;
    }
    if (n > LISTED)
        printf(", and %" PRIu64 " more", n - LISTED);
    return n;
}

static void print_use(const struct cli_imatrix_info *info)
{
    if (info->n_experts)
        printf("\nuse of experts: rows of each, and the entropy of their shares; so many experts "
               "that are used alike have the same\n"
               "%-6s %8s %13s %11s %11s %9s %6s %6s %9s %7s %8s\n",
               "layer", "experts", "rows", "least", "most", "most/even", "none", "few", "entropy",
               "norm %", "so many");
    for (size_t i = 0; i < info->n_experts; i++) {
        const struct cli_imatrix_experts *x = &info->experts[i];
        const struct imat_use *use = &x->use;
        printf("%-6" PRId64 " %8" PRIu64 " %13.0f %11" PRIu64 " %11" PRIu64 " %9.2f %6" PRIu64
               " %6" PRIu64 " %9.4f %7.2f %8.1f\n",
               x->block, x->entry->n_matrices, use->n_rows, use->least, use->most,
               use->n_rows > 0 ? (double)use->most / imat_even_share(x->entry) : 0, use->n_none,
               use->n_few, use->entropy, 100 * use->entropy_norm, exp2(use->entropy));
    }
}

/** A category over all blocks: rows and experts without any, means of entropy and difference. */
static void print_category(const struct cli_imatrix_info *info, size_t category)
{
    char name[NAME_BYTES];
    double rows = 0, norm = 0, differs = 0, n = 0;
    uint64_t n_none = 0;
    for (size_t i = 0; i < info->n_experts; i++) {
        const struct imat_entry *e = info->experts[i].entry, of = imat_of_category(e, category);
        const struct imat_use use = imat_use_of(&of);
        rows += use.n_rows;
        n_none += use.n_none;
        norm += use.entropy_norm;
        differs += imat_use_differs(&of, e);
        n += use.n_rows > 0;
    }
    const char *text = info->matrix.categories[category];
    printf("%-28s %13.0f %6" PRIu64 " %7.2f %9.2f\n",
           *text ? base_printable_text(name, sizeof name, text) : "(no category)", rows, n_none,
           n > 0 ? 100 * norm / n : 0, n > 0 ? 100 * differs / n : 0);
}

static void print_categories(const struct cli_imatrix_info *info)
{
    if (!info->n_experts || !info->matrix.n_categories)
        return;
    printf("\nuse of experts by category, over all layers; what differs is the share of its rows "
           "that other experts have than of all rows\n"
           "%-28s %13s %6s %7s %9s\n",
           "category", "rows", "none", "norm %", "differs %");
    for (size_t i = 0; i < info->matrix.n_categories; i++)
        print_category(info, i);
}

/* Experts that were hardly used: of matrices of a block with the same counts, the first. */
static void print_experts(const struct imat_matrix *m)
{
    size_t n_stacks = 0, n_told = 0;
    for (size_t i = 0; i < m->n; i++) {
        const struct imat_entry *e = &m->entries[i];
        char name[NAME_BYTES];
        bool rare = false;
        n_stacks += e->n_matrices > 1;
        for (uint64_t k = 0; k < e->n_matrices && e->n_matrices > 1; k++)
            rare |= imat_is_rare(e, k);
        if (!rare || imat_repeats(m, i))
            continue;
        if (!n_told++)
            printf("\nexperts with few rows (less than 1 %% of an even share) or none\n");
        printf("%s, even share %.1f;", base_printable_text(name, sizeof name, e->name),
               imat_even_share(e));
        if (print_list(e, true))
            putchar(';');
        print_list(e, false);
        putchar('\n');
    }
    if (n_stacks && !n_told)
        printf("\nall experts have at least 1 %% of an even share of rows\n");
}

void cli_imatrix_print(const struct cli_imatrix_info *info)
{
    print_head(info);
    print_rows(info);
    if (info->matrix.counts_lost)
        return;
    print_use(info);
    print_categories(info);
    print_experts(&info->matrix);
}
