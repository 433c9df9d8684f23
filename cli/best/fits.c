/* Which files there is room for. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "base/text/size.h"
#include "cli/best/best.h"
#include "gguf/gguf.h"
#include "model/forward/forward.h"

static enum status read_size(uint64_t *out, const char *option, const char *text,
                             struct status_why *why)
{
    *out = 0;
    if (text && base_size_lacks_unit(text))
        return status_fail(why, STATUS_USAGE, "%s: %s is %s bytes: did you mean %sMB, or %sGB?",
                           option, text, text, text, text);
    if (!text || (base_size_parse(text, out) && *out > 0))
        return STATUS_OK;
    return status_fail(why, STATUS_USAGE, "%s: '%.32s' is no size; expected bytes, or 24GiB, ...",
                       option, text);
}

/** "0.001", "5%", or both with a '+' between them. */
static bool read_margin(struct eval_race_rules *rules, const char *text)
{
    bool given[2] = {false, false};
    for (const char *at = text; at; at = *at == '+' ? at + 1 : NULL) {
        char *end;
        double x = strtod(at, &end);
        bool is_share = *end == '%';
        if (strspn(at, "0123456789.eE-") == 0 || end == at || !isfinite(x) || x < 0 ||
            given[is_share])
            return false;
        given[is_share] = true;
        *(is_share ? &rules->share : &rules->nats) = is_share ? x / 100 : x;
        at = end + is_share;
        if (*at && (*at != '+' || !at[1]))
            return false;
    }
    return true;
}

enum status cli_best_read(struct cli_best *b, struct status_why *why)
{
    const struct cli_best_settings *s = b->settings;
    enum status status = read_size(&b->limits.memory, "--memory", s->memory, why);
    if (!status)
        status = read_size(&b->limits.size, "--size", s->size, why);
    if (!status && !read_margin(&b->rules, s->margin))
        status = status_fail(why, STATUS_USAGE,
                             "--margin: '%.32s' is no margin; expected nats, as 0.001, or a share, "
                             "as 5%%, or both, as 0.001+5%%",
                             s->margin);
    if (!status && !(s->alpha > 0 && s->alpha < 1))
        status = status_fail(why, STATUS_USAGE,
                             "--alpha: %g is no probability of error; expected a number above 0 "
                             "and below 1",
                             s->alpha);
    if (!status && cli_kv_count(&s->kld.evaluate.load) > 1)
        status = status_fail(why, STATUS_USAGE,
                             "-ctk, -ctv: expected one type each: all files are compared with the "
                             "same cache");
    b->rules.alpha = s->alpha;
    return status;
}

/** A cache holds 16 bits unless it is said otherwise. */
static double cache_of(const struct cli_best *b, const struct model *model)
{
    const struct model_hparams *h = model_hparams(model);
    struct model_kv_types types = h->kv;
    const struct cli_model_settings *load = &b->settings->kld.evaluate.load;
    if (!load->cache_k.n)
        types.k.type = GGUF_TYPE_F16;
    if (!load->cache_v.n)
        types.v.type = GGUF_TYPE_F16;
    return b->settings->context ? model_cache_bytes(h, &types, (size_t)b->settings->context) : 0;
}

static struct cli_best_file measure(const struct cli_best *b, size_t candidate)
{
    const struct cli_model *m = &b->k.candidates[candidate];
    const struct gguf_file *file = model_file(m->model);
    struct cli_best_file f = {.path = m->path,
                              .n_bytes = cli_model_size(m).n_bytes,
                              .cache = cache_of(b, m->model),
                              .candidate = candidate};
    snprintf(f.label, sizeof f.label, "%.*s", (int)(strlen(m->called) - strlen(m->kv)),
             m->called); /* the types are the same for all */
    struct gguf_quantisation quantisation = gguf_quantisation(file);
    snprintf(f.quantisation, sizeof f.quantisation, "%s", quantisation.name);
    for (size_t i = gguf_is_folder(file); i < gguf_n_shards(file); i++) {
        uint64_t n_bytes, data_offset;
        gguf_shard_data(file, i, &n_bytes, &data_offset);
        f.on_disk += n_bytes;
    }
    return f;
}

double cli_best_bytes(const struct cli_best *b, const struct cli_best_file *f)
{
    return (double)(b->limits.size ? f->on_disk : f->n_bytes);
}

