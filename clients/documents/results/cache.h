/** What a key/value cache takes beside a model's weights. */
#ifndef DOCUMENTS_RESULTS_CACHE_H
#define DOCUMENTS_RESULTS_CACHE_H

#include "clients/documents/results/document.h"

/**
 * Bytes of a cache of n_tokens, from `cache` of the object about a model: keys and values in the
 * types that they were rounded to, else in F16; NaN where the document is older than that member,
 * or names a type that is none. Programs round it up, each in its own way.
 */
double doc_cache_bytes(struct base_field model, double n_tokens);

#endif
