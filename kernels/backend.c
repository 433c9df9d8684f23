/* The operations: checks the arguments for all backends, counts the time, calls the backend. */
#include "kernels/implementation.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "kernels/choose.h"
#include "kernels/quant/round.h"
#include "kernels/scoring/beyond.h"

void kern_close(struct kern_backend *b)
{
    if (b)
        b->ops->close(b);
}

uint64_t kern_next_generation(void)
{
    static atomic_ullong last = 1; /* 1 is for what never changes */
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

struct kern_description kern_describe(const struct kern_backend *b)
{
    return b->ops->describe(b);
}

void kern_set_cancel(struct kern_backend *b, const atomic_bool *flag)
{
    b->cancel = flag;
}

void kern_times_read(struct kern_backend *b, struct kern_times *out)
{
    if (b->ops->collect_times)
        b->ops->collect_times(b);
    kern_clock_read(b->clock, out);
}

enum status kern_alloc(struct kern_backend *b, void **out, size_t n_bytes, struct status_why *why)
{
    *out = NULL;
    return b->ops->alloc(b, out, n_bytes, why);
}

void kern_free(struct kern_backend *b, void *memory)
{
    if (memory)
        b->ops->free(b, memory);
}

enum status kern_upload(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                        struct status_why *why)
{
    assert((to && from) || n_bytes == 0);
    return n_bytes ? b->ops->upload(b, to, from, n_bytes, why) : STATUS_OK;
}

enum status kern_download(struct kern_backend *b, void *to, const void *from, size_t n_bytes,
                          struct status_why *why)
{
    assert((to && from) || n_bytes == 0);
    return n_bytes ? b->ops->download(b, to, from, n_bytes, why) : STATUS_OK;
}

/** Check that a weight can be decoded and that its rows hold what they should. */
static enum status weight_check(const struct kern_weight *w, const char *role,
                                struct status_why *why)
{
    const struct gguf_type_info *info = gguf_type_info((uint32_t)w->type);
    if (!info)
        return status_fail(why, STATUS_UNSUPPORTED, "%s: type %s cannot be decoded", role,
                           gguf_type_name((uint32_t)w->type));
    if (w->n_cols == 0 || w->n_rows == 0)
        return status_fail(why, STATUS_USAGE, "%s: empty matrix of %zu x %zu", role, w->n_rows,
                           w->n_cols);
    if (w->n_cols % info->block_elems != 0)
        return status_fail(why, STATUS_USAGE,
                           "%s: rows of %zu elements; %s needs a multiple of %" PRIu32, role,
                           w->n_cols, info->name, info->block_elems);
    if (w->n_rows % info->bundle_rows != 0)
        return status_fail(why, STATUS_USAGE,
                           "%s: %zu rows; %s stores %" PRIu32 " together and needs a multiple",
                           role, w->n_rows, info->name, info->bundle_rows);
    uint64_t row_bytes;
    if (!gguf_row_bytes(info, w->n_cols, &row_bytes) || (!w->col_step && w->row_bytes < row_bytes))
        return status_fail(why, STATUS_USAGE,
                           "%s: rows %zu bytes apart; %zu elements of %s take %" PRIu64, role,
                           w->row_bytes, w->n_cols, info->name, row_bytes);
    assert(w->data && !(w->rows && info->bundle_rows > 1));
    assert(gguf_scales_fit(&w->scales, w->n_cols, info->scale_elems));
    return STATUS_OK;
}

/** Check a vector, or NULL, that must have n elements. */
static enum status vector_check(const struct kern_weight *w, size_t n, const char *role,
                                struct status_why *why)
{
    if (!w)
        return STATUS_OK;
    if (w->n_rows != 1 || w->n_cols != n)
        return status_fail(why, STATUS_USAGE, "%s: shape %zu x %zu; expected 1 x %zu", role,
                           w->n_rows, w->n_cols, n);
    return weight_check(w, role, why);
}

static enum status soft_cap_check(float cap, const char *role, struct status_why *why)
{
    if (!(cap >= 0 && cap < INFINITY))
        return status_fail(why, STATUS_USAGE,
                           "%s: a soft cap of %g; expected a positive number, or 0 for none", role,
                           (double)cap);
    return STATUS_OK;
}

enum status kern_preload(struct kern_backend *b, const struct kern_weight *weight,
                         struct status_why *why)
{
    enum status status = weight_check(weight, "preload: weight", why);
    if (status || !b->ops->preload)
        return status;
    return b->ops->preload(b, weight, why);
}

void kern_forget(struct kern_backend *b, const void *data, size_t n_bytes)
{
    if (b->ops->forget)
        b->ops->forget(b, data, n_bytes);
}

enum status kern_preload_heads(struct kern_backend *b, const struct kern_head *heads,
                               size_t n_heads, struct status_why *why)
{
    enum status status = STATUS_OK;
    for (size_t h = 0; !status && h < n_heads; h++)
        if (heads[h].matrix)
            status = weight_check(heads[h].matrix, "preload: a head", why);
    if (status || !b->ops->preload_heads)
        return status;
    return b->ops->preload_heads(b, heads, n_heads, why);
}

enum status kern_embed(struct kern_backend *b, const struct kern_weight *matrix,
                       const int32_t *tokens, size_t n_tokens, float *x, struct status_why *why)
{
    assert(!matrix->rows);
    enum status status = weight_check(matrix, "embed: matrix", why);
    if (status || n_tokens == 0)
        return status;
    for (size_t i = 0; i < n_tokens; i++) {
        if (tokens[i] < 0 || (size_t)tokens[i] >= matrix->n_rows)
            return status_fail(why, STATUS_USAGE,
                               "embed: token %" PRId32 " at %zu; the matrix has %zu rows",
                               tokens[i], i, matrix->n_rows);
    }
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->embed(b, matrix, tokens, n_tokens, x, why));
}

