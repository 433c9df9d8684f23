/* Loads, stores, atomics and copies, whose names are put together from many parts. */
#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parse.h"

struct type {
    const char *name;
    uint8_t n_bytes;
    bool is_signed;
};

static const struct type types[] = {
    {"u8", 1},        {"b8", 1},        {"s8", 1, true}, {"u16", 2}, {"b16", 2},
    {"s16", 2, true}, {"u32", 4},       {"b32", 4},      {"f32", 4}, {"s32", 4, true},
    {"u64", 8},       {"s64", 8, true}, {"b64", 8},      {"f64", 8},
};

/** The next part of a name, up to a dot; empty at its end. */
static struct ptx_word next_part(struct ptx_word *name)
{
    struct ptx_word part = {name->at, 0};
    while (part.n < name->n && part.at[part.n] != '.')
        part.n++;
    size_t over = part.n < name->n ? part.n + 1 : part.n;
    name->at += over;
    name->n -= over;
    return part;
}

static bool take_type(struct ptx_word part, struct ptx_memory *m)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (!ptx_word_is(part, types[i].name))
            continue;
        m->elem_bytes = types[i].n_bytes;
        m->is_signed = types[i].is_signed;
        return true;
    }
    return false;
}

static bool take_part(struct ptx_word part, struct ptx_memory *m)
{
    if (ptx_word_is(part, "global"))
        m->space = PTX_GLOBAL;
    else if (ptx_word_is(part, "shared"))
        m->space = PTX_SHARED;
    else if (ptx_word_is(part, "param"))
        m->space = PTX_PARAM;
    else if (ptx_word_is(part, "local"))
        m->space = PTX_LOCAL;
    else if (ptx_word_is(part, "nc"))
        m->read_only = true;
    else if (ptx_word_is(part, "v2"))
        m->n_elems = 2;
    else if (ptx_word_is(part, "v4"))
        m->n_elems = 4;
    else if (ptx_word_is(part, "max"))
        m->is_max = true;
    else
        return ptx_word_is(part, "add") || take_type(part, m);
    return true;
}

/** `[register+offset]`, `[name+offset]`: the register is an operand. */
static void take_address(struct ptx_builder *b, const struct ptx_operand *o, struct ptx_memory *m,
                         int64_t *offset)
{
    if (!o->is_memory)
        ptx_text_fail(b->text, "an address is expected");
    struct ptx_word base = o->text;
    const char *plus = memchr(base.at, '+', base.n);
    if (plus) {
        base.n = (size_t)(plus - base.at);
        *offset = strtoll(plus + 1, NULL, 0);
    }
    unsigned width = ptx_builder_width(b, base);
    m->address_bytes = width == 4 ? 4 : 8;
    ptx_builder_operand(b, ptx_builder_unit(b, base, width == 4 ? 'w' : 'd'));
}

/** A register that holds an element, which it may be wider than; or a constant. */
static void take_value(struct ptx_builder *b, const struct ptx_operand *o, struct ptx_memory *m)
{
    unsigned width = ptx_builder_width(b, o->text);
    if (width == 1)
        width = m->elem_bytes < 2 ? 2 : m->elem_bytes;
    if (width < m->elem_bytes || (m->reg_bytes && m->reg_bytes != width))
        ptx_text_fail(b->text, "registers of %u bytes for elements of %u", width, m->elem_bytes);
    m->reg_bytes = (uint8_t)width;
    ptx_builder_operand(b, ptx_builder_unit(b, o->text, width == 2 ? 'h' : width == 4 ? 'w' : 'd'));
}

/** cp.async.ca.shared.global [to], [from], bytes; */
static void parse_copy(struct ptx_builder *b, const struct ptx_statement *s, struct ptx_ins *ins,
                       struct ptx_memory *m)
{
    if (s->n_operands != 3)
        ptx_text_fail(b->text, "copies of part of the bytes are not supported");
    ins->kind = PTX_COPY;
    m->space = PTX_GLOBAL;
    ins->n_in = 2;
    take_address(b, &s->operands[0], m, &m->offset);
    if (m->address_bytes != 4)
        ptx_text_fail(b->text, "shared memory by 32 bits only");
    take_address(b, &s->operands[1], m, &m->offset2);
    m->elem_bytes = (uint8_t)strtoul(s->operands[2].text.at, NULL, 0);
}

