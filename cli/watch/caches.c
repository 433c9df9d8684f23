#include "cli/watch/caches.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "eval/streams/caches.h"

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

void cli_caches_drop(struct cli_evaluation *e)
{
    for (size_t i = 0; e->caches && i <= e->models.n_candidates; i++)
        eval_cache_close(e->caches[i]);
    free(e->caches);
    e->caches = NULL;
    if (e->models.streams == &e->cached)
        e->models.streams = NULL;
}

enum status cli_caches_open(struct cli_evaluation *e, struct status_why *why)
{
    const struct cli_watch_settings *watch = &e->settings->watch;
    size_t n = 1 + e->models.n_candidates;
    enum status status = STATUS_OK;
    if (watch->cache_bytes && !e->caches) {
        e->caches = calloc(n, sizeof(struct eval_cache *));
        const struct eval_cache_options options = {.n_bytes =
                                                       (double)watch->cache_bytes / (double)n,
                                                   .n_tokens = e->units->n_tokens,
                                                   .path = watch->cache_file};
        if (!e->caches)
            return status_fail(why, STATUS_MEMORY, "no memory for %zu caches", n);
        for (size_t i = 0; i < n && !status; i++) {
            const struct model *model = i ? e->models.candidates[i - 1] : e->models.model;
            status = eval_cache_open(&e->caches[i], model, &options, why);
        }
    }
    if (e->caches) {
        e->kept = (struct eval_caches){e->caches, n};
        e->cached = eval_caches_source(&e->kept);
        e->models.streams = &e->cached;
    }
    return status;
}
