/*
 * Bodies of HTTP requests: any bytes, as each of the requests that have one. What is refused says
 * why; what is not becomes a job, without a socket or a model.
 */
#include <stdlib.h>

#include "serve/requests/completions.h"
#include "serve/serve.h"
#include "tests/fuzz/fuzz.h"

static void check(enum status status, const struct status_why *why, const void *made)
{
    require((status == STATUS_OK) == (made != NULL));
    require((status == STATUS_OK) == (why->text[0] == '\0'));
}

static void as_evaluation(const cJSON *body, const char *base)
{
    struct status_why why = {""};
    struct cli_request *request = NULL;
    const struct serve_settings settings = {
        .model = "model.gguf", .base = base, .text_file = "text"};
    enum status status = serve_request_parse(&request, &settings, body, &why);
    check(status, &why, request);
    if (request)
        serve_request_free(request);
}

static void as_completion(const cJSON *body)
{
    struct status_why why = {""};
    struct serve_completion *c = NULL;
    enum status status = serve_completion_parse(&c, body, &why);
    check(status, &why, c);
    if (!c)
        return;
    require(c->n > 0 && c->bos >= 0);
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->prompts[i].tokens.n; k++)
            require(!c->prompts[i].text && c->prompts[i].tokens.ids[k] >= 0);
    serve_completion_free(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *bytes = fuzz_copy(data, n_bytes);
    struct status_why why = {""};
    enum serve_waiting waiting;
    cJSON *body = NULL;
    enum status status = serve_body_parse(&body, bytes, n_bytes, &why);
    check(status, &why, body);
    if (body) {
        status = serve_waiting_read(&waiting, body, &why);
        require((status == STATUS_OK) == (why.text[0] == '\0'));
        as_evaluation(body, NULL);
        as_evaluation(body, "no such base");
        as_completion(body);
        struct cli_score_request *scoring = NULL;
        why = (struct status_why){""};
        status = serve_score_parse(&scoring, body, &why);
        check(status, &why, scoring);
        if (scoring)
            serve_score_free(scoring);
        struct cli_swap_request *swaps = NULL;
        why = (struct status_why){""};
        status = serve_swap_parse(&swaps, body, &why);
        check(status, &why, swaps);
        if (swaps)
            serve_swap_free(swaps);
    }
    free(bytes);
    return 0;
}
