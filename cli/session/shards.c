#include "cli/session/shards.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/system/system.h"
#include "cli/process/faults.h"
#include "cli/process/say.h"
#include "kernels/kernels.h"

/** A file of the model. */
struct shard {
    struct stat seen;       /* the file at its path that was looked at last, taken or not */
    struct gguf_file *file; /* in force; NULL: the model's own */
    size_t first, n;        /* its tensors, in the directory */
};

/** Digests of a tensor's bytes as they were opened, as they are, and in a file that is looked at.
 */
struct digests {
    char opened[BASE_HEX], now[BASE_HEX], next[BASE_HEX]; /* "": not known */
};

struct cli_shards {
    struct model *model;
    struct gguf_file *own;
    size_t n;
    const struct cli_backends *backends;
    struct shard *items;     /* [n] */
    struct digests *digests; /* [tensors of the directory] */
};

enum status cli_shards_open(struct cli_shards **out, struct model *model, struct gguf_file *file,
                            struct status_why *why)
{
    struct cli_shards *s = *out = calloc(1, sizeof *s);
    if (s) {
        *s = (struct cli_shards){.model = model, .own = file, .n = gguf_n_shards(file)};
        s->items = calloc(s->n, sizeof *s->items);
        s->digests = calloc(gguf_n_tensors(file) + 1, sizeof *s->digests);
    }
    if (!s || !s->items || !s->digests) {
        cli_shards_close(s);
        *out = NULL;
        return status_fail(why, STATUS_MEMORY, "%s: no memory to watch its files", gguf_path(file));
    }
    for (size_t i = 0, at = 0; i < s->n; i++) {
        s->items[i].seen = *gguf_shard_opened(file, i);
        s->items[i].first = at;
        while (at < gguf_n_tensors(file) && gguf_tensor_at(file, at)->shard == i)
            at++;
        s->items[i].n = at - s->items[i].first;
    }
    return STATUS_OK;
}

/** Close a file of one part. NULL is allowed. */
static void close_part(struct gguf_file *file)
{
    uint64_t n_bytes, data_offset;
    if (file) {
        const void *data = gguf_shard_data(file, 0, &n_bytes, &data_offset);
        cli_mapping_forget(data, (size_t)n_bytes);
    }
    gguf_close(file);
}

void cli_shards_close(struct cli_shards *s)
{
    for (size_t i = 0; s && s->items && i < s->n; i++)
        close_part(s->items[i].file);
    if (s) {
        free(s->items);
        free(s->digests);
    }
    free(s);
}

static bool is_other(const struct stat *a, const struct stat *b)
{
    return a->st_mtim.tv_sec != b->st_mtim.tv_sec || a->st_mtim.tv_nsec != b->st_mtim.tv_nsec ||
           a->st_size != b->st_size || a->st_ino != b->st_ino || a->st_dev != b->st_dev;
}

enum { TICK_MS = 12, MOST_TICKS = 50 };

/** Whether the file was written so lately that a further write could have the same time. */
static bool is_fresh(const struct stat *about)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    double age = (double)(now.tv_sec - about->st_mtim.tv_sec) +
                 1e-9 * (double)(now.tv_nsec - about->st_mtim.tv_nsec);
    return age > -1 && age < 1e-3 * TICK_MS; /* another machine's clock may be ahead of ours */
}

/** Open the file when its time tells it from what may still be written to it. */
static enum status open_settled(struct gguf_file **out, const char *path, struct status_why *why)
{
    const struct timespec tick = {.tv_nsec = TICK_MS * 1000000L};
    for (int i = 0; i < MOST_TICKS; i++) {
        struct stat about;
        if (stat(path, &about) == 0 && is_fresh(&about)) {
            nanosleep(&tick, NULL);
            continue;
        }
        enum status status = gguf_list_part(out, path, why);
        if (status || !is_fresh(gguf_shard_opened(*out, 0)))
            return status;
        close_part(*out);
        *out = NULL;
    }
    return status_fail(why, STATUS_CHANGED, "%s: is being written to", path);
}