static int by_size(const void *x, const void *y)
{
    const struct cli_best_file *a = x, *b = y;
    if (a->n_bytes != b->n_bytes)
        return a->n_bytes < b->n_bytes ? -1 : 1;
    return a->candidate < b->candidate ? -1 : 1;
}

static bool fits(const struct cli_best *b, const struct cli_best_file *f)
{
    const struct cli_best_limits *l = &b->limits;
    return (!l->memory || (double)f->n_bytes + f->cache <= (double)l->memory) &&
           (!l->size || f->on_disk <= l->size);
}

/** A wildcard also finds the base, and each part of a split model. */
static bool is_again(struct cli_best *b, const struct cli_model *kept, size_t n_kept,
                     const struct cli_model *m)
{
    const struct cli_model *same = NULL;
    if (!cli_base_has_rows(&b->k.base) && strcmp(b->k.base.model.id, m->id) == 0)
        same = &b->k.base.model;
    for (size_t i = 0; i < n_kept && !same; i++)
        if (strcmp(kept[i].id, m->id) == 0)
            same = &kept[i];
    if (same)
        cli_remark(&b->k.e, "%.100s is left out: it is %s%.100s", base_file_name(m->path),
                   same == &b->k.base.model ? "the base, " : "the same model as ",
                   base_file_name(same->path));
    return same != NULL;
}

static enum status none_fits(const struct cli_best *b, struct status_why *why)
{
    if (b->n_files == 0)
        return status_fail(why, STATUS_USAGE, "no file but the base is left to choose from");
    const struct cli_best_file *f = &b->files[0];
    char most[BASE_SIZE_BYTES], takes[BASE_SIZE_BYTES], slow[CLI_BEST_SLOW];
    for (size_t i = 0; i < b->n_files; i++)
        if (b->files[i].too_slow)
            return status_fail(why, STATUS_EXCEEDED,
                               "none of %zu file%s is fast and small enough: of %s, %s", b->n_files,
                               status_plural(b->n_files), b->files[i].path,
                               cli_best_say_slow(slow, b, &b->files[i]));
    base_size_text(most, (double)(b->limits.memory ? b->limits.memory : b->limits.size), b->unit);
    base_size_text(takes, cli_best_bytes(b, f) + f->cache, b->unit);
    return status_fail(why, STATUS_EXCEEDED,
                       "none of %zu file%s fits into %s: the smallest, %s, takes %s%s", b->n_files,
                       status_plural(b->n_files), most, f->path, takes,
                       f->cache > 0 ? " with its cache" : "");
}

enum status cli_best_fit(struct cli_best *b, struct status_why *why)
{
    struct cli_kld *k = &b->k;
    size_t n = k->n_candidates, n_kept = 0;
    struct cli_model *kept;
    if (base_array_new(b->files, n, "models", why) || base_array_new(kept, n, "models", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < n; i++)
        b->files[i] = measure(b, i);
    enum status status = cli_best_measure_speeds(b, why);
    if (status) {
        free(kept);
        return status;
    }
    qsort(b->files, n, sizeof *b->files, by_size);
    b->unit = base_size_unit(b->settings->memory ? b->settings->memory : b->settings->size,
                             n ? cli_best_bytes(b, &b->files[n - 1]) : 0);
    for (size_t i = 0; i < n; i++) {
        struct cli_best_file f = b->files[i];
        struct cli_model *m = &k->candidates[f.candidate];
        bool is_new = !is_again(b, kept, n_kept, m), room = is_new && fits(b, &f);
        f.too_slow = room && !cli_best_is_fast(b, &f);
        room = room && !f.too_slow;
        if (room)
            kept[n_kept] = *m;
        else
            cli_model_close(m);
        f.candidate = room ? n_kept++ : SIZE_MAX;
        if (is_new)
            b->files[b->n_files++] = f;
    }
    free(k->candidates);
    k->candidates = kept;
    k->n_candidates = n_kept;
    for (size_t i = 0; i < n_kept; i++)
        k->models[i] = kept[i].model;
    for (size_t i = 0; i < b->n_files; i++)
        if (b->files[i].candidate != SIZE_MAX)
            memcpy(k->candidates[b->files[i].candidate].called, b->files[i].label,
                   sizeof b->files[i].label);
    return n_kept ? STATUS_OK : none_fits(b, why);
}
