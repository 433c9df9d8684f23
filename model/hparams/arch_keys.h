/**
 * How architectures have the keys of the table of hyper-parameters (table.h): a row for each, of
 * GGUF files and of published folders.
 */
#ifndef MODEL_HPARAMS_ARCH_KEYS_H
#define MODEL_HPARAMS_ARCH_KEYS_H

#include <stdint.h>

struct model_arch;

/** Who reads the key of a GGUF file. */
enum model_key_reader {
    MODEL_BY_CODE,  /* what reads it of all architectures, or the architecture's `read` */
    MODEL_OPTIONAL, /* the row, as the table has it */
    MODEL_REQUIRED  /* the row; a file without the key is refused */
};

/** What becomes of a member of config.json. */
enum model_member {
    MODEL_MEMBER_WRITTEN, /* the key, as the table has its kind */
    MODEL_MEMBER_TRUE,    /* no key: it must be there and true, which is what the reader takes */
    MODEL_MEMBER_FALSE,   /* no key: it must be false or absent */
    MODEL_MEMBER_FIXED    /* no key: a number or truth value that must be `unset`, or be absent */
};

struct model_arch_key {
    const char
        *suffix; /* after the architecture's prefix; NULL: no key, a member is only checked */
    enum model_key_reader reader;
    uint32_t least; /* of a whole number, where the table allows less; 0: as there */
    double absent;  /* what a file without the key has; 0: as in the table */
    /* Members that say it in config.json, of which the first that is there counts. NULL: those that
     * the table has; "": none, folders lack it or `write` writes it. */
    const char *from; /* NULL without a suffix ends a list */
    double unset;     /* what config.json without the member says; 0: nothing, there is no key */
    enum model_member member;
};

/* Lists, each ended by {0}: of all models; of latent attention; of an indexer of keys; of models
 * that choose experts as DeepSeek 3 does. */
extern const struct model_arch_key model_size_keys[], model_latent_keys[], model_indexer_keys[],
    model_grouped_keys[];

/** The row that an architecture has for a key: the first in its lists; or NULL. */
const struct model_arch_key *model_arch_key_find(const struct model_arch *arch, const char *suffix);

#endif
