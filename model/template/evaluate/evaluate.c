/* Expressions. */
#include "model/template/evaluate/evaluate.h"

#include "base/text/quote.h"
#include "model/template/value/value_text.h"

static struct jinja_value look_up(struct jinja_run *r, const struct jinja_scope *scope,
                                  struct base_string name)
{
    const struct jinja_value key = {.kind = JINJA_STRING, .string = name};
    for (; scope; scope = scope->around) {
        const struct jinja_value *found = jinja_dict_get(r, &scope->names, &key);
        if (found)
            return *found;
    }
    const struct jinja_row *row = jinja_find_row(jinja_functions, name);
    struct jinja_bound *bound = row ? jinja_alloc(r, 1, sizeof *bound) : NULL;
    if (!bound)
        return jinja_undefined(name);
    bound->row = row;
    return (struct jinja_value){.kind = JINJA_FUNCTION, .function = bound};
}

struct jinja_args jinja_evaluate_arguments(struct jinja_run *r, struct jinja_scope *scope,
                                           const struct jinja_node *list)
{
    struct jinja_items items = {0};
    struct jinja_args args = {0};
    for (; list && !r->status; list = list->next) {
        struct jinja_value value = jinja_evaluate(r, scope, list->a);
        if (list->name.n_bytes)
            jinja_dict_set(r, &args.named, jinja_of_string(list->name), value);
        else if (args.named.n)
            jinja_fail(r, STATUS_FORMAT, "an argument without a name follows one with a name");
        else
            jinja_append(r, &items, value);
    }
    args.v = items.items;
    args.n = items.n;
    return args;
}

static struct jinja_value make_dict(struct jinja_run *r, struct jinja_scope *scope,
                                    const struct jinja_node *list)
{
    struct jinja_dict *dict = jinja_alloc(r, 1, sizeof *dict);
    for (; list && !r->status; list = list->next) {
        struct jinja_value key = jinja_evaluate(r, scope, list->b);
        if (key.kind == JINJA_LIST || key.kind == JINJA_DICT)
            jinja_fail(r, STATUS_FORMAT, "%s as a mapping's key", jinja_kind_name(&key));
        struct jinja_value value = jinja_evaluate(r, scope, list->a);
        if (!r->status)
            jinja_dict_set(r, dict, key, value);
    }
    return r->status ? jinja_absent() : (struct jinja_value){.kind = JINJA_DICT, .dict = dict};
}

static struct jinja_value call(struct jinja_run *r, struct jinja_scope *scope,
                               const struct jinja_node *node)
{
    struct base_quoted quoted;
    struct jinja_value callee = jinja_evaluate(r, scope, node->a);
    struct jinja_args args = jinja_evaluate_arguments(r, scope, node->list);
    r->line = node->line;
    if (callee.kind == JINJA_MACRO)
        return jinja_call_macro(r, callee.macro, &args);
    if (callee.kind == JINJA_FUNCTION)
        return jinja_call_row(r, callee.function->row, &callee.function->self, &args);
    if (callee.kind == JINJA_UNDEFINED)
        return JINJA_FAIL(r, STATUS_UNSUPPORTED, "the function %s is not known",
                          base_quote(&quoted, callee.string));
    return JINJA_FAIL(r, STATUS_FORMAT, "%s cannot be called", jinja_kind_name(&callee));
}

static struct jinja_value unary(struct jinja_run *r, struct base_string name,
                                const struct jinja_value *v)
{
    int64_t integer;
    if (jinja_is(name, "not"))
        return jinja_bool(!jinja_truth(v));
    bool negate = jinja_is(name, "-");
    if (jinja_integer(v, &integer) && integer != INT64_MIN)
        return jinja_int(negate ? -integer : integer);
    if (v->kind == JINJA_REAL)
        return jinja_real(negate ? -v->real : v->real);
    return JINJA_FAIL(r, STATUS_FORMAT, "a sign before %s", jinja_kind_name(v));
}

static struct jinja_value relations(struct jinja_run *r, struct jinja_scope *scope,
                                    const struct jinja_node *node)
{
    struct jinja_value left = jinja_evaluate(r, scope, node->a);
    bool holds = true;
    for (const struct jinja_node *n = node->list; n && holds && !r->status; n = n->next) {
        struct jinja_value right = jinja_evaluate(r, scope, n->b);
        r->line = node->line;
        holds = !r->status && jinja_relation(r, n->name, &left, &right);
        left = right;
    }
    return jinja_bool(holds);
}

