#include "clients/imatrix/collect.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/imatrix/collector.h"
#include "clients/imatrix/statistics.h"

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct imat_entry *)a)->name, ((const struct imat_entry *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
    const struct imat_place *p = a, *q = b;
    if (p->data != q->data)
        return (uintptr_t)p->data < (uintptr_t)q->data ? -1 : 1;
    if (p->rows != q->rows)
        return (uintptr_t)p->rows < (uintptr_t)q->rows ? -1 : 1;
    return 0;
}

static bool counts(const struct gguf_tensor *t, bool outputs)
{
    return strncmp(t->name, "blk.", 4) == 0 || (outputs && strcmp(t->name, "output.weight") == 0);
}

static size_t n_matrices(const struct gguf_tensor *t)
{
    return (size_t)(t->ne[2] * t->ne[3]);
}

/** Entries without sums, of all tensors that can count. */
static enum status list_entries(struct imat_collector *c, bool outputs, struct status_why *why)
{
    size_t n_tensors = gguf_n_tensors(c->file);
    enum status status = base_array_new(c->entries, n_tensors + 1, "matrices", why);
    for (size_t i = 0; i < n_tensors && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_at(c->file, i);
        if (!counts(t, outputs))
            continue;
        struct imat_entry *entry = &c->entries[c->n++];
        *entry = (struct imat_entry){
            .name = strdup(t->name), .n_columns = t->ne[0], .n_matrices = n_matrices(t)};
        c->n_places += n_matrices(t);
        if (!entry->name)
            status = status_fail(why, STATUS_MEMORY, "no memory for the names of matrices");
        else
            status = base_array_new(entry->counts, n_matrices(t), "matrices", why);
    }
    if (!status)
        qsort(c->entries, c->n, sizeof *c->entries, compare_entries);
    return status;
}

static enum status list_places(struct imat_collector *c, struct status_why *why)
{
    enum status status = base_array_new(c->places, c->n_places + 1, "matrices", why);
    struct imat_place *place = c->places;
    for (size_t i = 0; i < c->n && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_find(c->file, c->entries[i].name);
        for (size_t m = 0; m < n_matrices(t); m++)
            *place++ = (struct imat_place){.data = gguf_tensor_matrix(t, m),
                                           .rows = t->view ? t->view->rows : NULL,
                                           .entry = (uint32_t)i,
                                           .matrix = (uint32_t)m};
    }
    if (!status)
        qsort(c->places, c->n_places, sizeof *c->places, compare_places);
    return status;
}

enum status imat_collector_open(struct imat_collector **out, const struct gguf_file *file,
                                bool outputs, struct status_why *why)
{
    struct imat_collector *c = *out = calloc(1, sizeof *c);
    if (!c)
        return status_fail(why, STATUS_MEMORY, "no memory to collect with");
    c->file = file;
    pthread_mutex_init(&c->lock, NULL);
    enum status status = list_entries(c, outputs, why);
    if (!status)
        status = list_places(c, why);
    if (status) {
        imat_collector_close(c);
        *out = NULL;
    }
    return status;
}

/** What tells a matrix of a stack from the others, in a sentence. */
static const char *which(char out[48], const struct imat_entry *entry, size_t matrix)
{
    *out = '\0';
    if (entry->n_matrices > 1)
        snprintf(out, 48, ", matrix %zu of %" PRIu64, matrix, entry->n_matrices);
    return out;
}

/** row: of the batch at work. */
static enum status fail(const struct imat_hook *hook, const struct imat_place *at, size_t column,
                        uint64_t row, const char *what, struct status_why *why)
{
    struct imat_collector *c = hook->collector;
    const struct imat_entry *entry = &c->entries[at->entry];
    char matrix[48];
    pthread_mutex_lock(&c->lock);
    row += entry->counts[at->matrix];
    pthread_mutex_unlock(&c->lock);
    return status_fail(why, STATUS_NONFINITE,
                       "%s: %s%s: column %zu of its input, at row %" PRIu64
                       " of those that it was multiplied with, %s",
                       gguf_path(c->file), entry->name, which(matrix, entry, at->matrix), column,
                       row, what);
}

/** The sums of a tile that only the definition can add. */
static enum status add_plainly(const struct imat_hook *hook, const struct imat_place *at,
                               struct status_why *why)
{
    const struct imat_batch_sums *part = &hook->parts[at->entry];
    size_t n = (size_t)hook->collector->entries[at->entry].n_columns;
    struct imat_sum *sums = part->sums + at->matrix * n;
    for (size_t row = 0; row < hook->n_counted; row++)
        for (size_t i = 0; i < n; i++)
            if (!imat_squares_add(&sums[i], hook->x[row * n + i]))
                return fail(hook, at, i, part->counts[at->matrix] + row,
                            "is not finite, or the sum of its squares is 2^63 or more: there is no "
                            "importance matrix of such numbers",
                            why);
    return STATUS_OK;
}

/** An input of a product in backend memory, and which of its rows count. */
struct input {
    const float *x;
    size_t n_rows, n_columns;
    bool all;             /* count; else by */
    const uint8_t *marks; /* as struct kern_linear has them */
    const uint32_t *mark_rows;
};

/** 0: the row does not count. */
static uint8_t mark_of(const struct input *in, size_t row)
{
    return in->marks[in->mark_rows ? in->mark_rows[row] : row];
}

/** Count the rows of a matrix by category; those of a category lie n apart. */
static void tell_apart(uint64_t *use, size_t n, const struct input *in)
{
    for (size_t row = 0; row < in->n_rows; row++)
        if (mark_of(in, row))
            use[(mark_of(in, row) - 1U) * n]++;
}

static enum status add(struct imat_hook *hook, const struct imat_place *at, const struct input *in,
                       struct status_why *why)
{
    const struct imat_entry *entry = &hook->collector->entries[at->entry];
    struct imat_batch_sums *part = &hook->parts[at->entry];
    size_t n = (size_t)entry->n_columns;
    enum status status = STATUS_OK;
    if (!part->counts)
        status = base_array_new(part->counts, (size_t)entry->n_matrices, "matrices", why);
    if (!status && !part->sums)
        status = base_array_new(part->sums, n * (size_t)entry->n_matrices, "sums", why);
    size_t n_categories = imat_n_told_apart(hook->collector, at->entry);
    if (!status && n_categories && !part->use)
        status = base_array_new(part->use, n_categories * (size_t)entry->n_matrices, "rows", why);
    if (status)
        return status;
    if (n_categories)
        tell_apart(part->use + at->matrix, (size_t)entry->n_matrices, in);
    if (hook->plain) {
        status = add_plainly(hook, at, why);
    } else {
        size_t column = imat_squares_give(&hook->squares, part->sums + at->matrix * n);
        if (column < n)
            status = fail(hook, at, column, part->counts[at->matrix] + hook->n_counted - 1,
                          "has a sum of squares of 2^63 or more", why);
    }
    part->counts[at->matrix] += hook->n_counted;
    return status;
}

/** Leave rows of hook->x out that do not count. */
static enum status leave_out(struct imat_hook *hook, const struct input *in, struct status_why *why)
{
    size_t n = 0, width = in->n_columns;
    for (size_t row = 0; row < in->n_rows; row++)
        n += mark_of(in, row) != 0;
    hook->n_counted = n;
    if (n == in->n_rows)
        return STATUS_OK;
    if (base_array_reserve(hook->host, hook->capacity, in->n_rows * width, "inputs", why))
        return STATUS_MEMORY;
    float *to = hook->host;
    for (size_t row = 0; row < in->n_rows; row++)
        if (mark_of(in, row)) {
            memmove(to, hook->x + row * width, width * sizeof *to);
            to += width;
        }
    hook->x = hook->host;
    return STATUS_OK;
}

/** Let hook->x be the rows that count, on the host. */
static enum status see(struct imat_hook *hook, const struct input *in, struct status_why *why)
{
    size_t n = in->n_rows * in->n_columns;
    enum status status = STATUS_OK;
    hook->x = in->x;
    hook->n_counted = in->n_rows;
    if (kern_describe(hook->observer.backend).own_memory) {
        status = base_array_reserve(hook->host, hook->capacity, n, "inputs", why);
        hook->x = hook->host;
        if (!status)
            status =
                kern_download(hook->observer.backend, hook->host, in->x, n * sizeof *in->x, why);
    }
    return status || in->all ? status : leave_out(hook, in, why);
}

/** The sums of squares of an input, in the place of the last one's. */
static enum status square(struct imat_hook *hook, const struct input *in, struct status_why *why)
{
    struct imat_squares last = hook->squares;
    hook->squares = hook->before;
    hook->before = last;
    enum status status = see(hook, in, why);
    return status ? status
                  : imat_squares_make(&hook->squares, hook->x, hook->n_counted, in->n_columns,
                                      &hook->plain, why);
}

/** A product is to be computed. again: with the input of the product before it. */
static enum status show(struct imat_hook *hook, const struct kern_weight *weight, struct input *in,
                        bool again, struct status_why *why)
{
    const struct imat_collector *c = hook->collector;
    const struct imat_place key = {.data = weight->data, .rows = weight->rows};
    const struct imat_place *at =
        bsearch(&key, c->places, c->n_places, sizeof *c->places, compare_places);
    again = again && hook->n_rows == in->n_rows;
    if (!at || in->n_columns != c->entries[at->entry].n_columns || !atomic_load(&c->begun)) {
        hook->n_rows = again && !at ? in->n_rows : 0;
        return STATUS_OK;
    }
    in->all |= c->experts_whole && imat_is_experts(&c->entries[at->entry]);
    bool repeats =
        hook->at == at && hook->n_rows == in->n_rows && hook->input == in->x && !hook->plain;
    enum status status = again ? STATUS_OK : square(hook, in, why);
    repeats = repeats && !status &&
              (again || (!hook->plain && imat_squares_equal(&hook->squares, &hook->before)));
    hook->at = at;
    hook->input = in->x;
    hook->n_rows = status ? 0 : in->n_rows;
    return status || repeats || !hook->n_counted ? status : add(hook, at, in, why);
}

static enum status show_product(struct imat_hook *hook, const struct kern_linear *op,
                                struct status_why *why)
{
    struct input in = {op->x,     op->n_tokens, op->weight->n_cols, !hook->collector->masked,
                       op->marks, op->mark_rows};
    if (op->marks)
        return show(hook, op->weight, &in, op->same_x, why);
    hook->n_rows = 0; /* rows of no token */
    return STATUS_OK;
}

static enum status linear(struct kern_backend *b, const struct kern_linear *op,
                          struct status_why *why)
{
    struct imat_hook *hook = kern_owner_of(b);
    enum status status = show_product(hook, op, why);
    return status ? status : hook->observer.inner->linear(b, op, why);
}

static enum status score(struct kern_backend *b, const struct kern_score *op,
                         struct status_why *why)
{
    struct imat_hook *hook = kern_owner_of(b);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < op->n_heads && !status; i++) {
        const struct kern_weight *matrix = op->heads[i].matrix;
        /* No row enters it that does not count: imatrix/windows/units.h. */
        struct input in = {.x = op->heads[i].hidden, .n_rows = op->n_rows, .all = true};
        in.n_columns = matrix ? matrix->n_cols : 0;
        if (matrix)
            status = show(hook, matrix, &in, false, why);
    }
    return status ? status : hook->observer.inner->score(b, op, why);
}

