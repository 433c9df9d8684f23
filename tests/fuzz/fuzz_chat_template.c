/*
 * Chat templates: a template up to the first NUL, after it the names that it sees, as JSON;
 * without one those of a conversation. Whatever it is, it ends within its limits, and says why it
 * fails.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json/parse.h"
#include "base/text/utf8.h"
#include "model/template/template.h"
#include "model/template/value/value_json.h"
#include "tests/fuzz/fuzz.h"

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"be\"}, {\"role\": \"user\", "
    "\"content\": "
    "\"a\\u00e9 b\"}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"f\": "
    "1.5}]}], \"tools\": [{\"name\": \"f\"}], \"bos_token\": \"<s>\", \"n\": -3}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const struct jinja_limits limits = {4 << 20, 100000, 1e6};
    struct status_why why = {""};
    struct jinja_template *t;
    struct jinja_run r;
    char *bytes = fuzz_copy(data, n_bytes);
    const char *nul = n_bytes ? memchr(bytes, '\0', n_bytes) : NULL;
    size_t n = nul ? (size_t)(nul - bytes) : n_bytes;
    struct base_string names = {conversation, sizeof conversation - 1};
    if (nul)
        names = (struct base_string){nul + 1, n_bytes - n - 1};
    jinja_begin(&r, &limits, &why);
    r.time = (struct jinja_date){2024, 7, 26};
    enum status status = jinja_open(&t, (struct base_string){bytes, n}, &limits, &why);
    struct jinja_value value = {0};
    cJSON *object = NULL;
    (void)base_json_parse(&object, names.data, names.n_bytes, NULL, NULL);
    if (!status && cJSON_IsObject(object)) {
        value = jinja_of_json(&r, object, names);
        status = r.status;
    }
    if (!status && value.kind == JINJA_DICT)
        status = jinja_render(t, &r, value.dict);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    require(strchr(why.text, '\n') == NULL);
    if (!status && r.text.n_bytes)
        require(base_utf8_first_bad(r.text.data, r.text.n_bytes) == r.text.n_bytes);
    for (size_t i = 0; i < r.n_spans && !status; i++)
        require(r.spans[i].from <= r.spans[i].to && r.spans[i].to <= r.text.n_bytes);
    jinja_close(t);
    jinja_end(&r);
    cJSON_Delete(object);
    free(bytes);
    return 0;
}
