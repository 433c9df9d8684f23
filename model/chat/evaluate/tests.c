/* Tests: what stands behind `is`. */
#include "base/text/quote.h"
#include "model/chat/evaluate/evaluate.h"
#include "model/chat/value/text.h"

/* Tests that only look at the value. -1: not one of these. */
static int test_kind(struct base_string name, const struct chat_value *v)
{
    enum chat_kind k = v->kind;
    double number;
    bool is_list = k == CHAT_LIST || k == CHAT_TUPLE;
    const struct {
        const char *name;
        bool holds;
    } tests[] = {
        {"defined", k != CHAT_UNDEFINED},
        {"undefined", k == CHAT_UNDEFINED},
        {"none", k == CHAT_NONE},
        {"boolean", k == CHAT_BOOL},
        {"true", k == CHAT_BOOL && v->truth},
        {"false", k == CHAT_BOOL && !v->truth},
        {"integer", k == CHAT_INT},
        {"float", k == CHAT_REAL},
        {"number", model_chat_number(v, &number)},
        {"string", k == CHAT_STRING},
        {"mapping", k == CHAT_DICT},
        {"sequence", is_list || k == CHAT_STRING || k == CHAT_DICT || k == CHAT_UNDEFINED},
        {"iterable",
         is_list || k == CHAT_STRING || k == CHAT_DICT || k == CHAT_UNDEFINED || k == CHAT_LOOP},
        {"callable", k == CHAT_FUNCTION || k == CHAT_MACRO || k == CHAT_UNDEFINED},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (chat_is(name, tests[i].name))
            return tests[i].holds;
    return -1;
}

/* The comparison that a test of two values is another name of; NULL: none. */
static const char *relation_of(struct base_string name)
{
    static const char *const names[][2] = {
        {"eq", "=="}, {"equalto", "=="},    {"==", "=="}, {"ne", "!="},
        {"lt", "<"},  {"lessthan", "<"},    {"le", "<="}, {"gt", ">"},
        {"ge", ">="}, {"greaterthan", ">"}, {"in", "in"}, {"!=", "!="},
        {"<", "<"},   {"<=", "<="},         {">", ">"},   {">=", ">="},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (chat_is(name, names[i][0]))
            return names[i][1];
    return NULL;
}

static bool in_case(struct chat_run *r, const struct chat_value *v, enum chat_case wanted)
{
    /* Some letter has a case, and none has the other. */
    struct chat_value text = model_chat_str(r, v);
    enum chat_case other = wanted == CHAT_UPPER ? CHAT_LOWER : CHAT_UPPER;
    struct chat_value same = model_chat_case(r, text.string, wanted);
    struct chat_value changed = model_chat_case(r, text.string, other);
    return chat_same(text.string, same.string) && !chat_same(text.string, changed.string);
}

bool model_chat_test(struct chat_run *r, struct base_string name, const struct chat_value *v,
                     const struct chat_args *args)
{
    struct base_quoted quoted;
    int64_t a, b;
    int holds = test_kind(name, v);
    const char *relation = relation_of(name);
    if (args->named.n ||
        args->n != (size_t)(relation || chat_is(name, "divisibleby") || chat_is(name, "sameas"))) {
        model_chat_fail(r, STATUS_UNSUPPORTED, "the test %s with %zu argument%s",
                        base_quote(&quoted, name), args->n, status_plural(args->n));
        return false;
    }
    if (holds >= 0)
        return holds;
    if (relation)
        return model_chat_relation(r, (struct base_string){relation, strlen(relation)}, v,
                                   &args->v[0]);
    if (chat_is(name, "sameas") && v->kind <= CHAT_BOOL)
        return v->kind == args->v[0].kind && model_chat_equal(r, v, &args->v[0]);
    if (chat_is(name, "divisibleby") && model_chat_integer(v, &a) &&
        model_chat_integer(&args->v[0], &b) && b > 0)
        return a % b == 0;
    if ((chat_is(name, "odd") || chat_is(name, "even")) && model_chat_integer(v, &a))
        return (a % 2 != 0) == chat_is(name, "odd");
    if (chat_is(name, "lower") || chat_is(name, "upper"))
        return in_case(r, v, chat_is(name, "upper") ? CHAT_UPPER : CHAT_LOWER);
    model_chat_fail(r, STATUS_UNSUPPORTED, "the test %s of %s is not supported",
                    base_quote(&quoted, name), model_chat_kind_name(v));
    return false;
}
