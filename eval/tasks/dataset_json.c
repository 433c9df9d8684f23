/* Tasks as JSON objects, as data sets are published. */
#include <stdint.h>
#include <string.h>

#include "base/json/lines.h"
#include "base/json/read.h"
#include "base/text/strtab.h"
#include "eval/tasks/dataset.h"

/** How the objects of a form name their parts. */
struct names {
    const char *text;
    const char *choices; /* a list of strings; NULL: two strings, these: */
    const char *options[2];
    const char *answer;  /* a number, or a string of one */
    size_t first_answer; /* the number of the first choice */
    size_t n_choices;    /* 0: two or more */
};

static const struct names names_of[] = {
    [EVAL_HELLASWAG] = {"ctx", "endings", {NULL}, "label", 0, 4},
    [EVAL_WINOGRANDE] = {"sentence", NULL, {"option1", "option2"}, "answer", 1, 2},
    [EVAL_MULTIPLE_CHOICE] = {"question", "choices", {NULL}, "answer", 0, 0},
};
static const struct names names_of_piqa = {"goal", NULL, {"sol1", "sol2"}, "label", 0, 2};

/** Whose objects are read. */
struct reading {
    struct eval_dataset *dataset;
    const struct eval_dataset_options *options;
    struct base_string labels; /* those that are left */
    size_t n_labels;           /* that were taken */
};

/** An object, and the room for its texts. */
struct task {
    struct base_json_line l;
    const cJSON *object;
};

/**
 * Take a text. The strings of an object take less room than the object, so they go where that was:
 * from advances.
 */
static enum status keep(struct task *t, const char *text, const char *name, struct base_string *s,
                        struct status_why *why)
{
    struct base_json_line *l = &t->l;
    size_t n = text ? strlen(text) : 0;
    if (n == 0 || n > (size_t)(l->end - l->from))
        return status_fail(why, STATUS_FORMAT, "line %zu: expected \"%s\" with text", l->number,
                           name);
    memcpy(l->from, text, n);
    *s = (struct base_string){l->from, n};
    l->from += n;
    return STATUS_OK;
}

static enum status add_choice(struct reading *r, struct task *t, const char *text, const char *name,
                              struct status_why *why)
{
    struct base_string choice;
    enum status status = keep(t, text, name, &choice, why);
    return status ? status : eval_dataset_add_choice(r->dataset, choice, why);
}

static enum status add_question(struct reading *r, struct task *t, const cJSON *text,
                                const char *name, struct status_why *why)
{
    struct eval_question question = {.line = t->l.number};
    enum status status = keep(t, cJSON_GetStringValue(text), name, &question.text, why);
    if (!status && r->options->kind == EVAL_WINOGRANDE)
        status = eval_question_split(&question, question.text, why);
    return status ? status : eval_dataset_add(r->dataset, &question, why);
}

static struct eval_question *last(const struct reading *r)
{
    return &r->dataset->questions[r->dataset->n_questions - 1];
}

/** Number the labels of the choices, each of which has another one, up to one that is no text. */
static enum status read_labels(struct base_strtab *labels, const cJSON *label, const struct task *t,
                               struct status_why *why)
{
    for (; label; label = label->next) {
        const char *text =
            cJSON_GetStringValue(cJSON_IsObject(label) ? base_json_member(label, "label") : label);
        size_t n = labels->n;
        int32_t number;
        if (!text)
            break;
        if (base_strtab_add(labels, (struct base_string){text, strlen(text)}, &number, why))
            return STATUS_MEMORY;
        if (labels->n == n)
            return status_fail(why, STATUS_FORMAT,
                               "line %zu: two of \"choices\" have the label \"%.80s\"; expected "
                               "another one for each",
                               t->l.number, text);
    }
    return STATUS_OK;
}

/** The answer by a label: the index of `key` among the labels, the first of which is `label`. */
static enum status find_label(struct reading *r, const struct task *t, const char *key,
                              const cJSON *label, struct status_why *why)
{
    struct base_strtab labels = {0};
    enum status status = read_labels(&labels, label, t, why);
    int32_t answer =
        key && !status ? base_strtab_find(&labels, (struct base_string){key, strlen(key)}) : -1;
    bool found = answer >= 0 && labels.n == last(r)->n_choices;
    base_strtab_free(&labels);
    if (!status && !found)
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: expected \"answerKey\" with one of the labels of "
                           "\"choices\", of which there are as many as choices",
                           t->l.number);
    if (found)
        last(r)->answer = (size_t)answer;
    return status;
}

/** ARC as AI2 publishes it: {"question": {"stem", "choices": [{"text", "label"}]}, "answerKey"}. */
static enum status add_arc(struct reading *r, struct task *t, const cJSON *question,
                           struct status_why *why)
{
    const cJSON *choices = base_json_member(question, "choices"), *choice;
    enum status status = add_question(r, t, base_json_member(question, "stem"), "stem", why);
    if (!status && (!cJSON_IsArray(choices) || cJSON_GetArraySize(choices) < 2))
        status = status_fail(why, STATUS_FORMAT,
                             "line %zu: expected \"choices\" with a list of 2 or more objects",
                             t->l.number);
    if (status)
        return status;
    cJSON_ArrayForEach(choice, choices)
    {
        status =
            add_choice(r, t, cJSON_GetStringValue(base_json_member(choice, "text")), "text", why);
        if (status)
            return status;
    }
    return find_label(r, t, cJSON_GetStringValue(base_json_member(t->object, "answerKey")),
                      choices->child, why);
}

