/* The parser's half for expressions, from what binds least to what binds most. */
#include "base/text/quote.h"
#include "model/template/parse/tree.h"

struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind)
{
    struct jinja_node *node = jinja_alloc(p->r, 1, sizeof *node);
    if (!node)
        node = &p->spare;
    *node = (struct jinja_node){.kind = kind, .line = p->at->line};
    return node;
}

void jinja_link(struct jinja_nodes *nodes, struct jinja_node *node)
{
    if (nodes->last)
        nodes->last->next = node;
    else
        nodes->first = node;
    nodes->last = node;
}

bool jinja_at_operator(const struct jinja_parser *p, const char *text)
{
    return p->at->kind == JINJA_TOKEN_OPERATOR && jinja_is(p->at->text, text);
}

bool jinja_at_name(const struct jinja_parser *p, const char *word)
{
    return p->at->kind == JINJA_TOKEN_NAME && jinja_is(p->at->text, word);
}

bool jinja_take_operator(struct jinja_parser *p, const char *text)
{
    bool is_there = jinja_at_operator(p, text);
    p->at += is_there;
    return is_there;
}

bool jinja_take_name(struct jinja_parser *p, const char *word)
{
    bool is_there = jinja_at_name(p, word);
    p->at += is_there;
    return is_there;
}

void jinja_unexpected(struct jinja_parser *p, const char *expected)
{
    struct base_quoted quoted;
    bool is_end = p->at->kind == JINJA_TOKEN_END;
    p->r->line = p->at->line;
    jinja_fail(p->r, STATUS_FORMAT, "expected %s, found %s", expected,
               is_end                                ? "the end"
               : p->at->kind == JINJA_TOKEN_CONSTANT ? "a constant"
                                                     : base_quote(&quoted, p->at->text));
}

void jinja_expect_operator(struct jinja_parser *p, const char *text)
{
    char expected[8] = {'\'', text[0], '\''};
    if (!jinja_take_operator(p, text))
        jinja_unexpected(p, expected);
}

struct base_string jinja_expect_name(struct jinja_parser *p)
{
    if (p->at->kind == JINJA_TOKEN_NAME)
        return p->at++->text;
    jinja_unexpected(p, "a name");
    return (struct base_string){"", 0};
}

static struct jinja_node *node_of(struct jinja_parser *p, enum jinja_node_kind kind,
                                  struct base_string name, const struct jinja_node *a,
                                  const struct jinja_node *b)
{
    struct jinja_node *node = jinja_node(p, kind);
    node->name = name;
    node->a = a;
    node->b = b;
    return node;
}

/* Items up to and with `close`; those of a mapping have keys in `a`. */
static struct jinja_node *parse_items(struct jinja_parser *p, enum jinja_node_kind kind,
                                      const char *close)
{
    struct jinja_node *node = jinja_node(p, kind);
    struct jinja_nodes items = {0};
    while (!p->r->status && !jinja_take_operator(p, close)) {
        struct jinja_node *item = jinja_node(p, JINJA_ARGUMENT);
        if (kind == JINJA_MAKE_DICT) {
            item->b = jinja_expression(p, true);
            jinja_expect_operator(p, ":");
        }
        item->a = jinja_expression(p, true);
        jinja_link(&items, item);
        if (!jinja_at_operator(p, close))
            jinja_expect_operator(p, ",");
    }
    node->list = items.first;
    return node;
}

struct jinja_node *jinja_arguments(struct jinja_parser *p)
{
    struct jinja_nodes arguments = {0};
    while (!p->r->status && !jinja_take_operator(p, ")")) {
        struct jinja_node *argument = jinja_node(p, JINJA_ARGUMENT);
        if (jinja_at_operator(p, "*") || jinja_at_operator(p, "**"))
            jinja_fail(p->r, STATUS_UNSUPPORTED, "'*' before an argument is not supported");
        if (p->at->kind == JINJA_TOKEN_NAME && p->at[1].kind == JINJA_TOKEN_OPERATOR &&
            jinja_is(p->at[1].text, "=")) {
            argument->name = p->at->text;
            p->at += 2;
        }
        argument->a = jinja_expression(p, true);
        jinja_link(&arguments, argument);
        if (!jinja_at_operator(p, ")"))
            jinja_expect_operator(p, ",");
    }
    return arguments.first;
}

