#include "model/tokenizer/pretokenizer.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "base/text/words.h"
#include "model/tokenizer/vocab.h"

static bool cuts_alike(const struct model_pretokenizer_row *a,
                       const struct model_pretokenizer_row *b)
{
    return memcmp(a->expressions, b->expressions, sizeof a->expressions) == 0;
}

/** The sentence has one name of each way to cut: all of them are more than anybody would read. */
static enum status refuse_name(struct base_string name, struct status_why *why)
{
    char known[512] = "", nearest[64] = "", text[64];
    struct base_quoted quoted;
    const struct model_pretokenizer_row *row, *before = NULL;
    size_t n_others = 0, rank = SIZE_MAX;
    snprintf(text, sizeof text, "%.*s", (int)base_min(name.n_bytes, sizeof text - 1), name.data);
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)) != NULL; before = row, i++) {
        base_likely_name(text, row->name, nearest, sizeof nearest, &rank);
        if (before && cuts_alike(before, row))
            n_others++;
        else
            base_list_name(known, sizeof known, row->name);
    }
    return status_fail(why, STATUS_UNSUPPORTED,
                       "pre-tokeniser %s is not known%s%s%s; known are %s and %zu other names for "
                       "the same, which docs/tokenizers.md lists",
                       base_quote(&quoted, name), *nearest ? " (did you mean " : "", nearest,
                       *nearest ? "?)" : "", known, n_others);
}

enum status model_pretokenizer_init(struct model_pretokenizer *p, struct base_string name,
                                    bool as_llama_cpp, struct status_why *why)
{
    *p = (struct model_pretokenizer){.as_llama_cpp = as_llama_cpp};
    const struct model_pretokenizer_row *row;
    size_t i = 0;
    while ((row = model_pretokenizer_row_at(i)) != NULL && !model_string_is(name, row->name))
        i++;
    if (!row)
        return refuse_name(name, why);
    p->row = row;
    while (p->n_codes < MODEL_PRETOKENIZER_EXPRESSIONS && row->expressions[p->n_codes]) {
        const char *expression = row->expressions[p->n_codes];
        if (as_llama_cpp)
            expression = model_pretokenizer_in_llama_cpp(expression);
        enum status status = model_regex_compile(&p->codes[p->n_codes], expression, false, why);
        if (status) {
            status_context(why, "pre-tokeniser %s: expression %s", row->name, expression);
            return status;
        }
        p->n_codes++;
    }
    return STATUS_OK;
}

void model_pretokenizer_free(struct model_pretokenizer *p)
{
    for (size_t i = 0; i < p->n_codes; i++)
        model_regex_free(p->codes[i]);
    *p = (struct model_pretokenizer){0};
}

struct splitting {
    const struct model_pretokenizer *p;
    struct model_tok_run *run;
    model_piece_fn *fn;
    void *user;
};

static enum status split(const struct splitting *s, size_t i_code, const char *text,
                         size_t n_bytes);

/**
 * A match of end bytes: cut before each character of the group, the bytes from `group` on, that is
 * a multiple of three characters away from the end; except before the group itself.
 */
static enum status split_threes(const struct splitting *s, size_t i_code, const char *text,
                                size_t group, size_t end)
{
    size_t left = 0, done = 0;
    for (size_t i = group; i < end; i += base_utf8_announced(text[i]))
        left++;
    enum status status = STATUS_OK;
    for (size_t i = group; i < end && !status; i += base_utf8_announced(text[i]), left--) {
        if (left % 3 != 0 || i == group)
            continue;
        status = split(s, i_code, text + done, i - done);
        done = i;
    }
    return status ? status : split(s, i_code, text + done, end - done);
}

/**
 * The limits are lifted: `\s*[\r\n]+` steps back through a run of spaces once, and PCRE2
 * counts each step. No expression of the list tries one character more than a constant number
 * of times, and none keeps a state per character, so time stays linear and memory constant.
 */
static enum status find(const struct splitting *s, size_t i_code, struct base_string text,
                        size_t from, struct model_regex_match *match)
{
    enum status status = model_regex_find(s->p->codes[i_code], &s->run->regex, text, from,
                                          UINT32_MAX, match, s->run->why);
    if (status == STATUS_UNSUPPORTED)
        status_context(s->run->why, "pre-tokeniser %s", s->p->row->name);
    return status;
}

/** Apply expressions [i_code, n_codes) to one piece; the depth is the length of the list. */
static enum status split(const struct splitting *s, size_t i_code, const char *text, size_t n_bytes)
{
    if (n_bytes == 0)
        return STATUS_OK;
    if (i_code == s->p->n_codes)
        return s->fn(s->user, text, n_bytes);
    size_t done = 0;
    while (done < n_bytes) {
        struct model_regex_match m;
        enum status status = find(s, i_code, (struct base_string){text, n_bytes}, done, &m);
        if (status)
            return status;
        if (!m.found)
            break;
        status = split(s, i_code + 1, text + done, m.begin - done);
        if (!status && m.has_group)
            status =
                split_threes(s, i_code + 1, text + m.begin, m.group - m.begin, m.end - m.begin);
        else if (!status)
            status = split(s, i_code + 1, text + m.begin, m.end - m.begin);
        if (status)
            return status;
        done = m.end;
    }
    return split(s, i_code + 1, text + done, n_bytes - done);
}

enum status model_pretokenizer_split(const struct model_pretokenizer *p, struct model_tok_run *run,
                                     const char *text, size_t n_bytes, model_piece_fn *fn,
                                     void *user)
{
    const struct splitting s = {p, run, fn, user};
    return split(&s, 0, text, n_bytes);
}
