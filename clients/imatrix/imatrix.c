#include "clients/imatrix/imatrix.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "clients/imatrix/sum.h"

void imat_free(struct imat_matrix *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->entries[i].name);
        free(m->entries[i].sums);
        free(m->entries[i].rounded);
        free(m->entries[i].counts);
        free(m->entries[i].use);
    }
    free(m->entries);
    for (size_t i = 0; i < m->n_datasets; i++)
        free(m->datasets[i]);
    for (size_t i = 0; m->texts && i < m->n_datasets; i++)
        free(m->texts[i]);
    for (size_t i = 0; m->hashes && i < m->n_datasets; i++)
        free(m->hashes[i]);
    for (size_t i = 0; i < m->n_categories; i++)
        free(m->categories[i]);
    free(m->datasets);
    free(m->texts);
    free(m->hashes);
    free(m->categories);
    free(m->ranges);
    free(m->model);
    *m = (struct imat_matrix){0};
}

enum status imat_round(struct imat_matrix *m, struct status_why *why)
{
    for (size_t i = 0; i < m->n; i++) {
        struct imat_entry *e = &m->entries[i];
        size_t n = (size_t)(e->n_columns * e->n_matrices);
        if (base_array_new(e->rounded, n, "sums", why))
            return STATUS_MEMORY;
        for (size_t k = 0; k < n; k++)
            e->rounded[k] = imat_sum_float(e->sums[k]);
        free(e->sums);
        e->sums = NULL;
    }
    m->exact = false;
    return STATUS_OK;
}

static int by_name(const void *a, const void *b)
{
    const struct imat_entry *left = a, *right = b;
    return strcmp(left->name, right->name);
}

enum status imat_sort(struct imat_matrix *m, struct status_why *why)
{
    if (m->n)
        qsort(m->entries, m->n, sizeof *m->entries, by_name);
    for (size_t i = 1; i < m->n; i++)
        if (strcmp(m->entries[i - 1].name, m->entries[i].name) == 0) {
            struct base_quoted name;
            struct base_string text = {m->entries[i].name, strlen(m->entries[i].name)};
            return status_fail(why, STATUS_FORMAT, "matrix %s occurs twice, expected it once",
                               base_quote(&name, text));
        }
    return STATUS_OK;
}
