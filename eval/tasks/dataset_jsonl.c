/* Tasks as lines of JSON, an object each, as data sets are published. */
#include <assert.h>
#include <stdint.h>
#include <string.h>

#include "base/json/lines.h"
#include "eval/tasks/dataset.h"

/** How the objects of a kind name their parts. */
struct names {
    const char *text;
    const char *choices; /* a list of strings; NULL: two strings, option1 and option2 */
    const char *answer;  /* a number, or a string of one */
    size_t first_answer; /* the number of the first choice */
    size_t n_choices;    /* 0: two or more */
};

static const struct names names_of[] = {
    [EVAL_HELLASWAG] = {"ctx", "endings", "label", 0, 4},
    [EVAL_WINOGRANDE] = {"sentence", NULL, "answer", 1, 2},
    [EVAL_MULTIPLE_CHOICE] = {"question", "choices", "answer", 0, 0},
};

/** Whose lines are read. */
struct reading {
    struct eval_dataset *dataset;
    enum eval_choice_kind kind;
};

/**
 * Take a member's text. The strings of an object take less room than its line, so they go where
 * the line was: l->from advances.
 */
static enum status keep(struct base_json_line *l, const cJSON *item, const char *name,
                        struct base_string *s, struct status_why *why)
{
    const char *text = cJSON_GetStringValue(item);
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > (size_t)(l->end - l->from))
        return status_fail(why, STATUS_FORMAT, "line %zu: expected \"%s\" with text", l->number,
                           name);
    memcpy(l->from, text, n);
    *s = (struct base_string){l->from, n};
    l->from += n;
    return STATUS_OK;
}

/** The list of choices; where they are an object as in ARC, its texts. NULL: there is none. */
static const cJSON *choices_of(const cJSON *object, const struct names *names)
{
    const cJSON *choices =
        names->choices ? cJSON_GetObjectItemCaseSensitive(object, names->choices) : NULL;
    return cJSON_IsObject(choices) ? cJSON_GetObjectItemCaseSensitive(choices, "text") : choices;
}

static enum status add_choices(struct eval_dataset *d, struct base_json_line *l,
                               const cJSON *object, const struct names *names,
                               struct status_why *why)
{
    static const char *const options[] = {"option1", "option2"};
    const cJSON *list = choices_of(object, names);
    size_t n = names->choices ? cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0 : 2;
    if (n < 2 || (names->n_choices && n != names->n_choices))
        return status_fail(why, STATUS_FORMAT, "line %zu: expected \"%s\" with a list of %s texts",
                           l->number, names->choices, names->n_choices ? "4" : "2 or more");
    const cJSON *item = list ? list->child : NULL;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        struct base_string choice;
        assert(list || i < sizeof options / sizeof *options);
        if (!list)
            item = cJSON_GetObjectItemCaseSensitive(object, options[i]);
        status = keep(l, item, list ? names->choices : options[i], &choice, why);
        if (!status)
            status = eval_dataset_add_choice(d, choice, why);
        item = list ? item->next : NULL;
    }
    return status;
}

/** ARC: the index in choices.label of answerKey; SIZE_MAX where there is none. */
static size_t labelled_answer_of(const cJSON *object, const cJSON *choices, size_t n_choices)
{
    const char *key = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "answerKey"));
    const cJSON *labels = cJSON_GetObjectItemCaseSensitive(choices, "label");
    if (!key || !cJSON_IsArray(labels) || (size_t)cJSON_GetArraySize(labels) != n_choices)
        return SIZE_MAX;
    size_t i = 0;
    for (const cJSON *label = labels->child; label; label = label->next, i++) {
        const char *text = cJSON_GetStringValue(label);
        if (text && strcmp(text, key) == 0)
            return i;
    }
    return SIZE_MAX;
}

/** The right choice from 0; SIZE_MAX where there is none. */
static size_t answer_of(const cJSON *object, const struct names *names, size_t n_choices)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, names->answer);
    const char *digits = cJSON_GetStringValue(item);
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (digits && digits[0] >= '0' && digits[0] <= '9' && digits[1] == '\0')
        number = digits[0] - '0';
    for (size_t i = 0; i < n_choices; i++)
        if (number == (double)(i + names->first_answer))
            return i;
    return SIZE_MAX;
}

static enum status add_task(struct eval_dataset *d, struct base_json_line *l, const cJSON *object,
                            enum eval_choice_kind kind, struct status_why *why)
{
    const struct names *names = &names_of[kind];
    struct eval_question question = {.line = l->number};
    enum status status = keep(l, cJSON_GetObjectItemCaseSensitive(object, names->text), names->text,
                              &question.text, why);
    if (!status && kind == EVAL_WINOGRANDE)
        status = eval_question_split(&question, question.text, why);
    if (!status)
        status = eval_dataset_add(d, &question, why);
    if (!status)
        status = add_choices(d, l, object, names, why);
    if (status)
        return status;
    struct eval_question *added = &d->questions[d->n_questions - 1];
    const cJSON *choices =
        names->choices ? cJSON_GetObjectItemCaseSensitive(object, names->choices) : NULL;
    bool labelled = cJSON_IsObject(choices);
    added->answer = labelled ? labelled_answer_of(object, choices, added->n_choices)
                             : answer_of(object, names, added->n_choices);
    if (labelled && added->answer == SIZE_MAX)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: expected \"answerKey\" with one of the texts of "
                           "\"choices\".\"label\", of which there are as many as choices",
                           l->number);
    if (added->answer == SIZE_MAX)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: expected \"%s\" with a number from %zu to %zu", l->number,
                           names->answer, names->first_answer,
                           names->first_answer + added->n_choices - 1);
    return STATUS_OK;
}

static enum status read_task(void *user, const struct base_json_line *line, const cJSON *object,
                             struct status_why *why)
{
    const struct reading *r = user;
    struct base_json_line l = *line;
    return add_task(r->dataset, &l, object, r->kind, why);
}

bool eval_dataset_is_jsonl(const char *bytes, size_t n_bytes)
{
    const char *newline = n_bytes ? memchr(bytes, '\n', n_bytes) : NULL;
    size_t n = newline ? (size_t)(newline - bytes) : n_bytes;
    if (n == 0 || *bytes != '{')
        return false;
    cJSON *object;
    enum status status = base_json_parse(&object, bytes, n, NULL, &(struct status_why){""});
    cJSON_Delete(object);
    return status != STATUS_FORMAT;
}

enum status eval_dataset_jsonl(struct eval_dataset *out, enum eval_choice_kind kind, char *bytes,
                               size_t n_bytes, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct reading reading = {out, kind};
    enum status status = base_json_lines_read(bytes, n_bytes, read_task, &reading, why);
    return eval_dataset_end(out, status, "lines", why);
}
