#include "cli/session/job.h"

#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "cli/session/interrupt.h"
#include "eval/run/batch_size.h"

enum status cli_job_open(struct cli_job *job, const struct cli_machine_settings *machine,
                         const struct cli_output_settings *output, struct status_why *why)
{
    *job = (struct cli_job){
        .machine = machine,
        .output = output,
        .memory.total = (double)NAN,
        .started = time(NULL),
        .clock_started = base_clock_seconds(),
    };
    enum status status = cli_backends_open(&job->backends, machine, why);
    job->backend = job->backends.items[0];
    return status;
}

enum status cli_job_check_one_device(const struct cli_job *job, const char *what,
                                     struct status_why *why)
{
    if (job->backends.n == 1)
        return STATUS_OK;
    return status_fail(why, STATUS_UNSUPPORTED,
                       "--device: %s takes one device, %zu are named in '%s'", what,
                       job->backends.n, job->machine->device);
}

enum status cli_job_choose_batch(const struct cli_job *job, const struct model *model,
                                 size_t longest, size_t n_sequences, size_t *batch_tokens,
                                 struct status_why *why)
{
    *batch_tokens = (size_t)job->machine->n_batch;
    if (*batch_tokens || longest == 0)
        return STATUS_OK;
    struct eval_plan plan = {
        .window = longest, .n_inputs = longest, .n_scored = longest, .n_windows = n_sequences};
    struct eval_task task = {
        .model = model, .backends = job->backends.items, .n_backends = 1, .plan = &plan};
    return eval_batch_choose(&task, batch_tokens, why);
}

enum status cli_job_prepare(struct cli_job *job, const struct eval_task *task,
                            struct eval_run_options *options, struct status_why *why)
{
    options->batch_tokens = (size_t)job->machine->n_batch;
    enum status status = STATUS_OK;
    if (options->batch_tokens == 0)
        status = eval_batch_choose(task, &options->batch_tokens, why);
    if (status == STATUS_OK)
        job->memory = eval_run_memory(task, options);
    return status;
}

void cli_job_loaded(struct cli_job *job)
{
    job->seconds_to_load = base_clock_seconds() - job->clock_started;
}

enum status cli_job_create_document(struct cli_job *job, struct status_why *why)
{
    return cli_output_create(&job->json_file, job->output->json_file, why);
}

void cli_job_catch_interrupts(struct cli_job *job)
{
    const atomic_bool *flag = cli_interrupt_catch();
    for (size_t i = 0; i < job->backends.n; i++)
        kern_set_cancel(job->backends.items[i], flag);
}

void cli_job_begin(struct cli_job *job, bool anything_left)
{
    size_t n_devices = 0;
    for (size_t i = 0; i < job->backends.n; i++)
        n_devices += kern_describe(job->backends.items[i]).own_memory;
    if (n_devices && anything_left && !job->output->quiet)
        fprintf(stderr, "assay: bringing the weights to the device%s ...\n",
                status_plural(n_devices));
    cli_progress_begin(&job->progress, job->output->quiet);
}

void cli_job_print_speed(const struct cli_job *job)
{
    size_t n = job->stats.n_inputs;
    double seconds = job->stats.seconds;
    fprintf(stderr, "assay: %zu token%s evaluated in %.1f s, %.1f tokens/s\n", n, status_plural(n),
            seconds, seconds > 0 ? (double)n / seconds : 0);
}

void cli_job_close(struct cli_job *job)
{
    base_file_abandon(job->json_file);
    cli_backends_close(&job->backends);
    *job = (struct cli_job){0};
}
