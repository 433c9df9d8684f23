#include "kernels/cuda/tables/tables.h"

#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/context.h"

enum { LEAST_BYTES = 64 << 10 /* of a table's memory: positions of 16384 tokens */ };

static struct kern_cuda_table *find(struct kern_cuda_tables *tables, const void *bytes,
                                    size_t n_bytes)
{
    for (size_t i = 0; i < KERN_CUDA_N_TABLES; i++) {
        struct kern_cuda_table *table = &tables->all[i];
        if (table->n_bytes == n_bytes && memcmp(table->bytes, bytes, n_bytes) == 0)
            return table;
    }
    return NULL;
}

static struct kern_cuda_table *oldest(struct kern_cuda_tables *tables)
{
    struct kern_cuda_table *table = &tables->all[0];
    for (size_t i = 1; i < KERN_CUDA_N_TABLES; i++)
        if (tables->all[i].last_used < table->last_used)
            table = &tables->all[i];
    return table;
}

static void drop(struct kern_cuda *cuda, struct kern_cuda_table *table)
{
    cuda->device->ops->free(cuda->device, table->memory);
    free(table->bytes);
    *table = (struct kern_cuda_table){0};
}

static enum status make_room(struct kern_cuda *cuda, struct kern_cuda_table *table, size_t n_bytes,
                             struct status_why *why)
{
    if (n_bytes <= table->capacity)
        return STATUS_OK;
    drop(cuda, table);
    n_bytes = base_max(n_bytes, LEAST_BYTES);
    table->bytes = malloc(n_bytes);
    if (!table->bytes)
        return status_fail(why, STATUS_MEMORY, "no memory for a table of %zu bytes", n_bytes);
    enum status status = kern_cuda_memory(cuda, &table->memory, n_bytes, why);
    if (!status)
        table->capacity = n_bytes;
    else
        drop(cuda, table);
    return status;
}

/** What is computed with the table's earlier bytes is before the copy, on the same stream. */
static enum status replace(struct kern_cuda *cuda, struct kern_cuda_table *table, const void *bytes,
                           size_t n_bytes, struct status_why *why)
{
    table->n_bytes = 0;
    enum status status = make_room(cuda, table, n_bytes, why);
    if (!status)
        status = kern_cuda_put(cuda, table->memory, bytes, n_bytes, why);
    if (status)
        return status;
    memcpy(table->bytes, bytes, n_bytes);
    table->n_bytes = n_bytes;
    return STATUS_OK;
}

enum status kern_cuda_tables_put(struct kern_cuda *cuda, struct kern_cuda_array *arrays,
                                 size_t n_arrays, struct status_why *why)
{
    struct kern_cuda_tables *tables = &cuda->tables;
    for (size_t i = 0; i < n_arrays; i++) {
        arrays[i].to = NULL;
        if (arrays[i].n_bytes == 0)
            continue;
        struct kern_cuda_table *table = find(tables, arrays[i].from, arrays[i].n_bytes);
        if (!table) {
            table = oldest(tables);
            enum status status = replace(cuda, table, arrays[i].from, arrays[i].n_bytes, why);
            if (status)
                return status;
        }
        table->last_used = ++tables->n_uses;
        arrays[i].to = table->memory;
    }
    return STATUS_OK;
}

void kern_cuda_tables_close(struct kern_cuda *cuda)
{
    for (size_t i = 0; i < KERN_CUDA_N_TABLES; i++)
        drop(cuda, &cuda->tables.all[i]);
}
