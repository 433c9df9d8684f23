#include "clients/activations/rounding.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/pool.h"
#include "clients/activations/places.h"
#include "kernels/observer.h"

/** What the input of a product becomes. */
struct form {
    enum act_type type;
    float scale;
    bool ours; /* the weight is of a file that was added */
};

/** A backend that rounds. */
struct hook {
    struct kern_observer observer;
    const struct act_rounding *rounding;
    struct base_pool *pool;
    float *rounded; /* the input of the last product */
    size_t capacity;
    float *queries; /* of the last attention whose queries were rounded */
    size_t n_queries;
    /* What it was; x NULL: it was not rounded, or of several inputs. */
    const float *x;
    size_t n_rows, n_cols;
    struct form form;
};

struct act_rounding {
    struct act_rule rule;
    struct act_places places;
    struct hook *hooks;
    size_t n_hooks;
};

/** Rows that are rounded. */
struct rows {
    const float *x;
    float *y;
    size_t n_rows, n_cols;
    struct form form;
};

enum { ROWS_AT_ONCE = 16 };

static void round_rows(void *context, size_t index, unsigned thread)
{
    const struct rows *rows = context;
    size_t first = index * ROWS_AT_ONCE, n = base_min(rows->n_rows - first, ROWS_AT_ONCE);
    (void)thread;
    float *y = rows->y + first * rows->n_cols;
    memcpy(y, rows->x + first * rows->n_cols, n * rows->n_cols * sizeof *y);
    for (size_t i = 0; i < n; i++)
        act_round_row(rows->form.type, y + i * rows->n_cols, rows->n_cols, rows->form.scale);
}

static enum status run(const struct hook *hook, struct rows *rows)
{
    size_t n = base_div_up(rows->n_rows, ROWS_AT_ONCE);
    return base_pool_run(hook->pool, n, round_rows, rows, hook->observer.backend->cancel);
}

/** What the inputs of a product with this weight become: of type F32, what they are. */
static enum status form_of(struct form *out, const struct act_rounding *r,
                           const struct kern_weight *weight, struct status_why *why)
{
    const struct act_place *place = act_places_find(&r->places, weight->data);
    *out = (struct form){.type = ACT_F32, .scale = 1};
    if (!place)
        return STATUS_OK;
    out->scale = place->scale;
    out->ours = true;
    enum status status = act_rule_type(&out->type, &r->rule, weight->type, weight->n_cols, why);
    if (!status && out->type == ACT_FP8_TENSOR && !place->scaled)
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "--activations %s: the scale of a tensor's inputs is that of its "
                             ".input_scale, and a weight of %zu x %zu has none; fp8 has a scale "
                             "for each token",
                             act_rule_name(&r->rule), weight->n_rows, weight->n_cols);
    return status;
}

static bool is_last(const struct hook *hook, const struct kern_linear *op, struct form form)
{
    return op->same_x && hook->x == op->x && hook->n_rows == op->n_tokens &&
           hook->n_cols == op->weight->n_cols && hook->form.type == form.type &&
           memcmp(&hook->form.scale, &form.scale, sizeof form.scale) == 0;
}

static enum status linear(struct kern_backend *b, const struct kern_linear *op,
                          struct status_why *why)
{
    struct hook *hook = kern_owner_of(b);
    struct form form;
    struct kern_linear product = *op;
    size_t n_cols = op->weight->n_cols;
    enum status status = form_of(&form, hook->rounding, op->weight, why);
    if (status)
        return status;
    bool rounds = form.type != ACT_F32;
    product.same_x = rounds ? is_last(hook, op, form) : op->same_x && !hook->x;
    if (rounds && !product.same_x) {
        status =
            base_array_reserve(hook->rounded, hook->capacity, op->n_tokens * n_cols, "inputs", why);
        struct rows rows = {op->x, hook->rounded, op->n_tokens, n_cols, form};
        if (!status)
            status = run(hook, &rows);
    }
    hook->x = rounds && !status ? op->x : NULL;
    hook->n_rows = op->n_tokens;
    hook->n_cols = n_cols;
    hook->form = form;
    if (rounds)
        product.x = hook->rounded;
    return status ? status : hook->observer.inner->linear(b, &product, why);
}

/** Rows of q of all ranges. */
static size_t query_rows(const struct kern_attention *op)
{
    size_t n = 0;
    for (size_t i = 0; i < op->n_ranges; i++)
        n = base_max(n, op->ranges[i].q_row + op->ranges[i].n_q);
    return n;
}

/** How queries are rounded: where keys are turned, turned as they are. */
static struct kern_round round_of(const struct hook *hook, const struct kern_attention *op)
{
    return (struct kern_round){.type = act_rule_queries(&hook->rounding->rule, op->k_type),
                               .n = query_rows(op) * op->n_heads * op->head_size,
                               .n_turn = op->k_turn,
                               .scale = 1};
}

/** The products before are of the same model. */
static enum status attention(struct kern_backend *b, const struct kern_attention *op,
                             struct status_why *why)
{
    struct hook *hook = kern_owner_of(b);
    struct kern_attention rounded = *op;
    struct kern_round round = round_of(hook, op);
    if (round.type == GGUF_TYPE_F32 || !hook->form.ours)
        return hook->observer.inner->attention(b, op, why);
    enum status status =
        base_array_reserve(hook->queries, hook->n_queries, round.n, "queries", why);
    if (status)
        return status;
    memcpy(hook->queries, op->q, round.n * sizeof *op->q);
    rounded.q = round.x = hook->queries;
    status = hook->observer.inner->round(b, &round, why);
    return status ? status : hook->observer.inner->attention(b, &rounded, why);
}

