#include "clients/probe/api/read.h"

#include <stdlib.h>
#include <string.h>

#include "base/json/parse.h"
#include "base/json/read.h"
#include "base/text/printable.h"

/** Bytes of a text that is a token's: 0 where it has lost what is no whole character. */
static size_t n_kept(const char *text)
{
    return strstr(text, "\xef\xbf\xbd") ? 0 : strlen(text);
}

/** An entry that is none: it spoils the list. */
static void read_nothing(struct probe_answer *a)
{
    probe_read_entry(a, -1, "", 0, NULL);
}

/** The bytes of a token: a list of numbers, or else a text. */
static void read_named(struct probe_answer *a, const cJSON *entry)
{
    enum { MOST = 1024 };
    const cJSON *bytes = base_json_member(entry, "bytes"), *byte;
    const cJSON *token = base_json_member(entry, "token");
    const cJSON *log_q = base_json_member(entry, "logprob");
    int32_t id = probe_read_id(base_json_member(entry, "id"));
    char text[MOST];
    size_t n = 0;
    if (id < 0 && cJSON_IsString(token) && strncmp(token->valuestring, "token_id:", 9) == 0)
        id = (int32_t)strtol(token->valuestring + 9, NULL, 10);
    if (id >= 0) {
        probe_read_entry(a, id, NULL, 0, log_q);
        return;
    }
    if (!cJSON_IsArray(bytes) || !bytes->child) {
        if (cJSON_IsString(token))
            probe_read_entry(a, -1, token->valuestring, n_kept(token->valuestring), log_q);
        else
            read_nothing(a);
        return;
    }
    cJSON_ArrayForEach(byte, bytes)
    {
        int32_t value = probe_read_id(byte);
        if (value < 0 || value > 255 || n == MOST) {
            read_nothing(a);
            return;
        }
        text[n++] = (char)(unsigned char)value;
    }
    probe_read_entry(a, -1, text, n, log_q);
}

/** Lists of objects with `logprob` and `top_logprobs`: llama-server, Ollama, OpenAI's chats. */
static void read_contents(struct probe_answer *a, const cJSON *list)
{
    size_t index = 0;
    const cJSON *item, *entry;
    cJSON_ArrayForEach(item, list)
    {
        struct probe_place *place = probe_read_place(a, true, index++);
        if (!place)
            return;
        place->token = probe_read_id(base_json_member(item, "id"));
        cJSON_ArrayForEach(entry, base_json_member(item, "top_logprobs"))
        {
            read_named(a, entry);
        }
        probe_read_end(a);
    }
}

/** vLLM's: a dictionary by id for each token of the prompt, the first one null. */
static void read_prompt(struct probe_answer *a, const cJSON *list, bool generated)
{
    size_t index = 0;
    const cJSON *item, *entry;
    cJSON_ArrayForEach(item, list)
    {
        size_t at = index++;
        if (cJSON_IsNull(item))
            continue;
        if (!probe_read_place(a, generated, at))
            return;
        cJSON_ArrayForEach(entry, item)
        {
            char *end;
            long id = strtol(entry->string ? entry->string : "x", &end, 10);
            bool is_id = entry->string && *entry->string && !*end && id >= 0 && id < INT32_MAX;
            const cJSON *log_q = cJSON_IsNumber(entry) ? entry : base_json_member(entry, "logprob");
            probe_read_entry(a, is_id ? (int32_t)id : -1, "", 0, is_id ? log_q : NULL);
        }
        probe_read_end(a);
    }
}

/** Keep the text of a token that a list is given for. */
static struct probe_text keep_text(struct probe_answer *a, const cJSON *token)
{
    bool is_text = token && cJSON_IsString(token);
    return probe_read_text(a, is_text ? token->valuestring : "",
                           is_text ? n_kept(token->valuestring) : 0);
}

/** An entry of a dictionary by text or token_id:N. Returns whether it is by text. */
static bool read_keyed(struct probe_answer *a, const cJSON *entry)
{
    const char *key = entry->string ? entry->string : "";
    bool is_id = strncmp(key, "token_id:", 9) == 0 && key[9] >= '0' && key[9] <= '9';
    long id = is_id ? strtol(key + 9, NULL, 10) : -1;
    probe_read_entry(a, id < INT32_MAX ? (int32_t)id : -1, is_id ? NULL : key, n_kept(key), entry);
    return !is_id;
}

