/** Unicode's normalisation form NFC.   Source: Unicode Standard Annex 15. */
#ifndef MODEL_TOKENIZER_DECLARED_NFC_H
#define MODEL_TOKENIZER_DECLARED_NFC_H

#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/text/string.h"

/** Scratch: zero-initialise, release with model_nfc_free. */
struct model_nfc {
    struct model_nfc_char *chars; /* a character and the marks that follow it */
    size_t n, capacity;
};

/**
 * Append the NFC of a text of well-formed UTF-8.   Fails: STATUS_MEMORY.
 * Cost: O(n), whatever the text.
 */
enum status model_nfc_append(struct model_nfc *nfc, struct base_buffer *out,
                             struct base_string text, struct status_why *why);
void model_nfc_free(struct model_nfc *nfc);

/** Whether a text is surely in NFC: it has no character beyond U+02FF. */
int model_nfc_is_plain(struct base_string text);

/* The tables, by code point; nfc_table.c. */

/** [n][2]: a character, and the one that it is made of. */
extern const uint32_t model_nfc_singles[];
/** [n][3]: a character, and the two that it is made of. */
extern const uint32_t model_nfc_pairs[];
/** [n]: places in that table, of those that are joined again, by the two. */
extern const uint16_t model_nfc_composed[];
/** [n][3]: from, to, and the canonical combining class, where it is not 0. */
extern const uint32_t model_nfc_classes[];
extern const size_t model_nfc_n_singles, model_nfc_n_pairs, model_nfc_n_composed,
    model_nfc_n_classes;

#endif
