#include "model/chat/markers.h"

#include <stdlib.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/json/parse.h"
#include "base/text/words.h"

/* Names of other shapes that published vocabularies have as a token of its own, and that no
 * published model of another vocabulary writes as plain text. */
static const char names[] =
    "<s> </s> <bos> <eos> <start_of_turn> <end_of_turn> <end_of_utterance> <sop> [gMASK] "
    "[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_CALLS] "
    "[TOOL_RESULTS] [/TOOL_RESULTS] [|endofturn|] ]~b] ]~!b[ [e~[";

/* Zephyr, TinyLlama, Tulu 3 and OLMo 2 write these as plain text. */
static const char plain[] = "<|user|> <|assistant|> <|system|>";

enum { MOST_BYTES = 64, MOST_MARKERS = 256 }; /* of a marker; messages may have any number */

/** Bytes of the bar that `n` bytes begin with (end with); 0: there is none. */
static size_t bar_at(const char *text, size_t n, bool end)
{
    static const char wide[] = "\xef\xbd\x9c"; /* U+FF5C, DeepSeek's */
    size_t n_wide = sizeof wide - 1;
    if (n && text[end ? n - 1 : 0] == '|')
        return 1;
    return n >= n_wide && memcmp(text + (end ? n - n_wide : 0), wide, n_wide) == 0 ? n_wide : 0;
}

/** Bytes of "<|name|>", "<|name>" or "<name|>" at the beginning of a text; 0: there is none. */
static size_t angled(struct base_string s)
{
    size_t n = 1, most = base_min(s.n_bytes, MOST_BYTES);
    while (n < most && !strchr("<> \t\r\n\"'", s.data[n]))
        n++;
    if (*s.data != '<' || n == most || s.data[n] != '>')
        return 0;
    size_t n_bars = bar_at(s.data + 1, n - 1, false) + bar_at(s.data + 1, n - 1, true);
    return n_bars && n - 1 > n_bars ? n + 1 : 0;
}

/** Bytes of a marker at the beginning of a text; 0: there is none. */
static size_t marker_at(struct base_string s)
{
    const char *word, *list = names;
    size_t length, n = 0;
    if (!strchr("<[]", *s.data))
        return 0;
    while ((list = base_words_next(list, &word, &length)) && !n)
        n = s.n_bytes >= length && memcmp(s.data, word, length) == 0 ? length : 0;
    n = n ? n : angled(s);
    for (list = plain; (list = base_words_next(list, &word, &length));)
        if (n == length && memcmp(s.data, word, length) == 0)
            return 0;
    return n;
}

static size_t count(struct base_string text, struct base_string what)
{
    size_t n = 0;
    const char *at = text.data, *end = text.data + text.n_bytes;
    while (at && at < end && (at = memmem(at, (size_t)(end - at), what.data, what.n_bytes))) {
        at += what.n_bytes;
        n++;
    }
    return n;
}

/** How often the texts of a conversation have it. Recursion: the parser has a limit. */
static size_t count_in(const cJSON *value, struct base_string what)
{
    const char *text = cJSON_GetStringValue(value);
    size_t n = text ? count((struct base_string){text, strlen(text)}, what) : 0;
    for (const cJSON *item = value ? value->child : NULL; item; item = item->next)
        n += count_in(item, what);
    return n;
}

/** Tokens that stand for a byte of it: SentencePiece may put one in front that does not. */
static enum status count_tokens(size_t *n, const struct model_tokenizer *t, struct base_string name,
                                struct status_why *why)
{
    struct model_tokens tokens = {0};
    enum status status = model_tokenize(t, name.data, name.n_bytes, true, &tokens, why);
    *n = 0;
    for (size_t i = 0, at = 0; i < tokens.n && at < name.n_bytes; i++) {
        size_t n_bytes = model_token_span(t, tokens.ids[i], name.data + at, name.n_bytes - at);
        *n += n_bytes > 0;
        at += n_bytes;
    }
    free(tokens.ids);
    return status;
}

/** The marker's number, new or known; -1: there are too many. */
static enum status meet(struct model_chat_markers *m, const struct model_tokenizer *t,
                        struct base_string name, int32_t *number, struct status_why *why)
{
    *number = base_strtab_find(&m->names, name);
    if (*number >= 0 || m->names.n == MOST_MARKERS)
        return STATUS_OK;
    if (base_array_reserve(m->items, m->capacity, m->names.n + 1, "markers of a template", why))
        return STATUS_MEMORY;
    char *copy = strndup(name.data, name.n_bytes);
    if (!copy)
        return status_fail(why, STATUS_MEMORY, "no memory for a marker of a template");
    struct model_chat_marker marker = {0};
    enum status status = count_tokens(&marker.n_tokens, t, name, why);
    if (!status)
        status = base_strtab_add(&m->names, (struct base_string){copy, name.n_bytes}, number, why);
    if (status)
        free(copy);
    else
        m->items[*number] = marker;
    return status;
}

enum status model_chat_markers_find(struct model_chat_markers *m,
                                    const struct model_tokenizer *tokenizer,
                                    const struct model_chat_text *text, struct base_string object,
                                    struct status_why *why)
{
    const struct base_string whole = {text->text, text->n_bytes};
    cJSON *conversation = NULL;
    enum status status = STATUS_OK;
    size_t n = 0;
    m->n_texts++;
    for (size_t at = 0; at < whole.n_bytes && !status; at += n ? n : 1) {
        int32_t i = -1;
        n = marker_at((struct base_string){whole.data + at, whole.n_bytes - at});
        const struct base_string name = {whole.data + at, n};
        status = n ? meet(m, tokenizer, name, &i, why) : STATUS_OK;
        struct model_chat_marker *marker = i < 0 ? NULL : &m->items[i];
        if (!marker || marker->n_tokens <= 1 || marker->missing || marker->n_texts == m->n_texts)
            continue;
        marker->n_texts = m->n_texts;
        if (!conversation)
            status = base_json_parse(&conversation, object.data, object.n_bytes, NULL, why);
        marker->missing = count(whole, name) > count_in(conversation, name);
    }
    cJSON_Delete(conversation);
    return status;
}

void model_chat_markers_free(struct model_chat_markers *m)
{
    for (size_t i = 0; i < m->names.n; i++)
        free((char *)(uintptr_t)m->names.strings[i].data);
    base_strtab_free(&m->names);
    free(m->items);
    *m = (struct model_chat_markers){0};
}
