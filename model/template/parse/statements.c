/* The parser's half for statements. */
#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/template/parse/tree.h"

static struct jinja_node *parse_statement(struct jinja_parser *p);

/* Whether a tag is next whose name is one of `words`, between blanks. */
static bool at_one_of(const struct jinja_parser *p, const char *words)
{
    const char *word;
    size_t n;
    if (p->at->kind != JINJA_TOKEN_BLOCK || p->at[1].kind != JINJA_TOKEN_NAME)
        return false;
    while ((words = base_words_next(words, &word, &n)))
        if (jinja_same(p->at[1].text, (struct base_string){word, n}))
            return true;
    return false;
}

/* Statements up to a tag whose name is one of `ends`, or, where that is empty, to the end. */
static struct jinja_node *parse_body(struct jinja_parser *p, const char *ends)
{
    struct jinja_nodes body = {0};
    if (jinja_enter(p->r, p->at->line))
        while (!p->r->status && !at_one_of(p, ends)) {
            if (p->at->kind == JINJA_TOKEN_END) {
                if (*ends)
                    jinja_unexpected(p, ends);
                break;
            }
            jinja_link(&body, parse_statement(p));
        }
    jinja_leave(p->r);
    return body.first;
}

static void expect_close(struct jinja_parser *p)
{
    if (p->at->kind == JINJA_TOKEN_CLOSE)
        p->at++;
    else
        jinja_unexpected(p, "the tag's end");
}

/* "{% name", which is next, and the tag's end. */
static void take_tag(struct jinja_parser *p)
{
    if (!p->r->status)
        p->at += 2;
    expect_close(p);
}

static struct jinja_node *parse_if(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_IF);
    struct jinja_nodes branches = {0};
    for (bool is_else = false; !p->r->status;) {
        struct jinja_node *branch = jinja_node(p, JINJA_BRANCH);
        if (!is_else)
            branch->a = jinja_expressions(p, false);
        expect_close(p);
        branch->b = parse_body(p, is_else ? "endif" : "elif else endif");
        jinja_link(&branches, branch);
        if (p->r->status || jinja_is(p->at[1].text, "endif"))
            break;
        is_else = jinja_is(p->at[1].text, "else");
        p->at += 2;
    }
    take_tag(p);
    node->list = branches.first;
    return node;
}

static struct jinja_node *parse_for(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_FOR);
    node->a = jinja_target(p);
    if (!jinja_take_name(p, "in"))
        jinja_unexpected(p, "'in'");
    node->b = jinja_expressions(p, false);
    if (jinja_take_name(p, "if"))
        node->c = jinja_expression(p, true);
    if (jinja_at_name(p, "recursive"))
        jinja_fail(p->r, STATUS_UNSUPPORTED, "'recursive' is not supported");
    expect_close(p);
    p->n_loops++;
    node->d = parse_body(p, "else endfor");
    p->n_loops--;
    if (!p->r->status && jinja_is(p->at[1].text, "else")) {
        take_tag(p);
        node->list = parse_body(p, "endfor");
    }
    take_tag(p);
    return node;
}

/* Filters that a body's text goes through. */
static struct jinja_node *captured(struct jinja_parser *p)
{
    return jinja_filters(p, jinja_node(p, JINJA_CAPTURED));
}

static struct jinja_node *parse_set(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_SET);
    node->a = jinja_target(p);
    if (jinja_take_operator(p, "=")) {
        node->b = jinja_expressions(p, true);
        expect_close(p);
        return node;
    }
    node->kind = JINJA_SET_BLOCK;
    node->c = captured(p);
    expect_close(p);
    node->b = parse_body(p, "endset");
    take_tag(p);
    return node;
}

static struct jinja_node *parse_macro(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_MACRO_BODY);
    struct jinja_nodes parameters = {0};
    unsigned n_loops = p->n_loops;
    node->name = jinja_expect_name(p);
    jinja_expect_operator(p, "(");
    while (!p->r->status && !jinja_take_operator(p, ")")) {
        struct jinja_node *parameter = jinja_node(p, JINJA_ARGUMENT);
        parameter->name = jinja_expect_name(p);
        if (jinja_take_operator(p, "="))
            parameter->a = jinja_expression(p, true);
        jinja_link(&parameters, parameter);
        if (!jinja_at_operator(p, ")"))
            jinja_expect_operator(p, ",");
    }
    expect_close(p);
    p->n_loops = 0;
    node->list = parameters.first;
    node->b = parse_body(p, "endmacro");
    p->n_loops = n_loops;
    if (!p->r->status)
        p->at += 2;
    if (jinja_at_name(p, "macro") || p->at->kind == JINJA_TOKEN_NAME)
        p->at++; /* {% endmacro name %} */
    expect_close(p);
    return node;
}

