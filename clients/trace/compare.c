#include "clients/trace/compare.h"

#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/trace/routes.h"

/** Values whose RMS says something of their own. */
enum { MANY = 64 };

static bool matches(const struct trace_record *r, const char *arch, enum model_place place,
                    int layer)
{
    return r->layer == layer && r->n_values > 0 &&
           trace_place_match(place, arch, r->name, *r->op ? r->op : NULL);
}

bool trace_file_has(const struct trace_file *file, const char *arch, enum model_place place,
                    int layer)
{
    for (size_t i = 0; i < file->n; i++)
        if (matches(&file->records[i], arch, place, layer))
            return true;
    return false;
}

/** Whether a record can be the last rows of the tensor: its first axes are a row. */
static bool fits(const struct trace_tensor *t, const struct trace_record *r)
{
    uint64_t width = t->n_heads * t->size, n = trace_record_elements(r), row = 1;
    for (int axis = 0; axis < 4 && row < width; axis++)
        row *= r->ne[axis];
    return n > 0 && row == width && n / width <= t->n_rows;
}

/** The last record that fits; none with one that does not fit: *misfit is it. */
static const struct trace_record *record_of(const struct trace_file *file, const char *arch,
                                            const struct trace_tensor *t,
                                            const struct trace_record **misfit)
{
    const struct trace_record *found = NULL;
    *misfit = NULL;
    for (size_t i = 0; i < file->n; i++) {
        const struct trace_record *r = &file->records[i];
        if (!matches(r, arch, t->place, t->layer))
            continue;
        if (fits(t, r))
            found = r;
        else
            *misfit = r;
    }
    return found;
}

/** Squared errors of the parts of a tensor, in units of what is to be expected. */
struct parts {
    double *squares; /* [n_rows, n_heads] */
    size_t *n;
};

/** What a printed value may be off besides, as a variance: it was rounded to four decimals. */
static double printed_variance(const struct trace_record *r)
{
    return r->whole ? 0 : TRACE_PRINTED_HALF * TRACE_PRINTED_HALF / 3;
}

static void add_values(struct trace_distance *d, const struct trace *trace,
                       const struct trace_file *file, const struct trace_routes *routes,
                       struct parts *parts)
{
    const struct trace_tensor *t = d->tensor;
    size_t width = t->n_heads * t->size, begin = (t->n_rows - d->n_rows) * width;
    double printed = printed_variance(d->record), total = 0;
    for (size_t i = 0; i < d->record->n_values; i++) {
        size_t at = begin + (size_t)trace_record_index(d->record, i), part = at / t->size;
        double other = trace_record_value(file, d->record, i), own = (double)t->values[at];
        if (trace_routes_excuse(routes, t, at))
            continue;
        double expected = trace_tensor_error(trace, t, part / t->n_heads, part % t->n_heads);
        /* Never below what float32 can hold. */
        double variance = expected * expected + printed + 0x1p-48 * own * own + 1e-76;
        double error = other - own;
        double square = isfinite(error)                    ? error * error / variance
                        : isfinite(own) || isfinite(other) ? (double)INFINITY
                                                           : 0;
        parts->squares[part] += square;
        parts->n[part]++;
        total += square;
        d->n_values++;
    }
    d->rms = d->n_values ? sqrt(total / (double)d->n_values) : 0;
}

static void find_most(struct trace_distance *d, const struct parts *parts, double limit)
{
    const struct trace_tensor *t = d->tensor;
    d->first_row = t->n_rows;
    d->first_head = t->n_heads;
    for (size_t row = 0; row < t->n_rows; row++) {
        bool off = false, seen = false;
        for (size_t head = 0; head < t->n_heads; head++) {
            size_t part = row * t->n_heads + head;
            if (!parts->n[part])
                continue;
            seen = true;
            double distance = sqrt(parts->squares[part] / (double)parts->n[part]);
            if (distance > d->most) {
                d->most = distance;
                d->row = row;
                d->head = head;
            }
            off |= distance > limit;
        }
        if (off && d->first_row == t->n_rows)
            d->first_row = row;
        d->n_rows_off += off;
        d->last_row = off ? row : d->last_row;
        d->n_rows_seen += seen && d->first_row < t->n_rows;
    }
    for (size_t head = 0; head < t->n_heads; head++) {
        bool off = false;
        for (size_t row = 0; row < t->n_rows && !off; row++) {
            size_t part = row * t->n_heads + head;
            off = parts->n[part] && sqrt(parts->squares[part] / (double)parts->n[part]) > limit;
        }
        if (off && d->first_head == t->n_heads)
            d->first_head = head;
        d->n_heads_off += off;
    }
}

/** What the passes were off in the printed sum, and what float32 loses on the way. */
static void compare_sums(struct trace_distance *d, const struct trace *trace)
{
    const struct trace_tensor *t = d->tensor;
    size_t width = t->n_heads * t->size, first = t->n_rows - d->n_rows;
    double sum = 0, lost = 0, errors = 0;
    for (size_t i = first * width; i < t->n_rows * width; i++) {
        sum += (double)t->values[i];
        lost += 0x1p-48 * sum * sum / 3;
    }
    for (size_t part = first * t->n_heads; part < t->n_rows * t->n_heads; part++) {
        double error = trace_tensor_error(trace, t, part / t->n_heads, part % t->n_heads);
        errors += (double)t->size * error * error;
    }
    double share = (double)d->n_rows / (double)t->n_rows;
    double passes = t->sum_squares / (double)trace->n_passes * share;
    double variance = fmax(errors, passes) + lost + 1e-12 / 12;
    d->sum = d->record->has_sum ? fabs(d->record->sum - sum) / sqrt(variance) : (double)NAN;
}