static struct jinja_node *parse_constant(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_CONSTANT);
    node->constant = p->at->constant;
    p->at++;
    if (node->constant.kind != JINJA_STRING || p->at->kind != JINJA_TOKEN_CONSTANT ||
        p->at->constant.kind != JINJA_STRING)
        return node;
    struct jinja_buffer joined = {0};
    jinja_put_string(p->r, &joined, node->constant.string);
    for (; p->at->kind == JINJA_TOKEN_CONSTANT && p->at->constant.kind == JINJA_STRING; p->at++)
        jinja_put_string(p->r, &joined, p->at->constant.string);
    node->constant = jinja_of_buffer(&joined);
    return node;
}

static struct jinja_node *parse_name(struct jinja_parser *p)
{
    static const struct {
        const char *name;
        struct jinja_value value;
    } constants[] = {{"true", {.kind = JINJA_BOOL, .truth = true}},
                     {"false", {.kind = JINJA_BOOL}},
                     {"none", {.kind = JINJA_NONE}},
                     {"True", {.kind = JINJA_BOOL, .truth = true}},
                     {"False", {.kind = JINJA_BOOL}},
                     {"None", {.kind = JINJA_NONE}}};
    struct jinja_node *node = jinja_node(p, JINJA_NAME);
    node->name = jinja_expect_name(p);
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (jinja_is(node->name, constants[i].name)) {
            node->kind = JINJA_CONSTANT;
            node->constant = constants[i].value;
        }
    return node;
}

static struct jinja_node *parse_primary(struct jinja_parser *p)
{
    if (p->at->kind == JINJA_TOKEN_NAME)
        return parse_name(p);
    if (p->at->kind == JINJA_TOKEN_CONSTANT)
        return parse_constant(p);
    if (jinja_take_operator(p, "["))
        return parse_items(p, JINJA_MAKE_LIST, "]");
    if (jinja_take_operator(p, "{"))
        return parse_items(p, JINJA_MAKE_DICT, "}");
    if (!jinja_take_operator(p, "(")) {
        jinja_unexpected(p, "an expression");
        return jinja_node(p, JINJA_CONSTANT);
    }
    if (jinja_take_operator(p, ")"))
        return jinja_node(p, JINJA_MAKE_TUPLE);
    struct jinja_node *node = jinja_expressions(p, true);
    jinja_expect_operator(p, ")");
    return node;
}

/* After '[': an index, or a slice with its ends. */
static struct jinja_node *parse_subscript(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *node = node_of(p, JINJA_ITEM, (struct base_string){0}, of, NULL);
    const struct jinja_node **parts[] = {&node->b, &node->c, &node->d};
    for (int i = 0; i < 3; i++) {
        if (!jinja_at_operator(p, ":") && !jinja_at_operator(p, "]"))
            *parts[i] = jinja_expression(p, true);
        if (!jinja_take_operator(p, ":"))
            break;
        node->kind = JINJA_SLICE;
    }
    if (node->kind == JINJA_ITEM && !node->b)
        jinja_unexpected(p, "an index");
    jinja_expect_operator(p, "]");
    return node;
}

static struct jinja_node *parse_member(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *node = node_of(p, JINJA_MEMBER, (struct base_string){0}, of, NULL);
    if (p->at->kind == JINJA_TOKEN_CONSTANT && p->at->constant.kind == JINJA_INT) {
        node->kind = JINJA_ITEM;
        node->b = parse_constant(p);
    } else {
        node->name = jinja_expect_name(p);
    }
    return node;
}

static struct jinja_node *parse_call(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *node = node_of(p, JINJA_CALL, (struct base_string){0}, of, NULL);
    node->list = jinja_arguments(p);
    return node;
}

