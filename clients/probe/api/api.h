/** The kinds of servers: what each can be asked, and how. */
#ifndef PROBE_API_API_H
#define PROBE_API_API_H

#include <cjson/cJSON.h>
#include <stdbool.h>

#include "base/text/string.h"
#include "clients/probe/api/answer.h"

/** What is asked. */
struct probe_ask {
    const char *model;       /* the server's name of it */
    const int32_t *ids;      /* [n] */
    size_t n;                /* tokens of the prompt */
    struct base_string text; /* the same as bytes */
    bool as_ids;             /* else as text */
    size_t k;                /* log-probabilities of a list */
    size_t n_ctx;      /* that is enough for all: a server may open the model anew for another */
    size_t n_new;      /* tokens to write */
    bool prompt_lists; /* lists of the prompt, too */
    bool reuse;        /* the server's cache may be used */
    size_t time;       /* how often the same was asked before */
    uint64_t run;      /* another number in each run; 0: what all runs have in common */
    int32_t plain;     /* a token of letters; see `bias` of docs/server-check.md; -1: none */
};

/** How a correct server of a kind rounds (probe/exact/). */
enum probe_arithmetic {
    PROBE_LIKE_LLAMA,
    PROBE_LIKE_IK,   /* as llama.cpp, but K types in blocks of 32, which is not simulated */
    PROBE_LIKE_GGML, /* as llama.cpp; how far right ones are off was not measured */
    PROBE_LIKE_GPU
};

struct probe_api {
    const char *name;   /* of --api */
    const char *label;  /* for people */
    const char *path;   /* of completions */
    const char *owner;  /* of /v1/models */
    const char *about;  /* a path that only this kind has; NULL: none */
    const char *member; /* of its answer; NULL: any */
    bool takes_ids, has_prompt_lists, has_reuse;
    bool counts_tail; /* some states of it count what is not listed twice */
    bool writes;      /* lists of tokens that were written follow from the ids that it names */
    size_t most[3];   /* numbers of log-probabilities to try, the largest first; 0: no more */
    enum probe_arithmetic arithmetic;
    /** Add the members of a request. */
    void (*fill)(cJSON *body, const struct probe_ask *ask);
};

extern const struct probe_api probe_apis[];
enum { PROBE_N_APIS = 7 };
/** Those that are named in code, by their places. */
enum { PROBE_API_LLAMA, PROBE_API_IK, PROBE_API_MLX = 5, PROBE_API_OPENAI };
/** Their names, separated by blanks, in order. */
#define PROBE_API_NAMES "llama-server ik vllm sglang ollama mlx openai"

/** The body of a request; the caller frees it with cJSON_free. Fails: STATUS_MEMORY. */
enum status probe_api_body(char **out, const struct probe_api *api, const struct probe_ask *ask,
                           struct status_why *why);

#endif
