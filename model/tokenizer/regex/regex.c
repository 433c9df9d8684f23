#include "model/tokenizer/regex/regex.h"

#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/*
 * White space as the tokenizers know it: Unicode's property White_Space. PCRE2's own \s also
 * has U+180E, so \s and \S are spelled out.
 */
#define WHITE_SPACE                                                                                \
    "\\x09-\\x0D\\x20\\x{85}\\x{A0}\\x{1680}\\x{2000}-\\x{200A}"                                   \
    "\\x{2028}\\x{2029}\\x{202F}\\x{205F}\\x{3000}"
const char model_regex_white_space[] = WHITE_SPACE;

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
        memcpy(out, model_regex_white_space, sizeof WHITE_SPACE - 1);
        out += sizeof WHITE_SPACE - 1;
        if (!in_class)
            *out++ = ']';
    }
    *out = 0;
}

enum status model_regex_compile(void **out, const char *expression, bool of_lines,
                                struct status_why *why)
{
    char *spelled = malloc(strlen(expression) * sizeof WHITE_SPACE + 1);
    pcre2_compile_context *context = pcre2_compile_context_create(NULL);
    if (!spelled || !context) {
        free(spelled);
        pcre2_compile_context_free(context);
        return status_fail(why, STATUS_MEMORY, "cannot allocate a regular expression");
    }
    spell_out_space(expression, spelled);
    int error;
    PCRE2_SIZE offset;
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_code *code = pcre2_compile((PCRE2_SPTR)spelled, PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C |
                                         (of_lines ? PCRE2_MULTILINE : PCRE2_DOLLAR_ENDONLY),
                                     &error, &offset, context);
    free(spelled);
    pcre2_compile_context_free(context);
    if (!code) {
        char message[128] = "";
        pcre2_get_error_message(error, (PCRE2_UCHAR *)message, sizeof message);
        return status_fail(why, STATUS_UNSUPPORTED, "PCRE2 does not take it: %s", message);
    }
    /* Where there is no JIT, the interpreter gives the same matches more slowly. */
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    *out = code;
    return STATUS_OK;
}

void model_regex_free(void *code)
{
    pcre2_code_free(code);
}

static enum status prepare(struct model_regex_run *run, struct status_why *why)
{
    enum { STACK_BYTES_FIRST = 32 << 10, STACK_BYTES_MAX = 16 << 20 };
    if (run->data)
        return STATUS_OK;
    run->context = pcre2_match_context_create(NULL);
    run->data = pcre2_match_data_create(2, NULL);
    run->stack = pcre2_jit_stack_create(STACK_BYTES_FIRST, STACK_BYTES_MAX, NULL);
    if (!run->data || !run->context)
        return status_fail(why, STATUS_MEMORY, "cannot allocate a regular expression match");
    if (run->stack)
        pcre2_jit_stack_assign(run->context, NULL, run->stack);
    return STATUS_OK;
}

void model_regex_run_free(struct model_regex_run *run)
{
    pcre2_match_data_free(run->data);
    pcre2_match_context_free(run->context);
    pcre2_jit_stack_free(run->stack);
    *run = (struct model_regex_run){0};
}

enum status model_regex_find(const void *code, struct model_regex_run *run, struct base_string text,
                             size_t from, uint32_t limit, struct model_regex_match *match,
                             struct status_why *why)
{
    enum status status = prepare(run, why);
    *match = (struct model_regex_match){0};
    if (status)
        return status;
    pcre2_set_match_limit(run->context, limit);
    int rc = pcre2_match(code, (PCRE2_SPTR)text.data, text.n_bytes, from, PCRE2_NO_UTF_CHECK,
                         run->data, run->context);
    if (rc == PCRE2_ERROR_NOMATCH)
        return STATUS_OK;
    if (rc < 0) {
        char message[128] = "";
        pcre2_get_error_message(rc, (PCRE2_UCHAR *)message, sizeof message);
        return status_fail(why, STATUS_UNSUPPORTED,
                           "fails %zu bytes into a stretch of %zu bytes: %s", from, text.n_bytes,
                           message);
    }
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(run->data);
    match->found = true;
    match->has_group = rc > 1;
    match->begin = ends[0];
    match->end = ends[1];
    match->group = rc > 1 ? ends[2] : ends[0];
    return STATUS_OK;
}
