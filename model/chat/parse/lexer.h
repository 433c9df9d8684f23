/** A template's text as tokens, with white space around tags taken away as jinja2 does. */
#ifndef MODEL_CHAT_PARSE_LEXER_H
#define MODEL_CHAT_PARSE_LEXER_H

#include "model/chat/value/value.h"

enum chat_token_kind {
    CHAT_TOKEN_TEXT,  /* between tags */
    CHAT_TOKEN_PRINT, /* {{ */
    CHAT_TOKEN_BLOCK, /* {% */
    CHAT_TOKEN_CLOSE, /* }} or %} */
    CHAT_TOKEN_NAME,
    CHAT_TOKEN_CONSTANT, /* a string or a number */
    CHAT_TOKEN_OPERATOR,
    CHAT_TOKEN_END /* of the template */
};

struct chat_token {
    enum chat_token_kind kind;
    uint32_t line;
    struct base_string text;
    struct chat_value constant;
};

/** All tokens; the last is CHAT_TOKEN_END. NULL after a failure. source: valid UTF-8. */
const struct chat_token *model_chat_lex(struct chat_run *r, struct base_string source);

#endif
