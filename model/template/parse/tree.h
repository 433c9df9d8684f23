/** A parsed template: a tree of nodes, of one kind of struct for all. */
#ifndef TEMPLATE_PARSE_TREE_H
#define TEMPLATE_PARSE_TREE_H

#include "model/template/parse/lexer.h"

enum jinja_node_kind {
    /* expressions */
    JINJA_CONSTANT,  /* constant */
    JINJA_NAME,      /* name */
    JINJA_MAKE_LIST, /* list: items */
    JINJA_MAKE_TUPLE,
    JINJA_MAKE_DICT, /* list: values, `a` of each is its key */
    JINJA_UNARY,     /* name: "-", "+" or "not"; a */
    JINJA_BINARY,    /* name: the operator; a, b */
    JINJA_AND,       /* a, b */
    JINJA_OR,
    JINJA_RELATION, /* a < b < ...; list: JINJA_BINARY with name and b only */
    JINJA_IF_ELSE,  /* b if a else c, which may be NULL */
    JINJA_MEMBER,   /* a.name */
    JINJA_ITEM,     /* a[b] */
    JINJA_SLICE,    /* a[b:c:d], each may be NULL */
    JINJA_CALL,     /* a(list) */
    JINJA_FILTER,   /* a | name(list) */
    JINJA_TEST,     /* a is name(list) */
    JINJA_ARGUMENT, /* in the list of a call: a, and name where it is named */

    /* statements */
    JINJA_TEXT,       /* name: the text */
    JINJA_PRINT,      /* a */
    JINJA_IF,         /* list: JINJA_BRANCH with condition a (NULL: else) and body b */
    JINJA_BRANCH,     /**/
    JINJA_FOR,        /* a: target, b: what is looped over, c: condition, d: body, list: else */
    JINJA_SET,        /* a: target, b: value */
    JINJA_SET_BLOCK,  /* a: target, b: body, c: the filters of JINJA_CAPTURED, or NULL */
    JINJA_FILTERED,   /* b: body, c: the filters of JINJA_CAPTURED */
    JINJA_CAPTURED,   /* an expression: the text of a body */
    JINJA_MACRO_BODY, /* name; list: JINJA_ARGUMENT with name and default a; b: body */
    JINJA_WITH,       /* list: JINJA_SET; b: body */
    JINJA_GENERATION, /* b: body */
    JINJA_BREAK,
    JINJA_CONTINUE
};

struct jinja_node {
    enum jinja_node_kind kind;
    uint32_t line;
    struct base_string name;
    struct jinja_value constant;
    const struct jinja_node *a, *b, *c, *d, *list;
    struct jinja_node *next; /* in a list or a body */
};

/** A list of nodes that is being built. */
struct jinja_nodes {
    struct jinja_node *first, *last;
};

struct jinja_parser {
    struct jinja_run *r;
    const struct jinja_token *at;
    unsigned n_loops;        /* around the place, for break and continue */
    struct jinja_node spare; /* what jinja_node gives after a failure */
};

/** The first statement of a template; NULL where it is empty, and after a failure. */
const struct jinja_node *jinja_parse(struct jinja_run *r, const struct jinja_token *tokens);

/** What both halves of the parser use. */
struct jinja_node *jinja_node(struct jinja_parser *p, enum jinja_node_kind kind);
void jinja_link(struct jinja_nodes *nodes, struct jinja_node *node);
bool jinja_at_operator(const struct jinja_parser *p, const char *text);
bool jinja_at_name(const struct jinja_parser *p, const char *word);
bool jinja_take_operator(struct jinja_parser *p, const char *text);
bool jinja_take_name(struct jinja_parser *p, const char *word);
/** Fails where something else is next. */
void jinja_expect_operator(struct jinja_parser *p, const char *text);
struct base_string jinja_expect_name(struct jinja_parser *p);
void jinja_unexpected(struct jinja_parser *p, const char *expected);

/** An expression; `with_if`: it may have "if ... else". */
struct jinja_node *jinja_expression(struct jinja_parser *p, bool with_if);
/** An expression, or several with commas between them: a tuple. */
struct jinja_node *jinja_expressions(struct jinja_parser *p, bool with_if);
/** "name", "name.attribute" or several with commas between them, to assign to. */
struct jinja_node *jinja_target(struct jinja_parser *p);
/** Filters after `node`: "| name(arguments) | ..." */
struct jinja_node *jinja_filters(struct jinja_parser *p, struct jinja_node *node);
/** Arguments after '(', up to and with ')'. Those of a macro's definition are names. */
struct jinja_node *jinja_arguments(struct jinja_parser *p);

#endif