/** Round the rows of heads, which have the same number; heads: copies, changed. */
static enum status round_heads(struct hook *hook, struct kern_head *heads, size_t n_heads,
                               size_t n_rows, struct status_why *why)
{
    enum status status = STATUS_OK;
    size_t n = 0;
    hook->x = NULL;
    for (size_t h = 0; h < n_heads; h++)
        n += heads[h].matrix ? n_rows * heads[h].matrix->n_cols : 0;
    status = base_array_reserve(hook->rounded, hook->capacity, n, "inputs", why);
    float *to = hook->rounded;
    for (size_t h = 0; h < n_heads && !status; h++) {
        if (!heads[h].matrix)
            continue;
        size_t n_cols = heads[h].matrix->n_cols;
        struct rows rows = {heads[h].hidden, to, n_rows, n_cols, {.type = ACT_F32}};
        status = form_of(&rows.form, hook->rounding, heads[h].matrix, why);
        if (status || rows.form.type == ACT_F32)
            continue;
        status = run(hook, &rows);
        heads[h].hidden = to;
        to += n_rows * n_cols;
    }
    return status;
}

static enum status score(struct kern_backend *b, const struct kern_score *op,
                         struct status_why *why)
{
    struct hook *hook = kern_owner_of(b);
    struct kern_score rounded = *op;
    struct kern_head *heads;
    enum status status = base_array_new(heads, op->n_heads, "heads", why);
    if (status)
        return status;
    memcpy(heads, op->heads, op->n_heads * sizeof *heads);
    rounded.heads = heads;
    status = round_heads(hook, heads, op->n_heads, op->n_rows, why);
    if (!status)
        status = hook->observer.inner->score(b, &rounded, why);
    free(heads);
    return status;
}

static enum status record(struct kern_backend *b, const struct kern_record *op,
                          struct status_why *why)
{
    struct hook *hook = kern_owner_of(b);
    struct kern_record rounded = *op;
    enum status status = round_heads(hook, &rounded.head, 1, op->n_rows, why);
    return status ? status : hook->observer.inner->record(b, &rounded, why);
}

/* What the copies take. */

static size_t linear_bytes(struct kern_backend *b, const struct kern_linear *op)
{
    return b->observer->inner->linear_bytes(b, op) +
           op->n_tokens * op->weight->n_cols * sizeof(float);
}

static size_t attention_bytes(struct kern_backend *b, const struct kern_attention *op)
{
    return b->observer->inner->attention_bytes(b, op) +
           op->n_ranges * op->n_heads * op->head_size * sizeof(float); /* each of one query */
}

static size_t heads_bytes(const struct kern_head *heads, size_t n_heads, size_t n_rows)
{
    size_t n_cols = 0;
    for (size_t h = 0; h < n_heads; h++)
        n_cols += heads[h].matrix ? heads[h].matrix->n_cols : 0;
    return n_cols * n_rows * sizeof(float);
}

static size_t score_bytes(struct kern_backend *b, const struct kern_score *op)
{
    return b->observer->inner->score_bytes(b, op) + heads_bytes(op->heads, op->n_heads, op->n_rows);
}

static size_t record_bytes(struct kern_backend *b, const struct kern_record *op)
{
    return b->observer->inner->record_bytes(b, op) + heads_bytes(&op->head, 1, op->n_rows);
}

static enum status attach(struct act_rounding *r, struct kern_backend *b, struct status_why *why)
{
    struct hook *hook = &r->hooks[r->n_hooks];
    struct kern_description described = kern_describe(b);
    if (described.own_memory)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "--activations: rounds on the CPU only, and %s has memory of its own; "
                           "expected --device cpu",
                           described.device);
    *hook = (struct hook){.rounding = r};
    enum status status = base_pool_open(&hook->pool, described.n_threads, why);
    if (status)
        return status;
    struct kern_backend_ops *ops = &hook->observer.ops;
    kern_observe(&hook->observer, b, hook);
    ops->linear = linear;
    ops->attention = attention;
    ops->score = score;
    ops->record = record;
    ops->linear_bytes = linear_bytes;
    ops->attention_bytes = attention_bytes;
    ops->score_bytes = score_bytes;
    ops->record_bytes = record_bytes;
    r->n_hooks++;
    return STATUS_OK;
}

enum status act_rounding_open(struct act_rounding **out, const struct act_rule *rule,
                              struct kern_backend *const *backends, size_t n_backends,
                              struct status_why *why)
{
    struct act_rounding *r = *out = calloc(1, sizeof *r);
    if (!r)
        return status_fail(why, STATUS_MEMORY, "no memory to round activations with");
    r->rule = *rule;
    enum status status = base_array_new(r->hooks, n_backends, "devices", why);
    for (size_t i = 0; i < n_backends && !status; i++)
        status = attach(r, backends[i], why);
    if (status) {
        act_rounding_close(r);
        *out = NULL;
    }
    return status;
}

enum status act_rounding_add(struct act_rounding *r, const struct gguf_file *file,
                             struct status_why *why)
{
    return act_places_add(&r->places, file, why);
}

void act_rounding_close(struct act_rounding *r)
{
    if (!r)
        return;
    for (size_t i = 0; i < r->n_hooks; i++) {
        struct hook *hook = &r->hooks[i];
        kern_observe_end(&hook->observer);
        base_pool_close(hook->pool);
        free(hook->rounded);
        free(hook->queries);
    }
    free(r->hooks);
    free(r->places.items);
    free(r);
}
