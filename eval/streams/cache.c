#include "eval/streams/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/digest.h"
#include "kernels/backend.h"
#include "model/swap.h"

/** A stream: what entered a layer. */
struct stream {
    uint8_t key[BASE_SHA256_BYTES];
    size_t layer, n_floats;
    float *values; /* NULL: in the file */
    off_t offset;  /* there */
};

struct eval_cache {
    struct eval_cache_options options;
    size_t n_layers, n_kept; /* L; layers of a batch that are kept, up to L itself */
    uint64_t *mark;          /* what the tensors were */
    struct stream *streams;
    size_t n_streams, capacity;
    double n_bytes; /* of them */
    int fd;         /* -1: in memory */
    pthread_mutex_t lock;
};

static enum status open_file(struct eval_cache *c, struct status_why *why)
{
    const char *path = c->options.path;
    c->fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (c->fd < 0)
        return status_fail(why, STATUS_IO, "%s: cannot be created: %s", path, strerror(errno));
    unlink(path); /* the name is gone, whatever ends the process */
    return STATUS_OK;
}

enum status eval_cache_open(struct eval_cache **out, const struct model *model,
                            const struct eval_cache_options *options, struct status_why *why)
{
    const struct model_hparams *h = model_hparams(model);
    size_t n_tensors = gguf_n_tensors(model_file(model));
    struct eval_cache *c = *out = calloc(1, sizeof *c);
    if (!c)
        return status_fail(why, STATUS_MEMORY, "no memory for a cache");
    c->fd = -1;
    c->options = *options;
    c->n_layers = h->n_layers;
    double plane = (double)options->n_tokens * (double)model_residual_width(h) * sizeof(float);
    double fits = options->n_bytes / (plane > 0 ? plane : 1);
    c->n_kept = fits < h->n_layers ? (size_t)fits : h->n_layers;
    if (c->n_kept == 0 && options->n_bytes > 0)
        c->n_kept = 1; /* of the first batches */
    pthread_mutex_init(&c->lock, NULL);
    c->mark = malloc(n_tensors * sizeof *c->mark);
    enum status status = STATUS_OK;
    if (!c->mark)
        status = status_fail(why, STATUS_MEMORY, "no memory for a cache");
    else
        model_swap_mark(model, c->mark);
    if (!status && options->path && !options->ascending)
        status = open_file(c, why);
    if (status) {
        eval_cache_close(c);
        *out = NULL;
    }
    return status;
}