static struct jinja_node *parse_postfix(struct jinja_parser *p, struct jinja_node *node)
{
    while (!p->r->status) {
        if (jinja_take_operator(p, "."))
            node = parse_member(p, node);
        else if (jinja_take_operator(p, "["))
            node = parse_subscript(p, node);
        else if (jinja_take_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

static struct jinja_node *parse_filter(struct jinja_parser *p, struct jinja_node *of)
{
    struct jinja_node *node = node_of(p, JINJA_FILTER, (struct base_string){0}, of, NULL);
    node->name = jinja_expect_name(p);
    if (jinja_take_operator(p, "("))
        node->list = jinja_arguments(p);
    return node;
}

struct jinja_node *jinja_filters(struct jinja_parser *p, struct jinja_node *node)
{
    while (!p->r->status && jinja_take_operator(p, "|"))
        node = parse_filter(p, node);
    return node;
}

/* Whether what is next can be the argument of a test without brackets: `is divisibleby 3`. */
static bool at_argument(const struct jinja_parser *p)
{
    static const char *const others[] = {"else", "or", "and", "if", "in", "not", "is"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (jinja_at_name(p, others[i]))
            return false;
    return p->at->kind == JINJA_TOKEN_NAME || p->at->kind == JINJA_TOKEN_CONSTANT ||
           jinja_at_operator(p, "[") || jinja_at_operator(p, "{");
}

static struct jinja_node *parse_test(struct jinja_parser *p, struct jinja_node *of)
{
    bool is_not = jinja_take_name(p, "not");
    struct jinja_node *node = node_of(p, JINJA_TEST, (struct base_string){0}, of, NULL);
    node->name = jinja_expect_name(p);
    if (jinja_take_operator(p, "(")) {
        node->list = jinja_arguments(p);
    } else if (at_argument(p)) {
        struct jinja_node *argument = jinja_node(p, JINJA_ARGUMENT);
        argument->a = parse_postfix(p, parse_primary(p));
        node->list = argument;
    }
    return is_not ? node_of(p, JINJA_UNARY, (struct base_string){"not", 3}, node, NULL) : node;
}

/* Filters, tests and calls in any order. */
static struct jinja_node *parse_suffixes(struct jinja_parser *p, struct jinja_node *node)
{
    while (!p->r->status) {
        if (jinja_take_operator(p, "|"))
            node = parse_filter(p, node);
        else if (jinja_take_name(p, "is"))
            node = parse_test(p, node);
        else if (jinja_take_operator(p, "("))
            node = parse_call(p, node);
        else
            break;
    }
    return node;
}

static struct jinja_node *parse_unary(struct jinja_parser *p, bool with_filters)
{
    struct jinja_node *node;
    if (!jinja_enter(p->r, p->at->line)) {
        node = jinja_node(p, JINJA_CONSTANT);
    } else {
        if (jinja_at_operator(p, "-") || jinja_at_operator(p, "+")) {
            struct base_string sign = p->at++->text;
            node = node_of(p, JINJA_UNARY, sign, parse_unary(p, false), NULL);
        } else {
            node = parse_primary(p);
        }
        node = parse_postfix(p, node);
        if (with_filters)
            node = parse_suffixes(p, node);
    }
    jinja_leave(p->r);
    return node;
}

/* Operators that bind from the left, from those that bind least; after them unary ones. */
static const char *const levels[][5] = {{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}};
enum { N_LEVELS = sizeof levels / sizeof *levels };

static struct jinja_node *parse_binary(struct jinja_parser *p, int level)
{
    if (level == N_LEVELS)
        return parse_unary(p, true);
    struct jinja_node *node = parse_binary(p, level + 1);
    for (bool found = true; found && !p->r->status;) {
        found = false;
        for (const char *const *o = levels[level]; *o && !found; o++) {
            if (!jinja_at_operator(p, *o))
                continue;
            struct base_string name = p->at++->text;
            node = node_of(p, JINJA_BINARY, name, node, parse_binary(p, level + 1));
            found = true;
        }
    }
    return node;
}

/* The comparison that is next, which is taken; empty where there is none. */
static struct base_string take_relation(struct jinja_parser *p)
{
    static const char *const relations[] = {"==", "!=", "<=", ">=", "<", ">"};
    for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
        if (jinja_at_operator(p, relations[i]))
            return p->at++->text;
    if (jinja_at_name(p, "not") && p->at[1].kind == JINJA_TOKEN_NAME &&
        jinja_is(p->at[1].text, "in")) {
        p->at += 2;
        return (struct base_string){"not in", 6};
    }
    return jinja_at_name(p, "in") ? p->at++->text : (struct base_string){0};
}

static struct jinja_node *parse_relation(struct jinja_parser *p)
{
    struct jinja_node *first = parse_binary(p, 0);
    struct jinja_nodes relations = {0};
    for (struct base_string name; !p->r->status && (name = take_relation(p)).n_bytes;)
        jinja_link(&relations, node_of(p, JINJA_BINARY, name, NULL, parse_binary(p, 0)));
    if (!relations.first)
        return first;
    struct jinja_node *node = node_of(p, JINJA_RELATION, (struct base_string){0}, first, NULL);
    node->list = relations.first;
    return node;
}

static struct jinja_node *parse_not(struct jinja_parser *p)
{
    if (!jinja_take_name(p, "not"))
        return parse_relation(p);
    struct jinja_node *node = jinja_node(p, JINJA_UNARY);
    node->name = (struct base_string){"not", 3};
    if (jinja_enter(p->r, p->at->line))
        node->a = parse_not(p);
    jinja_leave(p->r);
    return node;
}

static struct jinja_node *parse_and(struct jinja_parser *p)
{
    struct jinja_node *node = parse_not(p);
    while (!p->r->status && jinja_take_name(p, "and"))
        node = node_of(p, JINJA_AND, (struct base_string){0}, node, parse_not(p));
    return node;
}

static struct jinja_node *parse_or(struct jinja_parser *p)
{
    struct jinja_node *node = parse_and(p);
    while (!p->r->status && jinja_take_name(p, "or"))
        node = node_of(p, JINJA_OR, (struct base_string){0}, node, parse_and(p));
    return node;
}

struct jinja_node *jinja_expression(struct jinja_parser *p, bool with_if)
{
    struct jinja_node *node =
        jinja_enter(p->r, p->at->line) ? parse_or(p) : jinja_node(p, JINJA_NAME);
    while (with_if && !p->r->status && jinja_take_name(p, "if")) {
        node = node_of(p, JINJA_IF_ELSE, (struct base_string){0}, parse_or(p), node);
        if (jinja_take_name(p, "else"))
            node->c = jinja_expression(p, true);
    }
    jinja_leave(p->r);
    return node;
}

/* Whether a list of expressions ends here. */
static bool at_end(const struct jinja_parser *p)
{
    return p->at->kind == JINJA_TOKEN_CLOSE || p->at->kind == JINJA_TOKEN_END ||
           jinja_at_operator(p, ")") || jinja_at_operator(p, "=") || jinja_at_name(p, "in");
}

static struct jinja_node *parse_tuple(struct jinja_parser *p, bool with_if, bool is_target)
{
    struct jinja_nodes items = {0};
    struct jinja_node *tuple = jinja_node(p, JINJA_MAKE_TUPLE), *node;
    bool comma = false;
    do {
        node = is_target ? jinja_node(p, JINJA_NAME) : jinja_expression(p, with_if);
        if (is_target)
            node->name = jinja_expect_name(p);
        struct jinja_node *item = jinja_node(p, JINJA_ARGUMENT);
        item->a = node;
        jinja_link(&items, item);
        comma |= jinja_at_operator(p, ",");
    } while (!p->r->status && jinja_take_operator(p, ",") && !at_end(p));
    tuple->list = items.first;
    return comma ? tuple : node;
}

struct jinja_node *jinja_expressions(struct jinja_parser *p, bool with_if)
{
    return parse_tuple(p, with_if, false);
}

struct jinja_node *jinja_target(struct jinja_parser *p)
{
    bool in_brackets = jinja_take_operator(p, "(");
    struct jinja_node *node = parse_tuple(p, false, true);
    if (in_brackets)
        jinja_expect_operator(p, ")");
    if (node->kind == JINJA_NAME && jinja_take_operator(p, "."))
        return parse_member(p, node);
    return node;
}
