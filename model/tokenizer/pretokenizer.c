#include "model/tokenizer/pretokenizer.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/text/quote.h"
#include "base/text/utf8.h"
#include "model/tokenizer/vocab.h"

/*
 * White space as the tokenizers know it: Unicode's property White_Space. PCRE2's own \s also
 * has U+180E, so \s and \S are spelled out.
 */
static const char white_space[] = "\\x09-\\x0D\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}"
                                  "\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}";

/** Replace \s and \S by the set above, inside brackets and outside. out: as large as needed. */
static void spell_out_space(const char *expression, char *out)
{
    bool in_class = false;
    for (const char *p = expression; *p; p++) {
        if (p[0] != '\\') {
            in_class = *p == '[' ? true : *p == ']' ? false : in_class;
            *out++ = *p;
            continue;
        }
        p++;
        if (*p != 's' && *p != 'S') {
            *out++ = '\\';
            *out++ = *p;
            continue;
        }
        if (!in_class)
            *out++ = '[';
        if (*p == 'S')
            *out++ = '^';
        memcpy(out, white_space, sizeof white_space - 1);
        out += sizeof white_space - 1;
        if (!in_class)
            *out++ = ']';
    }
    *out = 0;
}

static enum status compile(void **out, const char *expression, struct status_why *why)
{
    char *spelled = malloc(strlen(expression) * sizeof white_space + 1);
    if (!spelled)
        return status_fail(why, STATUS_MEMORY, "cannot allocate a regular expression");
    spell_out_space(expression, spelled);
    int error;
    PCRE2_SIZE offset;
    pcre2_code *code =
        pcre2_compile((PCRE2_SPTR)spelled, PCRE2_ZERO_TERMINATED,
                      PCRE2_UTF | PCRE2_UCP | PCRE2_DOLLAR_ENDONLY, &error, &offset, NULL);
    free(spelled);
    if (!code) {
        char message[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        return status_fail(why, STATUS_UNSUPPORTED,
                           "PCRE2 does not take the pre-tokeniser's expression %s: %s", expression,
                           message);
    }
    /* Where there is no JIT, the interpreter gives the same matches more slowly. */
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    *out = code;
    return STATUS_OK;
}

static enum status refuse_name(struct base_string name, struct status_why *why)
{
    char known[512] = "";
    struct base_quoted quoted;
    const struct model_pretokenizer_row *row;
    for (size_t i = 0; (row = model_pretokenizer_row_at(i)) != NULL; i++)
        base_list_name(known, sizeof known, row->name);
    return status_fail(why, STATUS_UNSUPPORTED, "pre-tokeniser %s is not known; known are %s",
                       base_quote(&quoted, name), known);
}

enum status model_pretokenizer_init(struct model_pretokenizer *p, struct base_string name,
                                    bool as_llama_cpp, struct status_why *why)
{
    *p = (struct model_pretokenizer){0};
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
        enum status status = compile(&p->codes[p->n_codes], expression, why);
        if (status)
            return status;
        p->n_codes++;
    }
    return STATUS_OK;
}

void model_pretokenizer_free(struct model_pretokenizer *p)
{
    for (size_t i = 0; i < p->n_codes; i++)
        pcre2_code_free(p->codes[i]);
    *p = (struct model_pretokenizer){0};
}

/**
 * The limits are lifted: `\s*[\r\n]+` steps back through a run of spaces once, and PCRE2
 * counts each step. No expression of the list tries one character more than a constant number
 * of times, and none keeps a state per character, so time stays linear and memory constant.
 */
static enum status prepare(struct model_tok_run *run)
{
    enum { STACK_BYTES_FIRST = 32 << 10, STACK_BYTES_MAX = 1 << 20 };
    if (run->match_data)
        return STATUS_OK;
    pcre2_match_context *context = run->match_context = pcre2_match_context_create(NULL);
    run->match_data = pcre2_match_data_create(2, NULL);
    run->jit_stack = pcre2_jit_stack_create(STACK_BYTES_FIRST, STACK_BYTES_MAX, NULL);
    if (!run->match_data || !context)
        return status_fail(run->why, STATUS_MEMORY, "cannot allocate a regular expression match");
    pcre2_set_match_limit(context, UINT32_MAX);
    if (run->jit_stack)
        pcre2_jit_stack_assign(context, NULL, run->jit_stack);
    return STATUS_OK;
}

void model_pretokenizer_run_free(struct model_tok_run *run)
{
    pcre2_match_data_free(run->match_data);
    pcre2_match_context_free(run->match_context);
    pcre2_jit_stack_free(run->jit_stack);
    run->match_data = run->match_context = run->jit_stack = NULL;
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

/** Apply expressions [i_code, n_codes) to one piece; the depth is the length of the list. */
static enum status split(const struct splitting *s, size_t i_code, const char *text, size_t n_bytes)
{
    if (n_bytes == 0)
        return STATUS_OK;
    if (i_code == s->p->n_codes)
        return s->fn(s->user, text, n_bytes);
    size_t done = 0;
    while (done < n_bytes) {
        int rc = pcre2_match(s->p->codes[i_code], (PCRE2_SPTR)text, n_bytes, done,
                             PCRE2_NO_UTF_CHECK, s->run->match_data, s->run->match_context);
        if (rc == PCRE2_ERROR_NOMATCH)
            break;
        if (rc < 0) {
            char message[128] = "";
            pcre2_get_error_message(rc, (PCRE2_UCHAR *)message, sizeof message);
            return status_fail(s->run->why, STATUS_UNSUPPORTED,
                               "pre-tokeniser %s fails %zu bytes into a stretch of %zu bytes: %s",
                               s->p->row->name, done, n_bytes, message);
        }
        const PCRE2_SIZE *match = pcre2_get_ovector_pointer(s->run->match_data);
        bool has_group = rc > 1;
        size_t begin = match[0], end = match[1], group = has_group ? match[2] : begin;
        enum status status = split(s, i_code + 1, text + done, begin - done);
        if (!status && has_group)
            status = split_threes(s, i_code + 1, text + begin, group - begin, end - begin);
        else if (!status)
            status = split(s, i_code + 1, text + begin, end - begin);
        if (status)
            return status;
        done = end;
    }
    return split(s, i_code + 1, text + done, n_bytes - done);
}

enum status model_pretokenizer_split(const struct model_pretokenizer *p, struct model_tok_run *run,
                                     const char *text, size_t n_bytes, model_piece_fn *fn,
                                     void *user)
{
    enum status status = prepare(run);
    const struct splitting s = {p, run, fn, user};
    return status ? status : split(&s, 0, text, n_bytes);
}
