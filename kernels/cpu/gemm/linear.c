/* y = W x: pack the tokens, then threads claim ranges of weight rows and tokens. */

#include "kernels/cpu/gemm/blas.h"
#include "kernels/cpu/gemm/gemm.h"
#include "kernels/cpu/operations.h"

/*
 * Tokens per packing. A weight is decoded once for this many; the packed copy and the
 * accumulators are what it costs in memory.
 */
enum { CHUNK_TOKENS = 4096 };

/** One product of at most CHUNK_TOKENS tokens, and its part of the scratch memory. */
struct linear {
    const struct kern_cpu *cpu;
    const struct kern_linear *op;
    struct kern_gemm_plan plan;
    size_t first_token, n_tokens;
    float *bias; /* decoded, or NULL */
    float *packed;
    float *per_thread; /* tile, then accumulators */
    size_t packed_floats, thread_floats;
};

/** From sums to y. */
static void unpack_panel(void *context, size_t panel, size_t row, size_t n_rows, float *acc)
{
    const struct linear *job = context;
    const struct kern_linear *op = job->op;
    size_t token = panel * KERN_PANEL;
    job->cpu->kernels.panel_unpack(&(struct kern_panel_unpack){
        .acc = acc,
        .n_rows = n_rows,
        .n_lanes = base_min(job->n_tokens - token, KERN_PANEL),
        .scale = op->weight->scale,
        .bias = job->bias ? job->bias + row : NULL,
        .y = op->y + (job->first_token + token) * op->y_stride + row,
        .y_stride = op->y_stride,
        .accumulate = op->accumulate,
    });
}

static void multiply_task(void *context, size_t index, unsigned thread)
{
    const struct linear *job = context;
    float *tile = job->per_thread + thread * job->thread_floats;
    struct kern_gemm_rows task = {
        .cpu = job->cpu,
        .weight = job->op->weight,
        .plan = &job->plan,
        .x = job->packed,
        .n_tokens = job->n_tokens,
        .tile = tile,
        .acc = tile + job->plan.tile_floats,
        .done = unpack_panel,
        .context = context,
    };
    kern_gemm_task(&task, job->op->weight->n_rows, index);
    task.acc_stride = task.n_rows * KERN_PANEL;
    kern_gemm_run(&task);
}

/** Sizes of everything; returns the floats of scratch memory. */
static size_t linear_size(struct linear *job, const struct kern_cpu *cpu,
                          const struct kern_linear *op)
{
    const struct kern_weight *w = op->weight;
    size_t chunk = base_min(op->n_tokens, CHUNK_TOKENS);
    size_t n_panels = kern_panel_count(chunk);
    const struct kern_product *product = kern_cpu_product_of(cpu, w->type);
    *job = (struct linear){
        .cpu = cpu, .op = op, .plan = kern_gemm_plan(cpu, product, w, w->n_rows, n_panels)};
    job->thread_floats = job->plan.tile_floats + job->plan.n_rows * job->plan.n_panels * KERN_PANEL;
    job->packed_floats = n_panels * kern_product_panel_floats(job->plan.product, w->n_cols);
    size_t bias_floats = base_round_up(w->n_rows, 16);
    return job->packed_floats + bias_floats + job->thread_floats * base_pool_n_threads(cpu->pool);
}

size_t kern_cpu_linear_bytes(struct kern_backend *b, const struct kern_linear *op)
{
    const struct kern_cpu *cpu = kern_cpu_of(b);
    struct linear job;
    size_t n_floats = cpu->sgemm ? kern_blas_linear_floats(op) : linear_size(&job, cpu, op);
    return n_floats * sizeof(float);
}

/** One piece of scratch memory, divided. */
static enum status linear_prepare(struct linear *job, struct kern_cpu *cpu,
                                  const struct kern_linear *op, struct status_why *why)
{
    size_t n_floats = linear_size(job, cpu, op);
    void *scratch;
    enum status status = kern_cpu_scratch(cpu, &scratch, n_floats * sizeof(float), why);
    if (status)
        return status;
    job->packed = scratch;
    job->per_thread = job->packed + job->packed_floats;
    if (op->bias) {
        job->bias = job->per_thread + job->thread_floats * base_pool_n_threads(cpu->pool);
        kern_weight_take_row(cpu, op->bias, 0, job->bias);
    }
    return STATUS_OK;
}

/** Pack the tokens of the chunk, if they are not there yet. */
static enum status pack_tokens(const struct linear *job, struct kern_cpu *cpu)
{
    const struct kern_packed *before = &cpu->packed;
    const struct kern_linear *op = job->op;
    size_t n_cols = op->weight->n_cols;
    struct kern_packed now = {.product = job->plan.product,
                              .x = op->x + job->first_token * n_cols,
                              .n_tokens = job->n_tokens,
                              .n_cols = n_cols,
                              .scratch_bytes = cpu->scratch_bytes};
    enum status status = STATUS_OK;
    if (!op->same_x || before->product != now.product || before->x != now.x ||
        before->n_tokens != now.n_tokens || before->n_cols != now.n_cols ||
        before->scratch_bytes != now.scratch_bytes)
        status = kern_panels_pack(cpu, now.product, now.x, now.n_tokens, n_cols, job->packed);
    cpu->packed = !status ? now : (struct kern_packed){0};
    return status;
}

enum status kern_cpu_linear(struct kern_backend *b, const struct kern_linear *op,
                            struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    if (cpu->sgemm)
        return kern_blas_linear(cpu, op, why);
    const struct kern_weight *w = op->weight;
    struct linear job;
    struct kern_packed before = cpu->packed;
    enum status status = linear_prepare(&job, cpu, op, why);
    cpu->packed = before; /* the memory is new, and has another size, or as it was */
    for (size_t token = 0; !status && token < op->n_tokens; token += CHUNK_TOKENS) {
        job.first_token = token;
        job.n_tokens = base_min(op->n_tokens - token, CHUNK_TOKENS);
        status = pack_tokens(&job, cpu);
        size_t n_tasks = kern_gemm_n_tasks(&job.plan, w->n_rows, kern_panel_count(job.n_tokens));
        if (!status)
            status = kern_cpu_run(cpu, n_tasks, multiply_task, &job);
    }
    return status;
}
