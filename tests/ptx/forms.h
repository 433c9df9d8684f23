/** The instructions that are known: anything else stops the test that meets it. */
#ifndef TESTS_PTX_FORMS_H
#define TESTS_PTX_FORMS_H

#include "tests/ptx/program.h"

/**
 * operands: a letter for each, which says the register's width: p a predicate, h 16 bits, w 32,
 * d 64. Results come first and end with `>`.
 */
struct ptx_form {
    const char *name; /* with all its suffixes */
    const char *operands;
    ptx_alu_fn *alu;
    enum ptx_kind kind;
};

struct ptx_forms {
    const struct ptx_form *rows;
    size_t n;
};

#define PTX_FORMS(name, list) const struct ptx_forms name = {list, sizeof(list) / sizeof *(list)}

/** NULL: there is none. Loads, stores, atomics and copies are read by parse_memory.c. */
const struct ptx_form *ptx_form_find(const char *name);

/** Arithmetic is compiled twice: for any x86-64, and with AVX2 and FMA, which is much faster. */
extern const struct ptx_forms ptx_integers_base, ptx_integers_avx2;
extern const struct ptx_forms ptx_floats_base, ptx_floats_avx2;
extern const struct ptx_forms ptx_conversions_base, ptx_conversions_avx2;
extern const struct ptx_forms ptx_collectives_base, ptx_collectives_avx2;

#endif
