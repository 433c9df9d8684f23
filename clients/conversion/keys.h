/** What differs beside tensors: hyper-parameters, tokens, and what a folder says of them. */
#ifndef CONVERSION_KEYS_H
#define CONVERSION_KEYS_H

#include "clients/conversion/conversion.h"
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

/* tokens.c, texts.c */

/** Compare the tokenizer of options->tokens with the file's.   Fails: as model_tokenizer_open of
 * the former, as model_tokenizer_compare. */
void conv_compare_tokens(struct conv_result *out, const struct conv_options *options);
/** Compare with what the JSON files of a folder say of special tokens and the chat template.
 * Fails: STATUS_MEMORY; STATUS_IO, STATUS_FORMAT (one of these files). */
void conv_compare_texts(struct conv_result *out, const struct conv_options *options);

#endif
