/* The members normalizer and pre_tokenizer of tokenizer.json. */
#include "model/tokenizer/declared/steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "base/text/words.h"
#include "model/tokenizer/declared/expression.h"

enum { PLACE_BYTES = 160, MAX_DEPTH = 6, MAX_TEXT = 64 };

static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char behaviours[] = "Removed Isolated MergedWithPrevious MergedWithNext Contiguous";
static const char meta_space[] = "\xE2\x96\x81";

struct parsing {
    struct model_steps *steps;
    const cJSON *item;       /* the part that is read */
    char place[PLACE_BYTES]; /* where it is */
    struct status_why *why;
};

static struct base_string string_of(const char *text)
{
    return (struct base_string){text, strlen(text)};
}

/** The value of a member as a sentence has it. */
static const char *show(struct base_quoted *shown, const cJSON *value)
{
    return !value                  ? "absent"
           : cJSON_IsNull(value)   ? "null"
           : cJSON_IsTrue(value)   ? "true"
           : cJSON_IsFalse(value)  ? "false"
           : cJSON_IsString(value) ? base_quote(shown, string_of(value->valuestring))
                                   : "something else";
}

static enum status refuse(const struct parsing *p, const char *member, const char *expected)
{
    struct base_quoted shown;
    return status_fail(p->why, STATUS_UNSUPPORTED, "%s.%s is %s, expected %s", p->place, member,
                       show(&shown, cJSON_GetObjectItemCaseSensitive(p->item, member)), expected);
}

static enum status read_flag(const struct parsing *p, const char *member, bool *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(p->item, member);
    if (!item || cJSON_IsNull(item))
        return STATUS_OK;
    if (!cJSON_IsBool(item))
        return refuse(p, member, "true or false");
    *value = cJSON_IsTrue(item);
    return STATUS_OK;
}

/** The place of a member's word in a list; an absent one leaves *index. */
static enum status read_word(const struct parsing *p, const char *member, const char *words,
                             int *index)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(p->item, member);
    char expected[256];
    if (!item || cJSON_IsNull(item))
        return STATUS_OK;
    *index = cJSON_IsString(item) ? base_words_index(words, item->valuestring) : -1;
    if (*index >= 0)
        return STATUS_OK;
    snprintf(expected, sizeof expected, "one of %s", words);
    return refuse(p, member, expected);
}

static enum status read_text(const struct parsing *p, const char *member, const char **text)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(p->item, member);
    if (!cJSON_IsString(item) || strlen(item->valuestring) > MAX_TEXT)
        return refuse(p, member, "a text of at most 64 bytes");
    *text = item->valuestring;
    return STATUS_OK;
}

/** A new step; text: copied, or NULL. */
static enum status add_step(const struct parsing *p, enum model_step_kind kind, const char *text,
                            struct model_declared_step **out)
{
    struct model_steps *s = p->steps;
    if (s->n == MODEL_MAX_STEPS)
        return status_fail(p->why, STATUS_UNSUPPORTED, "%s has more than %d steps, expected fewer",
                           p->place, (int)MODEL_MAX_STEPS);
    struct model_declared_step *step = *out = &s->items[s->n];
    *step = (struct model_declared_step){.kind = kind, .text = text ? strdup(text) : NULL};
    if (text && !step->text)
        return status_fail(p->why, STATUS_MEMORY, "%s: no memory for a text", p->place);
    step->n_text = text ? strlen(text) : 0;
    s->n++;
    return STATUS_OK;
}

/** Compile an expression as it stands in the file, or one for this text alone. */
static enum status compile(const struct parsing *p, const char *source, bool literal,
                           struct model_declared_step *step)
{
    struct base_buffer expression = {0};
    enum status status = STATUS_OK;
    if (literal)
        model_expression_literal(&expression, string_of(source));
    else
        status = model_expression_translate(&expression, source, p->why);
    if (!status)
        status = base_buffer_check(&expression, "an expression", p->why);
    if (!status)
        status =
            model_regex_compile(&step->code, expression.data ? expression.data : "", true, p->why);
    if (status && status != STATUS_MEMORY)
        status_context(p->why, "%s", p->place);
    base_buffer_free(&expression);
    return status;
}