void eval_cache_close(struct eval_cache *c)
{
    if (!c)
        return;
    for (size_t i = 0; i < c->n_streams; i++)
        free(c->streams[i].values);
    free(c->streams);
    free(c->mark);
    if (c->fd >= 0)
        close(c->fd);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

double eval_cache_bytes(const struct eval_cache *c)
{
    return c && c->fd < 0 ? c->options.n_bytes : 0;
}

/** All of a file's bytes at an offset; after a short transfer it goes on. */
static enum status transfer(const struct eval_cache *c, const struct stream *s, char *bytes,
                            bool write, struct status_why *why)
{
    size_t n = s->n_floats * sizeof(float);
    for (size_t done = 0; done < n;) {
        off_t at = s->offset + (off_t)done;
        ssize_t moved = write ? pwrite(c->fd, bytes + done, n - done, at)
                              : pread(c->fd, bytes + done, n - done, at);
        if (moved < 0 && errno == EINTR)
            continue;
        if (moved <= 0)
            return status_fail(why, STATUS_IO, "%s: cannot be %s: %s", c->options.path,
                               write ? "written" : "read",
                               moved < 0 ? strerror(errno) : "it has become shorter");
        done += (size_t)moved;
    }
    return STATUS_OK;
}

static enum status read_stream(const struct eval_cache_pass *p, const struct stream *s,
                               struct status_why *why)
{
    size_t n_bytes = s->n_floats * sizeof(float);
    float *values = s->values ? s->values : malloc(n_bytes);
    enum status status = STATUS_OK;
    if (!values)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of a cache", n_bytes);
    if (!s->values)
        status = transfer(p->cache, s, (char *)values, false, why);
    if (!status)
        status = kern_upload(p->backend, p->x, values, n_bytes, why);
    if (!s->values)
        free(values);
    return status;
}

static enum status write_stream(const struct eval_cache_pass *p, struct stream *s,
                                struct status_why *why)
{
    size_t n_bytes = s->n_floats * sizeof(float);
    float *values = s->values ? s->values : malloc(n_bytes);
    if (!values)
        return status_fail(why, STATUS_MEMORY, "no memory for %zu bytes of a cache", n_bytes);
    enum status status = kern_download(p->backend, values, p->x, n_bytes, why);
    if (!status && p->cache->fd >= 0)
        status = transfer(p->cache, s, (char *)values, true, why);
    bool stays = !status && p->cache->fd < 0;
    s->values = stays ? values : NULL;
    if (!stays)
        free(values);
    return status;
}

/** The stream of the batch that enters the highest layer up to `most`, or NULL. */
static struct stream *find(const struct eval_cache_pass *p, size_t most)
{
    struct stream *best = NULL;
    for (size_t i = 0; i < p->cache->n_streams; i++) {
        struct stream *s = &p->cache->streams[i];
        if (s->layer <= most && s->n_floats == p->n_floats && (!best || s->layer > best->layer) &&
            memcmp(s->key, p->key, sizeof p->key) == 0)
            best = s;
    }
    return best;
}

enum status eval_cache_begin(struct eval_cache_pass *p, const struct model_batch *batch,
                             size_t *layer, bool *found, struct status_why *why)
{
    const struct model_hparams *h = model_hparams(p->model);
    *layer = 0;
    *found = false;
    p->n_layers = h->n_layers;
    p->n_floats = batch->n_tokens * model_residual_width(h);
    if (!p->cache)
        return STATUS_OK;
    p->stage = model_swap_stage_since(p->model, p->cache->mark);
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, batch->tokens, batch->n_tokens * sizeof *batch->tokens);
    for (size_t i = 0; i < batch->n_segments; i++) { /* between the members there is padding */
        const struct model_segment *s = &batch->segments[i];
        const int64_t values[] = {(int64_t)s->start, (int64_t)s->n_tokens, s->first_position,
                                  s->parent, (int64_t)s->n_unwanted};
        base_digest_add(digest, values, sizeof values);
    }
    enum status status = base_digest_close_bytes(digest, p->key, why);
    if (status)
        return status;
    pthread_mutex_lock(&p->cache->lock);
    struct stream *s = find(p, p->stage);
    if (s)
        status = read_stream(p, s, why);
    if (s && !status) {
        *layer = s->layer;
        *found = true;
    }
    pthread_mutex_unlock(&p->cache->lock);
    return status;
}

size_t eval_cache_next(const struct eval_cache_pass *p, size_t layer)
{
    const struct eval_cache *c = p->cache;
    if (!c)
        return p->n_layers;
    if (c->options.ascending)
        return p->stage > layer ? p->stage : p->n_layers;
    for (size_t i = 1; i <= c->n_kept; i++) {
        size_t at = i * p->n_layers / c->n_kept;
        if (at > layer && at <= p->stage)
            return at;
    }
    return p->n_layers;
}

/** Room for another stream, or the one whose room is taken; NULL: there is none. */
static struct stream *make_room(const struct eval_cache_pass *p)
{
    struct eval_cache *c = p->cache;
    double n_bytes = (double)p->n_floats * sizeof(float);
    if (c->options.ascending && c->n_streams) {
        struct stream *s = &c->streams[0];
        if (s->n_floats != p->n_floats) {
            free(s->values);
            s->values = NULL;
        }
        return s;
    }
    if (!c->options.ascending && c->n_bytes + n_bytes > c->options.n_bytes)
        return NULL;
    if (base_array_reserve(c->streams, c->capacity, c->n_streams + 1, "streams", NULL))
        return NULL;
    c->streams[c->n_streams] = (struct stream){.offset = (off_t)c->n_bytes};
    c->n_bytes += n_bytes;
    return &c->streams[c->n_streams++];
}

enum status eval_cache_keep(const struct eval_cache_pass *p, size_t layer, struct status_why *why)
{
    struct eval_cache *c = p->cache;
    if (!c || layer == 0 || layer > p->stage)
        return STATUS_OK;
    pthread_mutex_lock(&c->lock);
    struct stream *there = find(p, layer), *s = NULL;
    if (!there || there->layer != layer)
        s = make_room(p);
    enum status status = STATUS_OK;
    if (s) {
        s->n_floats = p->n_floats;
        s->layer = layer;
        memcpy(s->key, p->key, sizeof s->key);
        status = write_stream(p, s, why);
        if (status)
            s->n_floats = 0; /* found by no batch */
    }
    pthread_mutex_unlock(&c->lock);
    return status;
}