/** ldmatrix.sync.aligned.m8n8.x4(.trans).shared.b16 {registers}, [address]; */
static void parse_matrix(struct ptx_builder *b, const struct ptx_statement *s, struct ptx_ins *ins,
                         struct ptx_memory *m)
{
    struct ptx_word name = s->name;
    while (name.n > 0)
        m->is_turned |= ptx_word_is(next_part(&name), "trans");
    ins->kind = PTX_MATRIX;
    m->space = PTX_SHARED;
    m->elem_bytes = 4;
    m->n_elems = ins->n_out = (uint8_t)(s->n_operands - 1);
    ins->n_in = 1;
    for (size_t i = 0; i < ins->n_out; i++)
        take_value(b, &s->operands[i], m);
    take_address(b, &s->operands[ins->n_out], m, &m->offset);
}

static void parse_access(struct ptx_builder *b, const struct ptx_statement *s, struct ptx_ins *ins,
                         struct ptx_memory *m)
{
    struct ptx_word name = s->name, part;
    next_part(&name);
    while ((part = next_part(&name)).n > 0) {
        if (!take_part(part, m))
            ptx_text_fail(b->text, "unknown instruction %.*s", (int)s->name.n, s->name.at);
    }
    if (m->space == PTX_GENERIC)
        ptx_text_fail(b->text, "an address of any space: that is not supported");
    size_t n_values = ins->kind == PTX_ATOMIC ? 1 : m->n_elems, n_out = s->n_operands - 1;
    if (ins->kind == PTX_LOAD
            ? n_out != n_values
            : s->n_operands - (ins->kind == PTX_ATOMIC && n_out == 2) != n_values + 1)
        ptx_text_fail(b->text, "%zu operands", s->n_operands);
    n_out = ins->kind == PTX_LOAD ? n_values : s->n_operands - 1 - n_values;
    for (size_t i = 0; i < s->n_operands; i++) {
        if (i == n_out)
            take_address(b, &s->operands[i], m, &m->offset);
        else
            take_value(b, &s->operands[i], m);
    }
    ins->n_out = (uint8_t)n_out;
    ins->n_in = (uint8_t)(s->n_operands - n_out);
}

static bool kind_of(struct ptx_word name, struct ptx_ins *ins)
{
    if (ptx_word_begins(name, "ld."))
        ins->kind = PTX_LOAD;
    else if (ptx_word_begins(name, "st."))
        ins->kind = PTX_STORE;
    else if (ptx_word_begins(name, "atom.") || ptx_word_begins(name, "red."))
        ins->kind = PTX_ATOMIC;
    else
        return false;
    return true;
}

bool ptx_parse_memory(struct ptx_builder *b, const struct ptx_statement *s, struct ptx_ins *ins)
{
    struct ptx_kernel *k = b->kernel;
    struct ptx_memory m = {.n_elems = 1};
    if (kind_of(s->name, ins))
        parse_access(b, s, ins, &m);
    else if (ptx_word_begins(s->name, "cp.async.c") && !ptx_word_begins(s->name, "cp.async.commit"))
        parse_copy(b, s, ins, &m);
    else if (ptx_word_begins(s->name, "ldmatrix."))
        parse_matrix(b, s, ins, &m);
    else
        return false;
    if (ins->kind == PTX_ATOMIC && m.elem_bytes != 4)
        ptx_text_fail(b->text, "atomics of 32 bits only");
    if (k->n_memory == b->memory_capacity) {
        b->memory_capacity = 2 * b->memory_capacity + 64;
        k->memory = ptx_grow(k->memory, b->memory_capacity * sizeof *k->memory);
    }
    ins->memory = (uint32_t)k->n_memory;
    k->memory[k->n_memory++] = m;
    return true;
}
