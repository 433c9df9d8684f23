/** What a model's file says of how it was quantised. */
#ifndef CLI_OUTPUT_QUANTISATION_H
#define CLI_OUTPUT_QUANTISATION_H

#include "gguf/meta.h"

/**
 * The name that people have for the mixture of types: "Q4_K_M". It is that of general.file_type
 * (llama.cpp's numbers); but tools that change the tensors of a file often leave that key alone,
 * so a file that calls itself after one type, and has most of its weights in another, is named
 * after the latter, and so is one without the key, or with an unknown number. Static storage.
 */
const char *cli_quantisation(const struct gguf_file *file);

#endif
