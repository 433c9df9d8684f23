/* Tests: what follows `is`. */
#include "base/text/quote.h"
#include "model/template/evaluate/evaluate.h"
#include "model/template/value/value_text.h"

/* Tests that only look at the value. -1: not one of these. */
static int test_kind(struct base_string name, const struct jinja_value *v)
{
    enum jinja_kind k = v->kind;
    double number;
    bool is_list = k == JINJA_LIST || k == JINJA_TUPLE;
    const struct {
        const char *name;
        bool holds;
    } tests[] = {
        {"defined", k != JINJA_UNDEFINED},
        {"undefined", k == JINJA_UNDEFINED},
        {"none", k == JINJA_NONE},
        {"boolean", k == JINJA_BOOL},
        {"true", k == JINJA_BOOL && v->truth},
        {"false", k == JINJA_BOOL && !v->truth},
        {"integer", k == JINJA_INT},
        {"float", k == JINJA_REAL},
        {"number", jinja_number(v, &number)},
        {"string", k == JINJA_STRING},
        {"mapping", k == JINJA_DICT},
        {"sequence", is_list || k == JINJA_STRING || k == JINJA_DICT || k == JINJA_UNDEFINED},
        {"iterable", is_list || k == JINJA_STRING || k == JINJA_DICT || k == JINJA_UNDEFINED ||
                         k == JINJA_LOOP},
        {"callable", k == JINJA_FUNCTION || k == JINJA_MACRO || k == JINJA_UNDEFINED},
    };
    for (size_t i = 0; i < sizeof tests / sizeof *tests; i++)
        if (jinja_is(name, tests[i].name))
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
        if (jinja_is(name, names[i][0]))
            return names[i][1];
    return NULL;
}

static bool in_case(struct jinja_run *r, const struct jinja_value *v, enum jinja_case wanted)
{
    /* Some letter has a case, and none has the other. */
    struct jinja_value text = jinja_str(r, v);
    enum jinja_case other = wanted == JINJA_UPPER ? JINJA_LOWER : JINJA_UPPER;
    struct jinja_value same = jinja_case(r, text.string, wanted);
    struct jinja_value changed = jinja_case(r, text.string, other);
    return jinja_same(text.string, same.string) && !jinja_same(text.string, changed.string);
}

bool jinja_test(struct jinja_run *r, struct base_string name, const struct jinja_value *v,
                const struct jinja_args *args)
{
    struct base_quoted quoted;
    int64_t a, b;
    int holds = test_kind(name, v);
    const char *relation = relation_of(name);
    if (args->named.n || args->n != (size_t)(relation || jinja_is(name, "divisibleby") ||
                                             jinja_is(name, "sameas"))) {
        jinja_fail(r, STATUS_UNSUPPORTED, "the test %s with %zu argument%s",
                   base_quote(&quoted, name), args->n, status_plural(args->n));
        return false;
    }
    if (holds >= 0)
        return holds;
    if (relation)
        return jinja_relation(r, (struct base_string){relation, strlen(relation)}, v, &args->v[0]);
    if (jinja_is(name, "sameas") && v->kind <= JINJA_BOOL)
        return v->kind == args->v[0].kind && jinja_equal(r, v, &args->v[0]);
    if (jinja_is(name, "divisibleby") && jinja_integer(v, &a) && jinja_integer(&args->v[0], &b) &&
        b > 0)
        return a % b == 0;
    if ((jinja_is(name, "odd") || jinja_is(name, "even")) && jinja_integer(v, &a))
        return (a % 2 != 0) == jinja_is(name, "odd");
    if (jinja_is(name, "lower") || jinja_is(name, "upper"))
        return in_case(r, v, jinja_is(name, "upper") ? JINJA_UPPER : JINJA_LOWER);
    jinja_fail(r, STATUS_UNSUPPORTED, "the test %s of %s is not supported",
               base_quote(&quoted, name), jinja_kind_name(v));
    return false;
}