/** The member pattern: {"String": ...} or {"Regex": ...}. */
static enum status read_pattern(const struct parsing *p, struct model_declared_step *step)
{
    const cJSON *pattern = cJSON_GetObjectItemCaseSensitive(p->item, "pattern");
    const cJSON *text = cJSON_GetObjectItemCaseSensitive(pattern, "String");
    const cJSON *regex = cJSON_GetObjectItemCaseSensitive(pattern, "Regex");
    const cJSON *one = text ? text : regex;
    if (!cJSON_IsString(one) || !*one->valuestring)
        return refuse(p, "pattern", "an object with String or Regex, a text that is not empty");
    return compile(p, one->valuestring, one == text, step);
}

static enum status add_split(const struct parsing *p, const char *expression,
                             enum model_split_behaviour behaviour)
{
    struct model_declared_step *step = NULL;
    enum status status = add_step(p, MODEL_STEP_SPLIT, NULL, &step);
    if (status)
        return status;
    step->behaviour = behaviour;
    return compile(p, expression, false, step);
}

static enum status read_nothing(struct parsing *p)
{
    struct model_declared_step *step = NULL;
    return add_step(p, MODEL_STEP_NFC, NULL, &step);
}

static enum status read_prepend(struct parsing *p)
{
    const char *text = NULL;
    struct model_declared_step *step = NULL;
    enum status status = read_text(p, "prepend", &text);
    return status ? status : add_step(p, MODEL_STEP_PREPEND, text, &step);
}

static enum status read_replace(struct parsing *p)
{
    const char *text = NULL;
    struct model_declared_step *step = NULL;
    enum status status = read_text(p, "content", &text);
    if (!status)
        status = add_step(p, MODEL_STEP_REPLACE, text, &step);
    return status ? status : read_pattern(p, step);
}

static enum status read_split(struct parsing *p)
{
    struct model_declared_step *step = NULL;
    int behaviour = -1;
    bool inverted = false;
    enum status status = read_word(p, "behavior", behaviours, &behaviour);
    if (!status && behaviour < 0)
        status = refuse(p, "behavior", "a text");
    if (!status)
        status = read_flag(p, "invert", &inverted);
    if (!status)
        status = add_step(p, MODEL_STEP_SPLIT, NULL, &step);
    if (status)
        return status;
    step->behaviour = (enum model_split_behaviour)behaviour;
    step->inverted = inverted;
    return read_pattern(p, step);
}

static enum status read_digits(struct parsing *p)
{
    bool individual = false;
    enum status status = read_flag(p, "individual_digits", &individual);
    return status
               ? status
               : add_split(p, "\\p{N}", individual ? MODEL_SPLIT_ISOLATED : MODEL_SPLIT_CONTIGUOUS);
}

static enum status read_punctuation(struct parsing *p)
{
    int behaviour = MODEL_SPLIT_ISOLATED;
    enum status status = read_word(p, "behavior", behaviours, &behaviour);
    return status ? status
                  : add_split(p, "[\\p{P}$+<=>^`|~]", (enum model_split_behaviour)behaviour);
}

static enum status read_bytes(struct parsing *p)
{
    bool prefix = true, use_regex = true;
    struct model_declared_step *step = NULL;
    enum status status = read_flag(p, "add_prefix_space", &prefix);
    if (!status)
        status = read_flag(p, "use_regex", &use_regex);
    if (!status && prefix)
        status = add_step(p, MODEL_STEP_LEAD, " ", &step);
    if (!status && use_regex)
        status = add_split(p, gpt2, MODEL_SPLIT_ISOLATED);
    p->steps->of_bytes = true;
    return status;
}

