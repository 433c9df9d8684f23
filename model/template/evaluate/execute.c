/* Statements. */
#include "base/text/quote.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_text.h"

enum flow { GO_ON, LEAVE, NEXT };

static enum flow execute_body(struct jinja_run *r, struct jinja_scope *scope,
                              const struct jinja_node *body);

static struct jinja_scope *new_scope(struct jinja_run *r, const struct jinja_scope *around)
{
    struct jinja_scope *scope = jinja_alloc(r, 1, sizeof *scope);
    if (scope)
        scope->around = around;
    return scope;
}

static void assign_name(struct jinja_run *r, struct jinja_scope *scope, struct base_string name,
                        struct jinja_value value)
{
    jinja_dict_set(r, &scope->names, jinja_of_string(name), value);
}

static void assign_member(struct jinja_run *r, struct jinja_scope *scope,
                          const struct jinja_node *target, struct jinja_value value)
{
    struct jinja_value owner = jinja_evaluate(r, scope, target->a);
    if (r->status)
        return;
    if (owner.kind != JINJA_NAMESPACE)
        jinja_fail(r, STATUS_FORMAT, "only a namespace's members can be set, not those of %s",
                   jinja_kind_name(&owner));
    else
        jinja_dict_set(r, owner.dict, jinja_of_string(target->name), value);
}

static void assign(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *target,
                   struct jinja_value value)
{
    if (r->status)
        return;
    if (target->kind == JINJA_NAME) {
        assign_name(r, scope, target->name, value);
    } else if (target->kind == JINJA_MEMBER) {
        assign_member(r, scope, target, value);
    } else {
        struct jinja_value items = jinja_iterate(r, &value);
        const struct jinja_node *item = target->list;
        size_t i = 0;
        for (; item && i < items.n && !r->status; item = item->next)
            assign_name(r, scope, item->a->name, items.items[i++]);
        if (item || i < items.n)
            jinja_fail(r, STATUS_FORMAT, "%zu values for another number of names", items.n);
    }
}

/* The text of a body. */
static struct jinja_value capture(struct jinja_run *r, struct jinja_scope *scope,
                                  const struct jinja_node *body)
{
    struct jinja_buffer buffer = {0}, *out = r->out;
    r->out = &buffer;
    execute_body(r, scope, body);
    r->out = out;
    return jinja_of_buffer(&buffer);
}

/* A text after the filters of a tree that begins with JINJA_CAPTURED. */
static struct jinja_value filtered(struct jinja_run *r, struct jinja_scope *scope,
                                   const struct jinja_node *filters, struct jinja_value text)
{
    if (filters->kind == JINJA_CAPTURED || r->status)
        return text;
    struct jinja_value inner = filtered(r, scope, filters->a, text);
    struct jinja_args args = jinja_evaluate_arguments(r, scope, filters->list);
    return r->status ? jinja_absent() : jinja_filter(r, filters->name, &inner, &args);
}

/* The items of a loop that its condition lets through. */
static struct jinja_value chosen_items(struct jinja_run *r, struct jinja_scope *scope,
                                       const struct jinja_node *node)
{
    struct jinja_value of = jinja_evaluate(r, scope, node->b);
    struct jinja_value all = r->status ? jinja_list(NULL, 0) : jinja_iterate(r, &of);
    if (!node->c || r->status)
        return all;
    struct jinja_items chosen = {0};
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct jinja_scope *inner = new_scope(r, scope);
        if (!inner)
            break;
        assign(r, inner, node->a, all.items[i]);
        struct jinja_value holds = jinja_evaluate(r, inner, node->c);
        if (jinja_truth(&holds))
            jinja_append(r, &chosen, all.items[i]);
    }
    return jinja_of_items(&chosen);
}

static enum flow execute_for(struct jinja_run *r, struct jinja_scope *scope,
                             const struct jinja_node *node)
{
    struct jinja_value items = chosen_items(r, scope, node);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        struct jinja_scope *inner = new_scope(r, scope);
        struct jinja_loop *loop = jinja_alloc(r, 1, sizeof *loop);
        if (!inner || !loop)
            break;
        *loop = (struct jinja_loop){items.items, i, items.n};
        assign_name(r, inner, (struct base_string){"loop", 4},
                    (struct jinja_value){.kind = JINJA_LOOP, .loop = loop});
        assign(r, inner, node->a, items.items[i]);
        if (execute_body(r, inner, node->d) == LEAVE)
            break;
    }
    if (items.n > 0 || !node->list || r->status)
        return GO_ON;
    return execute_body(r, scope, node->list);
}

static enum flow execute_if(struct jinja_run *r, struct jinja_scope *scope,
                            const struct jinja_node *branch)
{
    for (; branch && !r->status; branch = branch->next) {
        struct jinja_value holds = jinja_bool(true);
        if (branch->a)
            holds = jinja_evaluate(r, scope, branch->a);
        if (!r->status && jinja_truth(&holds))
            return execute_body(r, scope, branch->b);
    }
    return GO_ON;
}

static void define_macro(struct jinja_run *r, struct jinja_scope *scope,
                         const struct jinja_node *node)
{
    struct jinja_macro *macro = jinja_alloc(r, 1, sizeof *macro);
    if (!macro)
        return;
    *macro = (struct jinja_macro){node, scope};
    assign_name(r, scope, node->name, (struct jinja_value){.kind = JINJA_MACRO, .macro = macro});
}