/** Targets of TruthfulQA: lists of choices and of labels, or an object of answers and labels. */
struct targets {
    const char *name;
    const cJSON *choice, *label; /* the first ones; an answer is its label's name without lists */
    bool listed;
};

static enum status find_targets(struct targets *out, const struct task *t, const char *name,
                                struct status_why *why)
{
    const cJSON *targets = base_json_member(t->object, name),
                *choices = base_json_member(targets, "choices");
    const cJSON *labels = base_json_member(targets, "labels");
    bool listed = cJSON_IsArray(choices);
    int n = cJSON_GetArraySize(listed ? choices : targets);
    if (!cJSON_IsObject(targets) || n < 2 ||
        (listed && (!cJSON_IsArray(labels) || cJSON_GetArraySize(labels) != n)))
        return status_fail(why, STATUS_FORMAT,
                           "line %zu: expected \"%s\" with 2 or more answers and a label of 0 or 1 "
                           "for each",
                           t->l.number, name);
    *out = (struct targets){name, listed ? choices->child : NULL,
                            listed ? labels->child : targets->child, listed};
    return STATUS_OK;
}

/** Add the choices with this label, or any (-1), and count the right ones. */
static enum status add_targets(struct reading *r, struct task *t, const struct targets *targets,
                               int wanted, size_t *n_right, struct status_why *why)
{
    const cJSON *choice = targets->choice;
    enum status status = STATUS_OK;
    for (const cJSON *label = targets->label; label && !status; label = label->next) {
        bool right = cJSON_IsNumber(label) && label->valuedouble == 1;
        if (!right && !(cJSON_IsNumber(label) && label->valuedouble == 0))
            return status_fail(why, STATUS_FORMAT, "line %zu: a label of \"%s\" is not 0 or 1",
                               t->l.number, targets->name);
        if (wanted < 0 || wanted == right) {
            if (right && ++*n_right == 1)
                last(r)->answer = last(r)->n_choices;
            status =
                add_choice(r, t, targets->listed ? cJSON_GetStringValue(choice) : label->string,
                           targets->name, why);
        }
        choice = choice ? choice->next : NULL;
    }
    return status;
}

static enum status add_truthful(struct reading *r, struct task *t, struct status_why *why)
{
    bool mc2 = r->options->kind == EVAL_MC2;
    struct targets targets;
    size_t n_right = 0;
    enum status status = find_targets(&targets, t, mc2 ? "mc2_targets" : "mc1_targets", why);
    if (!status)
        status = add_question(r, t, base_json_member(t->object, "question"), "question", why);
    if (!status)
        status = add_targets(r, t, &targets, mc2 ? 1 : -1, &n_right, why);
    if (!status && mc2)
        status = add_targets(r, t, &targets, 0, &n_right, why);
    if (!status && (n_right == 0 || (!mc2 && n_right > 1)))
        status = status_fail(why, STATUS_FORMAT,
                             "line %zu: %zu answers of \"%s\" have the label 1, expected one%s",
                             t->l.number, n_right, targets.name, mc2 ? " or more" : "");
    if (!status && mc2)
        last(r)->n_right = n_right;
    return status;
}

/** The list of choices; where they are an object as in ARC, its texts. NULL: there is none. */
static const cJSON *choices_of(const cJSON *object, const struct names *names)
{
    const cJSON *choices = names->choices ? base_json_member(object, names->choices) : NULL;
    return cJSON_IsObject(choices) ? base_json_member(choices, "text") : choices;
}

static enum status add_choices(struct reading *r, struct task *t, const struct names *names,
                               struct status_why *why)
{
    const cJSON *list = choices_of(t->object, names);
    size_t n = names->choices ? cJSON_IsArray(list) ? (size_t)cJSON_GetArraySize(list) : 0 : 2;
    if (n < 2 || (names->n_choices && n != names->n_choices))
        return status_fail(why, STATUS_FORMAT, "line %zu: expected \"%s\" with a list of %s texts",
                           t->l.number, names->choices, names->n_choices ? "4" : "2 or more");
    const cJSON *item = list ? list->child : NULL;
    enum status status = STATUS_OK;
    for (size_t i = 0; i < n && !status; i++) {
        const char *option = names->options[i % 2];
        const cJSON *text = list ? item : base_json_member(t->object, option);
        status = add_choice(r, t, cJSON_GetStringValue(text), list ? names->choices : option, why);
        item = list ? item->next : NULL;
    }
    return status;
}

