/* The parser's half for expressions, from what binds least to what binds most. */
#include "base/text/quote.h"
#include "model/chat/parse/tree.h"

struct chat_node *model_chat_node(struct chat_parser *p, enum chat_node_kind kind)
{
    struct chat_node *node = model_chat_alloc(p->r, 1, sizeof *node);
    if (!node)
        node = &p->spare;
    *node = (struct chat_node){.kind = kind, .line = p->at->line};
    return node;
}

void model_chat_link(struct chat_nodes *nodes, struct chat_node *node)
{
    if (nodes->last)
        nodes->last->next = node;
    else
        nodes->first = node;
    nodes->last = node;
}

bool model_chat_at_operator(const struct chat_parser *p, const char *text)
{
    return p->at->kind == CHAT_TOKEN_OPERATOR && chat_is(p->at->text, text);
}

bool model_chat_at_name(const struct chat_parser *p, const char *word)
{
    return p->at->kind == CHAT_TOKEN_NAME && chat_is(p->at->text, word);
}

bool model_chat_take_operator(struct chat_parser *p, const char *text)
{
    bool is_there = model_chat_at_operator(p, text);
    p->at += is_there;
    return is_there;
}

bool model_chat_take_name(struct chat_parser *p, const char *word)
{
    bool is_there = model_chat_at_name(p, word);
    p->at += is_there;
    return is_there;
}

void model_chat_unexpected(struct chat_parser *p, const char *expected)
{
    struct base_quoted quoted;
    bool is_end = p->at->kind == CHAT_TOKEN_END;
    p->r->line = p->at->line;
    model_chat_fail(p->r, STATUS_FORMAT, "expected %s, found %s", expected,
                    is_end                               ? "the end"
                    : p->at->kind == CHAT_TOKEN_CONSTANT ? "a constant"
                                                         : base_quote(&quoted, p->at->text));
}

void model_chat_expect_operator(struct chat_parser *p, const char *text)
{
    char expected[8] = {'\'', text[0], '\''};
    if (!model_chat_take_operator(p, text))
        model_chat_unexpected(p, expected);
}

struct base_string model_chat_expect_name(struct chat_parser *p)
{
    if (p->at->kind == CHAT_TOKEN_NAME)
        return p->at++->text;
    model_chat_unexpected(p, "a name");
    return (struct base_string){"", 0};
}

static struct chat_node *node_of(struct chat_parser *p, enum chat_node_kind kind,
                                 struct base_string name, const struct chat_node *a,
                                 const struct chat_node *b)
{
    struct chat_node *node = model_chat_node(p, kind);
    node->name = name;
    node->a = a;
    node->b = b;
    return node;
}

/* Items up to and with `close`; those of a mapping have keys in `a`. */
static struct chat_node *parse_items(struct chat_parser *p, enum chat_node_kind kind,
                                     const char *close)
{
    struct chat_node *node = model_chat_node(p, kind);
    struct chat_nodes items = {0};
    while (!p->r->status && !model_chat_take_operator(p, close)) {
        struct chat_node *item = model_chat_node(p, CHAT_ARGUMENT);
        if (kind == CHAT_MAKE_DICT) {
            item->b = model_chat_expression(p, true);
            model_chat_expect_operator(p, ":");
        }
        item->a = model_chat_expression(p, true);
        model_chat_link(&items, item);
        if (!model_chat_at_operator(p, close))
            model_chat_expect_operator(p, ",");
    }
    node->list = items.first;
    return node;
}

struct chat_node *model_chat_arguments(struct chat_parser *p)
{
    struct chat_nodes arguments = {0};
    while (!p->r->status && !model_chat_take_operator(p, ")")) {
        struct chat_node *argument = model_chat_node(p, CHAT_ARGUMENT);
        if (model_chat_at_operator(p, "*") || model_chat_at_operator(p, "**"))
            model_chat_fail(p->r, STATUS_UNSUPPORTED, "'*' before an argument is not supported");
        if (p->at->kind == CHAT_TOKEN_NAME && p->at[1].kind == CHAT_TOKEN_OPERATOR &&
            chat_is(p->at[1].text, "=")) {
            argument->name = p->at->text;
            p->at += 2;
        }
        argument->a = model_chat_expression(p, true);
        model_chat_link(&arguments, argument);
        if (!model_chat_at_operator(p, ")"))
            model_chat_expect_operator(p, ",");
    }
    return arguments.first;
}

