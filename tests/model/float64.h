/**
 * The forward pass of architecture llama in double precision, written from the formulas and
 * reading the GGUF file by itself: nothing of model/ is used, and of kernels/ only the scalar
 * decoders. One sequence at a time, no tiles, no blocks, no threads. The truth that the tests
 * compare with.
 */
#ifndef TESTS_MODEL_FLOAT64_H
#define TESTS_MODEL_FLOAT64_H

#include "gguf/meta.h"

struct float64_model;

/** Stops the program if the file is not a model that it understands. file: must outlive it. */
struct float64_model *float64_open(const struct gguf_file *file);
void float64_close(struct float64_model *m);

size_t float64_width(const struct float64_model *m);
size_t float64_vocab(const struct float64_model *m);

/**
 * From now on let every product carry a random error of the size that a chain of multiply-adds
 * with this unit roundoff would make (0: none): what tolerances are derived from.
 */
void float64_simulate_rounding(struct float64_model *m, double unit, uint64_t seed);

/** hidden[i] = outputnorm(residual stream of token i), [n, D], positions 0 .. n - 1. */
void float64_hidden(struct float64_model *m, const int32_t *tokens, size_t n, double *hidden);

/** ln p of every token after one hidden row; log_probs: [V]. */
void float64_log_probs(struct float64_model *m, const double *hidden, double *log_probs);

#endif