static enum status read_metaspace(struct parsing *p)
{
    enum { ALWAYS, FIRST, NEVER };
    bool prefix = true, cut = true;
    int scheme = ALWAYS;
    struct model_declared_step *step = NULL;
    const cJSON *replacement = cJSON_GetObjectItemCaseSensitive(p->item, "replacement");
    enum status status = read_flag(p, "add_prefix_space", &prefix);
    if (!status)
        status = read_word(p, "prepend_scheme", "always first never", &scheme);
    if (!status)
        status = read_flag(p, "split", &cut);
    if (!status && (!cJSON_IsString(replacement) || strcmp(replacement->valuestring, meta_space)))
        status = refuse(p, "replacement", "U+2581");
    if (!status)
        status = add_step(p, MODEL_STEP_REPLACE, meta_space, &step);
    if (!status)
        status = compile(p, " ", true, step);
    if (!status && prefix && scheme != NEVER)
        status = add_step(p, MODEL_STEP_LEAD, meta_space, &step);
    if (!status && prefix && scheme == FIRST)
        step->first_only = true;
    return status || !cut ? status : add_split(p, meta_space, MODEL_SPLIT_MERGED_WITH_NEXT);
}

/** A part: its name in the member "type", and its reader. */
struct part {
    const char *type;
    enum status (*read)(struct parsing *p);
};

static const struct part normalizers[] = {
    {"NFC", read_nothing}, {"Prepend", read_prepend}, {"Replace", read_replace}, {0}};
static const struct part pre_tokenizers[] = {
    {"Split", read_split},         {"ByteLevel", read_bytes},
    {"Digits", read_digits},       {"Punctuation", read_punctuation},
    {"Metaspace", read_metaspace}, {0}};

static enum status read_part(struct parsing *p, const struct part *known, const char *list,
                             int depth);

/** The parts of a Sequence, one after the other. */
static enum status read_sequence(struct parsing *p, const struct part *known, const char *list,
                                 int depth)
{
    const cJSON *items = cJSON_GetObjectItemCaseSensitive(p->item, list);
    enum status status = STATUS_OK;
    int i = 0;
    if (!cJSON_IsArray(items))
        return refuse(p, list, "a list");
    if (depth == MAX_DEPTH)
        return refuse(p, "type", "no Sequence as deep as this");
    for (const cJSON *item = items->child; item && !status; item = item->next, i++) {
        struct parsing inner = {.steps = p->steps, .item = item, .why = p->why};
        snprintf(inner.place, sizeof inner.place, "%.120s.%s[%d]", p->place, list, i);
        status = read_part(&inner, known, list, depth + 1);
    }
    return status;
}

static enum status read_part(struct parsing *p, const struct part *known, const char *list,
                             int depth)
{
    const cJSON *type = cJSON_GetObjectItemCaseSensitive(p->item, "type");
    const char *name = cJSON_IsString(type) ? type->valuestring : "";
    char expected[256] = "one of Sequence";
    if (p->steps->of_bytes)
        return status_fail(p->why, STATUS_UNSUPPORTED,
                           "%s comes after ByteLevel, expected ByteLevel as the last part",
                           p->place);
    if (strcmp(name, "Sequence") == 0)
        return read_sequence(p, known, list, depth);
    for (; known->type; known++) {
        if (strcmp(name, known->type) == 0)
            return known->read(p);
        base_list_name(expected, sizeof expected, known->type);
    }
    return refuse(p, "type", expected);
}

enum status model_steps_read(struct model_steps *steps, const cJSON *normalizer,
                             const cJSON *pre_tokenizer, struct status_why *why)
{
    struct parsing p = {.steps = steps, .item = normalizer, .place = "normalizer", .why = why};
    enum status status = STATUS_OK;
    *steps = (struct model_steps){0};
    if (normalizer && !cJSON_IsNull(normalizer))
        status = read_part(&p, normalizers, "normalizers", 0);
    steps->n_normalising = steps->n;
    p = (struct parsing){
        .steps = steps, .item = pre_tokenizer, .place = "pre_tokenizer", .why = why};
    if (!status && pre_tokenizer && !cJSON_IsNull(pre_tokenizer))
        status = read_part(&p, pre_tokenizers, "pretokenizers", 0);
    return status;
}

void model_steps_free(struct model_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        model_regex_free(steps->items[i].code);
        free(steps->items[i].text);
    }
    *steps = (struct model_steps){0};
}