/** The right choice from 0; SIZE_MAX where there is none. MMLU's answers may be letters. */
static size_t answer_of(const cJSON *item, const struct names *names, size_t n_choices)
{
    const char *text = cJSON_GetStringValue(item);
    double number = cJSON_IsNumber(item) ? item->valuedouble : -1;
    if (text && text[0] >= '0' && text[0] <= '9' && text[1] == '\0')
        number = text[0] - '0';
    if (text && names->choices && text[0] >= 'A' && text[0] <= 'Z' && text[1] == '\0')
        number = (double)(size_t)(text[0] - 'A') + (double)names->first_answer;
    for (size_t i = 0; i < n_choices; i++)
        if (number == (double)(i + names->first_answer))
            return i;
    return SIZE_MAX;
}

/** The answer in the next line of the labels. */
static enum status take_label(struct reading *r, const struct task *t, const struct names *names,
                              struct status_why *why)
{
    struct base_string *left = &r->labels;
    const char *newline = left->n_bytes ? memchr(left->data, '\n', left->n_bytes) : NULL;
    size_t n = newline ? (size_t)(newline - left->data) : left->n_bytes;
    char digits[2] = "";
    if (n && n - (left->data[n - 1] == '\r') == 1)
        digits[0] = left->data[0];
    const cJSON item = {.type = cJSON_String, .valuestring = digits};
    last(r)->answer = answer_of(&item, names, last(r)->n_choices);
    left->data += newline ? n + 1 : n;
    left->n_bytes -= newline ? n + 1 : n;
    r->n_labels++;
    return last(r)->answer != SIZE_MAX
               ? STATUS_OK
               : status_fail(why, STATUS_FORMAT,
                             "line %zu: line %zu of --task-labels is to have its answer, a number "
                             "from %zu to %zu",
                             t->l.number, r->n_labels, names->first_answer,
                             names->first_answer + last(r)->n_choices - 1);
}

static enum status find_answer(struct reading *r, const struct task *t, const struct names *names,
                               struct status_why *why)
{
    const cJSON *choices = names->choices ? base_json_member(t->object, names->choices) : NULL;
    const cJSON *answer = base_json_member(t->object, names->answer);
    const char *key = cJSON_GetStringValue(base_json_member(t->object, "answerKey"));
    if (cJSON_IsObject(choices)) {
        const cJSON *labels = base_json_member(choices, "label");
        return find_label(r, t, key, cJSON_IsArray(labels) ? labels->child : NULL, why);
    }
    if (r->options->labels.data && !answer)
        return take_label(r, t, names, why);
    last(r)->answer = answer_of(answer, names, last(r)->n_choices);
    return last(r)->answer != SIZE_MAX
               ? STATUS_OK
               : status_fail(why, STATUS_FORMAT,
                             "line %zu: expected \"%s\" with a number from %zu to %zu", t->l.number,
                             names->answer, names->first_answer,
                             names->first_answer + last(r)->n_choices - 1);
}

static enum status add_plain(struct reading *r, struct task *t, struct status_why *why)
{
    const struct names *names = &names_of[r->options->kind];
    if (r->options->kind == EVAL_MULTIPLE_CHOICE && base_json_member(t->object, "goal"))
        names = &names_of_piqa;
    enum status status =
        add_question(r, t, base_json_member(t->object, names->text), names->text, why);
    if (!status)
        status = add_choices(r, t, names, why);
    return status ? status : find_answer(r, t, names, why);
}

static enum status read_task(void *user, const struct base_json_line *line, const cJSON *object,
                             struct status_why *why)
{
    struct reading *r = user;
    struct task t = {*line, object};
    const cJSON *question = base_json_member(object, "question");
    bool plain = r->options->kind == EVAL_HELLASWAG || r->options->kind == EVAL_WINOGRANDE;
    if (!plain && (r->options->kind == EVAL_MC2 || base_json_member(object, "mc1_targets")))
        return add_truthful(r, &t, why);
    return !plain && cJSON_IsObject(question) ? add_arc(r, &t, question, why)
                                              : add_plain(r, &t, why);
}

bool eval_dataset_is_json(const char *bytes, size_t n_bytes)
{
    cJSON *object;
    enum status status = base_json_first_object(&object, bytes, n_bytes, &(struct status_why){""});
    cJSON_Delete(object);
    return status || object;
}

enum status eval_dataset_json(struct eval_dataset *out, const struct eval_dataset_options *options,
                              char *bytes, size_t n_bytes, struct status_why *why)
{
    *out = (struct eval_dataset){0};
    struct reading r = {out, options, options->labels, 0};
    enum status status = base_json_objects_read(bytes, n_bytes, read_task, &r, why);
    bool given = options->labels.data;
    if (!status && given && r.n_labels < out->n_questions)
        status = status_fail(why, STATUS_FORMAT,
                             "%zu of %zu tasks have an answer, and --task-labels gives others; "
                             "leave it out",
                             out->n_questions - r.n_labels, out->n_questions);
    if (!status && r.labels.n_bytes)
        status = status_fail(why, STATUS_FORMAT, "has %zu tasks, --task-labels has more lines",
                             r.n_labels);
    return eval_dataset_end(out, status, "lines", why);
}