enum status imat_collector_count(struct kern_backend *b, const struct kern_weight *weight,
                                 const float *x, size_t n_rows, const uint8_t *marks,
                                 struct status_why *why)
{
    const struct kern_linear op = {.weight = weight, .x = x, .n_tokens = n_rows, .marks = marks};
    return show_product(kern_owner_of(b), &op, why);
}

enum status imat_collector_attach(struct imat_collector *c, struct kern_backend *const *backends,
                                  size_t n_backends, struct status_why *why)
{
    enum status status = base_array_new(c->hooks, n_backends, "devices", why);
    for (size_t i = 0; i < n_backends && !status; i++) {
        struct imat_hook *hook = &c->hooks[c->n_hooks++];
        hook->collector = c;
        kern_observe(&hook->observer, backends[i], hook);
        hook->observer.ops.linear = linear;
        hook->observer.ops.score = score;
        status = base_array_new(hook->parts, c->n + 1, "sums", why);
        if (!status && kern_describe(backends[i]).own_memory)
            status = base_pool_open(&hook->pool, 0, why);
        struct base_pool *lent = kern_describe(backends[i]).pool;
        hook->squares.pool = hook->before.pool = hook->pool ? hook->pool : lent;
    }
    return status;
}

void imat_collector_mask(struct imat_collector *c)
{
    c->masked = true;
}