enum status kern_norm(struct kern_backend *b, const struct kern_norm *op, struct status_why *why)
{
    assert(op->n_groups > 0 && op->width > 0);
    assert((op->x && op->y && !(op->accumulate && op->x == op->y)) || op->n_rows == 0);
    size_t n = op->n_groups * op->width;
    enum status status = vector_check(op->gain, n, "norm: gain", why);
    if (!status)
        status = vector_check(op->bias, n, "norm: bias", why);
    if (status || op->n_rows == 0)
        return status;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_NORM, begun, b->ops->norm(b, op, why));
}

enum status kern_linear(struct kern_backend *b, const struct kern_linear *op,
                        struct status_why *why)
{
    enum status status = weight_check(op->weight, "linear: weight", why);
    if (!status)
        status = vector_check(op->bias, op->weight->n_rows, "linear: bias", why);
    if (status || op->n_tokens == 0)
        return status;
    assert(op->y_stride >= op->weight->n_rows && op->x != op->y);
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_LINEAR, begun, b->ops->linear(b, op, why));
}

enum status kern_rope(struct kern_backend *b, const struct kern_rope *op, struct status_why *why)
{
    assert(2 * op->n_pairs <= op->head_size && op->n_heads * op->head_size <= op->stride);
    assert(op->n_tokens == 0 || (op->x && op->angles && op->positions));
    for (size_t i = 0; i < op->n_tokens; i++) {
        if (op->positions[i] < 0 || (size_t)op->positions[i] >= op->n_positions)
            return status_fail(why, STATUS_USAGE,
                               "rope: position %" PRId32 " of token %zu; there are angles for %zu",
                               op->positions[i], i, op->n_positions);
    }
    if (op->n_tokens == 0 || op->n_pairs == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_ROPE, begun, b->ops->rope(b, op, why));
}

