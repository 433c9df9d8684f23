/* Requests as JSON lines: any text; what is read must lie in it, and be JSON again. */
#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

#include "eval/units/requests.h"
#include "tests/fuzz/fuzz.h"

static void check_string(struct base_string s, const char *bytes, size_t n_bytes)
{
    require(s.data >= bytes && s.data <= bytes + n_bytes);
    require(s.n_bytes <= (size_t)(bytes + n_bytes - s.data));
    require(eval_trailing_blanks(s) <= s.n_bytes);
}

/** The members that are handed through are those of an object, and none that a result has. */
static void check_handed(struct base_string handed)
{
    char *text = malloc(handed.n_bytes + 2);
    require(text != NULL);
    text[0] = '{';
    memcpy(text + 1, handed.data, handed.n_bytes);
    text[handed.n_bytes + 1] = '}';
    cJSON *object = cJSON_ParseWithLength(text, handed.n_bytes + 2);
    require(object != NULL);
    for (const cJSON *member = object->child; member; member = member->next) {
        require(strcmp(member->string, "text") != 0 && strcmp(member->string, "context") != 0);
        require(strcmp(member->string, "logprob") != 0);
    }
    cJSON_Delete(object);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *text = fuzz_copy(data, n_bytes);
    struct eval_requests requests;
    struct status_why why = {""};
    enum status status = eval_requests_read(&requests, text, n_bytes, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    require((status == STATUS_OK) == (requests.n > 0));
    for (size_t i = 0; i < requests.n; i++) {
        const struct eval_request *r = &requests.items[i];
        require(i == 0 || r->line > r[-1].line);
        check_string(r->text, text, n_bytes);
        if (!r->rolling)
            check_string(r->context, text, n_bytes);
        check_string(r->handed, text, n_bytes);
        check_handed(r->handed);
    }
    eval_requests_free(&requests);
    free(text);
    return 0;
}
