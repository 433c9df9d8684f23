/** A conversation that is being rendered, as a whole or in part; for this folder only. */
#ifndef MODEL_CHAT_CONVERSATION_H
#define MODEL_CHAT_CONVERSATION_H

#include "model/chat/chat.h"
#include "model/template/template.h"

struct model_chat {
    struct jinja_template *chat_template;
    const struct model_tokenizer *tokenizer;
    struct jinja_limits limits;
    bool takes_texts, takes_lists; /* as contents */
};

struct chat_conversation {
    const struct model_chat *chat;
    struct jinja_run *r;     /* of all values */
    struct jinja_dict names; /* but "messages" and "add_generation_prompt" */
    struct jinja_value *messages;
    size_t n;
};

/** Marks that are put into contents to find them again in the text. */
enum chat_marks {
    CHAT_UNMARKED,
    CHAT_MARK_START,
    CHAT_MARK_ANSWER, /* what follows thoughts: after the last </think> */
    CHAT_MARK_END
};

/** Whether the generation prompt is asked for. */
enum chat_asking { CHAT_AS_GIVEN, CHAT_ASKED, CHAT_NOT_ASKED };

/** What to render of a conversation. */
struct chat_view {
    size_t n; /* the first messages */
    enum chat_asking asking;
    enum chat_marks marks;
    size_t only; /* the one message that is marked; SIZE_MAX: all of them */
};

/** A rendering without its marks. The memory is the conversation's. */
struct chat_rendering {
    struct base_string text;
    struct jinja_span *spans;
    size_t n_spans;
    size_t *marks; /* [n] of the conversation: where its mark was; SIZE_MAX: not to be found */
};

/** Read the messages of an object. A failure is the run's. */
void model_chat_read(struct chat_conversation *c, const struct jinja_value *object);

/** Whether message i has a content with anything but blanks. */
bool model_chat_has_text(struct chat_conversation *c, size_t i);

/**
 * Render. Where the template fails: false. That is the run's failure, too, where it must not fail;
 * an attempt (must false) may, but for limits that it shares with the run: what comes out does not
 * depend on which attempts there was time for.
 */
bool model_chat_view(struct chat_conversation *c, const struct chat_view *view,
                     struct chat_rendering *out, bool must);

/** Whose parts of the text are scored; a failure is the run's. */
void model_chat_find_spans(struct chat_conversation *c, enum model_chat_mask mask,
                           struct chat_rendering *whole);

#endif
