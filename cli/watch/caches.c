#include "cli/watch/caches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"

enum status cli_caches_check(const struct cli_watch_settings *settings, struct status_why *why)
{
    const char *path = settings->cache_file;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (path && fd < 0)
        return status_fail(why, STATUS_USAGE, "--cache-file %s: cannot be created: %s", path,
                           strerror(errno));
    if (path) {
        close(fd);
        unlink(path);
    }
    return STATUS_OK;
}

void cli_caches_drop(struct cli_caches *c)
{
    for (size_t i = 0; c->items && i < c->kept.n; i++)
        eval_cache_close(c->items[i]);
    free(c->items);
    c->items = NULL;
}

/** A cache for each model. */
static enum status make(struct cli_caches *c, struct status_why *why)
{
    const struct cli_watch_settings *watch = &c->e->settings->watch;
    const struct eval_models *models = &c->e->models;
    size_t n = 1 + models->n_candidates;
    const struct eval_cache_options options = {.n_bytes = (double)watch->cache_bytes / (double)n,
                                               .n_tokens = c->e->units->n_tokens,
                                               .path = watch->cache_file};
    enum status status = STATUS_OK;
    if (base_array_new(c->items, n, "caches", why))
        return STATUS_MEMORY;
    c->kept = (struct eval_caches){c->items, n};
    for (size_t i = 0; i < n && !status; i++) {
        const struct model *model = i ? models->candidates[i - 1] : models->model;
        status = eval_cache_open(&c->items[i], model, &options, why);
    }
    return status;
}

/** By then the run knows how many tokens there are. */
static enum status open_streams(void *user, struct kern_backend *backend, struct eval_streams **out,
                                struct status_why *why)
{
    struct cli_caches *c = user;
    enum status status = c->items ? STATUS_OK : make(c, why);
    struct eval_stream_source source = eval_caches_source(&c->kept);
    return status ? status : source.open(source.user, backend, out, why);
}

static double bytes(void *user, size_t n_tokens)
{
    const struct cli_caches *c = user;
    const struct cli_watch_settings *watch = &c->e->settings->watch;
    (void)n_tokens;
    return watch->cache_file ? 0 : (double)watch->cache_bytes;
}

void cli_caches_use(struct cli_caches *c, struct cli_evaluation *e)
{
    if (!e->settings->watch.cache_bytes)
        return;
    c->e = e;
    c->source = (struct eval_stream_source){.user = c, .open = open_streams, .bytes = bytes};
    e->models.streams = &c->source;
}
