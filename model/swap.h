/**
 * Another file's tensor in place of a model's, while the model is open. Not while a forward pass
 * is running; before other bytes are unmapped, kern_forget() them on each backend. Sessions and
 * scorers stay open: handles keep their addresses, weights are known by their generation, angles
 * are filled again.
 */
#ifndef MODEL_SWAP_H
#define MODEL_SWAP_H

#include "model/model.h"

/**
 * Let the model use `from`, a tensor of `file` of any type, for its tensor of that name. The file
 * stays the caller's and must outlive that use. All that is made of the tensor follows: a tied
 * head, angles, parts of it. from NULL: the model's own tensor again.
 * Fails, leaving the model as it was: STATUS_USAGE (a name the model has not), STATUS_FORMAT (other
 *        dimensions, a type or values that the tensor cannot have). The sentence is the reason.
 * Cost: O(tensors of its layer), of the model where it belongs to none.
 */
enum status model_swap(struct model *m, const char *name, const struct gguf_file *file,
                       const struct gguf_tensor *from, struct status_why *why);

/**
 * What is in the tensor's place has the bytes and the type of the model's own: what was made of
 * that serves again. Without it, other bytes of a file are new ones, whatever they are.
 */
void model_swap_is_own(struct model *m, const char *name);

/**
 * The first layer whose residual stream, as it enters, may be kept from before the tensor was
 * swapped: rows from there on are new. n_layers: the output norm or the head alone has it, or
 * nothing. Lower than the tensor's own layer where later layers use keys of earlier ones.
 */
size_t model_swap_stage(const struct model *m, const char *name);

/**
 * What its tensors are now, [gguf_n_tensors of its file]; and, later, the stage of all that are
 * something else: n_layers where none is, or only the head. A tensor that was given back is as
 * before.
 */
void model_swap_mark(const struct model *m, uint64_t *generations);
size_t model_swap_stage_since(const struct model *m, const uint64_t *generations);

/** What the model has for tensor i of its file's directory, whosever it is. */
struct model_in_force {
    const struct gguf_type_info *type;
    const void *data;
    uint64_t n_bytes;
    uint64_t n_scale_bytes; /* beyond them: of scales that lie apart */
    bool swapped;           /* it is another file's */
    bool unused;            /* it takes no part in the evaluation */
    size_t rows_of_token;   /* above 0: of it only so many rows for each token are read */
};
struct model_in_force model_in_force(const struct model *m, size_t i);
/** Whether a test is true of some stretch of memory that it lies in (gguf_tensor_any). */
bool model_in_force_any(const struct model *m, size_t i, bool (*test)(const void *data, size_t n));

/** Check that nothing wrote to the files of its tensors since. Fails: STATUS_CHANGED, STATUS_IO. */
enum status model_check_unchanged(const struct model *m, struct status_why *why);

#endif
