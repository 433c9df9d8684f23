/** What a model is made of: for model/ only. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/arch/arch.h"
#include "model/model.h"
#include "model/remarks.h"

/** A tensor of the file and the bytes that are used for it. */
struct model_tensor {
    const struct gguf_tensor *source; /* name, shape */
    const struct gguf_type_info *type;
    const uint8_t *data;
    size_t row_bytes;
    uint64_t generation; /* of the bytes; other bytes get another one */
    bool understood;     /* some handle, or a deliberate absence of one, belongs to it */
};

struct model {
    struct gguf_file *file;
    const struct model_arch *arch;
    struct model_tokenizer *tokenizer;
    struct model_hparams hparams;
    struct model_tensor *tensors; /* as in the file's directory */
    struct model_layer *layers;
    struct kern_weight embedding, output_norm, head;
    float *rope_factors;      /* [n_rot / 2]; all 1 where the file has none */
    double *rope_frequency;   /* [n_rot / 2] */
    uint64_t rope_generation; /* of the factors in it; sessions keep angles made of it */
    struct model_remarks remarks;
};

#endif
