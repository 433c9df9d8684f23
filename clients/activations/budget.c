#include "clients/activations/budget.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/moments.h"
#include "clients/activations/rounding.h"
#include "kernels/implementation.h"
#include "kernels/kernels.h"
#include "model/forward/forward.h"

enum { LEAST_TOKENS = 500, LEAST_WINDOWS = 2, SLAB_ROWS = 32 };

/** What a window is evaluated to. */
enum side { EXACT, SIMULATED, N_SIDES };

struct room {
    const struct act_budget_task *task;
    struct model *rounded; /* the model over the engine's cache */
    struct model_session *sessions[N_SIDES];
    void *x, *hidden[N_SIDES];         /* backend: [n_inputs, S * D], [n_scored, D] */
    int32_t *tokens;                   /* [n_inputs] */
    uint32_t *rows;                    /* [n_scored] */
    uint16_t *records;                 /* [SLAB_ROWS] records of a side's own */
    struct kern_row_score *row_scores; /* [3, SLAB_ROWS], and so the pairs */
    struct kern_pair_score *pairs;
    struct base_moments kld, of_record[N_SIDES], floor[N_SIDES];
};

/** Rows of a window that are scored together. */
struct slab {
    size_t first, n;
    const uint16_t *recorded;
};

size_t act_budget_windows(const struct eval_plan *plan)
{
    size_t n = base_max(base_div_up(LEAST_TOKENS, plan->n_scored), (size_t)LEAST_WINDOWS);
    return base_min(n, plan->n_windows);
}

static size_t codes_of(const struct room *r)
{
    return kern_record_codes(model_head(r->task->model)->n_rows);
}

/** The model once more, with a cache as llama.cpp's is unless a person chose one. */
static enum status round_cache(struct room *r, struct status_why *why)
{
    const struct model *model = r->task->model;
    struct model_kv_types types = model_hparams(model)->kv;
    enum status status = model_share(&r->rounded, model, why);
    if (status || types.k.type != GGUF_TYPE_F32 || types.v.type != GGUF_TYPE_F32)
        return status;
    types.k.type = types.v.type = GGUF_TYPE_F16;
    return model_round_kv(r->rounded, &types, why);
}

static enum status make_room(struct room *r, struct status_why *why)
{
    const struct act_budget_task *t = r->task;
    size_t n_inputs = t->plan->n_inputs, n_scored = t->plan->n_scored;
    const struct model_hparams *h = model_hparams(t->model);
    size_t codes = codes_of(r);
    struct model_session_options options = {.max_batch = n_inputs, .max_segment = n_inputs};
    if (base_array_new(r->tokens, n_inputs, "tokens", why) ||
        base_array_new(r->rows, n_scored, "rows", why) ||
        base_array_new(r->records, SLAB_ROWS * codes, "rows", why) ||
        base_array_new(r->row_scores, 3 * SLAB_ROWS, "rows", why) ||
        base_array_new(r->pairs, 3 * SLAB_ROWS, "rows", why))
        return STATUS_MEMORY;
    enum status status = t->simulated ? STATUS_OK : round_cache(r, why);
    if (!status)
        status =
            kern_alloc(t->backend, &r->x, n_inputs * model_residual_width(h) * sizeof(float), why);
    const struct model *models[N_SIDES] = {t->model, t->simulated ? t->simulated : r->rounded};
    for (int side = 0; side < N_SIDES && !status; side++) {
        status =
            kern_alloc(t->backend, &r->hidden[side], n_scored * h->n_embd * sizeof(float), why);
        if (!status)
            status =
                model_session_open(&r->sessions[side], models[side], t->backend, &options, why);
    }
    return status;
}

static void free_room(struct room *r)
{
    struct kern_backend *backend = r->task->backend;
    for (int side = 0; side < N_SIDES; side++) {
        model_session_close(r->sessions[side]);
        kern_free(backend, r->hidden[side]);
    }
    kern_free(backend, r->x);
    model_close(r->rounded);
    free(r->tokens);
    free(r->rows);
    free(r->records);
    free(r->row_scores);
    free(r->pairs);
}

