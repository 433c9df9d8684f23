/** What differs beside tensors: hyper-parameters, tokens, and what a folder says of them. */
#ifndef CONVERSION_KEYS_H
#define CONVERSION_KEYS_H

#include "base/content/text.h"
#include "clients/conversion/conversion.h"
#include "model/chat/chat.h"
#include "model/model.h"

/* fields.c */

/* What fails is kept in out->kept. */

/** Note a difference, once for a key. Texts of any bytes, cut where they are long. Fails:
 * STATUS_MEMORY. */
void conv_differ(struct conv_result *out, enum conv_kind kind, const char *key,
                 struct base_string expected, struct base_string found);
/** conv_differ of texts that end with a NUL. */
void conv_differ_text(struct conv_result *out, enum conv_kind kind, const char *key,
                      const char *expected, const char *found);

/* hparams.c */

/** Compare what the model reads of both. read: of `file`. Fails: STATUS_MEMORY. */
void conv_compare_hparams(struct conv_result *out, const struct model_hparams *folder,
                          const struct gguf_file *file, const struct model_hparams *read);

/* tokens.c */

struct conv_tokenizers {
    struct model_tokenizer *folder; /* of options->tokens; NULL: it has none */
    struct model_tokenizer *file;   /* NULL: it cannot be read */
};

/** Open both; a file that cannot be read is a difference, unless there is nothing to compare it
 * with. Close them also after a failure.   Fails: as model_tokenizer_open of the folder's. */
void conv_tokenizers_open(struct conv_tokenizers *t, struct conv_result *out,
                          const struct conv_options *options);
void conv_tokenizers_close(struct conv_tokenizers *t);
/** Compare them, where both are there.   Fails: as model_tokenizer_compare. */
void conv_compare_tokens(struct conv_result *out, const struct conv_tokenizers *t);

/* texts.c */

/** Compare with what the JSON files of a folder say of special tokens. chat_template: receives the
 * folder's, which is freed with base_text_free; of n_bytes 0: it has none.
 * Fails: STATUS_MEMORY; STATUS_IO, STATUS_FORMAT (one of these files). */
void conv_compare_texts(struct conv_result *out, const struct conv_options *options,
                        struct base_text *chat_template);

/* prompts.c */

/** Compare the prompts that both chat templates make. expected: the folder's. A tokenizer that is
 * missing is as the other one.   Fails: as model_chat_compare. */
void conv_compare_prompts(struct conv_result *out, const struct conv_options *options,
                          const struct conv_tokenizers *t, struct base_string expected);

/* notes.c */

/** Note what is odd about the file's own prompts.   Fails: as model_chat_prompt. */
void conv_note_prompts(struct conv_result *out, const struct gguf_file *file,
                       const struct model_chat *chat, const struct model_tokenizer *tokenizer);

#endif
