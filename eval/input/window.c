#include "eval/input/window.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/moments.h"
#include "eval/llama_compat.h"

const char *eval_protocol_name(enum eval_protocol protocol)
{
    static const char *const names[] = {
        [EVAL_PROTOCOL_DEFAULT] = "default",
        [EVAL_PROTOCOL_STRIDED] = "strided",
        [EVAL_PROTOCOL_FIXED] = "fixed",
        [EVAL_PROTOCOL_DOCUMENTS] = "documents",
    };
    return names[protocol];
}

enum status eval_plan_check_size(const char *what, size_t size, size_t least,
                                 struct status_why *why)
{
    if (size < least || size > INT32_MAX / 2)
        return status_fail(why, STATUS_USAGE, "%s is %zu; expected %zu to %d", what, size, least,
                           INT32_MAX / 2);
    return STATUS_OK;
}

/** The text must fill a window; fewer than llama.cpp wants are worth a warning. */
static enum status check_length(struct eval_plan *plan, struct status_why *why)
{
    size_t n = plan->n_stream;
    size_t wanted = EVAL_COMPAT_WINDOWS * plan->window;
    size_t least = plan->options.llama_compat ? wanted : plan->window;
    if (n < least)
        return status_fail(
            why, STATUS_FORMAT, "the text has %zu token%s; expected at least %zu (%s of %zu%s)", n,
            status_plural(n), least, plan->options.llama_compat ? "two windows" : "one window",
            plan->window, plan->options.llama_compat ? ", as llama.cpp wants" : "");
    if (n < wanted)
        snprintf(plan->warning, sizeof plan->warning,
                 "the text has %zu tokens, fewer than two windows of %zu: a figure from so "
                 "little says little, and llama-perplexity would refuse it",
                 n, plan->window);
    return STATUS_OK;
}

static enum status plan_default(struct eval_plan *plan, struct status_why *why)
{
    /* Below 3 no position lies between n_ctx/2 and n_ctx-2. */
    enum status status = eval_plan_check_size("the context size", plan->options.n_ctx, 3, why);
    if (status)
        return status;
    plan->window = plan->step = plan->options.n_ctx;
    status = check_length(plan, why);
    if (status)
        return status;
    plan->n_windows = plan->n_stream / plan->window;
    plan->bos_use = plan->options.bos >= 0 ? EVAL_BOS_REPLACES : EVAL_BOS_NONE;
    plan->first_scored = plan->window / 2;
    plan->n_inputs = plan->window - 1;
    return STATUS_OK;
}

static enum status plan_strided(struct eval_plan *plan, struct status_why *why)
{
    size_t stride = plan->options.stride;
    enum status status = eval_plan_check_size("the context size", plan->options.n_ctx, 2, why);
    if (!status)
        status = eval_plan_check_size("the stride", stride, 1, why);
    if (status)
        return status;
    plan->window = plan->options.n_ctx;
    if (plan->options.llama_compat)
        plan->window = eval_compat_strided_window(plan->window, stride);
    if (stride >= plan->window)
        return status_fail(why, STATUS_USAGE,
                           "the stride is %zu; expected less than the window of %zu tokens, whose "
                           "last %zu are scored",
                           stride, plan->window, stride);
    plan->step = stride;
    status = check_length(plan, why);
    if (status)
        return status;
    /* A text of exactly one window has one, though the formula for more would say none. */
    plan->n_windows = (plan->n_stream - plan->window + stride - 1) / stride;
    if (plan->n_windows == 0)
        plan->n_windows = 1;
    bool replaces = plan->options.bos >= 0 && !plan->options.llama_compat;
    plan->bos_use = replaces ? EVAL_BOS_REPLACES : EVAL_BOS_NONE;
    plan->first_scored = plan->window - stride - 1;
    plan->n_inputs = plan->window - 1;
    return STATUS_OK;
}

static enum status plan_fixed(struct eval_plan *plan, struct status_why *why)
{
    enum status status = eval_plan_check_size("the context size", plan->options.n_ctx, 2, why);
    if (status)
        return status;
    bool has_bos = plan->options.bos >= 0;
    size_t least = has_bos ? 1 : 2;
    if (plan->n_stream < least)
        return status_fail(why, STATUS_FORMAT,
                           "the text has %zu token%s; expected at least %zu, so that one can be "
                           "scored",
                           plan->n_stream, status_plural(plan->n_stream), least);
    plan->window = plan->options.n_ctx;
    if (plan->n_stream < plan->window) {
        plan->window = plan->n_stream;
        snprintf(plan->warning, sizeof plan->warning,
                 "the text has %zu token%s, fewer than the window of %zu: it is scored as one "
                 "window of its own length",
                 plan->n_stream, status_plural(plan->n_stream), plan->options.n_ctx);
    }
    plan->step = plan->window;
    plan->n_windows = plan->n_stream / plan->window;
    plan->bos_use = has_bos ? EVAL_BOS_IN_FRONT : EVAL_BOS_NONE;
    plan->n_inputs = has_bos ? plan->window : plan->window - 1;
    return STATUS_OK;
}

