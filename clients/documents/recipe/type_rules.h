/**
 * What a recipe says of the types of tensors: rules in order, of which the first that names a
 * tensor counts. Recipes are taken as hostile: rules, the bytes of expressions and their steps on
 * all names together have bounds.
 */
#ifndef DOCUMENTS_RECIPE_TYPE_RULES_H
#define DOCUMENTS_RECIPE_TYPE_RULES_H

#include <stdbool.h>

#include "gguf/gguf.h"

struct doc_type_rule {
    char *text;
    bool is_expression; /* that is found anywhere in a name; else the text is a whole name */
    const struct gguf_type_info *type;
};

/** Zero-initialise; release with doc_type_rules_free, also after a failure. */
struct doc_type_rules {
    struct doc_type_rule *items;
    size_t n, capacity;
    struct doc_rule_index *index; /* finds the rule of a name; NULL: there are none */
};

/**
 * Add the rules of a recipe.   given: the path of a document "assay-recipe", whose tensors with a
 * type are rules by name; or of a text of rules NAME=TYPE with blanks or ends of lines between
 * them, where "#" begins a comment; or a rule itself, where no file is called so. As llama-quantize
 * does, NAME is a regular expression whose capital letters become small ones.
 * Fails: STATUS_IO, STATUS_FORMAT (the document, the text), STATUS_USAGE (a rule), STATUS_MEMORY.
 */
enum status doc_type_rules_add(struct doc_type_rules *rules, const char *given,
                               struct status_why *why);
/** Add the rules of a text that has been read. where: what sentences begin with. */
enum status doc_type_rules_take(struct doc_type_rules *rules, struct base_string text,
                                const char *where, struct status_why *why);
void doc_type_rules_free(struct doc_type_rules *rules);

/**
 * The first rule that names a tensor.   out: NULL: none does.
 * Fails: STATUS_USAGE (an expression takes too many steps on the name, or all do on all names),
 * STATUS_MEMORY. One thread at a time: the steps of all calls are counted.
 */
enum status doc_type_rules_find(const struct doc_type_rule **out,
                                const struct doc_type_rules *rules, const char *tensor,
                                struct status_why *why);

/** What a tensor's type is beside the one that a rule says. */
enum doc_typed {
    DOC_TYPED_RIGHT,
    DOC_TYPED_FALLBACK, /* its rows do not fit the rule's type; it has what takes that one's place
                         */
    DOC_TYPED_LEFT,     /* it is one that quantisers leave as it is, whatever a rule says */
    DOC_TYPED_WRONG,
    DOC_TYPED_MISSING, /* the file has no tensor of a name that a document has */
    DOC_N_TYPED
};
/** One word, for documents: "fallback". */
const char *doc_typed_name(enum doc_typed outcome);

struct doc_typed_tensor {
    enum doc_typed outcome;
    const char *name;
    const struct gguf_tensor *tensor; /* of the file; NULL: DOC_TYPED_MISSING */
    const struct doc_type_rule *rule;
    const char *instead; /* types that may take the place of one whose blocks do not fit the rows,
                          * blanks between them; NULL: they fit */
};

/** Zero-initialise; release with doc_type_check_free. */
struct doc_type_check {
    struct doc_typed_tensor *tensors; /* [n_tensors]: those that a rule names, in the file's order,
                                       * then those that are missing */
    size_t n_tensors, n[DOC_N_TYPED]; /* n: of each outcome */
    size_t n_unnamed;                 /* tensors of the file that no rule names */
    size_t *named;                    /* [rules->n]: tensors that each is the first to name */
    size_t n_idle;                    /* expressions that name no tensor, or none first */
};

/** Compare the types of a file's tensors with rules. Fails: as doc_type_rules_find. */
enum status doc_type_check_make(struct doc_type_check *out, const struct doc_type_rules *rules,
                                const struct gguf_file *file, struct status_why *why);
void doc_type_check_free(struct doc_type_check *check);

/** Whether a tensor has a type that it should not have, or is not there, or none is judged. */
static inline bool doc_type_check_fails(const struct doc_type_check *c)
{
    return c->n[DOC_TYPED_WRONG] + c->n[DOC_TYPED_MISSING] > 0 ||
           c->n[DOC_TYPED_LEFT] == c->n_tensors;
}

enum { DOC_TYPE_SENTENCE = 512 };
/** The verdict in a sentence; file: what the file is called. */
const char *doc_type_sentence(char out[DOC_TYPE_SENTENCE], const struct doc_type_check *check,
                              const char *file);

#endif
