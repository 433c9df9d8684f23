/**
 * Compiled kernels, decoded: what nvcc wrote as PTX, as compact instructions (parse.h makes them).
 *
 * A warp's registers are one block of memory, its register file, which is divided into units of 64
 * bytes. A register begins at a unit and has a value for each of the 32 lanes: 16 bits take one
 * unit, 32 bits two, 64 bits four. A predicate is 32 bits, one for each lane, and takes one unit.
 * Constants are registers too. Unit 0 is no register.
 */
#ifndef TESTS_PTX_PROGRAM_H
#define TESTS_PTX_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** PTX_BASE: the first address of shared memory, and of a thread's local memory: not 0. */
enum { PTX_LANES = 32, PTX_UNIT = 64, PTX_BASE = 1024 };

/** Instructions that the interpreter treats alike. */
enum ptx_kind {
    PTX_ALU,
    PTX_LOAD,
    PTX_STORE,
    PTX_ATOMIC,
    PTX_COPY,        /* cp.async */
    PTX_COPY_COMMIT, /* ends a group of copies */
    PTX_COPY_WAIT,   /* an operand: how many groups may be left; none: 0 */
    PTX_BRANCH,
    PTX_BARRIER,
    PTX_WARP_BARRIER,
    PTX_COLLECTIVE, /* all lanes of a warp together */
    PTX_MATRIX,     /* ldmatrix */
    PTX_RETURN
};

enum ptx_memory_space {
    PTX_GENERIC /* unsupported */,
    PTX_GLOBAL,
    PTX_SHARED,
    PTX_PARAM,
    PTX_LOCAL
};

/** at: where the operands are, in units: results first. mask: the lanes that take part. */
typedef void ptx_alu_fn(uint8_t *file, const uint32_t *at, uint32_t mask);

/** A memory instruction; what is loaded and stored has n_elems elements of elem_bytes. */
struct ptx_memory {
    uint8_t
        space; /* enum ptx_memory_space; PTX_COPY: of the source, whose target is shared memory */
    uint8_t elem_bytes, n_elems;
    uint8_t reg_bytes;     /* of a register that holds an element */
    uint8_t address_bytes; /* of the register that holds the address */
    bool is_signed, read_only;
    bool is_max;     /* PTX_ATOMIC: the larger of both, rather than the sum */
    bool is_turned;  /* PTX_MATRIX: columns rather than rows */
    int64_t offset;  /* that is added to the address */
    int64_t offset2; /* PTX_COPY: to that of the source */
    uint32_t hint;   /* the allocation of the last access: see space.h */
};

struct ptx_ins {
    const uint32_t *at; /* the operands' units: results, then what is read */
    ptx_alu_fn *alu;    /* PTX_ALU and PTX_COLLECTIVE */
    uint8_t kind;       /* enum ptx_kind */
    uint8_t n_out, n_in;
    bool guard_not;
    uint32_t guard;  /* a predicate's unit, or 0 */
    uint32_t target; /* PTX_BRANCH: number of an instruction */
    uint32_t memory; /* PTX_LOAD ... PTX_COPY, PTX_MATRIX: number in the kernel's list */
    uint32_t line;   /* of the PTX file */
};

/** A value that some instruction names. */
struct ptx_constant {
    uint64_t value;
    uint32_t unit;
    uint8_t n_bytes; /* of a register that holds it; 0: a predicate */
};

/** Registers of one type, `%r<9>`: `count` of them side by side. */
struct ptx_bank {
    char prefix[8];
    uint32_t count, unit;
    uint8_t n_bytes; /* 0: predicates */
};

enum { PTX_MAX_BANKS = 8 };

/** Registers that the hardware fills. */
enum ptx_special { PTX_TID, PTX_CTAID, PTX_NTID, PTX_LANEID, PTX_N_SPECIAL };

struct ptx_kernel {
    char *name; /* as it was compiled */
    const char *file;
    uint32_t line;
    size_t param_bytes, local_bytes; /* local_bytes: of each thread */
    uint32_t max_threads;            /* .maxntid */
    struct ptx_ins *code;
    size_t n_code;
    struct ptx_memory *memory;
    size_t n_memory;
    uint32_t *operands; /* where ptx_ins.at points */
    size_t n_operands;
    struct ptx_bank banks[PTX_MAX_BANKS];
    size_t n_banks;
    struct ptx_constant *constants;
    size_t n_constants;
    uint32_t specials[PTX_N_SPECIAL]; /* their units */
    uint32_t n_register_units;        /* those before constants */
    uint32_t n_units;
    uint64_t *hits; /* how often a warp came to each instruction and some lane took part */
};

/** An array in global memory that the program brings along. */
struct ptx_array {
    char *name;
    uint8_t *bytes;
    size_t n_bytes;
};

struct ptx_program {
    struct ptx_kernel *kernels;
    size_t n_kernels;
    struct ptx_array *arrays;
    size_t n_arrays;
};

static inline void *ptx_register(uint8_t *file, uint32_t unit)
{
    return file + (size_t)unit * PTX_UNIT;
}

/** Units of a register of so many bytes. */
static inline uint32_t ptx_units_of(unsigned n_bytes)
{
    return n_bytes <= 2 ? 1 : n_bytes / 2;
}

#endif