static void read_dictionaries(struct probe_answer *a, const cJSON *logprobs)
{
    const cJSON *lists = base_json_member(logprobs, "top_logprobs"), *item, *entry;
    const cJSON *tokens = base_json_member(logprobs, "tokens");
    const cJSON *token = cJSON_IsArray(tokens) ? tokens->child : NULL;
    /* One prompt is answered with one list; where its tokens have some, the first has none. */
    bool echo = (lists->child && cJSON_IsNull(lists->child)) ||
                (a->n_prompt > 1 && cJSON_GetArraySize(lists) >= a->n_prompt);
    size_t index = 0, n_prompt = echo && a->n_prompt > 0 ? (size_t)a->n_prompt : 0;
    cJSON_ArrayForEach(item, lists)
    {
        size_t at = index++;
        const cJSON *given_for = token;
        token = token ? token->next : NULL;
        if (at == 0 && echo)
            a->first = keep_text(a, given_for);
        if (cJSON_IsNull(item))
            continue;
        bool generated = !echo || (n_prompt && at >= n_prompt);
        struct probe_place *place = probe_read_place(a, generated, generated ? at - n_prompt : at);
        if (!place)
            return;
        place->text = keep_text(a, given_for);
        cJSON_ArrayForEach(entry, item)
        {
            place->merged |= read_keyed(a, entry);
        }
        probe_read_end(a);
    }
}

/** What has `choices`. */
static void read_choice(struct probe_answer *a, const cJSON *root)
{
    const cJSON *choice = base_json_member(root, "choices")->child;
    const cJSON *usage = base_json_member(root, "usage");
    const cJSON *prompt = base_json_member(choice, "prompt_logprobs");
    const cJSON *logprobs = base_json_member(choice, "logprobs");
    const cJSON *content = base_json_member(logprobs, "content");
    const cJSON *lists = base_json_member(logprobs, "top_logprobs");
    a->n_prompt = probe_read_count(usage, "prompt_tokens");
    a->n_cached =
        probe_read_count(base_json_member(usage, "prompt_tokens_details"), "cached_tokens");
    read_prompt(a, prompt ? prompt : base_json_member(root, "prompt_logprobs"), false);
    if (cJSON_IsArray(content)) {
        read_contents(a, content);
        probe_read_written(a, NULL, probe_read_count(usage, "completion_tokens"),
                           (size_t)cJSON_GetArraySize(content));
    } else if (cJSON_IsArray(lists))
        read_dictionaries(a, logprobs);
}

/** [[value, id, text], ...] of SGLang. */
static void read_triples(struct probe_answer *a, const cJSON *lists, bool generated)
{
    size_t index = 0;
    const cJSON *item, *triple;
    cJSON_ArrayForEach(item, lists)
    {
        size_t at = index++;
        if (cJSON_IsNull(item))
            continue;
        if (!probe_read_place(a, generated, at))
            return;
        cJSON_ArrayForEach(triple, item)
        {
            int32_t id = probe_read_id(cJSON_GetArrayItem(triple, 1));
            probe_read_entry(a, id, "", 0, id < 0 ? NULL : cJSON_GetArrayItem(triple, 0));
        }
        probe_read_end(a);
    }
}

/** What has `meta_info`. */
static void read_sglang(struct probe_answer *a, const cJSON *root)
{
    const cJSON *meta = base_json_member(root, "meta_info");
    a->n_prompt = probe_read_count(meta, "prompt_tokens");
    a->n_cached = probe_read_count(meta, "cached_tokens");
    read_triples(a, base_json_member(meta, "input_top_logprobs"), false);
    read_triples(a, base_json_member(meta, "output_top_logprobs"), true);
}

