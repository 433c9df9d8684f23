#include "gguf/about/quantisation.h"

#include <stdio.h>
#include <string.h>

#include "base/text/words.h"

/* By general.file_type. */
static const char *const file_types[] = {
    [0] = "F32",      [1] = "F16",      [2] = "Q4_0",    [3] = "Q4_1",    [7] = "Q8_0",
    [8] = "Q5_0",     [9] = "Q5_1",     [10] = "Q2_K",   [11] = "Q3_K_S", [12] = "Q3_K_M",
    [13] = "Q3_K_L",  [14] = "Q4_K_S",  [15] = "Q4_K_M", [16] = "Q5_K_S", [17] = "Q5_K_M",
    [18] = "Q6_K",    [19] = "IQ2_XXS", [20] = "IQ2_XS", [21] = "Q2_K_S", [22] = "IQ3_XS",
    [23] = "IQ3_XXS", [24] = "IQ1_S",   [25] = "IQ4_NL", [26] = "IQ3_S",  [27] = "IQ3_M",
    [28] = "IQ2_S",   [29] = "IQ2_M",   [30] = "IQ4_XS", [31] = "IQ1_M",  [32] = "BF16",
    [36] = "TQ1_0",   [37] = "TQ2_0",   [38] = "MXFP4",  [39] = "NVFP4",  [40] = "Q1_0",
    [41] = "Q2_0",
};
/* ik_llama.cpp has the same numbers up to 38, another 41, and those of its own types. */
static const struct {
    uint16_t id;
    const char *name;
} ik_file_types[] = {
    {41, "Q1_0"},       {135, "Q6_0"},       {136, "IQ1_BN"},    {137, "IQ2_BN"},
    {138, "IQ2_K"},     {139, "IQ3_K"},      {140, "IQ4_K"},     {141, "IQ5_K"},
    {142, "IQ6_K"},     {145, "IQ4_KS"},     {146, "IQ3_KL"},    {147, "IQ2_KS"},
    {148, "IQ4_KSS"},   {149, "Q8_KV"},      {150, "IQ5_KS"},    {151, "IQ2_KT"},
    {152, "IQ3_KT"},    {153, "IQ4_KT"},     {154, "IQ3_KS"},    {155, "IQ2_KL"},
    {156, "IQ1_KT"},    {202, "Q4_0_R8"},    {207, "Q8_0_R8"},   {208, "Q5_0_R4"},
    {210, "Q2_K_R4"},   {211, "Q3_K_R4"},    {214, "Q4_K_R4"},   {216, "Q5_K_R4"},
    {218, "Q6_K_R4"},   {219, "IQ2_XXS_R4"}, {220, "IQ2_XS_R4"}, {223, "IQ3_XXS_R4"},
    {224, "IQ1_S_R4"},  {225, "IQ4_NL_R4"},  {226, "IQ3_S_R4"},  {229, "IQ2_M_R4"},
    {230, "IQ4_XS_R8"}, {231, "IQ1_M_R4"},   {232, "BF16_R16"},  {335, "Q6_0_R4"},
    {337, "IQ2_BN_R4"}, {338, "IQ2_K_R4"},   {339, "IQ3_K_R4"},  {340, "IQ4_K_R4"},
    {341, "IQ5_K_R4"},  {345, "IQ4_KS_R4"},  {350, "IQ5_KS_R4"}, {398, "Q8_KV_R8"},
    {399, "Q8_K_R8"},
};
enum {
    N_FILE_TYPES = sizeof file_types / sizeof *file_types,
    N_IK_FILE_TYPES = sizeof ik_file_types / sizeof *ik_file_types,
    COMMON_FILE_TYPES = 39, /* the numbers below mean the same to both */
    GUESSED = 1024          /* a flag beside the number: the file did not say it itself */
};

/* NULL: none that is known. */
static const char *name_of_file_type(uint32_t id, bool foreign)
{
    if (!foreign || id < COMMON_FILE_TYPES)
        return id < N_FILE_TYPES ? file_types[id] : NULL;
    for (size_t i = 0; i < N_IK_FILE_TYPES; i++)
        if (ik_file_types[i].id == id)
            return ik_file_types[i].name;
    return NULL;
}

