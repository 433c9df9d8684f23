/* The parser's half for statements. */
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/chat/parse/tree.h"

static struct chat_node *parse_statement(struct chat_parser *p);

/* Whether a tag is next whose name is one of `words`, between blanks. */
static bool at_one_of(const struct chat_parser *p, const char *words)
{
    const char *word;
    size_t n;
    if (p->at->kind != CHAT_TOKEN_BLOCK || p->at[1].kind != CHAT_TOKEN_NAME)
        return false;
    while ((words = base_words_next(words, &word, &n)))
        if (chat_same(p->at[1].text, (struct base_string){word, n}))
            return true;
    return false;
}

/* Statements up to a tag whose name is one of `ends`, or, where that is empty, to the end. */
static struct chat_node *parse_body(struct chat_parser *p, const char *ends)
{
    struct chat_nodes body = {0};
    if (model_chat_enter(p->r, p->at->line))
        while (!p->r->status && !at_one_of(p, ends)) {
            if (p->at->kind == CHAT_TOKEN_END) {
                if (*ends)
                    model_chat_unexpected(p, ends);
                break;
            }
            model_chat_link(&body, parse_statement(p));
        }
    model_chat_leave(p->r);
    return body.first;
}

static void expect_close(struct chat_parser *p)
{
    if (p->at->kind == CHAT_TOKEN_CLOSE)
        p->at++;
    else
        model_chat_unexpected(p, "the tag's end");
}

/* "{% name", which is next, and the tag's end. */
static void take_tag(struct chat_parser *p)
{
    if (!p->r->status)
        p->at += 2;
    expect_close(p);
}

static struct chat_node *parse_if(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_IF);
    struct chat_nodes branches = {0};
    for (bool is_else = false; !p->r->status;) {
        struct chat_node *branch = model_chat_node(p, CHAT_BRANCH);
        if (!is_else)
            branch->a = model_chat_expressions(p, false);
        expect_close(p);
        branch->b = parse_body(p, is_else ? "endif" : "elif else endif");
        model_chat_link(&branches, branch);
        if (p->r->status || chat_is(p->at[1].text, "endif"))
            break;
        is_else = chat_is(p->at[1].text, "else");
        p->at += 2;
    }
    take_tag(p);
    node->list = branches.first;
    return node;
}

static struct chat_node *parse_for(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_FOR);
    node->a = model_chat_target(p);
    if (!model_chat_take_name(p, "in"))
        model_chat_unexpected(p, "'in'");
    node->b = model_chat_expressions(p, false);
    if (model_chat_take_name(p, "if"))
        node->c = model_chat_expression(p, true);
    if (model_chat_at_name(p, "recursive"))
        model_chat_fail(p->r, STATUS_UNSUPPORTED, "'recursive' is not supported");
    expect_close(p);
    p->n_loops++;
    node->d = parse_body(p, "else endfor");
    p->n_loops--;
    if (!p->r->status && chat_is(p->at[1].text, "else")) {
        take_tag(p);
        node->list = parse_body(p, "endfor");
    }
    take_tag(p);
    return node;
}

/* Filters that a body's text goes through. */
static struct chat_node *captured(struct chat_parser *p)
{
    return model_chat_filters(p, model_chat_node(p, CHAT_CAPTURED));
}

static struct chat_node *parse_set(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_SET);
    node->a = model_chat_target(p);
    if (model_chat_take_operator(p, "=")) {
        node->b = model_chat_expressions(p, true);
        expect_close(p);
        return node;
    }
    node->kind = CHAT_SET_BLOCK;
    node->c = captured(p);
    expect_close(p);
    node->b = parse_body(p, "endset");
    take_tag(p);
    return node;
}

static struct chat_node *parse_macro(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_MACRO_BODY);
    struct chat_nodes parameters = {0};
    unsigned n_loops = p->n_loops;
    node->name = model_chat_expect_name(p);
    model_chat_expect_operator(p, "(");
    while (!p->r->status && !model_chat_take_operator(p, ")")) {
        struct chat_node *parameter = model_chat_node(p, CHAT_ARGUMENT);
        parameter->name = model_chat_expect_name(p);
        if (model_chat_take_operator(p, "="))
            parameter->a = model_chat_expression(p, true);
        model_chat_link(&parameters, parameter);
        if (!model_chat_at_operator(p, ")"))
            model_chat_expect_operator(p, ",");
    }
    expect_close(p);
    p->n_loops = 0;
    node->list = parameters.first;
    node->b = parse_body(p, "endmacro");
    p->n_loops = n_loops;
    if (!p->r->status)
        p->at += 2;
    if (model_chat_at_name(p, "macro") || p->at->kind == CHAT_TOKEN_NAME)
        p->at++; /* {% endmacro name %} */
    expect_close(p);
    return node;
}

