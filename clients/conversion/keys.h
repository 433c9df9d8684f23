/** What differs beside tensors: hyper-parameters, tokens, and what a folder says of them. */
#ifndef CONVERSION_KEYS_H
#define CONVERSION_KEYS_H

#include <cjson/cJSON.h>

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

/** Note what is no difference. Notes beyond CONV_NOTES are dropped. */
void conv_note(struct conv_result *out, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

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

/** A file of the folder, freed with base_text_free; empty where it has none. Fails: STATUS_IO,
 * STATUS_FORMAT, STATUS_MEMORY. */
struct base_text conv_read_file(struct conv_result *out, const struct gguf_file *folder,
                                const char *name);
/** Such a file, parsed; NULL where it has none. */
cJSON *conv_read_json(struct conv_result *out, const struct gguf_file *folder, const char *name);
/** Compare with what the JSON files of a folder say of special tokens.
 * Fails: STATUS_MEMORY; STATUS_IO, STATUS_FORMAT (one of these files). */
void conv_compare_texts(struct conv_result *out, const struct conv_options *options);

#endif
