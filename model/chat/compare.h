/** Whether two chat templates make the same prompts of the set of conversations. */
#ifndef MODEL_CHAT_COMPARE_H
#define MODEL_CHAT_COMPARE_H

#include "model/chat/prompts.h"
#include "model/tokenizer/compare/compare.h"

/** A conversation of which two templates make other prompts. Texts are printable. */
struct model_chat_difference {
    char name[48];
    size_t at;       /* bytes that both prompts begin with */
    bool refused[2]; /* by the template */
    /* From there on; "refused: " with the reason where it is refused. */
    char texts[2][MODEL_DIFFERENCE_BYTES];
    size_t id_at; /* tokens that both begin with */
    char ids[2][MODEL_DIFFERENCE_BYTES];
};

/** Zero-initialise; release with model_chat_comparison_free, also after a failure. */
struct model_chat_comparison {
    size_t n;                            /* conversations */
    size_t n_refused;                    /* those that both refuse, which is no difference */
    struct status_why first_refused;     /* why the second one does */
    struct model_chat_difference *items; /* [n_differ], in the set's order */
    size_t n_differ, capacity;
    size_t n_unknown; /* those that one of them cannot render, with what is known of Jinja */
    struct status_why first_unknown; /* why */
};

/** A template with the tokenizer of its own. */
struct model_chat_side {
    struct base_string text; /* of n_bytes 0: there is none, and nothing is compared */
    const struct model_tokenizer *tokenizer;
};

/** Look at a prompt of the second side. chat NULL: its template cannot be read. */
typedef enum status model_chat_looker(void *user, const struct model_chat *chat,
                                      const struct model_chat_case *one,
                                      const struct model_chat_prompt *prompt,
                                      struct status_why *why);

struct model_chat_sides {
    struct model_chat_side sides[2];
    bool tools_only;           /* conversations with tools, which a template 'tool_use' is for */
    const atomic_bool *cancel; /* NULL: nothing cancels */
    model_chat_looker *look;   /* NULL: nobody is shown the prompts */
    void *user;
};

/**
 * Compare them by prompts and token ids. Where the ids are the same, it is no difference that one
 * template writes the text of BOS and the other one's vocabulary puts the token in front.
 * Fails: as model_chat_each, model_chat_prompt and `look`.
 */
enum status model_chat_compare(struct model_chat_comparison *out,
                               const struct model_chat_sides *sides, struct status_why *why);
void model_chat_comparison_free(struct model_chat_comparison *comparison);

#endif