static void digest(char hex[BASE_HEX], const struct gguf_tensor *t)
{
    if (base_sha256(hex, t->data, (size_t)t->n_bytes, NULL))
        hex[0] = '\0';
}

/**
 * What the opened tensors are, before others take their place. They can no longer be read from a
 * file that was overwritten: all that comes from it counts as different.
 */
static void remember_opened(struct cli_shards *s, const struct shard *shard)
{
    size_t i = (size_t)(shard - s->items);
    if (shard->file || s->digests[shard->first].opened[0] ||
        gguf_check_part_unchanged(s->own, i, NULL))
        return;
    for (size_t t = shard->first; t < shard->first + shard->n; t++)
        digest(s->digests[t].opened, gguf_tensor_at(s->own, t));
    bool readable = !gguf_check_part_unchanged(s->own, i, NULL);
    for (size_t t = shard->first; t < shard->first + shard->n && !readable; t++)
        s->digests[t].opened[0] = '\0';
}

static void refuse(const char *name, const char *reason)
{
    cli_complain("hotswap: tensor '%s' cannot be hot-swapped: %s; skipping\n", name, reason);
}

/** Swap all tensors of the shard, or none. bad: the one that does not fit. */
static enum status swap_all(struct cli_shards *s, const struct shard *shard,
                            const struct gguf_file *file, size_t *bad, struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t i = shard->first, end = shard->first + shard->n;
    for (; i < end; i++) {
        const char *name = gguf_tensor_at(s->own, i)->name;
        const struct gguf_tensor *from = gguf_tensor_find(file, name);
        status = from ? model_swap(s->model, name, file, from, why)
                      : status_fail(why, STATUS_FORMAT, "%s does not have it", gguf_path(file));
        if (status)
            break;
    }
    *bad = i;
    while (status && i-- > shard->first) {
        const char *name = gguf_tensor_at(s->own, i)->name;
        const struct gguf_tensor *before = shard->file ? gguf_tensor_find(shard->file, name) : NULL;
        (void)model_swap(s->model, name, shard->file, before, NULL); /* it fitted before */
    }
    return status;
}

/** Tell why: of the tensor itself, and of those that came with it. */
static void refuse_all(const struct cli_shards *s, const struct shard *shard, size_t bad,
                       const char *reason)
{
    for (size_t i = shard->first; i < shard->first + shard->n; i++)
        refuse(gguf_tensor_at(s->own, i)->name,
               i == bad ? reason : "another tensor of its file does not fit");
}

/** The bytes of the file that shard i's tensors are in. */
static const void *data_of(const struct cli_shards *s, size_t i, uint64_t *n_bytes)
{
    uint64_t data_offset;
    const struct gguf_file *file = s->items[i].file;
    return file ? gguf_shard_data(file, 0, n_bytes, &data_offset)
                : gguf_shard_data(s->own, i, n_bytes, &data_offset);
}

/** The file is in force from now on. */
static void take(struct cli_shards *s, struct shard *shard, struct gguf_file *file,
                 const char *whose)
{
    for (size_t i = shard->first; i < shard->first + shard->n; i++) {
        const struct gguf_tensor *own = gguf_tensor_at(s->own, i);
        memcpy(s->digests[i].now, s->digests[i].next, BASE_HEX);
        if (strcmp(s->digests[i].now, s->digests[i].opened) == 0 &&
            gguf_tensor_find(file, own->name)->type_id == own->type_id)
            model_swap_is_own(s->model, own->name);
        cli_say("reloaded tensor '%s'%s\n", own->name, whose);
    }
    size_t i_shard = (size_t)(shard - s->items);
    uint64_t n_bytes;
    const void *data = data_of(s, i_shard, &n_bytes);
    for (size_t b = 0; b < s->backends->n; b++)
        kern_forget(s->backends->items[b], data, (size_t)n_bytes);
    if (shard->file)
        close_part(shard->file);
    else
        gguf_let_go(s->own, i_shard);
    shard->file = file;
}

