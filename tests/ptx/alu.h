/**
 * How operations are written: a loop over lanes for each type. The files that include this are
 * compiled twice; PTX_VARIANT is _base or _avx2.
 */
#ifndef TESTS_PTX_ALU_H
#define TESTS_PTX_ALU_H

#include <math.h>
#include <string.h>

#include "tests/ptx/forms.h"

#ifdef __clang__
#define PTX_IVDEP _Pragma("clang loop vectorize(assume_safety)")
#else
#define PTX_IVDEP _Pragma("GCC ivdep")
#endif

#define PTX_ALL         0xffffffffu
#define PTX_JOIN(a, b)  a##b
#define PTX_NAME2(a, b) PTX_JOIN(a, b)
#define PTX_NAME(a)     PTX_NAME2(a, PTX_VARIANT)

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef float f32;
typedef double f64;

/** `body` for each lane i of the mask. A result may be where an operand of the same lane is. */
#define PTX_EACH(body)                                                                             \
    if (mask == PTX_ALL) {                                                                         \
        PTX_IVDEP                                                                                  \
        for (unsigned i = 0; i < PTX_LANES; i++) {                                                 \
            body                                                                                   \
        }                                                                                          \
    } else {                                                                                       \
        for (uint32_t rest = mask; rest; rest &= rest - 1) {                                       \
            unsigned i = (unsigned)__builtin_ctz(rest);                                            \
            body                                                                                   \
        }                                                                                          \
    }

#define PTX_REG(type, k) ((type *)ptx_register(file, at[k]))

/** Functions of one to three operands: `e` is an expression of a, b and c. */
#define PTX_OP1(name, D, A, e)                                                                     \
    static void name(uint8_t *file, const uint32_t *at, uint32_t mask)                             \
    {                                                                                              \
        D *d = PTX_REG(D, 0);                                                                      \
        const A *pa = PTX_REG(A, 1);                                                               \
        PTX_EACH(A a = pa[i]; d[i] = (D)(e);)                                                      \
    }
#define PTX_OP2(name, D, A, B, e)                                                                  \
    static void name(uint8_t *file, const uint32_t *at, uint32_t mask)                             \
    {                                                                                              \
        D *d = PTX_REG(D, 0);                                                                      \
        const A *pa = PTX_REG(A, 1);                                                               \
        const B *pb = PTX_REG(B, 2);                                                               \
        PTX_EACH(A a = pa[i]; B b = pb[i]; d[i] = (D)(e);)                                         \
    }
#define PTX_OP3(name, D, A, B, C, e)                                                               \
    static void name(uint8_t *file, const uint32_t *at, uint32_t mask)                             \
    {                                                                                              \
        D *d = PTX_REG(D, 0);                                                                      \
        const A *pa = PTX_REG(A, 1);                                                               \
        const B *pb = PTX_REG(B, 2);                                                               \
        const C *pc = PTX_REG(C, 3);                                                               \
        PTX_EACH(A a = pa[i]; B b = pb[i]; C c = pc[i]; d[i] = (D)(e);)                            \
    }
/** A comparison: bits of a predicate, all lanes at a time. */
#define PTX_SETP(name, A, e)                                                                       \
    static void name(uint8_t *file, const uint32_t *at, uint32_t mask)                             \
    {                                                                                              \
        const A *pa = PTX_REG(A, 1), *pb = PTX_REG(A, 2);                                          \
        uint32_t bits = 0, *d = PTX_REG(uint32_t, 0);                                              \
        for (unsigned i = 0; i < PTX_LANES; i++) {                                                 \
            A a = pa[i], b = pb[i];                                                                \
            bits |= (uint32_t)(e) << i;                                                            \
        }                                                                                          \
        *d = (*d & ~mask) | (bits & mask);                                                         \
    }

#endif
