/** What the files of model/folder/tokens/ share. */
#ifndef MODEL_FOLDER_TOKENS_STATE_H
#define MODEL_FOLDER_TOKENS_STATE_H

#include "base/buffer.h"
#include "base/json/read.h"
#include "base/text/strtab.h"
#include "gguf/layout.h"
#include "model/tokenizer/declared/declared.h"

enum model_folder_json {
    MODEL_JSON_TOKENIZER,
    MODEL_JSON_TOKENIZER_CONFIG,
    MODEL_JSON_CONFIG,
    MODEL_JSON_GENERATION,
    MODEL_JSON_ADDED, /* read beside tokenizer.model only */
    MODEL_N_JSON
};

/** SentencePiece's own form, and what it says of itself in numbers. */
#define MODEL_SENTENCEPIECE "tokenizer.model"
enum model_sentencepiece_member {
    MODEL_PIECES_MODEL_TYPE,
    MODEL_PIECES_SUFFIX,
    MODEL_PIECES_BYTES,
    MODEL_PIECES_UNKNOWN,
    MODEL_PIECES_BOS,
    MODEL_PIECES_EOS,
    MODEL_PIECES_PREFIX,
    MODEL_PIECES_EXTRA,
    MODEL_PIECES_ESCAPE,
    MODEL_N_PIECES
};
struct model_sentencepiece {
    bool is_used; /* the folder has no tokenizer.json */
    char *text;   /* [n_text]: of all pieces, each with a zero after it */
    size_t n_text;
    float *score; /* by id */
    size_t capacity;
    int64_t said[MODEL_N_PIECES];
};

struct model_folder_tokens {
    const char *path;
    uint64_t n_rows;
    struct base_json_reader readers[MODEL_N_JSON];
    struct base_field json[MODEL_N_JSON]; /* none: there is no such file */
    struct base_field model;              /* of tokenizer.json */
    struct model_steps steps;             /* they are read here to be refused early */

    /* By id. */
    size_t n, capacity;
    struct base_string *text; /* [n]; data NULL: no token has the id */
    int32_t *type;            /* [n] */
    uint8_t *flags;           /* [n] sums of enum model_added_flag */
    size_t type_capacity, flag_capacity;
    /* By text. */
    struct base_strtab index;
    int32_t *id; /* [index.n] by its number */
    size_t id_capacity;

    struct model_sentencepiece pieces;
    struct base_buffer names; /* of ids without a token */
    struct base_buffer remarks;
    struct gguf_layout *layout;
};

/** A failure with the folder's and a file's name in front. */
enum status model_tokens_fail(const struct model_folder_tokens *f, enum model_folder_json file,
                              enum status status, struct status_why *why, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/** A member that is true; neither true nor false: fallback. */
bool model_tokens_flag(struct base_field object, const char *name, bool fallback);
/** Write a truth value. */
void model_tokens_bool(struct model_folder_tokens *f, const char *key, bool value);
/** The id of a text, or -1. */
int32_t model_tokens_id(const struct model_folder_tokens *f, const char *text);

/* tokens_json.c */

/** Read the files.   Fails: as model_folder_tokens. */
enum status model_tokens_read(struct model_folder_tokens *f, struct status_why *why);
/** A text file of the folder, whole, with a zero byte after it; *out NULL: there is none. */
enum status model_tokens_text(const struct model_folder_tokens *f, const char *name, char **out,
                              struct status_why *why);

/* vocabulary.c, merges.c, sentencepiece.c */

/** A whole number from 0 on, or -1. */
int64_t model_tokens_number(struct base_field item);
/** Whether converters to GGUF know a name as a control token's, whatever the files declare. */
bool model_tokens_looks_special(const char *text);
/** Give a new text, which stays where it is, an id. place: the member that says so. */
enum status model_tokens_new(struct model_folder_tokens *f, const char *text, int64_t id,
                             const char *place, struct status_why *why);
/** Write an array of f->n entries. */
void model_tokens_array(struct model_folder_tokens *f, const char *key, enum gguf_value_type type,
                        const void *data);
/** Name the ids that have no token, and write texts and types. */
enum status model_tokens_write(struct model_folder_tokens *f, struct status_why *why);

/** The vocabulary of tokenizer.model; then its keys. */
enum status model_tokens_sentencepiece(struct model_folder_tokens *f, struct status_why *why);

/** Vocabulary and added tokens by id, checked; then their keys. */
enum status model_tokens_vocabulary(struct model_folder_tokens *f, struct status_why *why);
/** The key of the merges. */
enum status model_tokens_merges(struct model_folder_tokens *f, struct status_why *why);

/* ends.c */

/** BOS and EOS, and the chat templates. */
enum status model_tokens_ends(struct model_folder_tokens *f, struct status_why *why);

#endif