static struct chat_node *parse_constant(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_CONSTANT);
    node->constant = p->at->constant;
    p->at++;
    if (node->constant.kind != CHAT_STRING || p->at->kind != CHAT_TOKEN_CONSTANT ||
        p->at->constant.kind != CHAT_STRING)
        return node;
    struct chat_buffer joined = {0};
    model_chat_put_string(p->r, &joined, node->constant.string);
    for (; p->at->kind == CHAT_TOKEN_CONSTANT && p->at->constant.kind == CHAT_STRING; p->at++)
        model_chat_put_string(p->r, &joined, p->at->constant.string);
    node->constant = chat_of_buffer(&joined);
    return node;
}

static struct chat_node *parse_name(struct chat_parser *p)
{
    static const struct {
        const char *name;
        struct chat_value value;
    } constants[] = {{"true", {.kind = CHAT_BOOL, .truth = true}},
                     {"false", {.kind = CHAT_BOOL}},
                     {"none", {.kind = CHAT_NONE}},
                     {"True", {.kind = CHAT_BOOL, .truth = true}},
                     {"False", {.kind = CHAT_BOOL}},
                     {"None", {.kind = CHAT_NONE}}};
    struct chat_node *node = model_chat_node(p, CHAT_NAME);
    node->name = model_chat_expect_name(p);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (chat_is(node->name, constants[i].name)) {
            node->kind = CHAT_CONSTANT;
            node->constant = constants[i].value;
        }
    return node;
}

static struct chat_node *parse_primary(struct chat_parser *p)
{
    if (p->at->kind == CHAT_TOKEN_NAME)
        return parse_name(p);
    if (p->at->kind == CHAT_TOKEN_CONSTANT)
        return parse_constant(p);
    if (model_chat_take_operator(p, "["))
        return parse_items(p, CHAT_MAKE_LIST, "]");
    if (model_chat_take_operator(p, "{"))
        return parse_items(p, CHAT_MAKE_DICT, "}");
    if (!model_chat_take_operator(p, "(")) {
        model_chat_unexpected(p, "an expression");
        return model_chat_node(p, CHAT_CONSTANT);
    }
    if (model_chat_take_operator(p, ")"))
        return model_chat_node(p, CHAT_MAKE_TUPLE);
    struct chat_node *node = model_chat_expressions(p, true);
    model_chat_expect_operator(p, ")");
    return node;
}

/* Behind '[': an index, or a slice with its ends. */
static struct chat_node *parse_subscript(struct chat_parser *p, struct chat_node *of)
{
    struct chat_node *node = node_of(p, CHAT_ITEM, (struct base_string){0}, of, NULL);
    const struct chat_node **parts[] = {&node->b, &node->c, &node->d};
    for (int i = 0; i < 3; i++) {
        if (!model_chat_at_operator(p, ":") && !model_chat_at_operator(p, "]"))
            *parts[i] = model_chat_expression(p, true);
        if (!model_chat_take_operator(p, ":"))
            break;
        node->kind = CHAT_SLICE;
    }
    if (node->kind == CHAT_ITEM && !node->b)
        model_chat_unexpected(p, "an index");
    model_chat_expect_operator(p, "]");
    return node;
}

static struct chat_node *parse_member(struct chat_parser *p, struct chat_node *of)
{
    struct chat_node *node = node_of(p, CHAT_MEMBER, (struct base_string){0}, of, NULL);
    if (p->at->kind == CHAT_TOKEN_CONSTANT && p->at->constant.kind == CHAT_INT) {
        node->kind = CHAT_ITEM;
        node->b = parse_constant(p);
    } else {
        node->name = model_chat_expect_name(p);
    }
    return node;
}

static struct chat_node *parse_call(struct chat_parser *p, struct chat_node *of)
{
    struct chat_node *node = node_of(p, CHAT_CALL, (struct base_string){0}, of, NULL);
    node->list = model_chat_arguments(p);
    return node;
}

