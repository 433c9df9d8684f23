/** What the Gemmas share. */
#ifndef MODEL_ARCH_GEMMA_H
#define MODEL_ARCH_GEMMA_H

#include "model/arch/arch.h"

/** Norms before and after both branches. */
#define MODEL_GEMMA_NORMS                                                                          \
    {                                                                                              \
        .attn_post = "post_attention_norm", .ffn_post = "post_ffw_norm"                            \
    }

/** The embedding's scale sqrt(D), and the soft cap of the logits (where no key says it: `cap`). */
enum status model_gemma_read_ends(struct model_hparams *h, const struct model_reading *r, float cap,
                                  struct status_why *why);

/** The scale of the scores of the largest model, which has n_layers: 1 / sqrt(D / H). */
void model_gemma_scale_largest(struct model_hparams *h, uint32_t n_layers);

#endif
