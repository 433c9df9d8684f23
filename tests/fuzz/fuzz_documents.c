/*
 * Documents as JSON: the first byte says how long windows are and how the file goes on, which
 * template conversations have and what is scored of them, the rest is the file. Each scored token
 * must be in one window.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eval/input/documents.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenizer_input.h"

enum { BOS = INPUT_BOS };

static void check_windows(const struct eval_documents *d, size_t n_ctx)
{
    struct eval_plan plan;
    const struct eval_plan_options options = {.n_ctx = n_ctx, .bos = BOS};
    require(eval_plan_make_documents(&plan, &options, d, NULL) == STATUS_OK);
    size_t n_scored = 0;
    for (size_t w = 0; w < plan.n_windows; w++) {
        const struct eval_document *item = &d->items[eval_plan_document(&plan, w)];
        size_t n = eval_plan_n_scored(&plan, w), last = 0;
        require(n > 0 && eval_plan_n_inputs(&plan, w) < n_ctx);
        for (size_t i = 0; i < n; i++) {
            size_t target = eval_plan_target(&plan, w, eval_plan_position(&plan, w, i));
            require(d->scored[target] && target > last);
            require(target > item->first && target < item->first + item->n_tokens);
            last = target;
        }
        n_scored += n;
    }
    require(n_scored == d->n_scored && eval_plan_row(&plan, plan.n_windows) == n_scored);
    eval_plan_free(&plan);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    /* With and without a prompt for the answer, and with blocks that say what is the answer. */
    static const char *const templates[] = {
        "{% for m in messages %}<s>{{ m.role ~ m.content }}</s>{% endfor %}",
        "{% for m in messages %}:{{ m.content | trim }}</s>{% endfor %}{{ add_generation_prompt }}",
        "{% for m in messages %}{% generation %}{{ m.content }}{% endgeneration %}.{% endfor %}",
    };
    const char *text_of = templates[data[0] % 3];
    const struct eval_document_rules rules = {.tokenizer = input_vocabulary(),
                                              .parse_special = data[0] & 128,
                                              .chat_template = {text_of, strlen(text_of)},
                                              .mask = data[0] % 5 % 3};
    struct eval_documents d = {.rules = &rules};
    struct status_why why = {""};
    char *lines = fuzz_copy(data + 1, n_bytes - 1);
    const struct base_text text = {
        .data = lines, .n_bytes = n_bytes - 1, .file_bytes = n_bytes - 1};
    enum eval_json kind;
    require(!eval_documents_recognise(&kind, lines, n_bytes - 1, &why) || *why.text);
    why.text[0] = '\0';
    require(eval_documents_begin_file(&d, "f", &text, &why) == STATUS_OK);
    enum status status = eval_documents_add_objects(&d, lines, n_bytes - 1, &why);
    require((status == STATUS_OK) == (why.text[0] == '\0'));
    if (!status)
        status = eval_documents_end(&d, &why);
    require(status == STATUS_OK || strchr(why.text, '\n') == NULL);
    for (size_t i = 0; i < d.n; i++) {
        require(i == 0 || d.items[i].line >= d.items[i - 1].line);
        require(d.items[i].category < (int32_t)d.categories.n);
    }
    if (!status)
        check_windows(&d, 3 + data[0] % 64);
    eval_documents_free(&d);
    free(lines);
    return 0;
}
