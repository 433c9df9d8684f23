/* Statements. */
#include "base/text/quote.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/text.h"

enum flow { GO_ON, LEAVE, NEXT };

static enum flow execute_body(struct chat_run *r, struct chat_scope *scope,
                              const struct chat_node *body);

static struct chat_scope *new_scope(struct chat_run *r, const struct chat_scope *around)
{
    struct chat_scope *scope = model_chat_alloc(r, 1, sizeof *scope);
    if (scope)
        scope->around = around;
    return scope;
}

static void assign_name(struct chat_run *r, struct chat_scope *scope, struct base_string name,
                        struct chat_value value)
{
    model_chat_dict_set(r, &scope->names, chat_of_string(name), value);
}

static void assign_member(struct chat_run *r, struct chat_scope *scope,
                          const struct chat_node *target, struct chat_value value)
{
    struct chat_value owner = model_chat_evaluate(r, scope, target->a);
    if (r->status)
        return;
    if (owner.kind != CHAT_NAMESPACE)
        model_chat_fail(r, STATUS_FORMAT, "only a namespace's members can be set, not those of %s",
                        model_chat_kind_name(&owner));
    else
        model_chat_dict_set(r, owner.dict, chat_of_string(target->name), value);
}

static void assign(struct chat_run *r, struct chat_scope *scope, const struct chat_node *target,
                   struct chat_value value)
{
    if (r->status)
        return;
    if (target->kind == CHAT_NAME) {
        assign_name(r, scope, target->name, value);
    } else if (target->kind == CHAT_MEMBER) {
        assign_member(r, scope, target, value);
    } else {
        struct chat_value items = model_chat_iterate(r, &value);
        const struct chat_node *item = target->list;
        size_t i = 0;
        for (; item && i < items.n && !r->status; item = item->next)
            assign_name(r, scope, item->a->name, items.items[i++]);
        if (item || i < items.n)
            model_chat_fail(r, STATUS_FORMAT, "%zu values for another number of names", items.n);
    }
}

/* The text of a body. */
static struct chat_value capture(struct chat_run *r, struct chat_scope *scope,
                                 const struct chat_node *body)
{
    struct chat_buffer buffer = {0}, *out = r->out;
    r->out = &buffer;
    execute_body(r, scope, body);
    r->out = out;
    return chat_of_buffer(&buffer);
}

/* A text after the filters of a tree that begins with CHAT_CAPTURED. */
static struct chat_value filtered(struct chat_run *r, struct chat_scope *scope,
                                  const struct chat_node *filters, struct chat_value text)
{
    if (filters->kind == CHAT_CAPTURED || r->status)
        return text;
    struct chat_value inner = filtered(r, scope, filters->a, text);
    struct chat_args args = model_chat_evaluate_arguments(r, scope, filters->list);
    return r->status ? chat_absent() : model_chat_filter(r, filters->name, &inner, &args);
}

/* The items of a loop that its condition lets through. */
static struct chat_value chosen_items(struct chat_run *r, struct chat_scope *scope,
                                      const struct chat_node *node)
{
    struct chat_value of = model_chat_evaluate(r, scope, node->b);
    struct chat_value all = r->status ? chat_list(NULL, 0) : model_chat_iterate(r, &of);
    if (!node->c || r->status)
        return all;
    struct chat_items chosen = {0};
    for (size_t i = 0; i < all.n && !r->status; i++) {
        struct chat_scope *inner = new_scope(r, scope);
        if (!inner)
            break;
        assign(r, inner, node->a, all.items[i]);
        struct chat_value holds = model_chat_evaluate(r, inner, node->c);
        if (model_chat_truth(&holds))
            model_chat_append(r, &chosen, all.items[i]);
    }
    return chat_of_items(&chosen);
}

static enum flow execute_for(struct chat_run *r, struct chat_scope *scope,
                             const struct chat_node *node)
{
    struct chat_value items = chosen_items(r, scope, node);
    for (size_t i = 0; i < items.n && !r->status; i++) {
        struct chat_scope *inner = new_scope(r, scope);
        struct chat_loop *loop = model_chat_alloc(r, 1, sizeof *loop);
        if (!inner || !loop)
            break;
        *loop = (struct chat_loop){items.items, i, items.n};
        assign_name(r, inner, (struct base_string){"loop", 4},
                    (struct chat_value){.kind = CHAT_LOOP, .loop = loop});
        assign(r, inner, node->a, items.items[i]);
        if (execute_body(r, inner, node->d) == LEAVE)
            break;
    }
    if (items.n > 0 || !node->list || r->status)
        return GO_ON;
    return execute_body(r, scope, node->list);
}

static enum flow execute_if(struct chat_run *r, struct chat_scope *scope,
                            const struct chat_node *branch)
{
    for (; branch && !r->status; branch = branch->next) {
        struct chat_value holds = chat_bool(true);
        if (branch->a)
            holds = model_chat_evaluate(r, scope, branch->a);
        if (!r->status && model_chat_truth(&holds))
            return execute_body(r, scope, branch->b);
    }
    return GO_ON;
}

static void define_macro(struct chat_run *r, struct chat_scope *scope, const struct chat_node *node)
{
    struct chat_macro *macro = model_chat_alloc(r, 1, sizeof *macro);
    if (!macro)
        return;
    *macro = (struct chat_macro){node, scope};
    assign_name(r, scope, node->name, (struct chat_value){.kind = CHAT_MACRO, .macro = macro});
}