static void set_error(struct trace_distance *d, const struct trace *trace)
{
    const struct trace_tensor *t = d->tensor;
    double norm = trace_tensor_figures(t, t->n_rows).norm;
    double count = (double)(t->n_rows * t->n_heads * t->size);
    double error = sqrt(t->mean_squares / (double)(t->size * trace->n_passes));
    d->error = norm > 0 ? error / (norm / sqrt(count)) : 0;
}

/** What a comparison goes by. */
struct scene {
    const struct trace *trace;
    const struct trace_file *file;
    const struct trace_limits *limits;
    struct trace_routes routes;
};

static void judge(struct trace_distance *d, const struct scene *s, struct parts *parts)
{
    const struct trace_tensor *t = d->tensor;
    add_values(d, s->trace, s->file, &s->routes, parts);
    find_most(d, parts, s->limits->most);
    compare_sums(d, s->trace);
    /* Where experts are nearly tied, the choice of a row that is not printed shows in the sum. */
    if (t->layer >= s->routes.first_tied ||
        (t->place >= MODEL_AT_OUTPUT_NORM && s->routes.first_tied < INT_MAX))
        d->sum = (double)NAN;
    set_error(d, s->trace);
    d->departs = (d->rms > s->limits->rms && d->n_values >= MANY) || d->most > s->limits->most ||
                 d->sum > s->limits->sum;
}

static enum status compare_one(struct trace_distance *d, struct scene *s, struct status_why *why)
{
    const struct trace_tensor *t = d->tensor;
    d->n_rows = (size_t)(trace_record_elements(d->record) / (t->n_heads * t->size));
    if (t->place == MODEL_AT_EXPERTS)
        return trace_routes_compare(&s->routes, d, s->trace, s->file, why);
    size_t n_parts = t->n_rows * t->n_heads;
    struct parts parts = {0};
    enum status status = base_array_new(parts.squares, n_parts, "distances", why);
    if (!status)
        status = base_array_new(parts.n, n_parts, "distances", why);
    if (!status)
        judge(d, s, &parts);
    free(parts.squares);
    free(parts.n);
    return status;
}

static enum status refuse(const struct trace_tensor *t, const struct trace_record *r,
                          struct status_why *why)
{
    char name[TRACE_NAME_BYTES + 16];
    return status_fail(why, STATUS_FORMAT,
                       "%s has the shape {%" PRIu64 ", %" PRIu64 ", %" PRIu64 ", %" PRIu64
                       "}; expected rows of %zu for at most %zu tokens: another model's or another "
                       "text's",
                       trace_record_name(name, r), r->ne[0], r->ne[1], r->ne[2], r->ne[3],
                       t->n_heads * t->size, t->n_rows);
}

/** An embedding that is there twice is that of two forward passes. */
static enum status check_one_run(const struct trace_file *file, const char *arch,
                                 struct status_why *why)
{
    const struct trace_record *first = NULL;
    for (size_t i = 0; i < file->n; i++) {
        const struct trace_record *r = &file->records[i];
        if (!matches(r, arch, MODEL_AT_EMBEDDING, -1))
            continue;
        if (first && strcmp(first->name, r->name) == 0 && strcmp(first->op, r->op) == 0)
            return status_fail(why, STATUS_FORMAT,
                               "%s is there twice: several forward passes; expected one (a text of "
                               "at most one batch, -ub, and no warm-up)",
                               r->name);
        first = r;
    }
    return STATUS_OK;
}

/** Whether a shape that does not fit shows another model or text: those of all architectures. */
static bool must_fit(enum model_place place)
{
    return place == MODEL_AT_EMBEDDING || place == MODEL_AT_ATTN_NORM ||
           place == MODEL_AT_LAYER_OUT || place == MODEL_AT_LOGITS;
}

enum status trace_compare(struct trace_distances *out, const struct trace *trace,
                          const struct trace_file *file, const char *arch,
                          const struct trace_limits *limits, struct status_why *why)
{
    *out = (struct trace_distances){0};
    if (base_array_new(out->items, trace->n, "tensors", why))
        return STATUS_MEMORY;
    struct scene scene = {trace, file, limits, {.first_tied = INT_MAX}};
    enum status status = check_one_run(file, arch, why);
    for (size_t i = 0; i < trace->n && !status; i++) {
        const struct trace_tensor *t = &trace->items[i];
        const struct trace_record *misfit, *record = record_of(file, arch, t, &misfit);
        if (!record && misfit && must_fit(t->place))
            status = refuse(t, misfit, why);
        if (!record)
            continue;
        struct trace_distance *d = &out->items[out->n++];
        *d = (struct trace_distance){.tensor = t, .record = record, .sum = (double)NAN};
        status = compare_one(d, &scene, why);
    }
    out->n_diverged = scene.routes.n_diverged;
    trace_routes_free(&scene.routes);
    if (!status && out->n == 0)
        status = status_fail(why, STATUS_FORMAT,
                             "none of its %zu tensors is one of the model's; expected names as "
                             "assay trace prints them",
                             file->n);
    while (out->first_departure < out->n && !out->items[out->first_departure].departs)
        out->first_departure++;
    return status;
}

void trace_distances_free(struct trace_distances *distances)
{
    free(distances->items);
    *distances = (struct trace_distances){.items = NULL};
}