static void execute_with(struct jinja_run *r, struct jinja_scope *scope,
                         const struct jinja_node *node)
{
    struct jinja_scope *inner = new_scope(r, scope);
    for (const struct jinja_node *set = node->list; set && inner; set = set->next)
        assign(r, inner, set->a, jinja_evaluate(r, scope, set->b));
    if (!r->status)
        execute_body(r, inner, node->b);
}

/* A body of its own scope, whose place in the text is noted. */
static void execute_generation(struct jinja_run *r, struct jinja_scope *scope,
                               const struct jinja_node *node)
{
    struct jinja_scope *inner = new_scope(r, scope);
    if (r->out != &r->text)
        jinja_fail(r, STATUS_UNSUPPORTED, "'generation' within a macro, 'set' or 'filter'");
    size_t from = r->text.n_bytes;
    if (!r->status)
        execute_body(r, inner, node->b);
    r->spans = jinja_grow(r, r->spans, r->n_spans, &r->span_capacity, sizeof *r->spans);
    if (r->n_spans < r->span_capacity)
        r->spans[r->n_spans++] = (struct jinja_span){from, r->text.n_bytes};
}

static void print(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *node)
{
    struct jinja_value v = jinja_evaluate(r, scope, node->a);
    if (!r->status)
        jinja_put_value(r, r->out, &v);
}

static enum flow execute_one(struct jinja_run *r, struct jinja_scope *scope,
                             const struct jinja_node *node)
{
    switch (node->kind) {
    case JINJA_TEXT:
        jinja_put_string(r, r->out, node->name);
        return GO_ON;
    case JINJA_PRINT:
        print(r, scope, node);
        return GO_ON;
    case JINJA_IF:
        return execute_if(r, scope, node->list);
    case JINJA_FOR:
        return execute_for(r, scope, node);
    case JINJA_SET:
        assign(r, scope, node->a, jinja_evaluate(r, scope, node->b));
        return GO_ON;
    case JINJA_SET_BLOCK:
        assign(r, scope, node->a,
               filtered(r, scope, node->c, capture(r, new_scope(r, scope), node->b)));
        return GO_ON;
    case JINJA_FILTERED: {
        struct jinja_value text =
            filtered(r, scope, node->c, capture(r, new_scope(r, scope), node->b));
        if (!r->status)
            jinja_put_value(r, r->out, &text);
        return GO_ON;
    }
    case JINJA_MACRO_BODY:
        define_macro(r, scope, node);
        return GO_ON;
    case JINJA_WITH:
        execute_with(r, scope, node);
        return GO_ON;
    case JINJA_GENERATION:
        execute_generation(r, scope, node);
        return GO_ON;
    default:
        return node->kind == JINJA_BREAK ? LEAVE : NEXT;
    }
}

static enum flow execute_body(struct jinja_run *r, struct jinja_scope *scope,
                              const struct jinja_node *body)
{
    enum flow flow = GO_ON;
    for (; body && flow == GO_ON && !r->status; body = body->next) {
        if (jinja_enter(r, body->line))
            flow = execute_one(r, scope, body);
        jinja_leave(r);
    }
    return flow;
}

void jinja_execute(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *body)
{
    execute_body(r, scope, body);
}

/* Put named arguments where parameters of their names are. */
static void bind_named(struct jinja_run *r, struct jinja_scope *scope,
                       const struct jinja_node *macro, const struct jinja_dict *named)
{
    struct base_quoted quoted;
    for (size_t i = 0; i < named->n && !r->status; i++) {
        const struct jinja_pair *pair = &named->pairs[i];
        const struct jinja_node *parameter = macro->list;
        while (parameter && !jinja_same(parameter->name, pair->key.string))
            parameter = parameter->next;
        if (!parameter || jinja_dict_get(r, &scope->names, &pair->key))
            jinja_fail(r, STATUS_FORMAT, "the macro's argument %s is %s",
                       base_quote(&quoted, pair->key.string),
                       parameter ? "there twice" : "not among its parameters");
        else
            assign_name(r, scope, pair->key.string, pair->value);
    }
}

struct jinja_value jinja_call_macro(struct jinja_run *r, const struct jinja_macro *macro,
                                    const struct jinja_args *args)
{
    struct jinja_scope *scope = new_scope(r, macro->scope);
    const struct jinja_node *parameter = macro->node->list;
    if (!scope)
        return jinja_absent();
    size_t i = 0;
    for (; i < args->n && parameter; parameter = parameter->next)
        assign_name(r, scope, parameter->name, args->v[i++]);
    if (i < args->n)
        return JINJA_FAIL(r, STATUS_FORMAT, "the macro takes %zu argument%s, found %zu", i,
                          status_plural(i), args->n);
    bind_named(r, scope, macro->node, &args->named);
    for (; parameter && !r->status; parameter = parameter->next) {
        struct jinja_value key = jinja_of_string(parameter->name);
        if (!jinja_dict_get(r, &scope->names, &key))
            assign_name(r, scope, parameter->name,
                        parameter->a ? jinja_evaluate(r, scope, parameter->a)
                                     : jinja_undefined(parameter->name));
    }
    return r->status ? jinja_absent() : capture(r, scope, macro->node->b);
}
