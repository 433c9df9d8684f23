/* The members normalizer and pre_tokenizer of tokenizer.json. */
#include "model/tokenizer/declared/steps.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/tokenizer/declared/expression.h"
#include "model/tokenizer/pretokenizer.h"

enum { MAX_DEPTH = 6, MAX_TEXT = 64 };

static const char gpt2[] =
    "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+";
static const char behaviours[] = "Removed Isolated MergedWithPrevious MergedWithNext Contiguous";
static const char meta_space[] = "\xE2\x96\x81";

static struct base_string string_of(const char *text)
{
    return (struct base_string){text, strlen(text)};
}

/** A text that is not long; NULL: a failure. */
static const char *read_text(struct base_field part, const char *member)
{
    const char *text = base_field_string(part, member);
    if (text && strlen(text) <= MAX_TEXT)
        return text;
    base_field_refuse(part, member, "a text of at most 64 bytes");
    return NULL;
}

/** A new step; text: copied, or NULL. NULL: a failure, as an earlier one. */
static struct model_declared_step *add_step(struct model_steps *s, struct base_field part,
                                            enum model_step_kind kind, const char *text)
{
    if (s->n == MODEL_MAX_STEPS)
        base_field_fail(part, STATUS_UNSUPPORTED, "has more than %d steps, expected fewer",
                        (int)MODEL_MAX_STEPS);
    if (part.reader->status)
        return NULL;
    struct model_declared_step *step = &s->items[s->n];
    *step = (struct model_declared_step){.kind = kind, .text = text ? strdup(text) : NULL};
    if (text && !step->text) {
        base_field_fail(part, STATUS_MEMORY, "is a text that there is no memory for");
        return NULL;
    }
    step->n_text = text ? strlen(text) : 0;
    s->n++;
    return step;
}

/** Compile an expression as it stands in the file, or one for this text alone. */
static void compile(struct base_field part, const char *source, bool literal,
                    struct model_declared_step *step)
{
    struct base_buffer expression = {0};
    struct base_field_path path;
    struct status_why why = {""};
    enum status status = STATUS_OK;
    if (!step)
        return;
    const char *linear = step->kind == MODEL_STEP_SPLIT && !step->inverted && !literal &&
                                 step->behaviour == MODEL_SPLIT_ISOLATED
                             ? model_pretokenizer_in_linear_time(source)
                             : NULL;
    if (linear)
        base_buffer_format(&expression, "%s", linear);
    else if (literal)
        model_expression_literal(&expression, string_of(source));
    else
        status = model_expression_translate(&expression, source, &why);
    if (!status)
        status = base_buffer_check(&expression, "an expression", &why);
    if (!status)
        status =
            model_regex_compile(&step->code, expression.data ? expression.data : "", true, &why);
    if (status && status != STATUS_MEMORY)
        status_context(&why, "%s", base_field_path(&path, part));
    base_field_fail(base_json_root(part.reader), status, "%s", why.text);
    base_buffer_free(&expression);
}

/** The member pattern: {"String": ...} or {"Regex": ...}. */
static void read_pattern(struct base_field part, struct model_declared_step *step)
{
    const cJSON *text = base_field_get(part, "pattern.String").json;
    const char *one = base_field_string(part, text ? "pattern.String" : "pattern.Regex");
    if (one && *one)
        compile(part, one, text, step);
    else
        base_field_refuse(part, "pattern",
                          "an object with String or Regex, a text that is not empty");
}

static struct model_declared_step *add_split(struct model_steps *s, struct base_field part,
                                             const char *expression,
                                             enum model_split_behaviour behaviour)
{
    struct model_declared_step *step = add_step(s, part, MODEL_STEP_SPLIT, NULL);
    if (step)
        step->behaviour = behaviour;
    if (expression)
        compile(part, expression, false, step);
    return step;
}

static void read_nothing(struct model_steps *s, struct base_field part)
{
    add_step(s, part, MODEL_STEP_NFC, NULL);
}

static void read_prepend(struct model_steps *s, struct base_field part)
{
    add_step(s, part, MODEL_STEP_PREPEND, read_text(part, "prepend"));
}

static void read_replace(struct model_steps *s, struct base_field part)
{
    read_pattern(part, add_step(s, part, MODEL_STEP_REPLACE, read_text(part, "content")));
}

static void read_split(struct model_steps *s, struct base_field part)
{
    int behaviour = base_field_word(part, "behavior", behaviours);
    bool inverted = base_field_flag_or(part, "invert", false);
    struct model_declared_step *step =
        add_split(s, part, NULL, (enum model_split_behaviour)behaviour);
    if (step)
        step->inverted = inverted;
    read_pattern(part, step);
}

