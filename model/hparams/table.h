/**
 * The table of hyper-parameters: of each its key, what values it may have, and where it is kept.
 * The reader of keys (model/hparams/read.h), the writer for folders (model/folder/keys.c), `check
 * --base` and `assay info` are views of it. A key whose meaning depends on others is read by code:
 * its row says only what it is.
 */
#ifndef MODEL_HPARAMS_TABLE_H
#define MODEL_HPARAMS_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The values that a whole number may take; both ends are included. */
struct model_range {
    uint32_t low, high;
};

enum model_hparam_kind {
    MODEL_HPARAM_U32,
    MODEL_HPARAM_BOOL,
    MODEL_HPARAM_F32, /* 0 or more; 0 stands for the default */
    MODEL_HPARAM_CAP, /* an F32; config.json without it has no cap, which the key says with 0 */
    MODEL_HPARAM_F64,
    MODEL_HPARAM_GATING, /* an enum kern_gating */
    MODEL_HPARAM_SCALING /* an enum model_rope_scaling */
};

/** The struct that has it. */
enum model_hparam_place {
    MODEL_HPARAM_NOWHERE,
    MODEL_HPARAM_OF_MODEL,  /* struct model_hparams */
    MODEL_HPARAM_OF_LAYERS, /* struct model_layer_shape of each layer */
    MODEL_HPARAM_OF_HEADS,  /* as OF_LAYERS; latent attention may have it compressed or not */
    MODEL_HPARAM_OF_ROPES,  /* struct model_rope of each that layers use */
    MODEL_HPARAM_OF_SCALED  /* as OF_ROPES, where positions are stretched */
};

struct model_hparam {
    const char *suffix; /* of the key, after the architecture; NULL ends the table */
    enum model_hparam_kind kind;
    enum model_hparam_place place;
    size_t at;                /* offset of the member there */
    struct model_range range; /* of a U32 that is read through the table */
    double absent;            /* what a file without the key has */
    bool own;                 /* models have it only with the key: others need no comparison */
    const char *members; /* what config.json mostly calls it, names with blanks between; or NULL */
    const char *label, *name; /* in `assay info`: for people, and in JSON; NULL: it is not told */
};

extern const struct model_hparam model_hparam_table[];

/** The row of a suffix, which must be there. */
const struct model_hparam *model_hparam_row(const char *suffix);

#endif
