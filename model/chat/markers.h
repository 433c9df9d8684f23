/**
 * Markers: what a chat template writes to be one token, as "<|im_end|>" is, and the vocabulary may
 * lack. docs/chats.md says which pieces of a text are taken for such.
 */
#ifndef MODEL_CHAT_MARKERS_H
#define MODEL_CHAT_MARKERS_H

#include "base/text/strtab.h"
#include "model/chat/chat.h"

/** What is known of a marker. */
struct model_chat_marker {
    size_t n_tokens; /* that the vocabulary makes of it; 1: it has it */
    size_t n_texts; /* that were looked through before it was compared with its conversation last */
    bool missing;   /* it has not, and a template wrote it: some rendering has it more often than
                       its conversation */
};

/** Those that were met. Zero-initialise; release with model_chat_markers_free. */
struct model_chat_markers {
    struct base_strtab names; /* owned */
    struct model_chat_marker *items;
    size_t capacity, n_texts;
};

/**
 * Look for markers in a rendered text, the first 256 that there are. object: the text of the
 * conversation. Fails: STATUS_MEMORY, as model_tokenize.
 */
enum status model_chat_markers_find(struct model_chat_markers *markers,
                                    const struct model_tokenizer *tokenizer,
                                    const struct model_chat_text *text, struct base_string object,
                                    struct status_why *why);

/** A zero-initialised object is allowed. */
void model_chat_markers_free(struct model_chat_markers *markers);

#endif
