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
    GUESSED = 1024 /* a flag beside the number: the file did not say it itself */
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

/* The name of the type that most weights have. */
static const char *most_common(const struct gguf_file *file)
{
    uint64_t n_weights[GGUF_TYPE_LIMIT] = {0};
    const struct gguf_type_info *best = NULL;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        n_weights[t->type->type] += t->n_rows * t->ne[0];
        if (!best || n_weights[t->type->type] > n_weights[best->type])
            best = t->type;
    }
    return best ? best->name : "";
}

const char *cli_quantisation(const struct gguf_file *file)
{
    uint32_t id = UINT32_MAX;
    if (gguf_get_u32(file, "general.file_type", &id, &(bool){false}, NULL) != STATUS_OK)
        id = UINT32_MAX;
    id &= ~(uint32_t)GUESSED;
    const char *said = id < N_FILE_TYPES ? file_types[id] : NULL;
    return said && !is_of_one_type(said) ? said : most_common(file);
}