/** vLLM's RequestOutput: what its Python interface returns, as JSON. */
static void read_offline(struct probe_answer *a, const cJSON *root)
{
    const cJSON *outputs = base_json_member(root, "outputs"), *id;
    read_prompt(a, base_json_member(root, "prompt_logprobs"), false);
    cJSON_ArrayForEach(id, base_json_member(root, "prompt_token_ids"))
    {
        probe_read_token(a, &a->prompt, id);
    }
    if (outputs && outputs->child)
        read_prompt(a, base_json_member(outputs->child, "logprobs"), true);
}

/** llama-server's, without `choices`. */
static void read_native(struct probe_answer *a, const cJSON *root, const cJSON *lists)
{
    a->of_llama = true;
    a->n_prompt = probe_read_count(root, "tokens_evaluated");
    a->n_cached = probe_read_count(base_json_member(root, "timings"), "cache_n");
    read_contents(a, lists);
    probe_read_written(a, base_json_member(root, "tokens"),
                       probe_read_count(root, "tokens_predicted"),
                       (size_t)cJSON_GetArraySize(lists));
}

static void read_ollama(struct probe_answer *a, const cJSON *root, const cJSON *lists)
{
    a->of_llama = true;
    a->n_prompt = probe_read_count(root, "prompt_eval_count");
    read_contents(a, lists);
}

enum status probe_read_root(struct probe_answer *a, const cJSON *root, struct status_why *why)
{
    *a = (struct probe_answer){.n_prompt = -1, .n_cached = -1};
    if (cJSON_IsArray(root)) /* llama-server answers lists of prompts with lists */
        root = root->child;
    const cJSON *native = base_json_member(root, "completion_probabilities");
    const cJSON *choices = base_json_member(root, "choices");
    const cJSON *contents = base_json_member(root, "logprobs");
    if (base_json_member(root, "meta_info"))
        read_sglang(a, root);
    else if (cJSON_IsArray(choices) && choices->child)
        read_choice(a, root);
    else if (base_json_member(root, "prompt_token_ids"))
        read_offline(a, root);
    else if (base_json_member(root, "tokens_evaluated") || native)
        read_native(a, root, native);
    else if (base_json_member(root, "prompt_eval_count") || cJSON_IsArray(contents))
        read_ollama(a, root, contents);
    else
        return status_fail(why, STATUS_FORMAT,
                           "expected completion_probabilities, choices, meta_info or logprobs in "
                           "it, found none of them");
    return status_of(&a->kept, why);
}

/** What is no JSON, but Python writes it: NaN, Infinity, -Infinity; "": something else. */
static const char *unbounded_number(const char *bytes, size_t n_bytes)
{
    static const char *const words[] = {"NaN", "Infinity", "-Infinity"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (n_bytes >= strlen(words[i]) && memcmp(bytes, words[i], strlen(words[i])) == 0)
            return words[i];
    return "";
}

enum status probe_answer_read(struct probe_answer *out, const char *bytes, size_t n_bytes,
                              struct status_why *why)
{
    *out = (struct probe_answer){.places = NULL};
    cJSON *root = NULL;
    size_t n_read = 0;
    enum status status = base_json_parse(&root, bytes, n_bytes, &n_read, why);
    n_read = n_read < n_bytes ? n_read : n_bytes;
    const char *number = unbounded_number(bytes + n_read, n_bytes - n_read);
    if (status == STATUS_FORMAT && *number)
        status = status_fail(why, status, "expected numbers, found %s at byte %zu of %zu", number,
                             n_read, n_bytes);
    else if (status == STATUS_FORMAT)
        status = status_fail(why, status, "expected JSON, found something else at byte %zu of %zu",
                             n_read, n_bytes);
    if (!status)
        status = probe_read_root(out, root, why);
    cJSON_Delete(root);
    return status;
}

void probe_answer_error(char *out, size_t capacity, const char *bytes, size_t n_bytes)
{
    cJSON *root = NULL;
    out[0] = '\0';
    if (!bytes || base_json_parse(&root, bytes, n_bytes, NULL, NULL))
        return;
    const cJSON *error = base_json_member(root, "error");
    const cJSON *message = base_json_member(error ? error : root, "message");
    if (!message && error)
        message = error;
    if (!cJSON_IsString(message))
        message = base_json_member(root, "detail");
    if (message && cJSON_IsString(message))
        base_printable_text(out, capacity, message->valuestring);
    cJSON_Delete(root);
}
