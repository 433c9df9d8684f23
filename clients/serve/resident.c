#include "clients/serve/resident.h"

#include <string.h>

#include "cli/evaluate.h"
#include "cli/process/faults.h"
#include "model/swap.h"

enum status serve_resident_check(const struct serve_resident *resident, struct status_why *why)
{
    for (size_t i = 0; i < resident->n_models; i++) {
        const struct model *model = resident->models[i].model;
        for (size_t t = 0; t < gguf_n_tensors(model_file(model)); t++)
            if (model_in_force_any(model, t, cli_mapping_lost))
                return status_fail(why, STATUS_CHANGED,
                                   "a part of %s that is in use could not be read: its file became "
                                   "shorter, or its disk failed",
                                   gguf_tensor_at(model_file(model), t)->name);
    }
    return STATUS_OK;
}

static const struct cli_model *find_model(const struct cli_host *host, const char *path)
{
    const struct serve_resident *resident = ((const struct serve_resident_host *)host)->resident;
    const struct cli_model *found = NULL;
    for (size_t i = 0; i < resident->n_models; i++)
        if (path == resident->models[i].path ||
            (!found && strcmp(path, resident->models[i].path) == 0))
            found = &resident->models[i];
    return found;
}

static const atomic_bool *cancel(struct cli_host *host)
{
    return ((const struct serve_resident_host *)host)->cancel;
}

static enum status ready(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    (void)why;
    e->models.crew = ((const struct serve_resident_host *)host)->crew;
    return STATUS_OK;
}

static void progress(struct cli_host *host, struct cli_evaluation *e,
                     const struct eval_progress *now)
{
    const struct serve_resident_host *own = (const struct serve_resident_host *)host;
    (void)e;
    own->progress(own->user, now);
}

static enum status deliver(struct cli_host *host, const struct base_json *document,
                           struct status_why *why)
{
    return base_json_text_of(document, &((struct serve_resident_host *)host)->document, why);
}

/** A server is alone. */
static void describe(const struct cli_host *host, const struct cli_evaluation *e,
                     struct base_json *json, cJSON *run)
{
    (void)host, (void)e;
    base_json_uint(json, run, "n_ranks", 1);
    base_json_uint(json, run, "n_shares", 1);
}

static enum status evaluate(struct cli_host *host, struct cli_evaluation *e, struct status_why *why)
{
    const struct serve_resident_host *own = (const struct serve_resident_host *)host;
    e->backends = own->backends;
    enum status status = serve_resident_check(own->resident, why);
    if (!status)
        status = cli_evaluation_begin(e, host, why);
    if (!status)
        status = cli_evaluation_open(e, why);
    if (!status)
        status = cli_evaluation_check(e, why);
    if (!status)
        status = cli_evaluation_run(e, why);
    cli_evaluation_close(e);
    return status;
}

void serve_resident_host_make(struct serve_resident_host *host)
{
    host->host = (struct cli_host){.evaluate = evaluate,
                                   .find_model = find_model,
                                   .cancel = cancel,
                                   .ready = ready,
                                   .progress = progress,
                                   .deliver = deliver,
                                   .describe = describe};
}
