#include "tests/ptx/forms.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cpu/isa.h"

static const struct ptx_form control_rows[] = {
    {"bra", "l", NULL, PTX_BRANCH},
    {"bra.uni", "l", NULL, PTX_BRANCH},
    {"ret", "", NULL, PTX_RETURN},
    {"exit", "", NULL, PTX_RETURN},
    {"bar.sync", ">w", NULL, PTX_BARRIER},
    {"barrier.sync", ">w", NULL, PTX_BARRIER},
    {"bar.warp.sync", ">w", NULL, PTX_WARP_BARRIER},
    {"cp.async.commit_group", "", NULL, PTX_COPY_COMMIT},
    {"cp.async.wait_group", ">w", NULL, PTX_COPY_WAIT},
    {"cp.async.wait_all", "", NULL, PTX_COPY_WAIT},
};
static PTX_FORMS(control, control_rows);

enum { MAX_FORMS = 1024 };

static const struct ptx_form *sorted[MAX_FORMS];
static size_t n_sorted;

static int by_name(const void *a, const void *b)
{
    const struct ptx_form *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void sort_forms(void)
{
    bool avx2 = kern_isa_detect() > KERN_ISA_SCALAR;
    const struct ptx_forms *const lists[] = {
        &control,
        avx2 ? &ptx_integers_avx2 : &ptx_integers_base,
        avx2 ? &ptx_floats_avx2 : &ptx_floats_base,
        avx2 ? &ptx_conversions_avx2 : &ptx_conversions_base,
        avx2 ? &ptx_collectives_avx2 : &ptx_collectives_base,
    };
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        for (size_t k = 0; k < lists[i]->n; k++) {
            if (n_sorted == MAX_FORMS)
                abort();
            sorted[n_sorted++] = &lists[i]->rows[k];
        }
    }
    qsort(sorted, n_sorted, sizeof *sorted, by_name);
}

const struct ptx_form *ptx_form_find(const char *name)
{
    if (n_sorted == 0)
        sort_forms();
    const struct ptx_form key = {.name = name}, *wanted = &key;
    const struct ptx_form **found = bsearch(&wanted, sorted, n_sorted, sizeof *sorted, by_name);
    return found ? *found : NULL;
}
