/* assay compare of two importance matrices. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "cli/imatrix/files/files.h"
#include "cli/session/outputs.h"
#include "clients/documents/schema.h"
#include "clients/imatrix/compare.h"
#include "clients/imatrix/file/read.h"

enum { SHOWN = 20, PLACE_BYTES = 96, NAME_BYTES = 300 };

static const char *name_of(char out[NAME_BYTES], const struct imat_difference *d)
{
    return base_printable_text(out, NAME_BYTES, d->a->name);
}

/* Where the largest ratio is. */
static const char *place_of(char out[PLACE_BYTES], const struct imat_difference *d)
{
    if (d->a->n_matrices > 1)
        snprintf(out, PLACE_BYTES, "matrix %" PRIu64 ", column %" PRIu64, d->at_matrix,
                 d->at_column);
    else
        snprintf(out, PLACE_BYTES, "column %" PRIu64, d->at_column);
    return out;
}

static void print_answer(const struct imat_comparison *c)
{
    char name[NAME_BYTES], place[PLACE_BYTES];
    const struct imat_difference *w = c->worst;
    const char *as = c->as_floats ? " as floats, which is all that one of them has" : "";
    if (!c->n)
        printf("A and B have no matrix in common.\n");
    else if (c->same)
        printf("A and B have the same bits of sums and the same counts%s.\n", as);
    else if (!w)
        printf("A and B have the same bits of sums and the same counts%s in the %zu matrices that "
               "both have.\n",
               as, c->n);
    else if (isnan(w->cosine))
        printf("A and B differ most in %s, where one of them has only zeros.\n", name_of(name, w));
    else if (w->ratio == 1)
        printf("A and B have the same means, and counts or sums that differ, such as in %s.\n",
               name_of(name, w));
    else
        printf("A and B differ most in %s: the cosine of its means is %.9f, the largest ratio of "
               "two %.9g (%s).\n",
               name_of(name, w), w->cosine, w->ratio, place_of(place, w));
    for (size_t side = 0; side < 2; side++)
        if (c->n_only[side])
            printf("%zu matri%s in %c only.\n", c->n_only[side],
                   c->n_only[side] == 1 ? "x is" : "ces are", side ? 'B' : 'A');
}

static void print_side(const struct imat_matrix *m, const char *path, char letter)
{
    char shown[BASE_PATH_BYTES];
    printf("%c: %s (%zu matrices, %" PRIu64 " chunks%s%s)\n", letter,
           base_printable_text(shown, sizeof shown, path), m->n, m->n_chunks,
           m->exact ? ", exact sums" : "", m->counts_lost ? ", no counts of rows" : "");
}

static int by_distance(const void *a, const void *b)
{
    const struct imat_difference *x = *(const struct imat_difference *const *)a,
                                 *y = *(const struct imat_difference *const *)b;
    if (imat_is_worse(x, y))
        return -1;
    return imat_is_worse(y, x) ? 1 : x < y ? -1 : x > y;
}

