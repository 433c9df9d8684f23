/** Whether two chat templates make the same prompts of the set of conversations. */
#ifndef MODEL_CHAT_COMPARE_H
#define MODEL_CHAT_COMPARE_H

#include "model/chat/prompts.h"
#include "model/tokenizer/compare/compare.h"

/** A conversation of which two templates make other prompts. Texts are printable. */
struct model_chat_difference {
    char name[48];
    size_t at; /* bytes that both prompts begin with */
    /* From there on; or why it is refused. */
    char texts[2][MODEL_DIFFERENCE_BYTES];
    size_t id_at; /* tokens that both begin with */
    char ids[2][MODEL_DIFFERENCE_BYTES];
};

/** Zero-initialise; release with model_chat_comparison_free, also after a failure. */
struct model_chat_comparison {
    size_t n;                            /* conversations */
    size_t n_refused;                    /* those that both refuse, which is no difference */
    struct model_chat_difference *items; /* [n_differ], in the set's order */
    size_t n_differ, capacity;
    size_t n_unknown; /* those that one of them cannot render, with what is known of Jinja */
    struct status_why first_unknown; /* why */
};

/**
 * Compare them by prompts and token ids, each with its own tokenizer.
 * Fails: STATUS_MEMORY, as model_tokenize.
 */
enum status model_chat_compare(struct model_chat_comparison *out, const struct model_chat *a,
                               const struct model_chat *b, struct status_why *why);
void model_chat_comparison_free(struct model_chat_comparison *comparison);

#endif
