/**
 * Small random models in memory, with any feature that a GGUF file of architecture llama may
 * have, and a SentencePiece vocabulary just large enough to be opened.
 */
#ifndef TESTS_HARNESS_TINY_MODEL_H
#define TESTS_HARNESS_TINY_MODEL_H

#include <stdbool.h>

#include "gguf/type.h"
#include "tests/harness/gguf_writer.h"

/** Zero means: as in the comment, or without. The letters are those of kernels/types.h. */
struct tiny_model_options {
    uint64_t seed;
    uint32_t n_layers;   /* L: 2 */
    uint32_t n_embd;     /* D: 64 */
    uint32_t n_ff;       /* F: 96 */
    uint32_t n_vocab;    /* V: 288, the least is 259 */
    uint32_t n_heads;    /* H: 4 */
    uint32_t n_kv_heads; /* G: 2 */
    uint32_t head_size;  /* d: no key, D / H */
    uint32_t n_rot;      /* no key, d */
    uint32_t n_experts, n_experts_used;
    bool split_experts;  /* a tensor for each expert, as old files have */
    bool vary_layers;    /* every odd layer has half of H and G, and 3/2 of F */
    enum gguf_type type; /* of the projections and the head; 0 is F32 */
    bool biases;         /* on q, k, v, output and the (dense) feed-forward */
    bool fused_qkv;
    bool tied_head;
    bool scales; /* .scale, in odd layers .weight.scale, and .input_scale beside every projection */
    bool rope_factors;
    bool long_factors; /* two lists of them; see rope_original_ctx */
    uint32_t sliding_window;
    const char *rope_scaling; /* no key */
    float rope_factor;        /* no key; 4 where there is a rope_scaling */
    uint32_t rope_original_ctx;
    float rope_freq_base, rope_attn_factor; /* no key */
    /* Ways to break it: names of a key or tensor. */
    const char *skip;    /* left out */
    const char *reshape; /* gets one row (a vector: one element) too many */
    const char *add_tensor;
    const char *add_key; /* a u32 */
};

/** A GGUF file in memory; free(data). Stops the program when there is no memory. */
struct tiny_model {
    void *data;
    size_t n_bytes;
};
struct tiny_model tiny_model_make(const struct tiny_model_options *options);

/** The keys of its vocabulary, of n tokens, 259 or more. */
void tiny_model_put_vocabulary(struct gguf_writer *writer, size_t n);

#endif