static enum status print_table(const struct imat_comparison *c, struct status_why *why)
{
    const struct imat_difference **order = NULL;
    size_t n = 0;
    if (base_array_new(order, c->n, "matrices", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < c->n; i++)
        if (!c->items[i].same)
            order[n++] = &c->items[i];
    if (n) {
        qsort(order, n, sizeof *order, by_distance);
        printf("\n%-36s %12s %12s %13s %13s  %s\n", "matrix", "cosine", "ratio", "rows of A",
               "rows of B", "experts: other counts, only A, only B");
    }
    for (size_t i = 0; i < n && i < SHOWN; i++) {
        const struct imat_difference *d = order[i];
        char name[NAME_BYTES];
        printf("%-36s %12.9f %12.9g %13.0f %13.0f", name_of(name, d), base_unsigned_nan(d->cosine),
               d->ratio, d->rows[0], d->rows[1]);
        if (d->a->n_matrices > 1)
            printf("  %" PRIu64 ", %" PRIu64 ", %" PRIu64, d->n_counts, d->n_only[0], d->n_only[1]);
        putchar('\n');
    }
    if (n > SHOWN)
        printf("%zu more differ; --json lists all\n", n - SHOWN);
    free(order);
    return STATUS_OK;
}

static void add_side(struct base_json *json, const char *key, const struct imat_matrix *m,
                     const char *path)
{
    cJSON *side = base_json_object(json, json->root, key);
    base_json_text(json, side, "file", path);
    base_json_uint(json, side, "n_matrices", m->n);
    base_json_uint(json, side, "n_chunks", m->n_chunks);
    base_json_flag(json, side, "exact", m->exact);
    base_json_flag(json, side, "counts_lost", m->counts_lost);
}

/* Matrices of a stack that have rows on one side only: 0 for A. */
static void add_only(struct base_json *json, cJSON *item, const char *key,
                     const struct imat_difference *d, int side)
{
    cJSON *list = base_json_list(json, item, key);
    const struct imat_entry *has = side ? d->b : d->a, *lacks = side ? d->a : d->b;
    for (uint64_t k = 0; k < has->n_matrices; k++)
        if (has->counts[k] && !lacks->counts[k])
            base_json_uint(json, list, NULL, k);
}

static void add_item(struct base_json *json, cJSON *list, const struct imat_difference *d)
{
    cJSON *item = base_json_object(json, list, NULL);
    base_json_text(json, item, "name", d->a->name);
    base_json_flag(json, item, "same", d->same);
    base_json_real(json, item, "cosine", d->cosine);
    base_json_real(json, item, "ratio", d->ratio);
    base_json_uint(json, item, "ratio_matrix", d->at_matrix);
    base_json_uint(json, item, "ratio_column", d->at_column);
    base_json_real(json, item, "rows_a", d->rows[0]);
    base_json_real(json, item, "rows_b", d->rows[1]);
    base_json_uint(json, item, "n_other_counts", d->n_counts);
    add_only(json, item, "only_a", d, 0);
    add_only(json, item, "only_b", d, 1);
}

static enum status write_json(const struct imat_comparison *c, const char *const paths[2],
                              struct base_file *file, struct status_why *why)
{
    struct base_json json;
    doc_json_begin(&json, DOC_IMATRIX_COMPARE_SCHEMA);
    add_side(&json, "a", &c->sides[0], paths[0]);
    add_side(&json, "b", &c->sides[1], paths[1]);
    base_json_flag(&json, json.root, "same", c->same);
    base_json_flag(&json, json.root, "as_floats", c->as_floats);
    base_json_uint(&json, json.root, "n_only_a", c->n_only[0]);
    base_json_uint(&json, json.root, "n_only_b", c->n_only[1]);
    base_json_text(&json, json.root, "worst", c->worst ? c->worst->a->name : NULL);
    cJSON *list = base_json_list(&json, json.root, "matrices");
    for (size_t i = 0; i < c->n; i++)
        add_item(&json, list, &c->items[i]);
    return doc_json_end(&json, file, why);
}

enum status cli_imatrix_compare(const char *const paths[2], const char *json_file, bool force,
                                struct status_why *why)
{
    struct imat_comparison c = {0};
    struct base_file *file = NULL;
    enum status status = imat_read(&c.sides[0], paths[0], why);
    if (!status)
        status = imat_read(&c.sides[1], paths[1], why);
    if (!status)
        status = imat_compare(&c, why);
    if (!status)
        status =
            cli_output_create(&file, json_file, force ? NULL : DOC_IMATRIX_COMPARE_SCHEMA, why);
    if (!status) {
        print_answer(&c);
        print_side(&c.sides[0], paths[0], 'A');
        print_side(&c.sides[1], paths[1], 'B');
        status = print_table(&c, why);
    }
    if (file)
        status = cli_output_commit(&file, status ? status : write_json(&c, paths, file, why), why);
    imat_comparison_free(&c);
    return status;
}