static struct jinja_value slice(struct jinja_run *r, struct jinja_scope *scope,
                                const struct jinja_node *node)
{
    const struct jinja_node *const parts[3] = {node->b, node->c, node->d};
    struct jinja_value of = jinja_evaluate(r, scope, node->a), ends[3] = {{0}};
    for (int i = 0; i < 3; i++)
        if (parts[i])
            ends[i] = jinja_evaluate(r, scope, parts[i]);
    r->line = node->line;
    return r->status ? jinja_absent() : jinja_slice(r, &of, ends);
}

/* `a and b`, `a or b`: a decides whether b is evaluated; the last one is the value. */
static struct jinja_value either(struct jinja_run *r, struct jinja_scope *scope,
                                 const struct jinja_node *node)
{
    struct jinja_value v = jinja_evaluate(r, scope, node->a);
    if (r->status || jinja_truth(&v) == (node->kind == JINJA_OR))
        return v;
    return jinja_evaluate(r, scope, node->b);
}

static struct jinja_value if_else(struct jinja_run *r, struct jinja_scope *scope,
                                  const struct jinja_node *node)
{
    struct jinja_value v = jinja_evaluate(r, scope, node->a);
    const struct jinja_node *chosen = jinja_truth(&v) ? node->b : node->c;
    return chosen ? jinja_evaluate(r, scope, chosen)
                  : jinja_undefined((struct base_string){"if", 2});
}

static struct jinja_value filter_or_test(struct jinja_run *r, struct jinja_scope *scope,
                                         const struct jinja_node *node)
{
    struct jinja_value v = jinja_evaluate(r, scope, node->a);
    struct jinja_args args = jinja_evaluate_arguments(r, scope, node->list);
    r->line = node->line;
    if (r->status)
        return jinja_absent();
    return node->kind == JINJA_FILTER ? jinja_filter(r, node->name, &v, &args)
                                      : jinja_bool(jinja_test(r, node->name, &v, &args));
}

/* Those whose operands `a` and `b` are always evaluated. */
static struct jinja_value operation(struct jinja_run *r, struct jinja_scope *scope,
                                    const struct jinja_node *node)
{
    struct jinja_value a = jinja_evaluate(r, scope, node->a), b = jinja_absent();
    if (node->b)
        b = jinja_evaluate(r, scope, node->b);
    r->line = node->line;
    if (r->status)
        return jinja_absent();
    switch (node->kind) {
    case JINJA_UNARY:
        return unary(r, node->name, &a);
    case JINJA_BINARY:
        return jinja_binary(r, node->name, &a, &b);
    case JINJA_MEMBER:
        return jinja_member(r, &a, node->name);
    default:
        return jinja_item(r, &a, &b);
    }
}

static struct jinja_value evaluate(struct jinja_run *r, struct jinja_scope *scope,
                                   const struct jinja_node *node)
{
    struct jinja_args args;
    switch (node->kind) {
    case JINJA_CONSTANT:
    case JINJA_CAPTURED:
        return node->constant;
    case JINJA_NAME:
        return look_up(r, scope, node->name);
    case JINJA_MAKE_LIST:
    case JINJA_MAKE_TUPLE:
        args = jinja_evaluate_arguments(r, scope, node->list);
        return (struct jinja_value){.kind =
                                        node->kind == JINJA_MAKE_LIST ? JINJA_LIST : JINJA_TUPLE,
                                    .items = args.v,
                                    .n = args.n};
    case JINJA_MAKE_DICT:
        return make_dict(r, scope, node->list);
    case JINJA_AND:
    case JINJA_OR:
        return either(r, scope, node);
    case JINJA_RELATION:
        return relations(r, scope, node);
    case JINJA_IF_ELSE:
        return if_else(r, scope, node);
    case JINJA_SLICE:
        return slice(r, scope, node);
    case JINJA_CALL:
        return call(r, scope, node);
    case JINJA_FILTER:
    case JINJA_TEST:
        return filter_or_test(r, scope, node);
    default:
        return operation(r, scope, node);
    }
}

struct jinja_value jinja_evaluate(struct jinja_run *r, struct jinja_scope *scope,
                                  const struct jinja_node *node)
{
    struct jinja_value value = jinja_absent();
    if (jinja_enter(r, node->line))
        value = evaluate(r, scope, node);
    jinja_leave(r);
    return r->status ? jinja_absent() : value;
}
