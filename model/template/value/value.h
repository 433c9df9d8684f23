/** Values of a template: what Python's are to jinja2. They never change; memory is the run's. */
#ifndef TEMPLATE_VALUE_VALUE_H
#define TEMPLATE_VALUE_VALUE_H

#include <string.h>

#include "model/template/value/run.h"

enum jinja_kind {
    JINJA_ABSENT = 0, /* an argument that was not given; the result of a failure */
    JINJA_UNDEFINED,
    JINJA_NONE,
    JINJA_BOOL,
    JINJA_INT,
    JINJA_REAL,
    JINJA_STRING,
    JINJA_LIST,
    JINJA_TUPLE,
    JINJA_DICT,
    JINJA_NAMESPACE,
    JINJA_LOOP,
    JINJA_FUNCTION,
    JINJA_MACRO
};

struct jinja_value {
    enum jinja_kind kind;
    bool safe; /* a string that went through the filter `safe`: HTML's markup to jinja2 */
    union {
        bool truth;
        int64_t integer;
        double real;
        struct base_string string; /* UTF-8; of JINJA_UNDEFINED: what was asked for */
        struct {                   /* JINJA_LIST, JINJA_TUPLE */
            const struct jinja_value *items;
            size_t n;
        };
        struct jinja_dict *dict; /* JINJA_DICT, JINJA_NAMESPACE */
        const struct jinja_loop *loop;
        const struct jinja_bound *function;
        const struct jinja_macro *macro;
    };
};

struct jinja_pair {
    struct jinja_value key, value;
};

/** Pairs in the order in which their keys came. A namespace's grow, others are built once. */
struct jinja_dict {
    struct jinja_pair *pairs;
    size_t n, capacity;
};

/** A pass of a `for` statement. */
struct jinja_loop {
    const struct jinja_value *items;
    size_t index0, n;
};

/** A list that is being built. */
struct jinja_items {
    struct jinja_value *items;
    size_t n, capacity;
};

/** Arguments of a call. */
struct jinja_args {
    const struct jinja_value *v;
    size_t n;
    struct jinja_dict named;
    int which; /* the row's */
};

/** A function, filter, test or method: `self` is what it is applied to. */
typedef struct jinja_value jinja_function(struct jinja_run *r, const struct jinja_value *self,
                                          const struct jinja_args *args);
/** The head of one: its arguments are `a`. It need not use any of them. */
#define JINJA_FUNCTION(name, self)                                                                 \
    static struct jinja_value name(__attribute__((unused)) struct jinja_run *r,                    \
                                   __attribute__((unused)) const struct jinja_value *const self,   \
                                   __attribute__((unused)) const struct jinja_args *a)
struct jinja_row {
    const char *name;
    jinja_function *function;
    const char *parameters; /* names between blanks, at most JINJA_MAX_PARAMETERS; NULL: whatever
                               comes is handed on as it is */
    size_t n_required;
    int which; /* tells rows apart that share a function */
};
enum { JINJA_MAX_PARAMETERS = 4 };

/** A row that ends with name NULL; NULL where the name is not there. */
const struct jinja_row *jinja_find_row(const struct jinja_row *rows, struct base_string name);
/** Put the arguments in the order of the row's parameters, absent ones too, and call it. */
struct jinja_value jinja_call_row(struct jinja_run *r, const struct jinja_row *row,
                                  const struct jinja_value *self, const struct jinja_args *args);

/** A function of the template's, or a method with the value that it belongs to. */
struct jinja_bound {
    const struct jinja_row *row;
    struct jinja_value self;
};

static inline struct jinja_value jinja_bool(bool truth)
{
    return (struct jinja_value){.kind = JINJA_BOOL, .truth = truth};
}

static inline struct jinja_value jinja_int(int64_t integer)
{
    return (struct jinja_value){.kind = JINJA_INT, .integer = integer};
}

static inline struct jinja_value jinja_real(double real)
{
    return (struct jinja_value){.kind = JINJA_REAL, .real = real};
}

static inline struct jinja_value jinja_string(const char *data, size_t n_bytes)
{
    return (struct jinja_value){.kind = JINJA_STRING, .string = {data, n_bytes}};
}

static inline struct jinja_value jinja_of_buffer(const struct jinja_buffer *buffer)
{
    return jinja_string(buffer->data ? buffer->data : "", buffer->n_bytes);
}

static inline struct jinja_value jinja_list(const struct jinja_value *items, size_t n)
{
    return (struct jinja_value){.kind = JINJA_LIST, .items = items, .n = n};
}

static inline struct jinja_value jinja_of_items(const struct jinja_items *items)
{
    return jinja_list(items->items, items->n);
}

static inline struct jinja_value jinja_undefined(struct base_string name)
{
    return (struct jinja_value){.kind = JINJA_UNDEFINED, .string = name};
}

static inline struct jinja_value jinja_none(void)
{
    return (struct jinja_value){.kind = JINJA_NONE};
}

static inline struct jinja_value jinja_absent(void)
{
    return (struct jinja_value){.kind = JINJA_ABSENT};
}

/** Whether an argument is there, and is not none. */
static inline bool jinja_given(const struct jinja_value *v)
{
    return v->kind != JINJA_ABSENT && v->kind != JINJA_NONE;
}

static inline bool jinja_same(struct base_string a, struct base_string b)
{
    return a.n_bytes == b.n_bytes && (a.n_bytes == 0 || memcmp(a.data, b.data, a.n_bytes) == 0);
}

/** Whether the string is this word. */
static inline bool jinja_is(struct base_string s, const char *word)
{
    return jinja_same(s, (struct base_string){word, strlen(word)});
}

/** Note a failure and return the absent value. */
#define JINJA_FAIL(r, status, ...) (jinja_fail(r, status, __VA_ARGS__), jinja_absent())

/** What the value is called in a sentence: "a list". */
const char *jinja_kind_name(const struct jinja_value *v);
bool jinja_truth(const struct jinja_value *v);
/** Python's ==. */
bool jinja_equal(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b);
/** Below, at or above 0 as a is to b; fails where Python has no order. */
int jinja_compare(struct jinja_run *r, const struct jinja_value *a, const struct jinja_value *b);
/** A number as a double; false where it is no number. bool counts, as in Python. */
bool jinja_number(const struct jinja_value *v, double *number);
/** bool or int; false for others. */
bool jinja_integer(const struct jinja_value *v, int64_t *integer);

/** Python's str() and repr(), appended to a buffer. */
void jinja_put_value(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v);
void jinja_put_repr(struct jinja_run *r, struct jinja_buffer *b, const struct jinja_value *v);
void jinja_put_real(struct jinja_run *r, struct jinja_buffer *b, double real);
/** The value as a string; a string as it is. */
struct jinja_value jinja_str(struct jinja_run *r, const struct jinja_value *v);

void jinja_append(struct jinja_run *r, struct jinja_items *items, struct jinja_value v);
/** What a value has when it is looped over; fails where it cannot be. */
struct jinja_value jinja_iterate(struct jinja_run *r, const struct jinja_value *v);
/** len(); fails where it has none. */
size_t jinja_length(struct jinja_run *r, const struct jinja_value *v);

/** NULL where the key is absent. */
const struct jinja_value *jinja_dict_get(struct jinja_run *r, const struct jinja_dict *dict,
                                         const struct jinja_value *key);
void jinja_dict_set(struct jinja_run *r, struct jinja_dict *dict, struct jinja_value key,
                    struct jinja_value value);
const struct jinja_value *jinja_dict_find(struct jinja_run *r, const struct jinja_dict *dict,
                                          const char *name);

#endif
