/** What a server says of itself. Both pages are hostile: what they say is checked or not taken. */
#ifndef PROBE_API_ABOUT_H
#define PROBE_API_ABOUT_H

#include "clients/probe/api/api.h"

enum { PROBE_MODEL_NAME = 256 };

/** What a server says of the file that it serves. */
struct probe_said {
    int64_t n_bytes, n_weights; /* of all tensors; -1: not said */
    char type[64];              /* "Q4_K - Medium"; "": not said */
    char path[512];             /* "": not said */
    char *chat_template;        /* NULL: not said */
    int64_t n_text, n_sent; /* tokens that it counts in a text, and that it has; -1: not known */
};
void probe_said_free(struct probe_said *said);

struct probe_about {
    const struct probe_api *api; /* NULL: not said */
    int64_t n_ctx;               /* from 1 to 2^31 - 1; what it was before: not said */
    char model[PROBE_MODEL_NAME];
    struct probe_said said; /* what a page does not say stays as it was */
};

/**
 * /v1/models: the kind by its owner, the name of the first model, its context and its size. NULL:
 * no JSON.
 */
void probe_about_models(struct probe_about *about, const cJSON *page);
/** /props of llama-server or ik_llama.cpp's server, whose kind it tells: the context, the path, the
 * chat template. */
void probe_about_props(struct probe_about *about, const cJSON *page);

#endif
