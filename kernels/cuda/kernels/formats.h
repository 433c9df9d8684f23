/**
 * The block formats that a device decodes: of the table of types (gguf/type_list.h) all whose rows
 * are not taken out of bundles as blocks of another one. ROW takes the table's columns.
 */
#ifndef KERNELS_CUDA_KERNELS_FORMATS_H
#define KERNELS_CUDA_KERNELS_FORMATS_H

#include "gguf/type_list.h"
#include "kernels/quant/formats.h"
#include "kernels/quant/ik/formats.h"

/** Formats of single elements: kern_<name>_row() decodes. */
#define KERN_DECODE_FLOATS(ROW)                                                                    \
    GGUF_TYPES(ROW, GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE, GGUF_NO_TYPE)

/** Formats of blocks, as kern_rows_blocks() gives them: kern_<name>_group() decodes 32 elements. */
#define KERN_DECODE_BLOCKS(ROW) GGUF_TYPES(GGUF_NO_TYPE, ROW, ROW, GGUF_NO_TYPE, ROW)

#endif
