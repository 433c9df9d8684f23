#include "clients/probe/api/api.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void add_prompt(cJSON *body, const char *name, const struct probe_ask *ask)
{
    if (ask->as_ids) {
        cJSON_AddItemToObject(body, name, cJSON_CreateIntArray(ask->ids, (int)ask->n));
        return;
    }
    char *text = strndup(ask->text.data, ask->text.n_bytes);
    cJSON_AddStringToObject(body, name, text ? text : "");
    free(text);
}

static void fill_llama(cJSON *body, const struct probe_ask *ask)
{
    add_prompt(body, "prompt", ask);
    cJSON_AddNumberToObject(body, "n_predict", (double)ask->n_new);
    cJSON_AddNumberToObject(body, "n_probs", (double)ask->k);
    cJSON_AddNumberToObject(body, "temperature", 0);
    cJSON_AddNumberToObject(body, "seed", 1);
    cJSON_AddBoolToObject(body, "cache_prompt", ask->reuse);
    cJSON_AddBoolToObject(body, "post_sampling_probs", false);
    cJSON_AddBoolToObject(body, "stream", false);
    if (ask->n_new > 1) /* those without a list, too */
        cJSON_AddBoolToObject(body, "return_tokens", true);
    if (ask->n_new > 1 || ask->plain < 0)
        return;
    /* The list is not moved by it, but comes only where the token that is chosen is whole UTF-8. */
    cJSON *bias = cJSON_CreateArray(), *pair = cJSON_CreateArray();
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(ask->plain));
    cJSON_AddItemToArray(pair, cJSON_CreateNumber(1000));
    cJSON_AddItemToArray(bias, pair);
    cJSON_AddItemToObject(body, "logit_bias", bias);
}

static void fill_completion(cJSON *body, const struct probe_ask *ask)
{
    if (ask->model)
        cJSON_AddStringToObject(body, "model", ask->model);
    add_prompt(body, "prompt", ask);
    cJSON_AddNumberToObject(body, "max_tokens", (double)ask->n_new);
    cJSON_AddNumberToObject(body, "temperature", 0);
    cJSON_AddBoolToObject(body, "stream", false);
}

static void fill_openai(cJSON *body, const struct probe_ask *ask)
{
    fill_completion(body, ask);
    cJSON_AddNumberToObject(body, "logprobs", (double)ask->k);
    if (ask->prompt_lists)
        cJSON_AddBoolToObject(body, "echo", true);
}

/** A bias would move its lists, and one of an earlier request stays where none is sent. */
static void fill_ik(cJSON *body, const struct probe_ask *ask)
{
    fill_completion(body, ask);
    cJSON_AddNumberToObject(body, "logprobs", (double)ask->k);
    cJSON_AddNumberToObject(body, "seed", 1);
    cJSON_AddBoolToObject(body, "cache_prompt", ask->reuse);
    cJSON_AddItemToObject(body, "logit_bias", cJSON_CreateArray());
}

/** Its cache of prompts is not used for another salt, be it of this run or of an earlier one. */
static void fill_vllm(cJSON *body, const struct probe_ask *ask)
{
    char run[24] = "", salt[48];
    fill_completion(body, ask);
    if (ask->run)
        snprintf(run, sizeof run, " %" PRIx64, ask->run);
    snprintf(salt, sizeof salt, "assay%s %zu", run, ask->time);
    if (ask->time)
        cJSON_AddStringToObject(body, "cache_salt", salt);
    cJSON_AddNumberToObject(body, "logprobs", (double)ask->k);
    cJSON_AddBoolToObject(body, "return_tokens_as_token_ids", true);
    if (ask->prompt_lists)
        cJSON_AddNumberToObject(body, "prompt_logprobs", (double)ask->k);
}

static void fill_mlx(cJSON *body, const struct probe_ask *ask)
{
    fill_completion(body, ask);
    cJSON_AddBoolToObject(body, "logprobs", true);
    cJSON_AddNumberToObject(body, "top_logprobs", (double)ask->k);
}

