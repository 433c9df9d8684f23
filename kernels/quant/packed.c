#include "kernels/quant/packed.h"

#include <string.h>

#include "kernels/quant/apart.h"
#include "kernels/quant/ik/plain.h"

enum { RUN = 32 /* columns of a block */, KNOWN = 64 /* scales of a row that are kept */ };

static unsigned largest_of(const struct gguf_words *words)
{
    return (1u << words->bits) - 1;
}

/** How far up a word its number i lies. */
static unsigned shift_of(const struct gguf_words *words, size_t i)
{
    size_t place = words->turned ? i / 2 + i % 2 * gguf_words_each(words) / 2 : i;
    return (unsigned)place * words->bits;
}

static unsigned number_at(const struct gguf_words *words, size_t row, size_t col)
{
    size_t i = (words->of_rows ? row : col) % gguf_words_each(words);
    return kern_load_u32(gguf_words_at(words, row, col)) >> shift_of(words, i) & largest_of(words);
}

/** The numbers of a word of 4 bits, a byte each. */
static void spread(uint32_t word, uint8_t *to)
{
    uint64_t x = word;
    x = (x | x << 16) & 0x0000ffff0000ffffu;
    x = (x | x << 8) & 0x00ff00ff00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0f0f0f0f0fu;
    for (int i = 0; i < 8; i++)
        to[i] = (uint8_t)(x >> 8 * i);
}

/** The codes of a block, from a column on that is a multiple of 32. */
static void read_codes(const struct gguf_words *words, size_t row, size_t col, uint8_t *to)
{
    const uint8_t *at = gguf_words_at(words, row, col);
    if (words->of_rows) {
        unsigned shift = shift_of(words, row % gguf_words_each(words)), mask = largest_of(words);
        for (size_t i = 0; i < RUN; i++, at += words->col_step)
            to[i] = (uint8_t)(kern_load_u32(at) >> shift & mask);
    } else if (words->bits == 4) {
        for (size_t i = 0; i < RUN; i += 8, at += words->col_step)
            spread(kern_load_u32(at), to + i);
    } else {
        for (size_t i = 0; i < RUN; i += 4, at += words->col_step)
            memcpy(to + i, at, 4);
    }
}

/** Where the codes of rows lie, and which row of them is row 0. */
static struct gguf_words words_of(const struct kern_rows *rows, size_t *first_row)
{
    const struct gguf_packed *packed = rows->scales.packed;
    *first_row = packed ? rows->scales.first_row : 0;
    if (packed)
        return packed->codes;
    uint32_t bits = gguf_type_info((uint32_t)rows->type)->packed_bits;
    return (struct gguf_words){
        .data = rows->data, .row_step = rows->row_bytes, .col_step = 4, .bits = (uint8_t)bits};
}

/** What codes become numbers with. */
struct factor {
    float scale;
    int zero;
};

static int middle_of(unsigned bits)
{
    return 1 << (bits - 1);
}

/** Scale i of a row, and its zero point. */
static struct factor factor_at(const struct kern_rows *rows, size_t row, size_t i)
{
    const struct gguf_scales *s = &rows->scales;
    const struct gguf_packed *p = s->packed;
    unsigned bits = gguf_type_info((uint32_t)rows->type)->packed_bits;
    struct factor f = {1, middle_of(bits)};
    if (p && p->zeros.data)
        f.zero = (int)number_at(&p->zeros, s->first_row + row, i) + p->zero_more;
    if (s->data)
        f.scale = kern_scale_value(
            s->type, p ? (const uint8_t *)s->data + (s->first_row + row) * p->scale_row_step +
                             i * p->scale_col_step
                       : gguf_scales_row(s, row) + i * gguf_scale_bytes(s->type));
    return f;
}

static size_t group_of(const struct gguf_scales *scales, size_t col)
{
    const struct gguf_packed *packed = scales->packed;
    if (packed && packed->groups)
        return packed->groups[col];
    return scales->data ? col / scales->block_cols : 0;
}

/** A block of Q8_KV; differences are within its 8 bits. */
static void put_block(struct factor f, const uint8_t *codes, struct kern_block_q8_kv *to)
{
    kern_store_float(to->d, f.scale);
    for (size_t i = 0; i < RUN; i++)
        to->qs[i] = (uint8_t)(codes[i] - f.zero);
}

/** Scales of a row that columns in any order have had, by the last bits of their numbers. */
struct known {
    size_t group[KNOWN];
    struct factor factor[KNOWN];
};

static void put_values(const struct kern_rows *rows, size_t row, size_t col, const uint8_t *codes,
                       struct known *known, uint8_t *to)
{
    for (size_t i = 0; i < RUN; i++, to += sizeof(float)) {
        size_t group = group_of(&rows->scales, col + i), at = group % KNOWN;
        if (known->group[at] != group)
            known->factor[at] = factor_at(rows, row, group);
        known->group[at] = group;
        kern_store_float(to,
                         known->factor[at].scale * (float)((int)codes[i] - known->factor[at].zero));
    }
}

void kern_packed_blocks(const struct kern_rows *rows, size_t row, size_t first_col, size_t n,
                        uint8_t *to)
{
    bool values = kern_quant_find(rows->type)->plain == GGUF_TYPE_F32;
    size_t first_row, last = SIZE_MAX;
    const struct gguf_words words = words_of(rows, &first_row);
    struct factor factor = {0};
    struct known known;
    for (size_t i = 0; values && i < KNOWN; i++)
        known.group[i] = SIZE_MAX;
    for (size_t col = first_col; col < first_col + n; col += RUN) {
        uint8_t codes[RUN];
        read_codes(&words, first_row + row, col, codes);
        if (values) {
            put_values(rows, row, col, codes, &known, to);
            to += RUN * sizeof(float);
            continue;
        }
        size_t group = group_of(&rows->scales, col);
        if (group != last)
            factor = factor_at(rows, row, group);
        last = group;
        put_block(factor, codes, (struct kern_block_q8_kv *)(void *)to);
        to += sizeof(struct kern_block_q8_kv);
    }
}

bool kern_packed_find_wrong(const struct gguf_scales *scales, size_t n_rows,
                            struct kern_packed_zero *found)
{
    const struct gguf_packed *p = scales->packed;
    if (!p || !p->zeros.data || (!p->symmetric && p->zero_more == 0))
        return false;
    int largest = (int)largest_of(&p->zeros), middle = middle_of(p->zeros.bits);
    for (size_t row = 0; row < n_rows; row++)
        for (size_t i = 0; i < scales->n_cols; i++) {
            int value = (int)number_at(&p->zeros, scales->first_row + row, i);
            if (p->symmetric ? value + p->zero_more != middle : value == largest) {
                *found = (struct kern_packed_zero){row, i, value};
                return true;
            }
        }
    return false;
}
