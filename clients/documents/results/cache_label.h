/** What follows the name of a model whose keys and values are rounded: in lines, tables, charts. */
#ifndef DOCUMENTS_RESULTS_CACHE_LABEL_H
#define DOCUMENTS_RESULTS_CACHE_LABEL_H

#include <stdbool.h>

/** Characters of a type that a label has; of a longer one its beginning and "...". */
enum { DOC_KV_SHOWN = 64 };
/** Room for a label, and for what else is said of a model after it. */
enum { DOC_KV_LABEL = 192 };

/**
 * " K Q8_0 V Q4_0 unrotated", or "" where nothing is rounded.
 * k, v: types as options and documents have them, "Q8_0,layers 0-3:F16".
 */
const char *doc_kv_label(char out[DOC_KV_LABEL], const char *k, const char *v, bool rotated);

/** Whether a label has only the beginning of the type. */
bool doc_kv_is_cut(const char *type);

#endif