enum status eval_plan_make(struct eval_plan *out, const struct eval_plan_options *options,
                           size_t n_stream, struct status_why *why)
{
    *out = (struct eval_plan){.options = *options, .n_stream = n_stream};
    enum status status = STATUS_OK;
    switch (options->protocol) {
    case EVAL_PROTOCOL_DEFAULT:
        status = plan_default(out, why);
        break;
    case EVAL_PROTOCOL_STRIDED:
        status = plan_strided(out, why);
        break;
    case EVAL_PROTOCOL_FIXED:
    case EVAL_PROTOCOL_DOCUMENTS: /* eval_plan_make_documents */
        status = plan_fixed(out, why);
        break;
    }
    out->n_scored = out->n_inputs - out->first_scored;
    return status ? status : eval_plan_limit(out, why);
}

enum status eval_plan_limit(struct eval_plan *out, struct status_why *why)
{
    const struct eval_plan_options *options = &out->options;
    out->n_of_text = out->n_windows;
    if (options->skip_windows >= out->n_windows)
        return status_fail(why, STATUS_USAGE,
                           "of the text's %zu window%s, %zu should be left out: none is left",
                           out->n_windows, status_plural(out->n_windows), options->skip_windows);
    out->n_windows -= options->skip_windows;
    if (options->max_windows && out->n_windows > options->max_windows)
        out->n_windows = options->max_windows;
    return STATUS_OK;
}

void eval_plan_free(struct eval_plan *plan)
{
    free(plan->windows);
    free(plan->positions);
    *plan = (struct eval_plan){0};
}

/** The window of a plan of documents. */
static const struct eval_plan_window *window(const struct eval_plan *plan, size_t w)
{
    return &plan->windows[plan->options.skip_windows + w];
}

size_t eval_plan_n_inputs(const struct eval_plan *plan, size_t w)
{
    return plan->windows ? window(plan, w)->n_inputs : plan->n_inputs;
}

size_t eval_plan_n_scored(const struct eval_plan *plan, size_t w)
{
    return plan->windows ? window(plan, w)[1].row - window(plan, w)->row : plan->n_scored;
}

size_t eval_plan_position(const struct eval_plan *plan, size_t w, size_t i)
{
    return plan->windows ? plan->positions[window(plan, w)->row + i] : plan->first_scored + i;
}

size_t eval_plan_document(const struct eval_plan *plan, size_t w)
{
    return window(plan, w)->document;
}

bool eval_plan_lots_are_documents(const struct eval_plan *plan)
{
    if (!plan->windows || plan->n_windows == 0)
        return false;
    size_t first = eval_plan_document(plan, 0);
    return eval_plan_document(plan, plan->n_windows - 1) - first + 1 >= BASE_LEAST_VALUES;
}

size_t eval_plan_lot(const struct eval_plan *plan, size_t w)
{
    return eval_plan_lots_are_documents(plan) ? eval_plan_document(plan, w) : w;
}

size_t eval_plan_row(const struct eval_plan *plan, size_t w)
{
    return plan->windows ? window(plan, w)->row - window(plan, 0)->row : w * plan->n_scored;
}

size_t eval_plan_first(const struct eval_plan *plan, size_t w)
{
    if (plan->windows)
        return window(plan, w)->first;
    return (plan->options.skip_windows + w) * plan->step;
}

int32_t eval_plan_input(const struct eval_plan *plan, const struct eval_stream *stream, size_t w,
                        size_t p)
{
    bool stays = plan->windows && window(plan, w)->begins;
    if (p == 0 && plan->bos_use != EVAL_BOS_NONE && !stays)
        return plan->options.bos;
    size_t in_front = plan->bos_use == EVAL_BOS_IN_FRONT;
    return stream->ids[eval_plan_first(plan, w) + p - in_front];
}

size_t eval_plan_target(const struct eval_plan *plan, size_t w, size_t p)
{
    size_t in_front = plan->bos_use == EVAL_BOS_IN_FRONT;
    return eval_plan_first(plan, w) + p + 1 - in_front;
}

size_t eval_plan_context(const struct eval_plan *plan, size_t w, size_t target)
{
    size_t first = eval_plan_first(plan, w);
    return target - first > EVAL_CONTEXT_TOKENS ? target - EVAL_CONTEXT_TOKENS : first;
}

size_t eval_plan_offset(const struct eval_plan *plan, size_t w)
{
    if (plan->options.llama_compat && plan->options.protocol == EVAL_PROTOCOL_DEFAULT)
        w = eval_compat_offset_window(w, plan->options.n_ctx, plan->options.compat_batch);
    return eval_plan_first(plan, w);
}
