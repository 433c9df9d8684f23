/**
 * How the published folders of an architecture name things: data of its description (model/arch/).
 * Names that all have are in names.c; an architecture's own come first. Members of config.json that
 * say a key are in its row (model/hparams/arch_keys.h).
 */
#ifndef MODEL_FOLDER_MAP_H
#define MODEL_FOLDER_MAP_H

#include <stdbool.h>
#include <stdint.h>

/** What is done to a stored tensor: flags. */
enum model_change {
    MODEL_KEEP,
    MODEL_AS_IS = 1 << 0,  /* also where the architecture changes all of a kind */
    MODEL_TURN_Q = 1 << 1, /* rows of each head: halves become neighbours; of the query heads */
    MODEL_TURN_K = 1 << 2, /* likewise, of the key heads */
    /* Values, made as float32 in memory: */
    MODEL_PLUS_ONE = 1 << 3,     /* 1 is added */
    MODEL_NEGATIVE_EXP = 1 << 4, /* -exp */
    /* A part of the rows of each matrix as stored: */
    MODEL_FIRST_HALF = 1 << 5,
    MODEL_SECOND_HALF = 1 << 6,
    MODEL_EVEN = 1 << 7, /* every second one, from the first on */
    MODEL_ODD = 1 << 8,
    MODEL_OF_COLUMNS = 1 << 9,     /* of its columns instead */
    MODEL_TURN_OVER = 1 << 10,     /* each matrix is transposed, after that */
    MODEL_SQUEEZE = 1 << 11,       /* axes of length 1 are left out */
    MODEL_WHOLE_NUMBERS = 1 << 17, /* a table of I64 or I32, made as I32 in memory */
    /* Latent attention: rows of each head that make its keys, or its values; a matrix each. */
    MODEL_OF_KEYS = 1 << 12,
    MODEL_OF_VALUES = 1 << 13,
    /* Of each key head in turn the rows of its query heads, its own, its values: those of q and k
     * with MODEL_TURN_Q and MODEL_TURN_K, of the values without. */
    MODEL_GROUPED = 1 << 18,
    MODEL_IF_WHOLE = 1 << 16, /* only where such a tensor is not cut */
    MODEL_LENGTHEN = 1 << 19, /* times sqrt(width / how many values there are) */
    MODEL_EXP = 1 << 20,
    MODEL_OF_HEADS = 1 << 23, /* as many values as there are heads; the rest is left out */
    /* One of two tensors with as many values, of which each two are multiplied: */
    MODEL_FACTOR = 1 << 24,
    MODEL_SECOND_FACTOR = 1 << 25,
    /* Only in layers with key heads, which have attention, or only in those without: */
    MODEL_IF_ATTENTION = 1 << 21,
    MODEL_IF_RECURRENT = 1 << 22,
    /* Rows of an indexer's heads, of which the last is its key: */
    MODEL_INDEX_QUERIES = 1 << 26,
    MODEL_INDEX_KEY = 1 << 27,
    /* Beyond the layers, although it is stored in one: */
    MODEL_PARTS = 1 << 28,   /* the * is the number of a part of the rows of a table */
    MODEL_NUMBERS = 1 << 29, /* I64, 0 or more: a key of the architecture, no tensor */
    /* Columns are rows only where the model's width is the last axis but one, or the last: */
    MODEL_IF_WIDTH_BEFORE = 1 << 14,
    MODEL_IF_WIDTH_LAST = 1 << 15
};

/**
 * One name. Names within a layer are without "model.layers.N." and "blk.N."; others have a dot in
 * front of neither. A name with .weight or .bias after `from` becomes `to` with the same; a name
 * that is `from` becomes `to`. A * stands for the number of an expert. Several entries with one
 * `from` each take a part.
 */
struct model_folder_name {
    const char *from, *to; /* to NULL: left out */
    unsigned change;       /* of enum model_change; left out: none */
};

/** Names of experts as Mixtral has them, and of shared ones beside them. */
extern const struct model_folder_name model_mixtral_names[];

struct model_folder;
struct model_folder_heads;

/** Zero means, of each field: as LLaMA's folders have it, but without turned heads. */
struct model_folder_map {
    const char *classes[8];                   /* of config.json's architectures; NULL ends */
    const struct model_folder_name *names[5]; /* lists beyond the common ones; NULL ends */
    bool compressed;     /* latent attention's kv_b is cut, so that keys are compressed rows */
    bool long_rows;      /* norms of latent attention's rows are to be MODEL_LENGTHEN */
    bool bare_attention; /* layers have "attention." where others have "self_attn." */
    bool turned;         /* q and k are to be turned: the reader rotates neighbours */
    bool norms_less_one; /* norms are stored less 1 */
    bool tied;           /* lm_head.weight is never used */
    bool dynamic; /* angles may change beyond max_position_embeddings, which GGUF has nothing of */
    const char *further;    /* a tensor of a layer beyond the last, of which config.json has no
                             * count; NULL: none */
    const char *activation; /* another word for the architecture's; NULL: none */
    uint32_t largest;      /* query_pre_attn_scalar is the size of a head, of the model with so many
                            * layers width / heads; 0: it is not looked at */
    bool named_layers;     /* `layer_types` is required where layers slide */
    bool own_magnitude;    /* `write` says YaRN's mscale and mscale_all_dim */
    bool unrounded;        /* YaRN's range of pairs is not rounded; else it is */
    double full_share;     /* layers that see all rotate so much of what GGUF says; 0: all of it */
    uint32_t still_period; /* one of so many layers has no positions; 0: it is not looked at */
    /** Whether it is this one, where several have a class. NULL: yes. */
    bool (*is)(const struct model_folder *f);
    /** Change sizes that config.json says otherwise, before keys are written. May be NULL. */
    void (*sizes)(struct model_folder *f);
    /** Say how many heads each layer has, or of what size, where they differ. May be NULL. */
    void (*heads)(const struct model_folder *f, struct model_folder_heads *of);
    /** Write keys and tensors that no table can. May be NULL. */
    void (*write)(struct model_folder *f);
};

#endif
