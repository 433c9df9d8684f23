/** Values of a template: what Python's are to jinja2. They never change; memory is the run's. */
#ifndef MODEL_CHAT_VALUE_VALUE_H
#define MODEL_CHAT_VALUE_VALUE_H

#include <string.h>

#include "model/chat/value/run.h"

enum chat_kind {
    CHAT_ABSENT = 0, /* an argument that was not given; the result of a failure */
    CHAT_UNDEFINED,
    CHAT_NONE,
    CHAT_BOOL,
    CHAT_INT,
    CHAT_REAL,
    CHAT_STRING,
    CHAT_LIST,
    CHAT_TUPLE,
    CHAT_DICT,
    CHAT_NAMESPACE,
    CHAT_LOOP,
    CHAT_FUNCTION,
    CHAT_MACRO
};

struct chat_value {
    enum chat_kind kind;
    bool safe; /* a string that went through the filter `safe`: HTML's markup to jinja2 */
    union {
        bool truth;
        int64_t integer;
        double real;
        struct base_string string; /* UTF-8; of CHAT_UNDEFINED: what was asked for */
        struct {                   /* CHAT_LIST, CHAT_TUPLE */
            const struct chat_value *items;
            size_t n;
        };
        struct chat_dict *dict; /* CHAT_DICT, CHAT_NAMESPACE */
        const struct chat_loop *loop;
        const struct chat_bound *function;
        const struct chat_macro *macro;
    };
};

struct chat_pair {
    struct chat_value key, value;
};

/** Pairs in the order in which their keys came. A namespace's grow, others are built once. */
struct chat_dict {
    struct chat_pair *pairs;
    size_t n, capacity;
};

/** A pass of a `for` statement. */
struct chat_loop {
    const struct chat_value *items;
    size_t index0, n;
};

/** A list that is being built. */
struct chat_items {
    struct chat_value *items;
    size_t n, capacity;
};

/** Arguments of a call. */
struct chat_args {
    const struct chat_value *v;
    size_t n;
    struct chat_dict named;
};

/** A function, filter, test or method: `self` is what it is applied to. */
typedef struct chat_value chat_function(struct chat_run *r, const struct chat_value *self,
                                        const struct chat_args *args);
/** The head of one: its arguments are `a`. It need not use any of them. */
#define CHAT_FUNCTION(name, self)                                                                  \
    static struct chat_value name(__attribute__((unused)) struct chat_run *r,                      \
                                  __attribute__((unused)) const struct chat_value *self,           \
                                  __attribute__((unused)) const struct chat_args *a)
struct chat_row {
    const char *name;
    chat_function *function;
    const char *parameters; /* names between blanks, at most CHAT_MAX_PARAMETERS; NULL: whatever
                               comes is handed on as it is */
    size_t n_required;
};
enum { CHAT_MAX_PARAMETERS = 4 };

/** A row that ends with name NULL; NULL where the name is not there. */
const struct chat_row *model_chat_find_row(const struct chat_row *rows, struct base_string name);
/** Put the arguments in the order of the row's parameters, absent ones too, and call it. */
struct chat_value model_chat_call_row(struct chat_run *r, const struct chat_row *row,
                                      const struct chat_value *self, const struct chat_args *args);

/** A function of the template's, or a method with the value that it belongs to. */
struct chat_bound {
    const struct chat_row *row;
    struct chat_value self;
};

static inline struct chat_value chat_bool(bool truth)
{
    return (struct chat_value){.kind = CHAT_BOOL, .truth = truth};
}

static inline struct chat_value chat_int(int64_t integer)
{
    return (struct chat_value){.kind = CHAT_INT, .integer = integer};
}

static inline struct chat_value chat_real(double real)
{
    return (struct chat_value){.kind = CHAT_REAL, .real = real};
}

static inline struct chat_value chat_string(const char *data, size_t n_bytes)
{
    return (struct chat_value){.kind = CHAT_STRING, .string = {data, n_bytes}};
}

static inline struct chat_value chat_of_buffer(const struct chat_buffer *buffer)
{
    return chat_string(buffer->data ? buffer->data : "", buffer->n_bytes);
}

static inline struct chat_value chat_list(const struct chat_value *items, size_t n)
{
    return (struct chat_value){.kind = CHAT_LIST, .items = items, .n = n};
}

static inline struct chat_value chat_of_items(const struct chat_items *items)
{
    return chat_list(items->items, items->n);
}

static inline struct chat_value chat_undefined(struct base_string name)
{
    return (struct chat_value){.kind = CHAT_UNDEFINED, .string = name};
}

static inline struct chat_value chat_none(void)
{
    return (struct chat_value){.kind = CHAT_NONE};
}

static inline struct chat_value chat_absent(void)
{
    return (struct chat_value){.kind = CHAT_ABSENT};
}

static inline bool chat_same(struct base_string a, struct base_string b)
{
    return a.n_bytes == b.n_bytes && (a.n_bytes == 0 || memcmp(a.data, b.data, a.n_bytes) == 0);
}

/** Whether the string is this word. */
static inline bool chat_is(struct base_string s, const char *word)
{
    return chat_same(s, (struct base_string){word, strlen(word)});
}

/** Note a failure and return the absent value. */
#define CHAT_FAIL(r, status, ...) (model_chat_fail(r, status, __VA_ARGS__), chat_absent())

/** What the value is called in a sentence: "a list". */
const char *model_chat_kind_name(const struct chat_value *v);
bool model_chat_truth(const struct chat_value *v);
/** Python's ==. */
bool model_chat_equal(struct chat_run *r, const struct chat_value *a, const struct chat_value *b);
/** Below, at or above 0 as a is to b; fails where Python has no order. */
int model_chat_compare(struct chat_run *r, const struct chat_value *a, const struct chat_value *b);
/** A number as a double; false where it is none. bool counts, as in Python. */
bool model_chat_number(const struct chat_value *v, double *number);
/** bool or int; false for others. */
bool model_chat_integer(const struct chat_value *v, int64_t *integer);

/** Python's str() and repr(), appended to a buffer. */
void model_chat_put_value(struct chat_run *r, struct chat_buffer *b, const struct chat_value *v);
void model_chat_put_repr(struct chat_run *r, struct chat_buffer *b, const struct chat_value *v);
void model_chat_put_real(struct chat_run *r, struct chat_buffer *b, double real);
/** The value as a string; a string as it is. */
struct chat_value model_chat_str(struct chat_run *r, const struct chat_value *v);

void model_chat_append(struct chat_run *r, struct chat_items *items, struct chat_value v);
/** What a value has when it is looped over; fails where it cannot be. */
struct chat_value model_chat_iterate(struct chat_run *r, const struct chat_value *v);
/** len(); fails where it has none. */
size_t model_chat_length(struct chat_run *r, const struct chat_value *v);

/** NULL where the key is absent. */
const struct chat_value *model_chat_dict_get(struct chat_run *r, const struct chat_dict *dict,
                                             const struct chat_value *key);
void model_chat_dict_set(struct chat_run *r, struct chat_dict *dict, struct chat_value key,
                         struct chat_value value);
const struct chat_value *model_chat_dict_find(struct chat_run *r, const struct chat_dict *dict,
                                              const char *name);

#endif