static void fill_sglang(cJSON *body, const struct probe_ask *ask)
{
    add_prompt(body, ask->as_ids ? "input_ids" : "text", ask);
    cJSON *sampling = cJSON_AddObjectToObject(body, "sampling_params");
    cJSON_AddNumberToObject(sampling, "max_new_tokens", (double)ask->n_new);
    cJSON_AddNumberToObject(sampling, "temperature", 0);
    cJSON_AddBoolToObject(body, "return_logprob", true);
    cJSON_AddNumberToObject(body, "top_logprobs_num", (double)ask->k);
    if (ask->prompt_lists)
        cJSON_AddNumberToObject(body, "logprob_start_len", 0);
}

static void fill_ollama(cJSON *body, const struct probe_ask *ask)
{
    cJSON_AddStringToObject(body, "model", ask->model ? ask->model : "");
    add_prompt(body, "prompt", ask);
    cJSON_AddBoolToObject(body, "raw", true);
    cJSON_AddBoolToObject(body, "stream", false);
    cJSON_AddBoolToObject(body, "logprobs", true);
    cJSON_AddNumberToObject(body, "top_logprobs", (double)ask->k);
    cJSON *options = cJSON_AddObjectToObject(body, "options");
    cJSON_AddNumberToObject(options, "num_predict", (double)ask->n_new);
    cJSON_AddNumberToObject(options, "num_ctx", (double)ask->n_ctx);
    cJSON_AddNumberToObject(options, "temperature", 0);
    cJSON_AddNumberToObject(options, "top_k", 0);
    cJSON_AddNumberToObject(options, "top_p", 1);
    cJSON_AddNumberToObject(options, "min_p", 0);
    cJSON_AddNumberToObject(options, "repeat_penalty", 1);
}

/* In the order of PROBE_API_NAMES. The last is what a server is taken for that nothing tells. */
const struct probe_api probe_apis[PROBE_N_APIS] = {
    {"llama-server",
     "llama-server",
     "/completion",
     "llamacpp",
     "/props",
     "default_generation_settings",
     true,
     false,
     true,
     false,
     true,
     {100, 20},
     PROBE_LIKE_LLAMA,
     fill_llama},
    {"ik",
     "ik_llama.cpp's server",
     "/v1/completions",
     NULL,
     NULL,
     NULL,
     true,
     false,
     true,
     true,
     true,
     {100, 20},
     PROBE_LIKE_IK,
     fill_ik},
    {"vllm",
     "vLLM",
     "/v1/completions",
     "vllm",
     NULL,
     NULL,
     true,
     true,
     false,
     false,
     false,
     {20, 5},
     PROBE_LIKE_GPU,
     fill_vllm},
    {"sglang",
     "SGLang",
     "/generate",
     "sglang",
     "/get_model_info",
     "model_path",
     true,
     true,
     false,
     false,
     false,
     {100, 20},
     PROBE_LIKE_GPU,
     fill_sglang},
    {"ollama",
     "Ollama",
     "/api/generate",
     "library",
     "/api/version",
     "version",
     false,
     false,
     false,
     false,
     false,
     {20, 5},
     PROBE_LIKE_GGML,
     fill_ollama},
    {"mlx",
     "mlx-lm",
     "/v1/completions",
     "mlx",
     NULL,
     NULL,
     false,
     false,
     false,
     false,
     false,
     {11, 5},
     PROBE_LIKE_GPU,
     fill_mlx},
    {"openai",
     "a server that speaks OpenAI's completions",
     "/v1/completions",
     NULL,
     NULL,
     NULL,
     true,
     true,
     false,
     false,
     false,
     {20, 5, 1},
     PROBE_LIKE_GPU,
     fill_openai},
};

enum status probe_api_body(char **out, const struct probe_api *api, const struct probe_ask *ask,
                           struct status_why *why)
{
    cJSON *body = cJSON_CreateObject();
    if (body)
        api->fill(body, ask);
    *out = body ? cJSON_PrintUnformatted(body) : NULL;
    cJSON_Delete(body);
    return *out ? STATUS_OK : status_fail(why, STATUS_MEMORY, "no memory for a request");
}