/** The hidden rows of the scored positions. */
static enum status evaluate(const struct room *r, enum side side, struct status_why *why)
{
    const struct act_budget_task *t = r->task;
    struct model_session *s = r->sessions[side];
    size_t n = t->plan->n_inputs;
    const struct model_segment segment = {.n_tokens = n, .parent = -1};
    const struct model_batch batch = {r->tokens, n, &segment, 1};
    enum status status = model_embed(s, &batch, r->x, why);
    if (!status)
        status = model_forward(s, &batch, 0, model_hparams(t->model)->n_layers, r->x, why);
    return status ? status
                  : model_hidden(s, r->x, r->rows, t->plan->n_scored, r->hidden[side], why);
}

/** As the engine does. Its head's input is rounded here: the matrix is that of the exact side. */
static enum status simulate(const struct room *r, struct status_why *why)
{
    const struct act_budget_task *t = r->task;
    struct act_rounding *rounding = NULL;
    const struct kern_weight *head = model_head(t->model);
    enum act_type type;
    enum status status = act_rule_type(&type, &t->rule, head->type, head->n_cols, why);
    if (!status && !t->simulated)
        status = act_rounding_open(&rounding, &t->rule, &t->backend, 1, why);
    if (rounding && !status)
        status = act_rounding_add(rounding, model_file(t->model), why);
    if (!status)
        status = evaluate(r, SIMULATED, why);
    act_rounding_close(rounding);
    float *hidden = r->hidden[SIMULATED];
    for (size_t i = 0; i < t->plan->n_scored && !status; i++)
        act_round_row(type, hidden + i * head->n_cols, head->n_cols, 1);
    return status;
}

static struct kern_head head_of(const struct room *r, const struct slab *slab, enum side side)
{
    struct kern_head head = model_kern_head(r->task->model);
    head.hidden = (const float *)r->hidden[side] + slab->first * head.matrix->n_cols;
    return head;
}

/** Score n heads on a slab; rows and pairs are the room's. */
static enum status score_slab(struct room *r, const struct slab *slab,
                              const struct kern_head *heads, size_t n, struct status_why *why)
{
    struct kern_score score = {
        .n_heads = n, .heads = heads, .n_rows = slab->n, .rows = r->row_scores, .pairs = r->pairs};
    return kern_score(r->task->backend, &score, why);
}

/** Add KL(side || recorded), n sides from `first` on, to sums of theirs. */
static enum status add_records(struct room *r, const struct slab *slab, enum side first, size_t n,
                               struct base_moments *sums, struct status_why *why)
{
    struct kern_recorded recorded = {slab->recorded, codes_of(r), -(double)INFINITY};
    struct kern_head heads[1 + N_SIDES] = {{.recorded = &recorded}};
    for (size_t k = 0; k < n; k++)
        heads[1 + k] = head_of(r, slab, (enum side)(first + k));
    enum status status = score_slab(r, slab, heads, 1 + n, why);
    for (size_t k = 0; k < n && !status; k++)
        for (size_t i = 0; i < slab->n; i++)
            base_moments_add(&sums[first + k], r->pairs[(1 + k) * slab->n + i].reverse_kl +
                                                   r->row_scores[i].max_logit +
                                                   r->row_scores[i].log_sum);
    return status;
}

/** What the file's form makes of a side: its divergence from its own record. */
static enum status add_floor(struct room *r, const struct slab *slab, enum side side,
                             struct status_why *why)
{
    struct kern_record record = {.head = head_of(r, slab, side),
                                 .n_rows = slab->n,
                                 .records = r->records,
                                 .stride = codes_of(r),
                                 .reach = (float)r->task->reach};
    enum status status = kern_record(r->task->backend, &record, why);
    struct slab own = {slab->first, slab->n, r->records};
    return status ? status : add_records(r, &own, side, 1, r->floor, why);
}

static enum status add_slab(struct room *r, const struct slab *slab, struct status_why *why)
{
    struct kern_head heads[N_SIDES] = {head_of(r, slab, EXACT), head_of(r, slab, SIMULATED)};
    enum status status = score_slab(r, slab, heads, N_SIDES, why);
    for (size_t i = 0; i < slab->n && !status; i++)
        base_moments_add(&r->kld, r->pairs[slab->n + i].kl);
    if (!status)
        status = add_records(r, slab, EXACT, N_SIDES, r->of_record, why);
    for (int side = 0; side < N_SIDES && !status; side++)
        status = add_floor(r, slab, (enum side)side, why);
    return status;
}