static struct jinja_node *parse_filtered(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_FILTERED);
    /* The first filter stands without its bar. */
    struct jinja_node *first = jinja_node(p, JINJA_FILTER);
    first->a = jinja_node(p, JINJA_CAPTURED);
    first->name = jinja_expect_name(p);
    if (jinja_take_operator(p, "("))
        first->list = jinja_arguments(p);
    node->c = jinja_filters(p, first);
    expect_close(p);
    node->b = parse_body(p, "endfilter");
    take_tag(p);
    return node;
}

static struct jinja_node *parse_with(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_WITH);
    struct jinja_nodes sets = {0};
    while (!p->r->status && p->at->kind != JINJA_TOKEN_CLOSE) {
        struct jinja_node *set = jinja_node(p, JINJA_SET);
        struct jinja_node *name = jinja_node(p, JINJA_NAME);
        set->a = name;
        name->name = jinja_expect_name(p);
        jinja_expect_operator(p, "=");
        set->b = jinja_expression(p, true);
        jinja_link(&sets, set);
        if (p->at->kind != JINJA_TOKEN_CLOSE)
            jinja_expect_operator(p, ",");
    }
    expect_close(p);
    node->list = sets.first;
    node->b = parse_body(p, "endwith");
    take_tag(p);
    return node;
}

static struct jinja_node *parse_generation(struct jinja_parser *p)
{
    struct jinja_node *node = jinja_node(p, JINJA_GENERATION);
    p->r->has_generation = true;
    expect_close(p);
    node->b = parse_body(p, "endgeneration");
    take_tag(p);
    return node;
}

static struct jinja_node *parse_jump(struct jinja_parser *p, enum jinja_node_kind kind)
{
    struct jinja_node *node = jinja_node(p, kind);
    if (p->n_loops == 0)
        jinja_fail(p->r, STATUS_FORMAT, "'break' and 'continue' belong into a loop");
    expect_close(p);
    return node;
}

static struct jinja_node *parse_block(struct jinja_parser *p)
{
    struct base_quoted quoted;
    const struct jinja_token *name = ++p->at;
    jinja_expect_name(p);
    p->r->line = name->line;
    if (jinja_is(name->text, "if"))
        return parse_if(p);
    if (jinja_is(name->text, "for"))
        return parse_for(p);
    if (jinja_is(name->text, "set"))
        return parse_set(p);
    if (jinja_is(name->text, "macro"))
        return parse_macro(p);
    if (jinja_is(name->text, "filter"))
        return parse_filtered(p);
    if (jinja_is(name->text, "with"))
        return parse_with(p);
    if (jinja_is(name->text, "generation"))
        return parse_generation(p);
    if (jinja_is(name->text, "break"))
        return parse_jump(p, JINJA_BREAK);
    if (jinja_is(name->text, "continue"))
        return parse_jump(p, JINJA_CONTINUE);
    jinja_fail(p->r, STATUS_UNSUPPORTED, "the statement %s is not supported here",
               base_quote(&quoted, name->text));
    return jinja_node(p, JINJA_TEXT);
}

static struct jinja_node *parse_statement(struct jinja_parser *p)
{
    struct jinja_node *node;
    if (p->at->kind == JINJA_TOKEN_BLOCK)
        return parse_block(p);
    if (p->at->kind == JINJA_TOKEN_TEXT) {
        node = jinja_node(p, JINJA_TEXT);
        node->name = p->at++->text;
        return node;
    }
    node = jinja_node(p, JINJA_PRINT);
    p->at++;
    node->a = jinja_expressions(p, true);
    expect_close(p);
    return node;
}

const struct jinja_node *jinja_parse(struct jinja_run *r, const struct jinja_token *tokens)
{
    struct jinja_parser p = {.r = r, .at = tokens};
    const struct jinja_node *body = r->status ? NULL : parse_body(&p, "");
    return r->status ? NULL : body;
}
