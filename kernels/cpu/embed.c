/* Rows of the embedding table, decoded. */
#include "kernels/cpu/gemm/gemm.h"

enum { TOKENS_PER_TASK = 64 };

struct embedding {
    const struct kern_cpu *cpu;
    const struct kern_weight *table;
    const int32_t *tokens;
    size_t n_tokens;
    float *x;
};

static void embed_some(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct embedding *e = context;
    size_t first = index * TOKENS_PER_TASK;
    size_t left = e->n_tokens - first;
    size_t end = first + (left < TOKENS_PER_TASK ? left : TOKENS_PER_TASK);
    for (size_t t = first; t < end; t++)
        kern_weight_decode_row(e->cpu, e->table, (size_t)e->tokens[t], e->x + t * e->table->n_cols);
}

enum status kern_cpu_embed(struct kern_backend *b, const struct kern_weight *table,
                           const int32_t *tokens, size_t n_tokens, float *x, struct status_why *why)
{
    (void)why;
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct embedding e = {
        .cpu = cpu, .table = table, .tokens = tokens, .n_tokens = n_tokens, .x = x};
    return kern_cpu_run(cpu, (n_tokens + TOKENS_PER_TASK - 1) / TOKENS_PER_TASK, embed_some, &e);
}
