/**
 * Synthetic models of a given shape and type, for measuring speed and memory: their weights
 * are random, so what they predict means nothing, but all their numbers are finite.
 */
#ifndef BENCH_SYNTHETIC_H
#define BENCH_SYNTHETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct synthetic {
    const char *arch;  /* "llama", "qwen3", "gemma3", "qwen3moe"; NULL: llama */
    const char *shape; /* "tiny"; "1b", "8b": those of TinyLlama 1.1B and Llama 3 8B */
    /* A tensor type, or a mix as llama.cpp's quantiser makes it (see synthetic.c): "Q4_K_M",
     * "Q5_K_M". */
    const char *type;
    uint32_t n_vocab, n_layers; /* 0: the shape's; a vocabulary has 512 tokens or more */
    uint32_t n_experts;         /* of qwen3moe, 8 or more, of which 8 are used; 0: 128 */
    bool outliers;              /* norms make one of 32 columns 16 times as large */
};

/**
 * Write one to `path`.
 * Fails: STATUS_USAGE (shape, type or sizes that there are not), STATUS_MEMORY, STATUS_IO.
 */
enum status synthetic_write(const struct synthetic *model, const char *path,
                            struct status_why *why);

#endif
