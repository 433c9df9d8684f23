#include <stdlib.h>
#include <string.h>

#include "tests/ptx/parse.h"

enum { BUCKETS = 1024, NONE = 0xffffffff };

void ptx_builder_open(struct ptx_builder *b)
{
    b->buckets = ptx_grow(NULL, BUCKETS * sizeof *b->buckets);
    memset(b->buckets, 0xff, BUCKETS * sizeof *b->buckets);
    b->kernel->n_units = 1;
}

uint32_t ptx_builder_constant(struct ptx_builder *b, uint64_t value, unsigned n_bytes)
{
    struct ptx_kernel *k = b->kernel;
    if (n_bytes > 0 && n_bytes < 8)
        value &= ((uint64_t)1 << 8 * n_bytes) - 1;
    uint32_t *first = &b->buckets[(value * 0x9e3779b97f4a7c15u) >> 54];
    for (uint32_t i = *first; i != NONE; i = b->next[i]) {
        if (k->constants[i].value == value && k->constants[i].n_bytes == n_bytes)
            return k->constants[i].unit;
    }
    size_t n = k->n_constants++;
    k->constants = ptx_grow(k->constants, k->n_constants * sizeof *k->constants);
    b->next = ptx_grow(b->next, k->n_constants * sizeof *b->next);
    k->constants[n] = (struct ptx_constant){value, k->n_units, (uint8_t)n_bytes};
    k->n_units += ptx_units_of(n_bytes);
    b->next[n] = *first;
    *first = (uint32_t)n;
    return k->constants[n].unit;
}

/** The register's bank and number in it; NULL if it is not a register of the kernel. */
static const struct ptx_bank *find_register(const struct ptx_builder *b, struct ptx_word w,
                                            uint32_t *number)
{
    size_t n = 0;
    while (n < w.n && (w.at[n] < '0' || w.at[n] > '9'))
        n++;
    for (size_t i = 0; i < b->kernel->n_banks; i++) {
        const struct ptx_bank *bank = &b->kernel->banks[i];
        if (strlen(bank->prefix) != n || memcmp(bank->prefix, w.at, n) != 0)
            continue;
        *number = n < w.n ? (uint32_t)strtoul(w.at + n, NULL, 10) : 0;
        return *number < bank->count ? bank : NULL;
    }
    return NULL;
}

static unsigned bytes_of_letter(char letter)
{
    return letter == 'p' ? 0 : letter == 'h' ? 2 : letter == 'w' ? 4 : 8;
}

static uint32_t special_unit(const struct ptx_builder *b, struct ptx_word w)
{
    static const char *const names[PTX_N_SPECIAL] = {
        [PTX_TID] = "%tid.x",
        [PTX_CTAID] = "%ctaid.x",
        [PTX_NTID] = "%ntid.x",
        [PTX_LANEID] = "%laneid",
    };
    for (size_t i = 0; i < PTX_N_SPECIAL; i++) {
        if (ptx_word_is(w, names[i]))
            return b->kernel->specials[i];
    }
    ptx_text_fail(b->text, "no register %.*s", (int)w.n, w.at);
}

/** The value of a number, or of a name's address. */
static uint64_t value_of(const struct ptx_builder *b, struct ptx_word w)
{
    if (ptx_word_begins(w, "0f") || ptx_word_begins(w, "0d"))
        return strtoull(w.at + 2, NULL, 16);
    if (*w.at == '-')
        return (uint64_t)strtoll(w.at, NULL, 0);
    if (*w.at >= '0' && *w.at <= '9')
        return strtoull(w.at, NULL, 0);
    if (b->shared.n == w.n && memcmp(w.at, b->shared.at, w.n) == 0)
        return PTX_BASE;
    if (ptx_word_begins(w, "__local_depot"))
        return PTX_BASE;
    size_t n = strlen(b->kernel->name);
    if (w.n > n && memcmp(w.at, b->kernel->name, n) == 0 &&
        memcmp(w.at + n, "_param_0", w.n - n) == 0)
        return 0;
    for (size_t i = 0; i < b->program->n_arrays; i++) {
        if (ptx_word_is(w, b->program->arrays[i].name))
            return (uint64_t)(uintptr_t)b->program->arrays[i].bytes;
    }
    ptx_text_fail(b->text, "unknown name %.*s", (int)w.n, w.at);
}

uint32_t ptx_builder_unit(struct ptx_builder *b, struct ptx_word w, char letter)
{
    unsigned n_bytes = bytes_of_letter(letter);
    if (w.n == 0)
        ptx_text_fail(b->text, "an operand is missing");
    if (*w.at != '%')
        return ptx_builder_constant(b, value_of(b, w), n_bytes);
    uint32_t number;
    const struct ptx_bank *bank = find_register(b, w, &number);
    if (!bank) {
        uint32_t unit = special_unit(b, w);
        if (n_bytes != 4)
            ptx_text_fail(b->text, "%.*s has 32 bits", (int)w.n, w.at);
        return unit;
    }
    if (bank->n_bytes != n_bytes)
        ptx_text_fail(b->text, "%.*s has %u bytes, not %u", (int)w.n, w.at, bank->n_bytes, n_bytes);
    return bank->unit + number * ptx_units_of(n_bytes);
}

unsigned ptx_builder_width(const struct ptx_builder *b, struct ptx_word w)
{
    uint32_t number;
    const struct ptx_bank *bank = find_register(b, w, &number);
    return bank ? bank->n_bytes : 1;
}

void ptx_builder_operand(struct ptx_builder *b, uint32_t unit)
{
    struct ptx_kernel *k = b->kernel;
    if (k->n_operands == b->operand_capacity) {
        b->operand_capacity = 2 * b->operand_capacity + 256;
        k->operands = ptx_grow(k->operands, b->operand_capacity * sizeof *k->operands);
    }
    k->operands[k->n_operands++] = unit;
}

static uint32_t label_target(const struct ptx_builder *b, const struct ptx_label *branch)
{
    for (size_t i = 0; i < b->n_labels; i++) {
        const struct ptx_word name = b->labels[i].name;
        if (name.n == branch->name.n && memcmp(name.at, branch->name.at, name.n) == 0)
            return b->labels[i].target;
    }
    b->text->line = branch->line;
    ptx_text_fail(b->text, "no label %.*s", (int)branch->name.n, branch->name.at);
}

void ptx_builder_close(struct ptx_builder *b)
{
    struct ptx_kernel *k = b->kernel;
    for (size_t i = 0; i < b->n_branches; i++)
        k->code[b->branches[i].target].target = label_target(b, &b->branches[i]);
    const uint32_t *at = k->operands;
    for (size_t i = 0; i < k->n_code; i++) {
        k->code[i].at = at;
        at += k->code[i].n_out + k->code[i].n_in;
    }
    k->hits = ptx_grow(NULL, (k->n_code + 1) * sizeof *k->hits);
    memset(k->hits, 0, (k->n_code + 1) * sizeof *k->hits);
    free(b->labels);
    free(b->branches);
    free(b->buckets);
    free(b->next);
}
