/* RMSNorm over tokens. */
#include "kernels/cpu/context.h"

enum { NORM_TOKENS = 8 }; /* per iteration of the pool */

struct norm_job {
    const struct kern_ops *ops;
    const float *gain;
    const float *x;
    float *y;
    size_t n_tokens, width;
    float eps;
};

static void norm_tokens(void *context, size_t index, unsigned thread)
{
    (void)thread;
    const struct norm_job *job = context;
    size_t end = (index + 1) * NORM_TOKENS;
    end = end < job->n_tokens ? end : job->n_tokens;
    for (size_t t = index * NORM_TOKENS; t < end; t++) {
        job->ops->rmsnorm(job->y + t * job->width, job->x + t * job->width, job->gain, job->eps,
                          job->width);
    }
}

enum status kern_cpu_rmsnorm(struct kern_backend *b, const struct kern_weight *gain, float eps,
                             const float *x, size_t n_tokens, float *y, struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    void *decoded;
    enum status status = kern_cpu_scratch(cpu, &decoded, gain->n_cols * sizeof(float), why);
    if (status != STATUS_OK) {
        return status;
    }
    cpu->table.decode[gain->type](gain->data, decoded, gain->n_cols);
    struct norm_job job = {&cpu->table.ops, decoded, x, y, n_tokens, gain->n_cols, eps};
    return kern_cpu_run(cpu, (n_tokens + NORM_TOKENS - 1) / NORM_TOKENS, norm_tokens, &job);
}