enum status kern_attention(struct kern_backend *b, const struct kern_attention *op,
                           struct status_why *why)
{
    assert(op->head_size > 0 && op->value_size > 0 && op->n_kv_heads > 0);
    if (op->n_heads % op->n_kv_heads != 0)
        return status_fail(why, STATUS_USAGE,
                           "attention: %zu heads cannot share %zu key heads evenly", op->n_heads,
                           op->n_kv_heads);
    enum status status = soft_cap_check(op->soft_cap, "attention", why);
    if (!status)
        status = vector_check(op->sinks, op->n_heads, "attention: sinks", why);
    status = status ? status : kern_chosen_check(op, why);
    if (status || op->n_ranges == 0)
        return status;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_ATTENTION, begun, b->ops->attention(b, op, why));
}

enum status kern_activate(struct kern_backend *b, const struct kern_activate *op,
                          struct status_why *why)
{
    assert(op->kind < KERN_N_ACTIVATIONS && (op->gate || op->n == 0));
    bool limits_up = op->kind == KERN_SWIGLU_OAI || op->kind == KERN_SWIGLU_CLAMP_BEFORE ||
                     op->kind == KERN_SWIGLU_CLAMP_AFTER;
    assert(op->up || !limits_up || op->n == 0);
    (void)limits_up;
    if (op->n == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_GATE, begun, b->ops->activate(b, op, why));
}

/** Whether so many experts can be chosen, from groups of one size. */
static enum status experts_check(const struct kern_route *op, struct status_why *why)
{
    size_t n_groups = op->n_groups > 1 ? op->n_groups : 1;
    size_t n_groups_used = op->n_groups > 1 ? op->n_groups_used : 1;
    if (n_groups_used == 0 || n_groups_used > n_groups || op->n_experts % n_groups != 0)
        return status_fail(why, STATUS_USAGE, "route: %zu of %zu groups of %zu experts",
                           n_groups_used, n_groups, op->n_experts);
    size_t n_open = op->n_experts / n_groups * n_groups_used;
    if (op->n_used == 0 || op->n_used > n_open)
        return status_fail(why, STATUS_USAGE, "route: %zu of %zu experts", op->n_used, n_open);
    return vector_check(op->selection_bias, op->n_experts, "route: selection bias", why);
}

enum status kern_route(struct kern_backend *b, const struct kern_route *op, struct status_why *why)
{
    enum status status = experts_check(op, why);
    if (status || op->n_tokens == 0)
        return status;
    assert(op->n_experts <= INT32_MAX && op->logits && op->experts && op->shares);
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->route(b, op, why));
}

enum status kern_scale_rows(struct kern_backend *b, float *x, size_t width, size_t n_rows,
                            const float *factors, struct status_why *why)
{
    assert((x && factors) || n_rows == 0);
    if (n_rows == 0 || width == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun,
                    b->ops->scale_rows(b, x, width, n_rows, factors, why));
}

enum status kern_copy_rows(struct kern_backend *b, const struct kern_copy *op,
                           struct status_why *why)
{
    const size_t spread = op->spread > 1 ? op->spread : 1;
    (void)spread;
    assert(op->width % spread == 0 && op->width <= op->y_stride);
    assert(op->x_stride == 0 || op->width / spread <= op->x_stride);
    if (op->n_rows == 0 || op->width == 0)
        return STATUS_OK;
    assert(op->x && op->y);
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->copy_rows(b, op, why));
}

enum status kern_round(struct kern_backend *b, const struct kern_round *op, struct status_why *why)
{
    const size_t n_elems = kern_round_elems(op->type);
    (void)n_elems;
    assert(n_elems && op->n_turn <= KERN_TURN_MAX && !(op->n_turn & (op->n_turn - 1)));
    assert(op->n % n_elems == 0 && (!op->n_turn || op->n % op->n_turn == 0));
    assert(!op->n_turn || op->type == GGUF_TYPE_F32 || kern_round_is_turned(op->type));
    assert(op->type != GGUF_TYPE_Q8_KV || (op->row && op->n % op->row == 0));
    assert(op->scale == 0 || (op->scale > 0 && kern_round_is_scaled(op->type)));
    if (op->n == 0 || op->type == GGUF_TYPE_F32)
        return STATUS_OK;
    assert(op->x);
    struct kern_round scaled = *op;
    scaled.scale = op->scale == 0 ? 1.0f : op->scale;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->round(b, &scaled, why));
}

