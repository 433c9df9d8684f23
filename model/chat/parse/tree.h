/** A parsed template: a tree of nodes, of one kind of struct for all. */
#ifndef MODEL_CHAT_PARSE_TREE_H
#define MODEL_CHAT_PARSE_TREE_H

#include "model/chat/parse/lexer.h"

enum chat_node_kind {
    /* expressions */
    CHAT_CONSTANT,  /* constant */
    CHAT_NAME,      /* name */
    CHAT_MAKE_LIST, /* list: items */
    CHAT_MAKE_TUPLE,
    CHAT_MAKE_DICT, /* list: values, `a` of each is its key */
    CHAT_UNARY,     /* name: "-", "+" or "not"; a */
    CHAT_BINARY,    /* name: the operator; a, b */
    CHAT_AND,       /* a, b */
    CHAT_OR,
    CHAT_RELATION, /* a < b < ...; list: CHAT_BINARY with name and b only */
    CHAT_IF_ELSE,  /* b if a else c, which may be NULL */
    CHAT_MEMBER,   /* a.name */
    CHAT_ITEM,     /* a[b] */
    CHAT_SLICE,    /* a[b:c:d], each may be NULL */
    CHAT_CALL,     /* a(list) */
    CHAT_FILTER,   /* a | name(list) */
    CHAT_TEST,     /* a is name(list) */
    CHAT_ARGUMENT, /* in the list of a call: a, and name where it is named */

    /* statements */
    CHAT_TEXT,       /* name: the text */
    CHAT_PRINT,      /* a */
    CHAT_IF,         /* list: CHAT_BRANCH with condition a (NULL: else) and body b */
    CHAT_BRANCH,     /**/
    CHAT_FOR,        /* a: target, b: what is looped over, c: condition, d: body, list: else */
    CHAT_SET,        /* a: target, b: value */
    CHAT_SET_BLOCK,  /* a: target, b: body, c: the filters of CHAT_CAPTURED, or NULL */
    CHAT_FILTERED,   /* b: body, c: the filters of CHAT_CAPTURED */
    CHAT_CAPTURED,   /* an expression: the text of a body */
    CHAT_MACRO_BODY, /* name; list: CHAT_ARGUMENT with name and default a; b: body */
    CHAT_WITH,       /* list: CHAT_SET; b: body */
    CHAT_GENERATION, /* b: body */
    CHAT_BREAK,
    CHAT_CONTINUE
};

struct chat_node {
    enum chat_node_kind kind;
    uint32_t line;
    struct base_string name;
    struct chat_value constant;
    const struct chat_node *a, *b, *c, *d, *list;
    struct chat_node *next; /* in a list or a body */
};

/** A list of nodes that is being built. */
struct chat_nodes {
    struct chat_node *first, *last;
};

struct chat_parser {
    struct chat_run *r;
    const struct chat_token *at;
    unsigned n_loops;       /* around the place, for break and continue */
    struct chat_node spare; /* what model_chat_node gives after a failure */
};

/** The first statement of a template; NULL where it is empty, and after a failure. */
const struct chat_node *model_chat_parse(struct chat_run *r, const struct chat_token *tokens);

/** What both halves of the parser use. */
struct chat_node *model_chat_node(struct chat_parser *p, enum chat_node_kind kind);
void model_chat_link(struct chat_nodes *nodes, struct chat_node *node);
bool model_chat_at_operator(const struct chat_parser *p, const char *text);
bool model_chat_at_name(const struct chat_parser *p, const char *word);
bool model_chat_take_operator(struct chat_parser *p, const char *text);
bool model_chat_take_name(struct chat_parser *p, const char *word);
/** Fails where something else is next. */
void model_chat_expect_operator(struct chat_parser *p, const char *text);
struct base_string model_chat_expect_name(struct chat_parser *p);
void model_chat_unexpected(struct chat_parser *p, const char *expected);

/** An expression; `with_if`: it may have "if ... else". */
struct chat_node *model_chat_expression(struct chat_parser *p, bool with_if);
/** An expression, or several with commas between them: a tuple. */
struct chat_node *model_chat_expressions(struct chat_parser *p, bool with_if);
/** "name", "name.attribute" or several with commas between them, to assign to. */
struct chat_node *model_chat_target(struct chat_parser *p);
/** Filters behind `node`: "| name(arguments) | ..." */
struct chat_node *model_chat_filters(struct chat_parser *p, struct chat_node *node);
/** Arguments behind '(', up to and with ')'. Those of a macro's definition are names. */
struct chat_node *model_chat_arguments(struct chat_parser *p);

#endif