/* Names of files all of whose matrices have that one type, so that another one is no mixture. */
static bool is_of_one_type(const char *name)
{
    return base_words_index("F32 F16 BF16 Q4_0 Q4_1 Q5_0 Q5_1 Q8_0", name) >= 0;
}

enum { SUPERBLOCK = 256 }; /* elements of a block of K and IQ types, but for IQ4_NL */

#define NO_SIGN "-"

/* Mixtures: the type that they are made of, and what an ffn_down of them has (NULL: anything;
 * NO_SIGN: that does not tell). */
static const struct {
    const char *name, *of, *down;
} mixtures[] = {
    {"Q3_K_M", "Q3_K", "Q4_K"},     {"Q3_K_L", "Q3_K", "Q5_K"},   {"Q3_K_S", "Q3_K", NULL},
    {"Q4_K_M", "Q4_K", "Q6_K"},     {"Q4_K_S", "Q4_K", NULL},     {"Q5_K_M", "Q5_K", "Q6_K"},
    {"Q5_K_S", "Q5_K", NULL},       {"Q2_K_S", "Q2_K", NO_SIGN},  {"IQ3_XS", "IQ3_S", NO_SIGN},
    {"IQ3_XS", "IQ3_XXS", NO_SIGN}, {"IQ3_M", "IQ3_S", NO_SIGN},  {"IQ2_S", "IQ2_XS", NO_SIGN},
    {"IQ2_M", "IQ2_S", NO_SIGN},    {"IQ3_KL", "IQ3_K", NO_SIGN}, {"IQ2_M_R4", "IQ2_S_R4", NO_SIGN},
};
enum { N_MIXTURES = sizeof mixtures / sizeof *mixtures };

/* The weights of each type. */
struct census {
    struct {
        const struct gguf_type_info *type;
        uint64_t n_weights;
        uint64_t n_inner; /* of them, those between the embedding and the head */
        bool down;        /* an ffn_down has it */
    } rows[GGUF_MAX_LISTED];
    size_t n, most;      /* most: the row of most weights */
    size_t most_inner;   /* of those between the ends, which may have a type of their own */
    uint64_t n_weights;  /* of matrices, and of these: */
    uint64_t n_short;    /* in rows that are no multiple of SUPERBLOCK elements */
    const char *program; /* that alone has some of the types; NULL: none */
};

static void count(struct census *c, const struct gguf_tensor *t)
{
    size_t i = 0;
    while (i < c->n && c->rows[i].type != t->type)
        i++;
    if (i == c->n)
        c->rows[c->n++].type = t->type;
    c->rows[i].n_weights += t->n_rows * t->ne[0];
    if (strncmp(t->name, "blk.", 4) == 0)
        c->rows[i].n_inner += t->n_rows * t->ne[0];
    if (t->ne[1] > 1) {
        c->n_weights += t->n_rows * t->ne[0];
        c->n_short += t->ne[0] % SUPERBLOCK ? t->n_rows * t->ne[0] : 0;
    }
    c->rows[i].down |= strstr(t->name, ".ffn_down") != NULL;
    if (!c->program || t->type_id >= GGUF_FIRST_IK)
        c->program = gguf_type_program(t->type_id);
    if (c->rows[i].n_weights > c->rows[c->most].n_weights)
        c->most = i;
    if (c->rows[i].n_inner > c->rows[c->most_inner].n_inner)
        c->most_inner = i;
}

static bool occurs(const struct census *c, const char *type, bool down)
{
    for (size_t i = 0; i < c->n; i++)
        if (strcmp(c->rows[i].type->name, type) == 0 && (c->rows[i].down || !down))
            return true;
    return false;
}

