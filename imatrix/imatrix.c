#include "imatrix/imatrix.h"

#include <stdlib.h>

void imat_free(struct imat_matrix *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->entries[i].name);
        free(m->entries[i].sums);
        free(m->entries[i].rounded);
        free(m->entries[i].counts);
    }
    free(m->entries);
    for (size_t i = 0; i < m->n_datasets; i++)
        free(m->datasets[i]);
    for (size_t i = 0; m->texts && i < m->n_datasets; i++)
        free(m->texts[i]);
    free(m->datasets);
    free(m->texts);
    free(m->ranges);
    free(m->model);
    *m = (struct imat_matrix){0};
}
