#include "cli/output/quantisation.h"

#include <string.h>

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
enum {
    N_FILE_TYPES = sizeof file_types / sizeof *file_types,
    GUESSED = 1024,    /* a flag beside the number: the file did not say it itself */
    FIRST_FOREIGN = 97 /* type ids from here on are ik_llama.cpp's, whose numbers clash */
};

/* Names of files all of whose matrices have that one type, so that another one is no mixture. */
static bool is_of_one_type(const char *name)
{
    static const char *const names[] = {"F32",  "F16",  "BF16", "Q4_0",
                                        "Q4_1", "Q5_0", "Q5_1", "Q8_0"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

#define NO_SIGN "-"

/* Mixtures: the type that they are made of, and what an ffn_down of them has (NULL: anything;
 * NO_SIGN: that does not tell). */
static const struct {
    const char *name, *of, *down;
} mixtures[] = {
    {"Q3_K_M", "Q3_K", "Q4_K"},     {"Q3_K_L", "Q3_K", "Q5_K"},  {"Q3_K_S", "Q3_K", NULL},
    {"Q4_K_M", "Q4_K", "Q6_K"},     {"Q4_K_S", "Q4_K", NULL},    {"Q5_K_M", "Q5_K", "Q6_K"},
    {"Q5_K_S", "Q5_K", NULL},       {"Q2_K_S", "Q2_K", NO_SIGN}, {"IQ3_XS", "IQ3_S", NO_SIGN},
    {"IQ3_XS", "IQ3_XXS", NO_SIGN}, {"IQ3_M", "IQ3_S", NO_SIGN}, {"IQ2_S", "IQ2_XS", NO_SIGN},
    {"IQ2_M", "IQ2_S", NO_SIGN},
};
enum { N_MIXTURES = sizeof mixtures / sizeof *mixtures };

/* The weights of each type. */
struct census {
    struct {
        const struct gguf_type_info *type;
        uint64_t n_weights;
        bool down; /* an ffn_down has it */
    } rows[GGUF_MAX_LISTED];
    size_t n, most; /* most: the row of most weights */
    bool foreign;
};

static void count(struct census *c, const struct gguf_tensor *t)
{
    size_t i = 0;
    while (i < c->n && c->rows[i].type != t->type)
        i++;
    if (i == c->n)
        c->rows[c->n++].type = t->type;
    c->rows[i].n_weights += t->n_rows * t->ne[0];
    c->rows[i].down |= strstr(t->name, ".ffn_down") != NULL;
    c->foreign |= t->type_id >= FIRST_FOREIGN;
    if (c->rows[i].n_weights > c->rows[c->most].n_weights)
        c->most = i;
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
    if (is_of_one_type(name))
        return strcmp(c->rows[c->most].type->name, name) == 0;
    bool mixture = false;
    for (size_t i = 0; i < N_MIXTURES; i++)
        if (strcmp(mixtures[i].name, name) == 0) {
            mixture = true;
            if (occurs(c, mixtures[i].of, false))
                return true;
        }
    return !mixture && occurs(c, name, false);
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

struct cli_quantisation cli_quantisation(const struct gguf_file *file)
{
    struct cli_quantisation q = {.name = ""};
    struct census c = {0};
    uint32_t id = UINT32_MAX;
    for (size_t i = 0; i < gguf_n_tensors(file); i++)
        count(&c, gguf_tensor_at(file, i));
    if (gguf_get_u32(file, "general.file_type", &id, &(bool){false}, NULL))
        id = UINT32_MAX;
    id &= ~(uint32_t)GUESSED;
    q.said = id < N_FILE_TYPES && !c.foreign ? file_types[id] : NULL;
    q.by_file_type = q.said && (c.n == 0 || agrees(&c, q.said));
    if (q.by_file_type)
        q.name = q.said;
    else if (c.n)
        q.name = worked_out(&c);
    return q;
}