enum status kern_gather(struct kern_backend *b, const struct kern_gather *op,
                        struct status_why *why)
{
    assert((op->x && op->rows && op->y) || op->n == 0);
    if (op->n == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->gather(b, op, why));
}

enum status kern_scatter_add(struct kern_backend *b, const struct kern_scatter *op,
                             struct status_why *why)
{
    assert((op->x && op->rows && op->shares && op->y) || op->n == 0);
    if (op->n == 0)
        return STATUS_OK;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_OTHER, begun, b->ops->scatter_add(b, op, why));
}

enum status kern_convolve(struct kern_backend *b, const struct kern_convolve *op,
                          struct status_why *why)
{
    size_t n_taps = op->weight->n_cols, n_channels = op->weight->n_rows;
    if (n_taps > KERN_CONVOLVE_MAX)
        return status_fail(why, STATUS_UNSUPPORTED, "convolve: %zu tokens; at most %d", n_taps,
                           KERN_CONVOLVE_MAX);
    enum status status = weight_check(op->weight, "convolve: weight", why);
    status = status ? status : vector_check(op->bias, n_channels, "convolve: bias", why);
    status = status ? status : kern_runs_check(op->runs, op->n_runs, "convolve", why);
    if (status || op->n_runs == 0)
        return status;
    assert(op->x_stride >= n_channels && op->x != op->y);
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_RECUR, begun, b->ops->convolve(b, op, why));
}

enum status kern_recur(struct kern_backend *b, const struct kern_recur *op, struct status_why *why)
{
    size_t n_steps = op->n_heads * kern_recur_n_steps(op);
    enum status status = vector_check(op->dt_bias, n_steps, "recur: dt_bias", why);
    status = status ? status : vector_check(op->decay, op->n_heads, "recur: decay", why);
    status = status ? status : vector_check(op->skip, op->n_heads, "recur: skip", why);
    status = status ? status : kern_recur_check(op, why);
    if (status || op->n_runs == 0)
        return status;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_RECUR, begun, b->ops->recur(b, op, why));
}

size_t kern_recur_bytes(struct kern_backend *b, const struct kern_recur *op)
{
    return b->ops->recur_bytes(b, op);
}

/** role: the operation's name. */
static enum status head_check(const struct kern_head *head, size_t n_vocab, const char *role,
                              struct status_why *why)
{
    assert(!head->matrix->rows);
    enum status status = weight_check(head->matrix, role, why);
    if (!status)
        status = vector_check(head->bias, n_vocab, "head: bias", why);
    if (!status)
        status = soft_cap_check(head->soft_cap, role, why);
    if (!status && head->matrix->n_rows != n_vocab)
        status = status_fail(why, STATUS_USAGE, "%s of %zu tokens beside one of %zu", role,
                             head->matrix->n_rows, n_vocab);
    return status;
}

/** The rows that only this head has. */
static enum status beyond_check(const struct kern_head *head, struct status_why *why)
{
    const struct kern_head *beyond = head->beyond;
    if (!beyond)
        return STATUS_OK;
    assert(beyond->matrix->n_cols == head->matrix->n_cols && !beyond->recorded);
    return head_check(beyond, beyond->matrix->n_rows, "score: what is beyond a head", why);
}

static enum status vocabulary_check(size_t n_vocab, const char *role, struct status_why *why)
{
    if (n_vocab > INT32_MAX)
        return status_fail(why, STATUS_USAGE, "%s: %zu tokens do not fit an id", role, n_vocab);
    return STATUS_OK;
}

static enum status stride_check(size_t stride, size_t n_vocab, const char *role,
                                struct status_why *why)
{
    if (stride != kern_record_codes(n_vocab))
        return status_fail(why, STATUS_USAGE, "%s: records of %zu codes; %zu tokens take %zu", role,
                           stride, n_vocab, kern_record_codes(n_vocab));
    return STATUS_OK;
}

