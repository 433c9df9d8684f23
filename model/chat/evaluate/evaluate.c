/* Expressions. */
#include "model/chat/evaluate/evaluate.h"

#include "base/text/quote.h"
#include "model/chat/value/text.h"

static struct chat_value look_up(struct chat_run *r, const struct chat_scope *scope,
                                 struct base_string name)
{
    const struct chat_value key = {.kind = CHAT_STRING, .string = name};
    for (; scope; scope = scope->around) {
        const struct chat_value *found = model_chat_dict_get(r, &scope->names, &key);
        if (found)
            return *found;
    }
    const struct chat_row *row = model_chat_find_row(model_chat_functions, name);
    struct chat_bound *bound = row ? model_chat_alloc(r, 1, sizeof *bound) : NULL;
    if (!bound)
        return chat_undefined(name);
    bound->row = row;
    return (struct chat_value){.kind = CHAT_FUNCTION, .function = bound};
}

struct chat_args model_chat_evaluate_arguments(struct chat_run *r, struct chat_scope *scope,
                                               const struct chat_node *list)
{
    struct chat_items items = {0};
    struct chat_args args = {0};
    for (; list && !r->status; list = list->next) {
        struct chat_value value = model_chat_evaluate(r, scope, list->a);
        if (list->name.n_bytes)
            model_chat_dict_set(r, &args.named, chat_of_string(list->name), value);
        else if (args.named.n)
            model_chat_fail(r, STATUS_FORMAT, "an argument without a name behind one with a name");
        else
            model_chat_append(r, &items, value);
    }
    args.v = items.items;
    args.n = items.n;
    return args;
}

static struct chat_value make_dict(struct chat_run *r, struct chat_scope *scope,
                                   const struct chat_node *list)
{
    struct chat_dict *dict = model_chat_alloc(r, 1, sizeof *dict);
    for (; list && !r->status; list = list->next) {
        struct chat_value key = model_chat_evaluate(r, scope, list->b);
        if (key.kind == CHAT_LIST || key.kind == CHAT_DICT)
            model_chat_fail(r, STATUS_FORMAT, "%s as a mapping's key", model_chat_kind_name(&key));
        struct chat_value value = model_chat_evaluate(r, scope, list->a);
        if (!r->status)
            model_chat_dict_set(r, dict, key, value);
    }
    return r->status ? chat_absent() : (struct chat_value){.kind = CHAT_DICT, .dict = dict};
}

static struct chat_value call(struct chat_run *r, struct chat_scope *scope,
                              const struct chat_node *node)
{
    struct base_quoted quoted;
    struct chat_value callee = model_chat_evaluate(r, scope, node->a);
    struct chat_args args = model_chat_evaluate_arguments(r, scope, node->list);
    r->line = node->line;
    if (callee.kind == CHAT_MACRO)
        return model_chat_call_macro(r, callee.macro, &args);
    if (callee.kind == CHAT_FUNCTION)
        return model_chat_call_row(r, callee.function->row, &callee.function->self, &args);
    if (callee.kind == CHAT_UNDEFINED)
        return CHAT_FAIL(r, STATUS_UNSUPPORTED, "the function %s is not known",
                         base_quote(&quoted, callee.string));
    return CHAT_FAIL(r, STATUS_FORMAT, "%s cannot be called", model_chat_kind_name(&callee));
}

static struct chat_value unary(struct chat_run *r, struct base_string name,
                               const struct chat_value *v)
{
    int64_t integer;
    if (chat_is(name, "not"))
        return chat_bool(!model_chat_truth(v));
    bool negate = chat_is(name, "-");
    if (model_chat_integer(v, &integer) && integer != INT64_MIN)
        return chat_int(negate ? -integer : integer);
    if (v->kind == CHAT_REAL)
        return chat_real(negate ? -v->real : v->real);
    return CHAT_FAIL(r, STATUS_FORMAT, "a sign before %s", model_chat_kind_name(v));
}

static struct chat_value relations(struct chat_run *r, struct chat_scope *scope,
                                   const struct chat_node *node)
{
    struct chat_value left = model_chat_evaluate(r, scope, node->a);
    bool holds = true;
    for (const struct chat_node *n = node->list; n && holds && !r->status; n = n->next) {
        struct chat_value right = model_chat_evaluate(r, scope, n->b);
        r->line = node->line;
        holds = !r->status && model_chat_relation(r, n->name, &left, &right);
        left = right;
    }
    return chat_bool(holds);
}

