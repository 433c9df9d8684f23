/** A value of a key of a GGUF file, on its way to a line. */
#ifndef CLI_OUTPUT_VALUE_H
#define CLI_OUTPUT_VALUE_H

#include "gguf/gguf.h"

/** Print it: numbers with all their digits, strings escaped, the first elements of an array. */
void cli_print_value(const struct gguf_kv *kv);

#endif
