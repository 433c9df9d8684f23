/**
 * What differs between architectures: their keys and their tensors. The forward pass itself is
 * one, driven by what is bound (forward.c). A new architecture is its own file, a declaration
 * below and a line in registry.c.
 */
#ifndef MODEL_ARCH_ARCH_H
#define MODEL_ARCH_ARCH_H

#include "model/arch/bind.h"
#include "model/hparams.h"

struct model_arch {
    const char *name;                /* general.architecture */
    const char *const *key_suffixes; /* "block_count", ...: all that are understood; NULL ends */
    /** Read and check the hyper-parameters (model/hparams.h does what is common). */
    enum status (*read)(struct model_hparams *h, const struct model_keys *keys,
                        const struct model_options *options, struct model_remarks *remarks,
                        struct status_why *why);
    /**
     * Point the model's handles at its tensors (model/arch/bind.h). Called again after a tensor has
     * been replaced: it must then write the same handles again and allocate nothing.
     */
    enum status (*bind)(struct model *m, struct status_why *why);
};

/** The architecture of a name, or NULL. */
const struct model_arch *model_arch_find(const char *name);
/** Walk the registry: the i-th architecture, NULL past the end. */
const struct model_arch *model_arch_at(size_t i);

extern const struct model_arch model_arch_llama;

#endif
