/** What the chat templates of both make of the set of conversations; for this room only. */
#ifndef CONVERSION_PROMPTS_H
#define CONVERSION_PROMPTS_H

#include "clients/conversion/keys.h"
#include "model/chat/compare.h"

/* prompts.c */

/** Compare the prompts that the chat templates make. A tokenizer that is missing is as the other
 * one.   Fails: as model_chat_compare, conv_templates_read. */
void conv_compare_prompts(struct conv_result *out, const struct conv_options *options,
                          const struct conv_tokenizers *t);

/* templates.c */

struct conv_template {
    char *name; /* in the same allocation as the text */
    struct base_string text;
};
/** The one that is used without a name is called "default". */
struct conv_templates {
    struct conv_template *items;
    size_t n, capacity;
};
/** Read those of a file, or of a folder (chat_template.jinja and additional_chat_templates/ before
 * tokenizer_config.json). Free them also after a failure.   Fails: as conv_read_file. */
void conv_templates_read(struct conv_templates *t, struct conv_result *out,
                         const struct gguf_file *file);
/** The text of one; of n_bytes 0: there is none of this name. */
struct base_string conv_template(const struct conv_templates *t, struct base_string name);
void conv_templates_free(struct conv_templates *t);

/* notes.c */

/** What the file's own prompts have. */
struct conv_prompts_seen {
    const struct model_tokenizer *tokenizer;
    int32_t eos, eot; /* -1: there is none */
    bool ends_turns, has_bos_twice, asks;
    size_t n_answered, n_asked; /* conversations with an answer, and with a generation prompt */
};
void conv_seen_begin(struct conv_prompts_seen *l, const struct gguf_file *file);
/** Look at a prompt; user: a struct conv_prompts_seen.   Fails: as model_tokenize. */
model_chat_looker conv_see;
/** Note what is odd about them. */
void conv_seen_end(const struct conv_prompts_seen *l, struct conv_result *out);

#endif