/* Whether tensors of this kind are what a file of the name has. */
static bool agrees(const struct census *c, const char *name)
{
    if (is_of_one_type(name)) { /* a quantised file may have ends of better types */
        const char *most = c->rows[c->most].type->name, *inner = c->rows[c->most_inner].type->name;
        return strcmp(most, name) == 0 ||
               (base_words_index("F32 F16 BF16", name) < 0 && strcmp(inner, name) == 0);
    }
    bool mixture = false;
    for (size_t i = 0; i < N_MIXTURES; i++)
        if (strcmp(mixtures[i].name, name) == 0) {
            mixture = true;
            if (occurs(c, mixtures[i].of, false))
                return true;
        }
    return !mixture && occurs(c, name, false);
}

/* What most weights fell back to, as llama-quantize does where rows do not fit; NULL: nothing. */
static const char *fallback(const struct census *c, const char *said)
{
    static const char types[] = "Q4_0 Q4_1 Q5_0 Q5_1 Q8_0 IQ4_NL F16 BF16";
    if (c->n == 0 || is_of_one_type(said) || base_words_index("IQ4_NL MXFP4 NVFP4", said) >= 0)
        return NULL;
    const char *most = c->rows[c->most].type->name;
    return 2 * c->n_short > c->n_weights && base_words_index(types, most) >= 0 ? most : NULL;
}

/* The name that the tensors give. */
static const char *worked_out(const struct census *c)
{
    const char *most = c->rows[c->most].type->name;
    for (size_t i = 0; i < N_MIXTURES; i++)
        if (strcmp(mixtures[i].of, most) == 0 &&
            (!mixtures[i].down || occurs(c, mixtures[i].down, true)))
            return mixtures[i].name;
    return most;
}

/* What a mixture is called: no name of a type says what it is. */
static void name_mixture(char out[GGUF_QUANTISATION_BYTES], const struct gguf_file *file)
{
    double n_weights = 0, n_bytes = 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        n_weights += (double)t->n_rows * (double)t->ne[0];
        n_bytes += (double)gguf_tensor_stored_bytes(t);
    }
    snprintf(out, GGUF_QUANTISATION_BYTES, n_weights > 0 ? "mixture, %.2f bpw" : "mixture",
             8 * n_bytes / n_weights);
}

struct gguf_quantisation gguf_quantisation(const struct gguf_file *file)
{
    struct gguf_quantisation q = {.name = ""};
    struct census c = {0};
    uint32_t id = UINT32_MAX;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        count(&c, gguf_tensor_at(file, i));
    if (gguf_get_u32(file, "general.file_type", &id, &(bool){false}, NULL))
        id = UINT32_MAX;
    id &= ~(uint32_t)GUESSED;
    q.types_of = c.program;
    q.said = name_of_file_type(id, c.program && strcmp(c.program, "ik_llama.cpp") == 0);
    q.is_mixture = gguf_kv_find(file, "assay.mix.recipe") != NULL;
    q.mostly = q.is_mixture || !q.said ? NULL : fallback(&c, q.said);
    q.by_file_type = !q.is_mixture && q.said && (c.n == 0 || q.mostly || agrees(&c, q.said));
    if (q.is_mixture)
        name_mixture(q.name, file);
    else if (q.mostly)
        snprintf(q.name, sizeof q.name, "%s, mostly %s", q.said, q.mostly);
    else if (q.by_file_type || c.n)
        snprintf(q.name, sizeof q.name, "%s", q.by_file_type ? q.said : worked_out(&c));
    return q;
}

uint32_t gguf_file_type(const struct gguf_tensor *const *tensors, size_t n)
{
    struct census c = {0};
    for (size_t i = 0; i < n; i++)
        count(&c, tensors[i]);
    const char *name = n ? worked_out(&c) : "";
    bool foreign = c.program && strcmp(c.program, "ik_llama.cpp") == 0;
    for (size_t i = 0; i < (foreign ? COMMON_FILE_TYPES : N_FILE_TYPES); i++)
        if (file_types[i] && strcmp(file_types[i], name) == 0)
            return (uint32_t)i;
    for (size_t i = 0; i < N_IK_FILE_TYPES && foreign; i++)
        if (strcmp(ik_file_types[i].name, name) == 0)
            return ik_file_types[i].id;
    return UINT32_MAX;
}
