/** Evaluating the tree: expressions, statements, and what values can do. */
#ifndef TEMPLATE_EVALUATE_EVALUATE_H
#define TEMPLATE_EVALUATE_EVALUATE_H

#include "model/template/parse/tree.h"

/** Names that are visible at a place; those around it come after its own. */
struct jinja_scope {
    const struct jinja_scope *around;
    struct jinja_dict names;
};

struct jinja_macro {
    const struct jinja_node *node;
    struct jinja_scope *scope; /* where it was defined */
};

struct jinja_value jinja_evaluate(struct jinja_run *r, struct jinja_scope *scope,
                                  const struct jinja_node *node);
/** Arguments in the order of the list. */
struct jinja_args jinja_evaluate_arguments(struct jinja_run *r, struct jinja_scope *scope,
                                           const struct jinja_node *list);
/** Statements, whose text goes to r->out. */
void jinja_execute(struct jinja_run *r, struct jinja_scope *scope, const struct jinja_node *body);
struct jinja_value jinja_call_macro(struct jinja_run *r, const struct jinja_macro *macro,
                                    const struct jinja_args *args);

/** a <operator> b, for what is no comparison. */
struct jinja_value jinja_binary(struct jinja_run *r, struct base_string name,
                                const struct jinja_value *a, const struct jinja_value *b);
/** a <comparison> b, "in" and "not in" among them. */
bool jinja_relation(struct jinja_run *r, struct base_string name, const struct jinja_value *a,
                    const struct jinja_value *b);
bool jinja_contains(struct jinja_run *r, const struct jinja_value *in, const struct jinja_value *v);
/** The string with Python's %-conversions filled in: %s, %d, %i and %%. */
struct jinja_value jinja_percent(struct jinja_run *r, struct base_string format,
                                 const struct jinja_value *arguments);

/** value.name; undefined where there is no such member. */
struct jinja_value jinja_member(struct jinja_run *r, const struct jinja_value *v,
                                struct base_string name);
/** value[index]; undefined where there is none. */
struct jinja_value jinja_item(struct jinja_run *r, const struct jinja_value *v,
                              const struct jinja_value *index);
/** value[from:to:step]; ends that are absent or none are open. Fails where it has no slices. */
struct jinja_value jinja_slice(struct jinja_run *r, const struct jinja_value *v,
                               const struct jinja_value ends[3]);
/** A method of the value; NULL: it has none of that name. */
const struct jinja_row *jinja_method(struct jinja_run *r, const struct jinja_value *v,
                                     struct base_string name);

/** By name; a failure where it is not known. */
struct jinja_value jinja_filter(struct jinja_run *r, struct base_string name,
                                const struct jinja_value *v, const struct jinja_args *args);
bool jinja_test(struct jinja_run *r, struct base_string name, const struct jinja_value *v,
                const struct jinja_args *args);
/** Functions that are visible everywhere; ends with name NULL. */
extern const struct jinja_row jinja_functions[];
/** Filters of lists, which jinja_filter knows, too. */
extern const struct jinja_row jinja_list_filters[];
/** Filters that are methods, too; `which` is an enum jinja_side, an enum jinja_case. */
jinja_function jinja_stripped, jinja_in_case, jinja_listed, jinja_pairs;
/** An argument that is an integer, or `otherwise` where it was not given. */
int64_t jinja_integer_argument(struct jinja_run *r, const struct jinja_value *v, int64_t otherwise);
/** An argument that is a string, or `otherwise` where it was not given. */
struct base_string jinja_string_argument(struct jinja_run *r, const struct jinja_value *v,
                                         const char *otherwise);

#endif