static enum status add_window(struct room *r, size_t w, struct status_why *why)
{
    const struct act_budget_task *t = r->task;
    const struct eval_row_source *source = t->recorded;
    size_t n_scored = t->plan->n_scored;
    for (size_t p = 0; p < t->plan->n_inputs; p++)
        r->tokens[p] = eval_plan_input(t->plan, t->stream, w, p);
    for (size_t i = 0; i < n_scored; i++)
        r->rows[i] = (uint32_t)(t->plan->first_scored + i);
    enum status status = evaluate(r, EXACT, why);
    if (!status)
        status = simulate(r, why);
    for (size_t i = 0; i < n_scored && !status; i += SLAB_ROWS) {
        struct slab slab = {.first = i, .n = base_min(n_scored - i, (size_t)SLAB_ROWS)};
        const void *rows = NULL;
        status = source->rows(source->user, w * n_scored + i, slab.n, &rows, why);
        slab.recorded = rows;
        if (!status)
            status = add_slab(r, &slab, why);
    }
    return status;
}

enum status act_budget_measure(struct act_budget *out, const struct act_budget_task *t,
                               struct status_why *why)
{
    assert(t->recorded->kind == EVAL_ROWS_CODES);
    *out = (struct act_budget){.n_windows = act_budget_windows(t->plan),
                               .noise = t->noise,
                               .noise_of_all = t->noise_of_all};
    out->n_tokens = out->n_windows * t->plan->n_scored;
    struct kern_description described = kern_describe(t->backend);
    if (described.own_memory)
        return status_fail(why, STATUS_UNSUPPORTED,
                           "roundings are made on a CPU, and %s has memory of its own; expected "
                           "--device cpu",
                           described.device);
    struct room room = {.task = t};
    enum status status = make_room(&room, why);
    for (size_t w = 0; w < out->n_windows && !status; w++)
        status = add_window(&room, w, why);
    free_room(&room);
    if (status)
        return status;
    out->kld = base_moments_mean(&room.kld);
    out->recorded =
        base_moments_mean(&room.of_record[EXACT]) - base_moments_mean(&room.floor[EXACT]);
    out->simulated_recorded =
        base_moments_mean(&room.of_record[SIMULATED]) - base_moments_mean(&room.floor[SIMULATED]);
    return STATUS_OK;
}

/*
 * The limits. Of 30 right recordings of real models none was above 1.17 budgets or had less than
 * 29 % in common, but for F16; of 144 wrong ones all but seven were above 1.5, and those had
 * 20 % in common at most.
 */
const double act_budget_slack = 1.5;
static const double least_shared = 0.25;
/* A program that rounds ten times less has little in common with the engine, and is right. */
const double act_budget_close = 0.1;
/* Other windows are of other texts. */
static const double whole_slack = 3;
/* Nats that the exact evaluation's own rounding makes. */
static const double least_budget = 1e-9;

bool act_budget_is_small(const struct act_budget *b)
{
    const double small = 1e-5; /* weights of 16 bits made 2e-6, bfloat16 and 8 bits 1e-4 and more */
    return b->kld < small;
}

double act_budget_shared(const struct act_budget *b)
{
    return 1 - b->simulated_recorded / (b->kld + b->recorded);
}

const char *act_verdict_name(enum act_verdict verdict)
{
    static const char *const names[] = {[ACT_NO_BUDGET] = "cannot tell",
                                        [ACT_NOISE] = "cannot tell",
                                        [ACT_AGREES] = "agrees",
                                        [ACT_OTHER_ROUNDING] = "other rounding",
                                        [ACT_DIFFERS] = "differs"};
    return names[verdict];
}

enum act_verdict act_budget_judge(const struct act_budget *b, double beyond)
{
    if (!(b->kld > least_budget))
        return ACT_NO_BUDGET;
    bool first = b->recorded <= act_budget_slack * b->kld;
    bool all = !(beyond > whole_slack * b->kld);
    if (!first || !all) { /* is what departs noise of the same windows? */
        bool noise = (first || b->recorded <= act_budget_slack * b->noise) &&
                     (all || beyond <= act_budget_slack * b->noise_of_all);
        return noise ? ACT_NOISE : ACT_DIFFERS;
    }
    bool tells =
        !act_budget_is_small(b) && !(fmax(b->recorded, beyond) < act_budget_close * b->kld);
    return tells && !(act_budget_shared(b) >= least_shared) ? ACT_OTHER_ROUNDING : ACT_AGREES;
}
