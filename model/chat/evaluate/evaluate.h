/** Evaluating the tree: expressions, statements, and what values can do. */
#ifndef MODEL_CHAT_EVALUATE_EVALUATE_H
#define MODEL_CHAT_EVALUATE_EVALUATE_H

#include "model/chat/parse/tree.h"

/** Names that are visible at a place; those around it come after its own. */
struct chat_scope {
    const struct chat_scope *around;
    struct chat_dict names;
};

struct chat_macro {
    const struct chat_node *node;
    struct chat_scope *scope; /* where it was defined */
};

struct chat_value model_chat_evaluate(struct chat_run *r, struct chat_scope *scope,
                                      const struct chat_node *node);
/** Arguments in the order of the list. */
struct chat_args model_chat_evaluate_arguments(struct chat_run *r, struct chat_scope *scope,
                                               const struct chat_node *list);
/** Statements, whose text goes to r->out. */
void model_chat_execute(struct chat_run *r, struct chat_scope *scope, const struct chat_node *body);
struct chat_value model_chat_call_macro(struct chat_run *r, const struct chat_macro *macro,
                                        const struct chat_args *args);

/** a <operator> b, for what is no comparison. */
struct chat_value model_chat_binary(struct chat_run *r, struct base_string name,
                                    const struct chat_value *a, const struct chat_value *b);
/** a <comparison> b, "in" and "not in" among them. */
bool model_chat_relation(struct chat_run *r, struct base_string name, const struct chat_value *a,
                         const struct chat_value *b);
bool model_chat_contains(struct chat_run *r, const struct chat_value *in,
                         const struct chat_value *v);
/** The string with Python's %-conversions filled in: %s, %d, %i and %%. */
struct chat_value model_chat_percent(struct chat_run *r, struct base_string format,
                                     const struct chat_value *arguments);

/** value.name; undefined where there is no such member. */
struct chat_value model_chat_member(struct chat_run *r, const struct chat_value *v,
                                    struct base_string name);
/** value[index]; undefined where there is none. */
struct chat_value model_chat_item(struct chat_run *r, const struct chat_value *v,
                                  const struct chat_value *index);
/** value[from:to:step]; ends that are absent or none are open. Fails where it has no slices. */
struct chat_value model_chat_slice(struct chat_run *r, const struct chat_value *v,
                                   const struct chat_value ends[3]);
/** A method of the value; NULL: it has none of that name. */
const struct chat_row *model_chat_method(struct chat_run *r, const struct chat_value *v,
                                         struct base_string name);

/** By name; a failure where it is not known. */
struct chat_value model_chat_filter(struct chat_run *r, struct base_string name,
                                    const struct chat_value *v, const struct chat_args *args);
bool model_chat_test(struct chat_run *r, struct base_string name, const struct chat_value *v,
                     const struct chat_args *args);
/** Functions that are visible everywhere; ends with name NULL. */
extern const struct chat_row model_chat_functions[];
/** Filters of lists, which model_chat_filter knows, too. */
extern const struct chat_row model_chat_list_filters[];
/** An argument that is an integer, or `otherwise` where it was not given. */
int64_t model_chat_integer_argument(struct chat_run *r, const struct chat_value *v,
                                    int64_t otherwise);
/** An argument that is a string, or `otherwise` where it was not given. */
struct base_string model_chat_string_argument(struct chat_run *r, const struct chat_value *v,
                                              const char *otherwise);

#endif
