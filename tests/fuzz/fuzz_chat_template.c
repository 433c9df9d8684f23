/*
 * Chat templates: a template up to the first NUL, behind it the names that it sees, as JSON;
 * without one those of a conversation. Whatever it is, it ends within its limits, and says why it
 * fails.
 */
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "model/chat/template.h"
#include "model/chat/value/json.h"
#include "tests/fuzz/fuzz.h"

static const char conversation[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"be\"}, {\"role\": \"user\", "
    "\"content\": "
    "\"a\\u00e9 b\"}, {\"role\": \"assistant\", \"content\": null, \"tool_calls\": [{\"f\": "
    "1.5}]}], \"tools\": [{\"name\": \"f\"}], \"bos_token\": \"<s>\", \"n\": -3}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const struct model_chat_limits limits = {4 << 20, 100000, 1e6};
    struct status_why why = {""};
    struct model_chat_template *t;
    struct chat_run r;
    char *bytes = fuzz_copy(data, n_bytes);
    const char *nul = n_bytes ? memchr(bytes, '\0', n_bytes) : NULL;
    size_t n = nul ? (size_t)(nul - bytes) : n_bytes;
    struct base_string names = {conversation, sizeof conversation - 1};
    if (nul)
        names = (struct base_string){nul + 1, n_bytes - n - 1};
    model_chat_begin(&r, &limits, &why);
    r.time = (struct model_chat_time){2024, 7, 26};
    enum status status =
        model_chat_template_open(&t, (struct base_string){bytes, n}, &limits, &why);
    struct chat_value value = {0};
    if (!status) {
        value = model_chat_parse_json(&r, names);
        status = r.status;
    }
    if (!status && value.kind == CHAT_DICT)
        status = model_chat_template_render(t, &r, value.dict);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    require(strchr(why.text, '\n') == NULL);
    if (!status && r.text.n_bytes)
        require(base_utf8_first_bad(r.text.data, r.text.n_bytes) == r.text.n_bytes);
    for (size_t i = 0; i < r.n_spans && !status; i++)
        require(r.spans[i].from <= r.spans[i].to && r.spans[i].to <= r.text.n_bytes);
    model_chat_template_close(t);
    model_chat_end(&r);
    free(bytes);
    return 0;
}
