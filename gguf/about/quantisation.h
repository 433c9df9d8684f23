/** What a model's file says of how it was quantised. */
#ifndef GGUF_ABOUT_QUANTISATION_H
#define GGUF_ABOUT_QUANTISATION_H

#include "gguf/meta.h"

enum { GGUF_QUANTISATION_BYTES = 32 };

/** `said` and `types_of` are static storage. */
struct gguf_quantisation {
    char name[GGUF_QUANTISATION_BYTES]; /* "Q4_K_M", "mixture, 3.91 bpw"; "" where there is nothing
                                           to tell it by */
    const char *said;                   /* what general.file_type says; NULL: nothing known */
    const char *types_of; /* the program that alone has some of the types; NULL: there are none */
    bool is_mixture;      /* assay mix made it; the name is what it is, and `said` does not tell */
    bool by_file_type; /* it is what the file says; else it is worked out from the tensors' types */
    const char
        *mostly; /* the type that most weights fell back to, where rows are too short for
                    blocks of the type that was asked for; it is part of the name. NULL: no */
};

/**
 * The name that people have for the mixture of types. It is that of general.file_type; but tools
 * that change the tensors of a file often leave that key alone. So where the tensors do not agree,
 * and where there is no such number, it is that of the type that most weights have, and for a
 * mixture of K types which one that is by what ffn_down has. Where most weights are in rows that
 * are no multiple of the blocks' length, as llama-quantize makes another type of them, the number
 * is believed, and that type is named too: "Q3_K_M, mostly Q4_0". A file that assay mix made is
 * called a mixture, with its bits per weight, where the sizes of its types are known. file: from
 * gguf_open or gguf_list.
 */
struct gguf_quantisation gguf_quantisation(const struct gguf_file *file);

/**
 * The number that general.file_type has for a file of these tensors; UINT32_MAX: there is none.
 */
uint32_t gguf_file_type(const struct gguf_tensor *const *tensors, size_t n);

#endif
