/* The kinds of values, and numbers. */
#include "model/template/value/value.h"

const char *jinja_kind_name(const struct jinja_value *v)
{
    static const char *const names[] = {
        [JINJA_ABSENT] = "nothing",
        [JINJA_UNDEFINED] = "an undefined value",
        [JINJA_NONE] = "none",
        [JINJA_BOOL] = "a boolean",
        [JINJA_INT] = "an integer",
        [JINJA_REAL] = "a float",
        [JINJA_STRING] = "a string",
        [JINJA_LIST] = "a list",
        [JINJA_TUPLE] = "a tuple",
        [JINJA_DICT] = "a mapping",
        [JINJA_NAMESPACE] = "a namespace",
        [JINJA_LOOP] = "a loop",
        [JINJA_FUNCTION] = "a function",
        [JINJA_MACRO] = "a macro",
    };
    return names[v->kind];
}

bool jinja_truth(const struct jinja_value *v)
{
    switch (v->kind) {
    case JINJA_BOOL:
        return v->truth;
    case JINJA_INT:
        return v->integer != 0;
    case JINJA_REAL:
        return v->real != 0;
    case JINJA_STRING:
        return v->string.n_bytes > 0;
    case JINJA_LIST:
    case JINJA_TUPLE:
        return v->n > 0;
    case JINJA_DICT:
        return v->dict->n > 0;
    default:
        return v->kind > JINJA_NONE;
    }
}

bool jinja_integer(const struct jinja_value *v, int64_t *integer)
{
    *integer = v->kind == JINJA_BOOL ? v->truth : v->integer;
    return v->kind == JINJA_BOOL || v->kind == JINJA_INT;
}

bool jinja_number(const struct jinja_value *v, double *number)
{
    int64_t integer;
    *number = v->real;
    if (jinja_integer(v, &integer)) {
        *number = (double)integer;
        return true;
    }
    return v->kind == JINJA_REAL;
}