static struct chat_node *parse_postfix(struct chat_parser *p, struct chat_node *node)
{
    while (!p->r->status) {
        if (model_chat_take_operator(p, "."))
            node = parse_member(p, node);
        else if (model_chat_take_operator(p, "["))
            node = parse_subscript(p, node);
        else if (model_chat_take_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

static struct chat_node *parse_filter(struct chat_parser *p, struct chat_node *of)
{
    struct chat_node *node = node_of(p, CHAT_FILTER, (struct base_string){0}, of, NULL);
    node->name = model_chat_expect_name(p);
    if (model_chat_take_operator(p, "("))
        node->list = model_chat_arguments(p);
    return node;
}

struct chat_node *model_chat_filters(struct chat_parser *p, struct chat_node *node)
{
    while (!p->r->status && model_chat_take_operator(p, "|"))
        node = parse_filter(p, node);
    return node;
}

/* Whether what is next can be the argument of a test without brackets: `is divisibleby 3`. */
static bool at_argument(const struct chat_parser *p)
{
    static const char *const others[] = {"else", "or", "and", "if", "in", "not", "is"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (model_chat_at_name(p, others[i]))
            return false;
    return p->at->kind == CHAT_TOKEN_NAME || p->at->kind == CHAT_TOKEN_CONSTANT ||
           model_chat_at_operator(p, "[") || model_chat_at_operator(p, "{");
}

static struct chat_node *parse_test(struct chat_parser *p, struct chat_node *of)
{
    bool is_not = model_chat_take_name(p, "not");
    struct chat_node *node = node_of(p, CHAT_TEST, (struct base_string){0}, of, NULL);
    node->name = model_chat_expect_name(p);
    if (model_chat_take_operator(p, "(")) {
        node->list = model_chat_arguments(p);
    } else if (at_argument(p)) {
        struct chat_node *argument = model_chat_node(p, CHAT_ARGUMENT);
        argument->a = parse_postfix(p, parse_primary(p));
        node->list = argument;
    }
    return is_not ? node_of(p, CHAT_UNARY, (struct base_string){"not", 3}, node, NULL) : node;
}

/* Filters, tests and calls in any order. */
static struct chat_node *parse_behind(struct chat_parser *p, struct chat_node *node)
{
    while (!p->r->status) {
        if (model_chat_take_operator(p, "|"))
            node = parse_filter(p, node);
        else if (model_chat_take_name(p, "is"))
            node = parse_test(p, node);
        else if (model_chat_take_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

static struct chat_node *parse_unary(struct chat_parser *p, bool with_filters)
{
    struct chat_node *node;
    if (!model_chat_enter(p->r, p->at->line)) {
        node = model_chat_node(p, CHAT_CONSTANT);
    } else {
        if (model_chat_at_operator(p, "-") || model_chat_at_operator(p, "+")) {
            struct base_string sign = p->at++->text;
            node = node_of(p, CHAT_UNARY, sign, parse_unary(p, false), NULL);
        } else {
            node = parse_primary(p);
        }
        node = parse_postfix(p, node);
        if (with_filters)
            node = parse_behind(p, node);
    }
    model_chat_leave(p->r);
    return node;
}

/* Operators that bind from the left, from those that bind least; behind them unary ones. */
static const char *const levels[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
enum { N_LEVELS = sizeof levels / sizeof *levels };

static struct chat_node *parse_binary(struct chat_parser *p, int level)
{
    if (level == N_LEVELS)
        return parse_unary(p, true);
    struct chat_node *node = parse_binary(p, level + 1);
    for (bool found = true; found && !p->r->status;) {
        found = false;
        for (const char *const *o = levels[level]; *o && !found; o++) {
            if (!model_chat_at_operator(p, *o))
                continue;
            struct base_string name = p->at++->text;
            node = node_of(p, CHAT_BINARY, name, node, parse_binary(p, level + 1));
            found = true;
        }
    }
    return node;
}

/* The comparison that is next, which is taken; empty where there is none. */
static struct base_string take_relation(struct chat_parser *p)
{
    static const char *const relations[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (model_chat_at_operator(p, relations[i]))
            return p->at++->text;
    if (model_chat_at_name(p, "not") && p->at[1].kind == CHAT_TOKEN_NAME &&
        chat_is(p->at[1].text, "in")) {
        p->at += 2;
        return (struct base_string){"not in", 6};
    }
    return model_chat_at_name(p, "in") ? p->at++->text : (struct base_string){0};
}

static struct chat_node *parse_relation(struct chat_parser *p)
{
    struct chat_node *first = parse_binary(p, 0);
    struct chat_nodes relations = {0};
    for (struct base_string name; !p->r->status && (name = take_relation(p)).n_bytes;)
        model_chat_link(&relations, node_of(p, CHAT_BINARY, name, NULL, parse_binary(p, 0)));
    if (!relations.first)
        return first;
    struct chat_node *node = node_of(p, CHAT_RELATION, (struct base_string){0}, first, NULL);
    node->list = relations.first;
    return node;
}

static struct chat_node *parse_not(struct chat_parser *p)
{
    if (!model_chat_take_name(p, "not"))
        return parse_relation(p);
    struct chat_node *node = model_chat_node(p, CHAT_UNARY);
    node->name = (struct base_string){"not", 3};
    if (model_chat_enter(p->r, p->at->line))
        node->a = parse_not(p);
    model_chat_leave(p->r);
    return node;
}

static struct chat_node *parse_and(struct chat_parser *p)
{
    struct chat_node *node = parse_not(p);
    while (!p->r->status && model_chat_take_name(p, "and"))
        node = node_of(p, CHAT_AND, (struct base_string){0}, node, parse_not(p));
    return node;
}

static struct chat_node *parse_or(struct chat_parser *p)
{
    struct chat_node *node = parse_and(p);
    while (!p->r->status && model_chat_take_name(p, "or"))
        node = node_of(p, CHAT_OR, (struct base_string){0}, node, parse_and(p));
    return node;
}

struct chat_node *model_chat_expression(struct chat_parser *p, bool with_if)
{
    struct chat_node *node =
        model_chat_enter(p->r, p->at->line) ? parse_or(p) : model_chat_node(p, CHAT_NAME);
    while (with_if && !p->r->status && model_chat_take_name(p, "if")) {
        node = node_of(p, CHAT_IF_ELSE, (struct base_string){0}, parse_or(p), node);
        if (model_chat_take_name(p, "else"))
            node->c = model_chat_expression(p, true);
    }
    model_chat_leave(p->r);
    return node;
}

/* Whether a list of expressions ends here. */
static bool at_end(const struct chat_parser *p)
{
    return p->at->kind == CHAT_TOKEN_CLOSE || p->at->kind == CHAT_TOKEN_END ||
           model_chat_at_operator(p, ")") || model_chat_at_operator(p, "=") ||
           model_chat_at_name(p, "in");
}

static struct chat_node *parse_tuple(struct chat_parser *p, bool with_if, bool is_target)
{
    struct chat_nodes items = {0};
    struct chat_node *tuple = model_chat_node(p, CHAT_MAKE_TUPLE), *node;
    bool comma = false;
    do {
        node = is_target ? model_chat_node(p, CHAT_NAME) : model_chat_expression(p, with_if);
        if (is_target)
            node->name = model_chat_expect_name(p);
        struct chat_node *item = model_chat_node(p, CHAT_ARGUMENT);
        item->a = node;
        model_chat_link(&items, item);
        comma |= model_chat_at_operator(p, ",");
    } while (!p->r->status && model_chat_take_operator(p, ",") && !at_end(p));
    tuple->list = items.first;
    return comma ? tuple : node;
}

struct chat_node *model_chat_expressions(struct chat_parser *p, bool with_if)
{
    return parse_tuple(p, with_if, false);
}

struct chat_node *model_chat_target(struct chat_parser *p)
{
    bool in_brackets = model_chat_take_operator(p, "(");
    struct chat_node *node = parse_tuple(p, false, true);
    if (in_brackets)
        model_chat_expect_operator(p, ")");
    if (node->kind == CHAT_NAME && model_chat_take_operator(p, "."))
        return parse_member(p, node);
    return node;
}
