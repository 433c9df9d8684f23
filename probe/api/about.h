/** What a server says of itself. Both pages are hostile: what they say is checked or not taken. */
#ifndef PROBE_API_ABOUT_H
#define PROBE_API_ABOUT_H

#include "probe/api/api.h"

enum { PROBE_MODEL_NAME = 256 };

struct probe_about {
    const struct probe_api *api; /* NULL: not said */
    int64_t n_ctx;               /* from 1 to 2^31 - 1; what it was before: not said */
    char model[PROBE_MODEL_NAME];
};

/** /v1/models: the kind by its owner, the name of the first model, its context. NULL: no JSON. */
void probe_about_models(struct probe_about *about, const cJSON *page);
/** /props of llama-server or ik_llama.cpp's server, whose kind it tells: the context. */
void probe_about_props(struct probe_about *about, const cJSON *page);

#endif
