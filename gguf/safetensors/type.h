/** Element types of safetensors files. */
#ifndef SAFETENSORS_TYPE_H
#define SAFETENSORS_TYPE_H

#include <stdint.h>

#include "base/text/string.h"

/** X(name in files, bits of an element) */
#define SAFETENSORS_TYPES(X)                                                                       \
    X(F64, 64)                                                                                     \
    X(F32, 32)                                                                                     \
    X(F16, 16)                                                                                     \
    X(BF16, 16)                                                                                    \
    X(F8_E4M3, 8)                                                                                  \
    X(F8_E5M2, 8)                                                                                  \
    X(F8_E8M0, 8)                                                                                  \
    X(F6_E2M3, 6)                                                                                  \
    X(F6_E3M2, 6)                                                                                  \
    X(F4, 4)                                                                                       \
    X(I64, 64)                                                                                     \
    X(I32, 32)                                                                                     \
    X(I16, 16)                                                                                     \
    X(I8, 8)                                                                                       \
    X(U64, 64)                                                                                     \
    X(U32, 32)                                                                                     \
    X(U16, 16)                                                                                     \
    X(U8, 8)                                                                                       \
    X(BOOL, 8)                                                                                     \
    X(C64, 64)

/** SAFETENSORS_F32, ... */
enum safetensors_type {
#define SAFETENSORS_TYPE(name, bits) SAFETENSORS_##name,
    SAFETENSORS_TYPES(SAFETENSORS_TYPE)
#undef SAFETENSORS_TYPE
        SAFETENSORS_N_TYPES
};

/** Its name as in files. */
const char *safetensors_type_name(enum safetensors_type type);
/** Bits of an element. */
unsigned safetensors_type_bits(enum safetensors_type type);
/** The type of a name; SAFETENSORS_N_TYPES: there is none. */
enum safetensors_type safetensors_type_find(const char *name);

#endif
