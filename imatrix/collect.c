#include "imatrix/collect.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "imatrix/squares.h"
#include "kernels/implementation.h"

/** Where the first row of a matrix lies. */
struct place {
    const void *data;
    const int32_t *rows; /* of a view: as struct kern_weight has them */
    uint32_t entry, matrix;
};

/** A backend that shows its products. */
struct hook {
    struct kern_backend_ops ops; /* first: the backend's, some of them replaced */
    const struct kern_backend_ops *exact;
    struct kern_backend *backend;
    struct imat_collector *collector;
    /* Of the last product, if it counted; n_rows is 0 else. */
    const struct place *at;
    const float *input;          /* backend memory */
    size_t n_rows;               /* of the input */
    struct imat_squares squares; /* of the input */
    bool plain;                  /* it has none */
    struct imat_squares before;  /* memory for those of the product before that */
    const float *x;              /* host: the input */
    float *host;                 /* a device's, copied */
    size_t capacity;
};

struct imat_collector {
    const struct gguf_file *file;
    struct imat_entry *entries; /* [n], ascending by name */
    struct place *places;       /* [n_places], ascending */
    size_t n, n_places;
    struct hook *hooks;
    size_t n_hooks;
    pthread_mutex_t lock; /* of the entries' sums and counts */
    atomic_bool begun;
};

static int compare_entries(const void *a, const void *b)
{
    return strcmp(((const struct imat_entry *)a)->name, ((const struct imat_entry *)b)->name);
}

