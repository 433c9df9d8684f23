/** What a model is made of: for model/ only. */
#ifndef MODEL_STATE_H
#define MODEL_STATE_H

#include "model/arch.h"
#include "model/model.h"
#include "model/remarks.h"

/** A tensor of the file and the bytes that are used for it. */
struct model_tensor {
    const struct gguf_tensor *source; /* name, shape */
    const struct gguf_type_info *type;
    const struct gguf_file *file; /* that the bytes lie in */
    const uint8_t *data;
    const struct gguf_view *view;     /* NULL: the rows lie at data, one after the other */
    const struct gguf_scales *scales; /* [matrices]: that lie apart; may be NULL */
    size_t row_bytes;
    uint64_t generation;  /* of the bytes; other bytes get another one */
    size_t rows_of_token; /* above 0: of it only so many rows for each token are read */
    bool unused;          /* it takes no part in the evaluation */
    bool understood;      /* some handle, or a deliberate absence of one, belongs to it */
    bool may_lack;        /* a file may be without it */
    bool may_scale;       /* a matrix: a scale may stand beside it */
};

/** Take the bytes of `from`, a tensor of the file, which has the same shape. */
void model_tensor_use(struct model_tensor *tensor, const struct gguf_file *file,
                      const struct gguf_tensor *from, uint64_t generation);

/** Divisors of RoPE's frequencies, of full attention: n_factors. */
struct model_factors {
    float *values;
    bool exists;         /* the file has such a list */
    uint64_t generation; /* of its bytes; sessions keep angles made of it */
};
enum { MODEL_FACTORS, MODEL_FACTORS_LONG, MODEL_FACTORS_SHORT, MODEL_N_FACTORS };

struct model {
    struct gguf_file *file;
    const struct model *origin; /* whose file, tokenizer and numbers it uses; NULL: its own */
    uint64_t generation;        /* of the file's own bytes */
    const struct model_arch *arch;
    struct model_tokenizer *tokenizer;
    struct model_hparams hparams;
    struct model_tensor *tensors; /* as in the file's directory */
    struct model_layer *layers;
    struct kern_weight embedding;
    struct model_norm output_norm;
    struct model_product head;
    struct model_stream_mixer output_mixer; /* after the last layer */
    struct model_nextn nextn;               /* with hparams.n_bound */
    struct kern_weight per_layer_project;   /* [L * P, D] */
    struct kern_weight per_layer_embedding; /* [V, L * P] */
    struct kern_weight per_layer_norm;      /* [P] */
    struct model_product stream_in;         /* [(S - 1) D, D]: from the embedding */
    struct model_product stream_out;        /* likewise, to the output norm */
    struct model_factors factors[MODEL_N_FACTORS];
    struct model_remarks remarks;
    struct status_kept kept; /* the first failure of what is reading or binding */
};

/** The earliest layer of which a layer uses more than the residual stream; its own number: none. */
static inline size_t model_layer_needs(const struct model_layer_shape *l)
{
    return l->sparse && l->index_layer < l->kv_layer ? l->index_layer : l->kv_layer;
}

/** What model_tensor_check() has left of a tensor of which tokens name rows: these. */
enum status model_tensor_check_rows(const struct model_tensor *tensor, const int32_t *rows,
                                    size_t n, struct status_why *why);

/** Point all handles at the tensors (model/bind/). */
enum status model_bind(struct model *m, struct status_why *why);
/** Point those handles that a tensor of this name can belong to at the tensors again. */
enum status model_bind_again(struct model *m, const char *name, struct status_why *why);
/** Zeros where weights should be: STATUS_FORMAT where they are a gap in the file, else remarks. */
enum status model_check_zeros(struct model *m, struct status_why *why);
/** The N of "blk.N.…"; SIZE_MAX: the tensor belongs to no block. */
size_t model_block_of(const char *name);

#endif