void imat_collector_mask_dense(struct imat_collector *c)
{
    c->masked = c->experts_whole = true;
}

size_t imat_collector_categorise(struct imat_collector *c, size_t n)
{
    for (size_t i = 0; i < c->n; i++)
        if (imat_is_experts(&c->entries[i]))
            c->n_categories = n;
    return c->n_categories;
}

size_t imat_n_told_apart(const struct imat_collector *c, uint32_t entry)
{
    return imat_is_experts(&c->entries[entry]) ? c->n_categories : 0;
}

void imat_collector_begin(struct imat_collector *c)
{
    atomic_store(&c->begun, true);
}

static void detach(struct imat_collector *c)
{
    for (size_t i = 0; i < c->n_hooks; i++) {
        struct imat_hook *hook = &c->hooks[i];
        kern_observe_end(&hook->observer);
        imat_squares_free(&hook->squares);
        imat_squares_free(&hook->before);
        free(hook->host);
        base_pool_close(hook->pool);
        for (size_t k = 0; hook->parts && k < c->n; k++) {
            free(hook->parts[k].sums);
            free(hook->parts[k].counts);
            free(hook->parts[k].use);
        }
        free(hook->parts);
    }
    free(c->hooks);
    c->hooks = NULL;
    c->n_hooks = 0;
}

void imat_collector_take(struct imat_collector *c, struct imat_matrix *out)
{
    detach(c);
    out->entries = c->entries;
    out->exact = true;
    for (size_t i = 0; i < c->n; i++) {
        struct imat_entry *entry = &c->entries[i];
        if (entry->sums) {
            out->entries[out->n++] = *entry;
            continue;
        }
        free(entry->name);
        free(entry->counts);
        free(entry->use);
    }
    c->entries = NULL;
    c->n = 0;
}

void imat_collector_close(struct imat_collector *c)
{
    if (!c)
        return;
    detach(c);
    struct imat_matrix rest = {.entries = c->entries, .n = c->n};
    imat_free(&rest);
    free(c->places);
    pthread_mutex_destroy(&c->lock);
    free(c);
}
