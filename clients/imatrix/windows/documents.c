#include "clients/imatrix/windows/documents.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

size_t imat_n_categories(const struct eval_documents *d)
{
    bool any_without = false;
    for (size_t i = 0; i < d->n; i++)
        any_without |= d->items[i].category == EVAL_NO_CATEGORY;
    return d->categories.n ? d->categories.n + any_without : 0;
}

size_t imat_category_of(const struct eval_documents *d, size_t document)
{
    int32_t category = d->items[document].category;
    return category == EVAL_NO_CATEGORY ? d->categories.n : (size_t)category;
}

enum status imat_name_categories(struct imat_matrix *m, const struct eval_documents *d,
                                 struct status_why *why)
{
    size_t n = imat_n_categories(d);
    enum status status = base_array_new(m->categories, n, "categories", why);
    for (size_t i = 0; i < n && !status; i++) {
        struct base_string name =
            i < d->categories.n ? d->categories.strings[i] : (struct base_string){"", 0};
        m->categories[m->n_categories] = strndup(name.data, name.n_bytes);
        if (!m->categories[m->n_categories++])
            status = status_fail(why, STATUS_MEMORY, "no memory for the name of a category");
    }
    return status;
}
