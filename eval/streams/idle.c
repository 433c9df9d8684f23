#include "eval/streams/idle.h"

#include <stdlib.h>

/** The streams of one scorer. */
struct idling {
    struct eval_streams streams;
    const struct eval_idle *idle;
};

static enum status enter(struct eval_streams *streams, struct eval_pass *passes, size_t n_passes,
                         struct status_why *why)
{
    const struct eval_idle *idle = ((struct idling *)streams)->idle;
    (void)why;
    for (size_t i = 0; i < n_passes; i++) {
        passes[i].is_idle = atomic_load(&idle->flags[i]);
        if (passes[i].is_idle)
            passes[i].layer = model_hparams(passes[i].model)->n_layers;
    }
    return STATUS_OK;
}

static enum status reach(struct eval_streams *streams, const struct eval_pass *passes,
                         size_t n_passes, size_t i, struct status_why *why)
{
    (void)streams, (void)passes, (void)n_passes, (void)i, (void)why;
    return STATUS_OK;
}

static void close_idling(struct eval_streams *streams)
{
    free(streams);
}

static enum status open_idling(void *user, struct kern_backend *backend, struct eval_streams **out,
                               struct status_why *why)
{
    static const struct eval_streams_kind kind = {
        .enter = enter, .reach = reach, .close = close_idling};
    (void)backend;
    struct idling *own = calloc(1, sizeof *own);
    if (!own)
        return status_fail(why, STATUS_MEMORY, "no memory for streams");
    *own = (struct idling){.streams.kind = &kind, .idle = user};
    *out = &own->streams;
    return STATUS_OK;
}

struct eval_stream_source eval_idle_source(struct eval_idle *idle)
{
    return (struct eval_stream_source){.user = idle, .open = open_idling};
}
