/** From PTX text to kernels: parse.c has declarations, parse_ins.c and parse_memory.c
 * instructions, builder.c what they need to know of a kernel. */
#ifndef TESTS_PTX_PARSE_H
#define TESTS_PTX_PARSE_H

#include "tests/ptx/program.h"
#include "tests/ptx/text.h"

/** Add a file's kernels and arrays. What is not understood ends the test: see text.h. */
void ptx_parse(struct ptx_program *program, const char *file);
void ptx_program_free(struct ptx_program *program);

struct ptx_label {
    struct ptx_word name;
    uint32_t target, line;
};

/** A kernel that is being read. */
struct ptx_builder {
    const struct ptx_program *program;
    struct ptx_kernel *kernel;
    struct ptx_text *text;
    struct ptx_word shared;              /* name of the shared memory that a launch sizes */
    struct ptx_label *labels, *branches; /* branches: target is the branch's own number */
    size_t n_labels, n_branches;
    size_t code_capacity, memory_capacity, operand_capacity;
    uint32_t *buckets, *next; /* constants by a hash of their value */
};

/** An operand as it is written; is_memory: what was in brackets. */
struct ptx_operand {
    struct ptx_word text;
    bool is_memory;
};

enum { PTX_MAX_OPERANDS = 16 };

/** A statement `@guard name operands;`. */
struct ptx_statement {
    struct ptx_word name;
    struct ptx_operand operands[PTX_MAX_OPERANDS];
    size_t n_operands;
};

/** Memory instructions; false: it is none. */
bool ptx_parse_memory(struct ptx_builder *b, const struct ptx_statement *s, struct ptx_ins *ins);
/** Read an instruction and add it to the kernel. */
void ptx_parse_instruction(struct ptx_builder *b);

/**
 * What would be in place of a kernel's i-th instruction if this were its text; nothing if that is
 * empty. Its operands are malloc()ed. Constants that it names are added to the kernel, of which no
 * warp may have registers yet.
 */
struct ptx_ins ptx_parse_change(const struct ptx_program *program, struct ptx_kernel *k, size_t i,
                                const char *text);

/** n_bytes: of the register (0: a predicate), as ptx_bank has it. */
uint32_t ptx_builder_constant(struct ptx_builder *b, uint64_t value, unsigned n_bytes);
/** The unit of a register, a number or an address. letter: as in ptx_form; it must fit. */
uint32_t ptx_builder_unit(struct ptx_builder *b, struct ptx_word w, char letter);
/** Bytes of the register that is named; 1 if it is none. */
unsigned ptx_builder_width(const struct ptx_builder *b, struct ptx_word w);
/** Note an operand of the next instruction. */
void ptx_builder_operand(struct ptx_builder *b, uint32_t unit);
void ptx_builder_open(struct ptx_builder *b);
/** Resolve labels, and free what only reading needed. */
void ptx_builder_close(struct ptx_builder *b);

#endif