static void execute_with(struct chat_run *r, struct chat_scope *scope, const struct chat_node *node)
{
    struct chat_scope *inner = new_scope(r, scope);
    for (const struct chat_node *set = node->list; set && inner; set = set->next)
        assign(r, inner, set->a, model_chat_evaluate(r, scope, set->b));
    if (!r->status)
        execute_body(r, inner, node->b);
}

/* A body of its own scope, whose place in the text is noted. */
static void execute_generation(struct chat_run *r, struct chat_scope *scope,
                               const struct chat_node *node)
{
    struct chat_scope *inner = new_scope(r, scope);
    if (r->out != &r->text)
        model_chat_fail(r, STATUS_UNSUPPORTED, "'generation' within a macro, 'set' or 'filter'");
    size_t from = r->text.n_bytes;
    if (!r->status)
        execute_body(r, inner, node->b);
    r->spans = model_chat_grow(r, r->spans, r->n_spans, &r->span_capacity, sizeof *r->spans);
    if (r->n_spans < r->span_capacity)
        r->spans[r->n_spans++] = (struct model_chat_span){from, r->text.n_bytes};
}

static void print(struct chat_run *r, struct chat_scope *scope, const struct chat_node *node)
{
    struct chat_value v = model_chat_evaluate(r, scope, node->a);
    if (!r->status)
        model_chat_put_value(r, r->out, &v);
}

static enum flow execute_one(struct chat_run *r, struct chat_scope *scope,
                             const struct chat_node *node)
{
    switch (node->kind) {
    case CHAT_TEXT:
        model_chat_put_string(r, r->out, node->name);
        return GO_ON;
    case CHAT_PRINT:
        print(r, scope, node);
        return GO_ON;
    case CHAT_IF:
        return execute_if(r, scope, node->list);
    case CHAT_FOR:
        return execute_for(r, scope, node);
    case CHAT_SET:
        assign(r, scope, node->a, model_chat_evaluate(r, scope, node->b));
        return GO_ON;
    case CHAT_SET_BLOCK:
        assign(r, scope, node->a,
               filtered(r, scope, node->c, capture(r, new_scope(r, scope), node->b)));
        return GO_ON;
    case CHAT_FILTERED: {
        struct chat_value text =
            filtered(r, scope, node->c, capture(r, new_scope(r, scope), node->b));
        if (!r->status)
            model_chat_put_value(r, r->out, &text);
        return GO_ON;
    }
    case CHAT_MACRO_BODY:
        define_macro(r, scope, node);
        return GO_ON;
    case CHAT_WITH:
        execute_with(r, scope, node);
        return GO_ON;
    case CHAT_GENERATION:
        execute_generation(r, scope, node);
        return GO_ON;
    default:
        return node->kind == CHAT_BREAK ? LEAVE : NEXT;
    }
}

static enum flow execute_body(struct chat_run *r, struct chat_scope *scope,
                              const struct chat_node *body)
{
    enum flow flow = GO_ON;
    for (; body && flow == GO_ON && !r->status; body = body->next) {
        if (model_chat_enter(r, body->line))
            flow = execute_one(r, scope, body);
        model_chat_leave(r);
    }
    return flow;
}

void model_chat_execute(struct chat_run *r, struct chat_scope *scope, const struct chat_node *body)
{
    execute_body(r, scope, body);
}

/* Put named arguments where parameters of their names are. */
static void bind_named(struct chat_run *r, struct chat_scope *scope, const struct chat_node *macro,
                       const struct chat_dict *named)
{
    struct base_quoted quoted;
    for (size_t i = 0; i < named->n && !r->status; i++) {
        const struct chat_pair *pair = &named->pairs[i];
        const struct chat_node *parameter = macro->list;
        while (parameter && !chat_same(parameter->name, pair->key.string))
            parameter = parameter->next;
        if (!parameter || model_chat_dict_get(r, &scope->names, &pair->key))
            model_chat_fail(r, STATUS_FORMAT, "the macro's argument %s is %s",
                            base_quote(&quoted, pair->key.string),
                            parameter ? "there twice" : "not among its parameters");
        else
            assign_name(r, scope, pair->key.string, pair->value);
    }
}

struct chat_value model_chat_call_macro(struct chat_run *r, const struct chat_macro *macro,
                                        const struct chat_args *args)
{
    struct chat_scope *scope = new_scope(r, macro->scope);
    const struct chat_node *parameter = macro->node->list;
    if (!scope)
        return chat_absent();
    size_t i = 0;
    for (; i < args->n && parameter; parameter = parameter->next)
        assign_name(r, scope, parameter->name, args->v[i++]);
    if (i < args->n)
        return CHAT_FAIL(r, STATUS_FORMAT, "the macro takes %zu argument%s, found %zu", i,
                         status_plural(i), args->n);
    bind_named(r, scope, macro->node, &args->named);
    for (; parameter && !r->status; parameter = parameter->next) {
        struct chat_value key = chat_of_string(parameter->name);
        if (!model_chat_dict_get(r, &scope->names, &key))
            assign_name(r, scope, parameter->name,
                        parameter->a ? model_chat_evaluate(r, scope, parameter->a)
                                     : chat_undefined(parameter->name));
    }
    return r->status ? chat_absent() : capture(r, scope, macro->node->b);
}
