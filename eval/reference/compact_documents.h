/** What a compact base keeps of documents beside their tokens: the part `documents` of a file. */
#ifndef EVAL_REFERENCE_COMPACT_DOCUMENTS_H
#define EVAL_REFERENCE_COMPACT_DOCUMENTS_H

#include "eval/input/documents.h"
#include "eval/reference/compact_layout.h"

/** Fill in n_documents, n_files, n_categories and n_names of a header. */
void eval_compact_documents_count(struct eval_compact_layout *layout,
                                  const struct eval_documents *documents);

/**
 * The bytes of the part, offsets->documents_bytes of them.
 * *out: freed by the caller. Fails: STATUS_MEMORY.
 */
enum status eval_compact_documents_encode(uint8_t **out, const struct eval_documents *documents,
                                          const struct eval_compact_offsets *offsets,
                                          struct status_why *why);

#endif