static enum status targets_check(const struct kern_score *op, size_t n_vocab,
                                 struct status_why *why)
{
    for (size_t i = 0; i < op->n_targets; i++) {
        const struct kern_target *target = &op->targets[i];
        if (target->row >= op->n_rows)
            return status_fail(why, STATUS_USAGE, "score: target %zu is of row %" PRIu32 " of %zu",
                               i, target->row, op->n_rows);
        if (target->token < 0 || (size_t)target->token >= n_vocab)
            return status_fail(why, STATUS_USAGE,
                               "score: target %zu is token %" PRId32 " of a vocabulary of %zu", i,
                               target->token, n_vocab);
    }
    return STATUS_OK;
}

enum status kern_score(struct kern_backend *b, const struct kern_score *op, struct status_why *why)
{
    assert(op->n_heads > 0 && (op->pairs || !op->want_js));
    const struct kern_recorded *recorded = op->heads[0].recorded;
    assert(!recorded || !isnan(recorded->cut));
    if (recorded && op->n_heads == 1)
        return status_fail(why, STATUS_USAGE, "score: recorded rows without a head beside them");
    size_t n_vocab = op->heads[recorded ? 1 : 0].matrix->n_rows;
    enum status status = vocabulary_check(n_vocab, "score", why);
    if (!status && recorded)
        status = stride_check(recorded->stride, n_vocab, "score", why);
    for (size_t h = recorded ? 1 : 0; !status && h < op->n_heads; h++) {
        assert(h == 0 || !op->heads[h].recorded);
        status = head_check(&op->heads[h], n_vocab, "score: a head", why);
        status = status ? status : beyond_check(&op->heads[h], why);
    }
    if (!status)
        status = targets_check(op, n_vocab, why);
    if (status || op->n_rows == 0)
        return status;
    uint64_t begun = kern_begin(b);
    status = b->ops->score(b, op, why);
    if (!status)
        status = kern_score_beyond(b, op, b->ops->score, why);
    return kern_end(b, KERN_PHASE_SCORE, begun, status);
}

enum status kern_record(struct kern_backend *b, const struct kern_record *op,
                        struct status_why *why)
{
    assert(!op->head.recorded && (op->records || op->n_rows == 0));
    size_t n_vocab = op->head.matrix->n_rows;
    enum status status = vocabulary_check(n_vocab, "record", why);
    if (!status)
        status = head_check(&op->head, n_vocab, "record: head", why);
    if (!status)
        status = stride_check(op->stride, n_vocab, "record", why);
    if (status || op->n_rows == 0)
        return status;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_SCORE, begun, b->ops->record(b, op, why));
}

enum status kern_logit_rows(struct kern_backend *b, const struct kern_logit_rows *op,
                            struct status_why *why)
{
    assert(!op->head.recorded && (op->logits || op->n_rows == 0));
    size_t n_vocab = op->head.matrix->n_rows;
    assert(op->first <= n_vocab && op->n <= n_vocab - op->first);
    enum status status = vocabulary_check(n_vocab, "logits", why);
    if (!status)
        status = head_check(&op->head, n_vocab, "logits: head", why);
    if (status || op->n_rows == 0 || op->n == 0)
        return status;
    uint64_t begun = kern_begin(b);
    return kern_end(b, KERN_PHASE_SCORE, begun, b->ops->logit_rows(b, op, why));
}

size_t kern_linear_bytes(struct kern_backend *b, const struct kern_linear *op)
{
    return b->ops->linear_bytes(b, op);
}

size_t kern_attention_bytes(struct kern_backend *b, const struct kern_attention *op)
{
    return b->ops->attention_bytes(b, op);
}

size_t kern_score_bytes(struct kern_backend *b, const struct kern_score *op)
{
    assert(op->n_heads > 0);
    return op->n_rows ? b->ops->score_bytes(b, op) : 0;
}

size_t kern_record_bytes(struct kern_backend *b, const struct kern_record *op)
{
    return op->n_rows ? b->ops->record_bytes(b, op) : 0;
}

size_t kern_record_rows(struct kern_backend *b, const struct kern_weight *matrix)
{
    return b->ops->record_rows(b, matrix);
}