/** Open the new file and read its tensors once, from the beginning to the end. */
static enum status open_whole(struct cli_shards *s, const struct shard *shard,
                              struct gguf_file **out, struct status_why *why)
{
    size_t n_faults = cli_mapping_faults();
    const char *path = gguf_shard_path(s->own, (size_t)(shard - s->items));
    enum status status = open_settled(out, path, why);
    for (size_t i = shard->first; i < shard->first + shard->n && !status; i++) {
        const struct gguf_tensor *from = gguf_tensor_find(*out, gguf_tensor_at(s->own, i)->name);
        if (from)
            digest(s->digests[i].next, from);
    }
    if (!status)
        status = gguf_check_unchanged(*out, why);
    if (!status && cli_mapping_faults() != n_faults)
        status = status_fail(why, STATUS_IO, "%s: a part of it cannot be read", path);
    return status;
}

/** Returns whether the file at the shard's path is in force now. */
static bool reload(struct cli_shards *s, struct shard *shard, const char *whose)
{
    struct gguf_file *file = NULL;
    struct status_why why;
    size_t bad;
    if (open_whole(s, shard, &file, &why)) {
        close_part(file);
        cli_complain("hotswap: %s; its tensors are left as they were, until the next reload\n",
                     why.text);
        return false;
    }
    shard->seen = *gguf_shard_opened(file, 0);
    remember_opened(s, shard);
    if (swap_all(s, shard, file, &bad, &why)) {
        refuse_all(s, shard, bad, why.text);
        close_part(file);
        return false;
    }
    take(s, shard, file, whose);
    return true;
}

static bool is_lost(const struct cli_shards *s, size_t i)
{
    uint64_t n_bytes;
    const void *data = data_of(s, i, &n_bytes);
    return cli_mapping_lost(data, (size_t)n_bytes);
}

bool cli_shards_lost(const struct cli_shards *s)
{
    for (size_t i = 0; i < s->n; i++)
        if (s->items[i].n && is_lost(s, i))
            return true;
    return false;
}

size_t cli_shards_reload(struct cli_shards *s, const struct cli_backends *backends,
                         const char *whose)
{
    s->backends = backends;
    size_t n_tensors = 0;
    for (size_t i = 0; i < s->n; i++) {
        struct shard *shard = &s->items[i];
        struct stat now;
        bool there = stat(gguf_shard_path(s->own, i), &now) == 0;
        if (there && !is_other(&now, &shard->seen) && !is_lost(s, i))
            continue;
        if (!shard->n)
            gguf_let_go(s->own, i); /* its keys are kept */
        else if (reload(s, shard, whose))
            n_tensors += shard->n;
    }
    return n_tensors;
}

bool cli_shards_next(const struct cli_shards *s, size_t *at, struct cli_swapped *out)
{
    for (; *at < gguf_n_tensors(s->own); (*at)++) {
        struct model_in_force now = model_in_force(s->model, *at);
        const struct digests *d = &s->digests[*at];
        if (!now.swapped || (d->opened[0] && strcmp(d->opened, d->now) == 0))
            continue;
        const char *name = gguf_tensor_at(s->own, (*at)++)->name;
        *out = (struct cli_swapped){name, now.type->name, now.n_bytes, d->now};
        return true;
    }
    return false;
}

void cli_shards_print_unused(const struct cli_shards *s)
{
    for (size_t i = 0; i < gguf_n_tensors(s->own); i++)
        if (model_in_force(s->model, i).unused)
            cli_say("model has unused tensor %s (size = %llu bytes)\n",
                    gguf_tensor_at(s->own, i)->name,
                    (unsigned long long)gguf_tensor_at(s->own, i)->n_bytes);
}
