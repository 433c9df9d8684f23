/* Recurrent states: a task is one head of a family, a run and those that go on from it. */
#include <assert.h>

#include "kernels/cpu/operations.h"
#include "kernels/cpu/recurrent/chunk.h"
#include "kernels/cpu/recurrent/steps.h"
#include "kernels/cpu/recurrent/vector.h"

struct recur {
    const struct kern_cpu *cpu;
    const struct kern_recur *op;
    const float *dt_bias, *decay, *skip;
    size_t *families; /* their first runs; n_runs at the end */
    size_t n_families;
    float *per_thread; /* a chunk's memory, records of the family's first run */
    size_t thread_floats;
};

/** One task, with the memory of the thread that does it. */
struct task {
    const struct recur *job;
    struct kern_recur_head head;
    struct kern_recur_chunk chunk; /* of one decay for each head */
    struct kern_recur_steps steps; /* by_channel */
    float *parent;                 /* the head's records at the end of the family's first run */
};

/** Floats of a head's records. */
static size_t head_floats(const struct kern_recur *op)
{
    return kern_recur_n_groups(op) * kern_recur_record_floats(op);
}

/** The head's records of a saved state. */
static float *saved(const struct task *task, ptrdiff_t state)
{
    const struct kern_recur *op = task->job->op;
    return op->states + ((size_t)state * op->n_heads + task->head.head) * head_floats(op);
}

/** Floats of a thread's chunk, or steps. */
static size_t work_floats(const struct kern_recur *op)
{
    return op->by_channel ? kern_recur_steps_floats(op) : kern_recur_chunk_floats(op);
}

static void task_open(struct task *task, float *memory)
{
    if (task->job->op->by_channel)
        kern_recur_steps_open(&task->steps, &task->head, memory);
    else
        kern_recur_chunk_open(&task->chunk, &task->head, memory);
}

static void task_load(struct task *task, const float *records, size_t index)
{
    if (task->job->op->by_channel)
        kern_recur_steps_load(&task->steps, records);
    else
        kern_recur_chunk_load(&task->chunk, records, index);
}

static void task_save(const struct task *task, float *records)
{
    if (task->job->op->by_channel)
        kern_recur_steps_save(&task->steps, records);
    else
        kern_recur_chunk_save(&task->chunk, records);
}

static void run_steps(struct task *task, const struct kern_run *run)
{
    for (size_t done = 0; done < run->n && !kern_cpu_cancelled(task->job->cpu); done += KERN_CHUNK)
        kern_recur_steps_add(&task->steps, run->row + done, base_min(run->n - done, KERN_CHUNK));
}

/** keep: the state at the end is wanted. */
static void run_tokens(struct task *task, const struct kern_run *run, bool keep)
{
    if (task->job->op->by_channel) {
        run_steps(task, run);
        return;
    }
    for (size_t done = 0; done < run->n && !kern_cpu_cancelled(task->job->cpu);) {
        size_t n = base_min(run->n - done, KERN_CHUNK - task->chunk.n);
        kern_recur_chunk_add(&task->chunk, run->row + done, n, run->row + run->n);
        done += n;
        if (task->chunk.n == KERN_CHUNK && (keep || done < run->n))
            kern_recur_chunk_finish(&task->chunk);
    }
}

static void run_family(struct task *task, size_t begin, size_t end)
{
    const struct kern_run *runs = task->job->op->runs;
    for (size_t i = begin; i < end; i++) {
        const struct kern_run *run = &runs[i];
        bool is_parent = i == begin && end > begin + 1;
        const float *records = i > begin        ? task->parent
                               : run->from >= 0 ? saved(task, run->from)
                                                : NULL;
        task_load(task, records, run->index);
        run_tokens(task, run, is_parent || run->to >= 0);
        if (kern_cpu_cancelled(task->job->cpu))
            return;
        if (is_parent)
            task_save(task, task->parent);
        if (run->to >= 0)
            task_save(task, saved(task, run->to));
    }
}

static void run_task(void *context, size_t index, unsigned thread)
{
    const struct recur *job = context;
    const struct kern_recur *op = job->op;
    size_t family = index / op->n_heads, head = index % op->n_heads;
    float *memory = job->per_thread + thread * job->thread_floats;
    struct task task = {.job = job,
                        .head = {.cpu = job->cpu,
                                 .op = op,
                                 .head = head,
                                 .dt_bias = job->dt_bias + head * kern_recur_n_steps(op),
                                 .decay = job->decay[head],
                                 .skip = job->skip ? job->skip[head] : 0.0f},
                        .parent = memory + work_floats(op)};
    task_open(&task, memory);
    run_family(&task, job->families[family], job->families[family + 1]);
}

/** Divide `memory`, which may be NULL; returns the floats that the parts take. */
static size_t divide(struct recur *job, float *memory)
{
    const struct kern_recur *op = job->op;
    size_t of_heads = base_round_up(op->n_heads, 16);
    size_t vectors = 2 * of_heads + base_round_up(op->n_heads * kern_recur_n_steps(op), 16);
    size_t families = base_round_up((op->n_runs + 1) * sizeof(size_t) / sizeof(float), 16);
    job->thread_floats = work_floats(op) + head_floats(op);
    if (memory) {
        job->decay = kern_vector_decode(job->cpu, op->decay, memory);
        job->skip = kern_vector_decode(job->cpu, op->skip, memory + of_heads);
        job->dt_bias = kern_vector_decode(job->cpu, op->dt_bias, memory + 2 * of_heads);
        job->families = (size_t *)(void *)(memory + vectors);
        job->per_thread = memory + vectors + families;
    }
    return vectors + families + job->thread_floats * base_pool_n_threads(job->cpu->pool);
}

size_t kern_cpu_recur_bytes(struct kern_backend *b, const struct kern_recur *op)
{
    struct recur job = {.cpu = kern_cpu_of(b), .op = op};
    return divide(&job, NULL) * sizeof(float);
}

enum status kern_cpu_recur(struct kern_backend *b, const struct kern_recur *op,
                           struct status_why *why)
{
    struct kern_cpu *cpu = kern_cpu_of(b);
    struct recur job = {.cpu = cpu, .op = op};
    void *scratch;
    enum status status = kern_cpu_scratch(cpu, &scratch, kern_cpu_recur_bytes(b, op), why);
    if (status)
        return status;
    (void)divide(&job, scratch);
    assert(job.families);
    for (size_t i = 0; i < op->n_runs; i++)
        if (op->runs[i].parent == KERN_NONE)
            job.families[job.n_families++] = i;
    job.families[job.n_families] = op->n_runs;
    return kern_cpu_run(cpu, job.n_families * op->n_heads, run_task, &job);
}