static int compare_places(const void *a, const void *b)
{
    const struct place *p = a, *q = b;
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
    struct place *place = c->places;
    for (size_t i = 0; i < c->n && !status; i++) {
        const struct gguf_tensor *t = gguf_tensor_find(c->file, c->entries[i].name);
        for (size_t m = 0; m < n_matrices(t); m++)
            *place++ = (struct place){.data = t->view && t->view->matrices
                                                  ? t->view->matrices[m]
                                                  : (const uint8_t *)t->data +
                                                        m * (size_t)(t->ne[1] * t->row_bytes),
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

static enum status fail(const struct imat_collector *c, const struct place *at, size_t column,
                        uint64_t row, const char *what, struct status_why *why)
{
    const struct imat_entry *entry = &c->entries[at->entry];
    char matrix[48];
    return status_fail(why, STATUS_NONFINITE,
                       "%s: %s%s: column %zu of its input, at row %" PRIu64
                       " of those that it was multiplied with, %s",
                       gguf_path(c->file), entry->name, which(matrix, entry, at->matrix), column,
                       row, what);
}

/** The sums of a tile that only the definition can add. */
static enum status add_plainly(const struct hook *hook, const struct place *at, size_t n_rows,
                               struct status_why *why)
{
    const struct imat_collector *c = hook->collector;
    const struct imat_entry *entry = &c->entries[at->entry];
    size_t n = (size_t)entry->n_columns;
    struct imat_sum *sums = entry->sums + at->matrix * n;
    for (size_t row = 0; row < n_rows; row++)
        for (size_t i = 0; i < n; i++)
            if (!imat_squares_add(&sums[i], hook->x[row * n + i]))
                return fail(c, at, i, entry->counts[at->matrix] + row,
                            "is not finite, or the sum of its squares is 2^63 or more: there is no "
                            "importance matrix of such numbers",
                            why);
    return STATUS_OK;
}

/** With the lock. */
static enum status add(const struct hook *hook, const struct place *at, size_t n_rows,
                       struct status_why *why)
{
    const struct imat_collector *c = hook->collector;
    struct imat_entry *entry = &c->entries[at->entry];
    size_t n = (size_t)entry->n_columns;
    enum status status = STATUS_OK;
    if (!entry->sums)
        status = base_array_new(entry->sums, n * (size_t)entry->n_matrices, "sums", why);
    if (status)
        return status;
    if (hook->plain) {
        status = add_plainly(hook, at, n_rows, why);
    } else {
        size_t column = imat_squares_give(&hook->squares, entry->sums + at->matrix * n);
        if (column < n)
            status = fail(c, at, column, entry->counts[at->matrix] + n_rows - 1,
                          "has a sum of squares of 2^63 or more", why);
    }
    entry->counts[at->matrix] += n_rows;
    return status;
}

/** Let hook->x be an input that lies in backend memory. */
static enum status see(struct hook *hook, const float *x, size_t n, struct status_why *why)
{
    hook->x = x;
    if (!kern_describe(hook->backend).own_memory)
        return STATUS_OK;
    enum status status = base_array_reserve(hook->host, hook->capacity, n, "inputs", why);
    hook->x = hook->host;
    return status ? status : kern_download(hook->backend, hook->host, x, n * sizeof *x, why);
}

/** The sums of squares of an input, in the place of the last one's. */
static enum status square(struct hook *hook, const float *x, size_t n_rows, size_t n_columns,
                          struct status_why *why)
{
    struct imat_squares last = hook->squares;
    hook->squares = hook->before;
    hook->before = last;
    enum status status = see(hook, x, n_rows * n_columns, why);
    return status
               ? status
               : imat_squares_make(&hook->squares, hook->x, n_rows, n_columns, &hook->plain, why);
}

/** A product is to be computed. again: with the input of the product before it. */
static enum status show(struct hook *hook, const struct kern_weight *weight, const float *x,
                        size_t n_rows, bool again, struct status_why *why)
{
    struct imat_collector *c = hook->collector;
    const struct place key = {.data = weight->data, .rows = weight->rows};
    const struct place *at =
        bsearch(&key, c->places, c->n_places, sizeof *c->places, compare_places);
    again = again && hook->n_rows == n_rows;
    if (!at || weight->n_cols != c->entries[at->entry].n_columns || !atomic_load(&c->begun)) {
        hook->n_rows = again && !at ? n_rows : 0;
        return STATUS_OK;
    }
    bool repeats = hook->at == at && hook->n_rows == n_rows && hook->input == x && !hook->plain;
    enum status status = again ? STATUS_OK : square(hook, x, n_rows, weight->n_cols, why);
    repeats = repeats && !status &&
              (again || (!hook->plain && imat_squares_equal(&hook->squares, &hook->before)));
    hook->at = at;
    hook->input = x;
    hook->n_rows = status ? 0 : n_rows;
    if (status || repeats)
        return status;
    pthread_mutex_lock(&c->lock);
    status = add(hook, at, n_rows, why);
    pthread_mutex_unlock(&c->lock);
    return status;
}

static struct hook *hook_of(struct kern_backend *b)
{
    return (struct hook *)(void *)(uintptr_t)b->ops;
}

static enum status linear(struct kern_backend *b, const struct kern_linear *op,
                          struct status_why *why)
{
    struct hook *hook = hook_of(b);
    enum status status = show(hook, op->weight, op->x, op->n_tokens, op->same_x, why);
    return status ? status : hook->exact->linear(b, op, why);
}

static enum status score(struct kern_backend *b, const struct kern_score *op,
                         struct status_why *why)
{
    struct hook *hook = hook_of(b);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < op->n_heads && !status; i++)
        if (op->heads[i].matrix)
            status = show(hook, op->heads[i].matrix, op->heads[i].hidden, op->n_rows, false, why);
    return status ? status : hook->exact->score(b, op, why);
}

enum status imat_collector_attach(struct imat_collector *c, struct kern_backend *const *backends,
                                  size_t n_backends, struct status_why *why)
{
    enum status status = base_array_new(c->hooks, n_backends, "devices", why);
    for (size_t i = 0; i < n_backends && !status; i++) {
        struct hook *hook = &c->hooks[c->n_hooks++];
        *hook = (struct hook){.ops = *backends[i]->ops,
                              .exact = backends[i]->ops,
                              .backend = backends[i],
                              .collector = c};
        hook->ops.linear = linear;
        hook->ops.score = score;
        backends[i]->ops = &hook->ops;
    }
    return status;
}

void imat_collector_begin(struct imat_collector *c)
{
    atomic_store(&c->begun, true);
}

double imat_collector_bytes(const struct imat_collector *c)
{
    double n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += (double)c->entries[i].n_columns * (double)c->entries[i].n_matrices;
    return n * sizeof(struct imat_sum);
}

static void detach(struct imat_collector *c)
{
    for (size_t i = 0; i < c->n_hooks; i++) {
        struct hook *hook = &c->hooks[i];
        hook->backend->ops = hook->exact;
        imat_squares_free(&hook->squares);
        imat_squares_free(&hook->before);
        free(hook->host);
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