static struct chat_node *parse_filtered(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_FILTERED);
    /* The first filter stands without its bar. */
    struct chat_node *first = model_chat_node(p, CHAT_FILTER);
    first->a = model_chat_node(p, CHAT_CAPTURED);
    first->name = model_chat_expect_name(p);
    if (model_chat_take_operator(p, "("))
        first->list = model_chat_arguments(p);
    node->c = model_chat_filters(p, first);
    expect_close(p);
    node->b = parse_body(p, "endfilter");
    take_tag(p);
    return node;
}

static struct chat_node *parse_with(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_WITH);
    struct chat_nodes sets = {0};
    while (!p->r->status && p->at->kind != CHAT_TOKEN_CLOSE) {
        struct chat_node *set = model_chat_node(p, CHAT_SET);
        struct chat_node *name = model_chat_node(p, CHAT_NAME);
        set->a = name;
        name->name = model_chat_expect_name(p);
        model_chat_expect_operator(p, "=");
        set->b = model_chat_expression(p, true);
        model_chat_link(&sets, set);
        if (p->at->kind != CHAT_TOKEN_CLOSE)
            model_chat_expect_operator(p, ",");
    }
    expect_close(p);
    node->list = sets.first;
    node->b = parse_body(p, "endwith");
    take_tag(p);
    return node;
}

static struct chat_node *parse_generation(struct chat_parser *p)
{
    struct chat_node *node = model_chat_node(p, CHAT_GENERATION);
    p->r->has_generation = true;
    expect_close(p);
    node->b = parse_body(p, "endgeneration");
    take_tag(p);
    return node;
}

static struct chat_node *parse_jump(struct chat_parser *p, enum chat_node_kind kind)
{
    struct chat_node *node = model_chat_node(p, kind);
    if (p->n_loops == 0)
        model_chat_fail(p->r, STATUS_FORMAT, "'break' and 'continue' belong into a loop");
    expect_close(p);
    return node;
}

static struct chat_node *parse_block(struct chat_parser *p)
{
    struct base_quoted quoted;
    const struct chat_token *name = ++p->at;
    model_chat_expect_name(p);
    p->r->line = name->line;
    if (chat_is(name->text, "if"))
        return parse_if(p);
    if (chat_is(name->text, "for"))
        return parse_for(p);
    if (chat_is(name->text, "set"))
        return parse_set(p);
    if (chat_is(name->text, "macro"))
        return parse_macro(p);
    if (chat_is(name->text, "filter"))
        return parse_filtered(p);
    if (chat_is(name->text, "with"))
        return parse_with(p);
    if (chat_is(name->text, "generation"))
        return parse_generation(p);
    if (chat_is(name->text, "break"))
        return parse_jump(p, CHAT_BREAK);
    if (chat_is(name->text, "continue"))
        return parse_jump(p, CHAT_CONTINUE);
    model_chat_fail(p->r, STATUS_UNSUPPORTED, "the statement %s is not supported here",
                    base_quote(&quoted, name->text));
    return model_chat_node(p, CHAT_TEXT);
}

static struct chat_node *parse_statement(struct chat_parser *p)
{
    struct chat_node *node;
    if (p->at->kind == CHAT_TOKEN_BLOCK)
        return parse_block(p);
    if (p->at->kind == CHAT_TOKEN_TEXT) {
        node = model_chat_node(p, CHAT_TEXT);
        node->name = p->at++->text;
        return node;
    }
    node = model_chat_node(p, CHAT_PRINT);
    p->at++;
    node->a = model_chat_expressions(p, true);
    expect_close(p);
    return node;
}

const struct chat_node *model_chat_parse(struct chat_run *r, const struct chat_token *tokens)
{
    struct chat_parser p = {.r = r, .at = tokens};
    const struct chat_node *body = r->status ? NULL : parse_body(&p, "");
    return r->status ? NULL : body;
}
