/** A template's text as tokens, with white space around tags taken away as jinja2 does. */
#ifndef TEMPLATE_PARSE_LEXER_H
#define TEMPLATE_PARSE_LEXER_H

#include "model/template/value/value.h"

enum jinja_token_kind {
    JINJA_TOKEN_TEXT,  /* between tags */
    JINJA_TOKEN_PRINT, /* {{ */
    JINJA_TOKEN_BLOCK, /* {% */
    JINJA_TOKEN_CLOSE, /* }} or %} */
    JINJA_TOKEN_NAME,
    JINJA_TOKEN_CONSTANT, /* a string or a number */
    JINJA_TOKEN_OPERATOR,
    JINJA_TOKEN_END /* of the template */
};

struct jinja_token {
    enum jinja_token_kind kind;
    uint32_t line;
    struct base_string text;
    struct jinja_value constant;
};

/** All tokens; the last is JINJA_TOKEN_END. NULL after a failure. source: valid UTF-8. */
const struct jinja_token *jinja_lex(struct jinja_run *r, struct base_string source);

#endif