static struct chat_value slice(struct chat_run *r, struct chat_scope *scope,
                               const struct chat_node *node)
{
    const struct chat_node *const parts[3] = {node->b, node->c, node->d};
    struct chat_value of = model_chat_evaluate(r, scope, node->a), ends[3] = {{0}};
    for (int i = 0; i < 3; i++)
        if (parts[i])
            ends[i] = model_chat_evaluate(r, scope, parts[i]);
    r->line = node->line;
    return r->status ? chat_absent() : model_chat_slice(r, &of, ends);
}

/* Of `a and b`, `a or b`: a decides whether b is evaluated; the last one is the value. */
static struct chat_value either(struct chat_run *r, struct chat_scope *scope,
                                const struct chat_node *node)
{
    struct chat_value v = model_chat_evaluate(r, scope, node->a);
    if (r->status || model_chat_truth(&v) == (node->kind == CHAT_OR))
        return v;
    return model_chat_evaluate(r, scope, node->b);
}

static struct chat_value if_else(struct chat_run *r, struct chat_scope *scope,
                                 const struct chat_node *node)
{
    struct chat_value v = model_chat_evaluate(r, scope, node->a);
    const struct chat_node *chosen = model_chat_truth(&v) ? node->b : node->c;
    return chosen ? model_chat_evaluate(r, scope, chosen)
                  : chat_undefined((struct base_string){"if", 2});
}

static struct chat_value filter_or_test(struct chat_run *r, struct chat_scope *scope,
                                        const struct chat_node *node)
{
    struct chat_value v = model_chat_evaluate(r, scope, node->a);
    struct chat_args args = model_chat_evaluate_arguments(r, scope, node->list);
    r->line = node->line;
    if (r->status)
        return chat_absent();
    return node->kind == CHAT_FILTER ? model_chat_filter(r, node->name, &v, &args)
                                     : chat_bool(model_chat_test(r, node->name, &v, &args));
}

/* Those whose operands `a` and `b` are always evaluated. */
static struct chat_value operation(struct chat_run *r, struct chat_scope *scope,
                                   const struct chat_node *node)
{
    struct chat_value a = model_chat_evaluate(r, scope, node->a), b = chat_absent();
    if (node->b)
        b = model_chat_evaluate(r, scope, node->b);
    r->line = node->line;
    if (r->status)
        return chat_absent();
    switch (node->kind) {
    case CHAT_UNARY:
        return unary(r, node->name, &a);
    case CHAT_BINARY:
        return model_chat_binary(r, node->name, &a, &b);
    case CHAT_MEMBER:
        return model_chat_member(r, &a, node->name);
    default:
        return model_chat_item(r, &a, &b);
    }
}

static struct chat_value evaluate(struct chat_run *r, struct chat_scope *scope,
                                  const struct chat_node *node)
{
    struct chat_args args;
    switch (node->kind) {
    case CHAT_CONSTANT:
    case CHAT_CAPTURED:
        return node->constant;
    case CHAT_NAME:
        return look_up(r, scope, node->name);
    case CHAT_MAKE_LIST:
    case CHAT_MAKE_TUPLE:
        args = model_chat_evaluate_arguments(r, scope, node->list);
        return (struct chat_value){.kind = node->kind == CHAT_MAKE_LIST ? CHAT_LIST : CHAT_TUPLE,
                                   .items = args.v,
                                   .n = args.n};
    case CHAT_MAKE_DICT:
        return make_dict(r, scope, node->list);
    case CHAT_AND:
    case CHAT_OR:
        return either(r, scope, node);
    case CHAT_RELATION:
        return relations(r, scope, node);
    case CHAT_IF_ELSE:
        return if_else(r, scope, node);
    case CHAT_SLICE:
        return slice(r, scope, node);
    case CHAT_CALL:
        return call(r, scope, node);
    case CHAT_FILTER:
    case CHAT_TEST:
        return filter_or_test(r, scope, node);
    default:
        return operation(r, scope, node);
    }
}

struct chat_value model_chat_evaluate(struct chat_run *r, struct chat_scope *scope,
                                      const struct chat_node *node)
{
    struct chat_value value = chat_absent();
    if (model_chat_enter(r, node->line))
        value = evaluate(r, scope, node);
    model_chat_leave(r);
    return r->status ? chat_absent() : value;
}