static void read_digits(struct model_steps *s, struct base_field part)
{
    bool individual = base_field_flag_or(part, "individual_digits", false);
    add_split(s, part, "\\p{N}", individual ? MODEL_SPLIT_ISOLATED : MODEL_SPLIT_CONTIGUOUS);
}

static void read_punctuation(struct model_steps *s, struct base_field part)
{
    int behaviour = base_field_word_or(part, "behavior", behaviours, MODEL_SPLIT_ISOLATED);
    add_split(s, part, "[\\p{P}$+<=>^`|~]", (enum model_split_behaviour)behaviour);
}

static void read_bytes(struct model_steps *s, struct base_field part)
{
    bool prefix = base_field_flag_or(part, "add_prefix_space", true);
    bool use_regex = base_field_flag_or(part, "use_regex", true);
    if (prefix)
        add_step(s, part, MODEL_STEP_LEAD, " ");
    if (use_regex)
        add_split(s, part, gpt2, MODEL_SPLIT_ISOLATED);
    s->of_bytes = true;
}

static void read_metaspace(struct model_steps *s, struct base_field part)
{
    enum { ALWAYS, FIRST, NEVER };
    bool prefix = base_field_flag_or(part, "add_prefix_space", true);
    int scheme = base_field_word_or(part, "prepend_scheme", "always first never", ALWAYS);
    bool cut = base_field_flag_or(part, "split", true);
    if (!base_field_is(base_field_get(part, "replacement"), meta_space))
        base_field_refuse(part, "replacement", "U+2581");
    compile(part, " ", true, add_step(s, part, MODEL_STEP_REPLACE, meta_space));
    struct model_declared_step *lead =
        prefix && scheme != NEVER ? add_step(s, part, MODEL_STEP_LEAD, meta_space) : NULL;
    if (lead)
        lead->first_only = scheme == FIRST;
    if (cut)
        add_split(s, part, meta_space, MODEL_SPLIT_MERGED_WITH_NEXT);
}

/** A part: its name in the member "type", and its reader. */
struct part {
    const char *type;
    void (*read)(struct model_steps *s, struct base_field part);
};

static const struct part normalizers[] = {
    {"NFC", read_nothing}, {"Prepend", read_prepend}, {"Replace", read_replace}, {0}};
static const struct part pre_tokenizers[] = {
    {"Split", read_split},         {"ByteLevel", read_bytes},
    {"Digits", read_digits},       {"Punctuation", read_punctuation},
    {"Metaspace", read_metaspace}, {0}};

/** list: the member that has the parts of a Sequence, one after the other. */
static void read_part(struct model_steps *s, struct base_field part, const struct part *known,
                      const char *list, int depth)
{
    struct base_field type = base_field_get(part, "type");
    char expected[256] = "one of Sequence";
    if (s->of_bytes)
        base_field_fail(part, STATUS_UNSUPPORTED,
                        "comes after ByteLevel, expected ByteLevel as the last part");
    if (base_field_is(type, "Sequence")) {
        struct base_field items = base_field_list(part, list), item = {0};
        if (depth == MAX_DEPTH)
            base_field_refuse(part, "type", "no Sequence as deep as this");
        while (!part.reader->status && base_field_next(items, &item))
            read_part(s, item, known, list, depth + 1);
        return;
    }
    for (; known->type; known++) {
        if (base_field_is(type, known->type)) {
            known->read(s, part);
            return;
        }
        base_list_name(expected, sizeof expected, known->type);
    }
    base_field_refuse(part, "type", expected);
}

void model_steps_read(struct model_steps *steps, struct base_field tokenizer)
{
    struct base_field normalizer = base_field_find(tokenizer, "normalizer");
    struct base_field pre_tokenizer = base_field_find(tokenizer, "pre_tokenizer");
    enum status code = tokenizer.reader->code;
    *steps = (struct model_steps){0};
    tokenizer.reader->code = STATUS_UNSUPPORTED;
    if (normalizer.json)
        read_part(steps, normalizer, normalizers, "normalizers", 0);
    steps->n_normalising = steps->n;
    if (pre_tokenizer.json)
        read_part(steps, pre_tokenizer, pre_tokenizers, "pretokenizers", 0);
    tokenizer.reader->code = code;
}

void model_steps_free(struct model_steps *steps)
{
    for (size_t i = 0; i < steps->n; i++) {
        model_regex_free(steps->items[i].code);
        free(steps->items[i].text);
    }
    *steps = (struct model_steps){0};
}
