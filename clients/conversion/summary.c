/* The whole comparison, and its verdict in a sentence. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "clients/conversion/keys.h"
#include "clients/conversion/looks.h"
#include "clients/conversion/prompts/prompts.h"
#include "clients/conversion/tensors.h"

static void compare_hparams(struct conv_result *out, const struct conv_options *o,
                            const struct model_hparams *hparams)
{
    struct model_hparams file = {0};
    struct status_why reason = {""};
    enum status status = model_hparams_look(&file, o->file, &reason);
    if (status == STATUS_MEMORY)
        status_keep(&out->kept, status, "%s", reason.text);
    else if (status) /* a file that no model can be made of is a wrong conversion, too */
        conv_differ_text(out, CONV_HPARAM, "hyper-parameters", "can be read", reason.text);
    else
        conv_compare_hparams(out, hparams, o->file, &file);
    model_hparams_free(&file);
}

enum status conv_compare_tokenizers(struct conv_result *out, const struct conv_options *options,
                                    struct status_why *why)
{
    struct conv_tokenizers tokenizers;
    conv_tokenizers_open(&tokenizers, out, options);
    conv_compare_tokens(out, &tokenizers);
    if (gguf_is_folder(options->folder))
        conv_compare_texts(out, options);
    conv_compare_prompts(out, options, &tokenizers);
    conv_tokenizers_close(&tokenizers);
    return status_of(&out->kept, why);
}

enum status conv_compare(struct conv_result *out, const struct conv_options *options,
                         struct status_why *why)
{
    struct model_hparams hparams = {0};
    struct conv_work work = {0};
    enum status status = model_hparams_look(&hparams, options->folder, why);
    if (!status && gguf_is_folder(options->folder) && hparams.recurrent.grouped)
        status = status_fail(why, STATUS_UNSUPPORTED,
                             "%s: delta nets are stored in another order than GGUF has them, and "
                             "no such conversion is compared yet; expected another architecture, "
                             "or as many value heads as key heads",
                             gguf_path(options->folder));
    if (!status)
        status = conv_work_open(&work, options->n_threads, options->cancel, why);
    if (!status)
        status = conv_compare_tensors(out, options, &work, &hparams, why);
    if (!status) {
        compare_hparams(out, options, &hparams);
        status = conv_compare_tokenizers(out, options, why);
    }
    conv_work_close(&work);
    model_hparams_free(&hparams);
    return status;
}

void conv_result_free(struct conv_result *result)
{
    free(result->tensors);
    free(result->keys);
    *result = (struct conv_result){0};
}

bool conv_result_differs(const struct conv_result *result)
{
    return result->n_tensors > 0 || result->n_keys > 0;
}

bool conv_result_unrelated(const struct conv_result *result)
{
    return result->n_unrelated * 2 > result->n_matrices;
}

const char *conv_outcome_name(enum conv_outcome outcome)
{
    static const char *const names[] = {"differs", "missing", "superfluous", "shape"};
    return names[outcome];
}

const char *conv_rule_name(enum conv_rule rule)
{
    static const char *const names[] = {"exact", "near", "block", "step"};
    return names[rule];
}

const char *conv_kind_name(enum conv_kind kind)
{
    static const char *const names[CONV_N_KINDS] = {"hyper-parameter", "tokenizer", "prompt"};
    return names[kind];
}

const char *conv_look_name(enum conv_look look)
{
    static const char *const names[CONV_N_LOOKS] = {
        "unknown",         "not_permuted",  "permuted_again", "one_missing",
        "one_added_again", "rounded_twice", "scaled",         "transposed",
        "other_tensor",    "other_experts", "zero",           "overflow"};
    return names[look];
}

static const char *describe_matrices(char out[CONV_VALUE_BYTES], const struct conv_tensor *t)
{
    bool pair = t->exchanged && t->n_matrices_wrong == 2;
    int n = snprintf(out, CONV_VALUE_BYTES,
                     pair ? "experts %zu and %zu are exchanged" : "expert %zu is the folder's %zu",
                     t->matrix, t->other_matrix);
    if (!pair && t->n_matrices_wrong > 1)
        snprintf(out + n, CONV_VALUE_BYTES - (size_t)n, ", and %zu more are others",
                 t->n_matrices_wrong - 1);
    return out;
}

const char *conv_describe(char out[CONV_VALUE_BYTES], const struct conv_tensor *t)
{
    static const char *const plain[CONV_N_LOOKS] = {
        [CONV_NOT_TURNED] = "the rows of its heads are not permuted",
        [CONV_TURNED] = "the rows of its heads are permuted once too often",
        [CONV_ONE_MISSING] = "1 was not added",
        [CONV_ONE_ADDED] = "1 was added once too often",
        [CONV_TRANSPOSED] = "it is transposed",
        [CONV_ZERO] = "all its values are 0",
        [CONV_OVERFLOW] = "some values are beyond the range of F16",
    };
    snprintf(out, CONV_VALUE_BYTES, "%s", plain[t->look] ? plain[t->look] : "");
    if (t->look == CONV_ROUNDED_TWICE)
        snprintf(out, CONV_VALUE_BYTES, "its values went through %s",
                 gguf_type_name((uint32_t)t->through));
    else if (t->look == CONV_SCALED)
        snprintf(out, CONV_VALUE_BYTES, "it is multiplied by %.6g", t->factor);
    else if (t->look == CONV_OTHER_TENSOR)
        snprintf(out, CONV_VALUE_BYTES, "it is the folder's %.*s", CONV_VALUE_BYTES / 2,
                 t->other->name);
    else if (t->look == CONV_OTHER_EXPERTS)
        return describe_matrices(out, t);
    return out;
}

/** Tensors that look alike, as one part of the sentence. */
struct group {
    char text[CONV_VALUE_BYTES];
    size_t n;
    bool there, back; /* of what may be exchanged */
    int64_t layers[2];
    const char *names[2];
};

/** What a tensor is taken for: layers that are other layers, or tensors that are others. */
static struct group group_of(const struct conv_tensor *t)
{
    struct group g = {.n = 1, .layers = {-1, -1}};
    const char *own = t->name, *other = "";
    int64_t layer = conv_layer_of(t->name, &own);
    if (t->outcome == CONV_MISSING || t->outcome == CONV_SUPERFLUOUS)
        snprintf(g.text, sizeof g.text, "%s", conv_outcome_name(t->outcome));
    else if (t->look != CONV_OTHER_TENSOR)
        conv_describe(g.text, t);
    if (*g.text == 0 && t->outcome == CONV_SHAPE)
        snprintf(g.text, sizeof g.text, "of another shape");
    if (t->look != CONV_OTHER_TENSOR)
        return g;
    int64_t whose = conv_layer_of(t->other->name, &other);
    if (layer < 0 || whose < 0) {
        conv_describe(g.text, t);
        return g;
    }
    bool layers = strcmp(own, other) == 0;
    bool swap = layers ? layer > whose : strcmp(own, other) > 0;
    g.there = !swap;
    g.back = swap;
    g.layers[swap] = layers ? layer : 0;
    g.layers[!swap] = layers ? whose : 0;
    g.names[swap] = layers ? "" : own;
    g.names[!swap] = layers ? "" : other;
    return g;
}

static bool same_group(const struct group *a, const struct group *b)
{
    if (!a->names[0] || !b->names[0])
        return !a->names[0] && !b->names[0] && strcmp(a->text, b->text) == 0;
    return a->layers[0] == b->layers[0] && a->layers[1] == b->layers[1] &&
           strcmp(a->names[0], b->names[0]) == 0 && strcmp(a->names[1], b->names[1]) == 0;
}

static const char *write_group(struct group *g)
{
    bool both = g->there && g->back, layers = g->names[0] && !*g->names[0];
    size_t own = g->back && !g->there;
    if (!g->names[0])
        return *g->text ? g->text : "no known mistake";
    if (layers)
        snprintf(g->text, sizeof g->text,
                 both ? "layers %d and %d are exchanged" : "layer %d is the folder's %d",
                 (int)g->layers[own], (int)g->layers[!own]);
    else
        snprintf(g->text, sizeof g->text, both ? "%.70s and %.70s are exchanged" : "%.70s is %.70s",
                 g->names[own], g->names[!own]);
    return g->text;
}

enum { MAX_GROUPS = 4 };

/** The largest part of a sentence, up to some groups; the others are counted. */
static size_t make_groups(struct group *groups, const struct conv_result *r, size_t *n_others)
{
    size_t n = 0;
    for (size_t i = 0; i < r->n_tensors; i++) {
        struct group g = group_of(&r->tensors[i]);
        size_t at = 0;
        while (at < n && !same_group(&groups[at], &g))
            at++;
        if (at == MAX_GROUPS) {
            ++*n_others;
            continue;
        }
        if (at == n)
            groups[n++] = g;
        else {
            groups[at].n++;
            groups[at].there |= g.there;
            groups[at].back |= g.back;
        }
    }
    return n;
}

static size_t say_tensors(char *out, size_t used, const struct conv_result *r)
{
    struct group groups[MAX_GROUPS];
    size_t n_all = r->n_compared, n_others = 0, n = make_groups(groups, r, &n_others);
    for (size_t i = 0; i < r->n_tensors; i++)
        n_all += !r->tensors[i].found || !r->tensors[i].expected;
    used +=
        (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used, "%zu of %zu tensor%s differ%s",
                         r->n_tensors, n_all, status_plural(n_all), r->n_tensors == 1 ? "s" : "");
    for (size_t i = 0; i < n; i++)
        used += (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used, "%s%s: %zu",
                                 i ? "; " : " (", write_group(&groups[i]), groups[i].n);
    if (n_others)
        used += (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used, "; others: %zu", n_others);
    return used + (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used, ")");
}

/** Append to the sentence: ", 2 hyper-parameters differ". Returns the bytes used. */
static size_t say_others(char *out, size_t used, bool first, size_t n, const char *one,
                         const char *several)
{
    if (n)
        used += (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used, "%s%zu %s differ%s",
                                 first ? "" : ", ", n, n == 1 ? one : several, n == 1 ? "s" : "");
    return used;
}

/** Append what prompts came to: those that no side rendered, with the first reason. */
static void say_prompts(char *out, size_t used, const struct conv_result *r)
{
    size_t capacity = CONV_SENTENCE_BYTES;
    if (r->n_prompts_refused)
        used += (size_t)snprintf(out + used, capacity - used, "; %zu refused by both templates",
                                 r->n_prompts_refused);
    if (r->n_prompts_unknown)
        used +=
            (size_t)snprintf(out + used, capacity - used, "; %zu not known", r->n_prompts_unknown);
    if (*r->prompts_why)
        snprintf(out + used, capacity - used, ": %s", r->prompts_why);
}

/** Append how many of the matrices that the folder has quantised are the same. Returns the bytes.
 */
static size_t say_lossless(char *out, size_t used, const struct conv_result *r, const char *before)
{
    if (!r->n_quantised)
        return 0;
    return (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used,
                            "%s%zu of %zu quantised matrices without loss", before, r->n_lossless,
                            r->n_quantised);
}

static void say_right(char out[CONV_SENTENCE_BYTES], const struct conv_result *r, const char *file,
                      const char *folder)
{
    char prompts[64] = "", lossless[CONV_SENTENCE_BYTES] = "";
    if (r->n_prompts)
        snprintf(prompts, sizeof prompts, ", %zu prompts", r->n_prompts);
    (void)say_lossless(lossless, 0, r, ", ");
    if (r->n_compared)
        snprintf(out, CONV_SENTENCE_BYTES,
                 "%.200s is what %.200s gives: %zu tensors, %zu of them to the last bit of their "
                 "types%s; %zu hyper-parameters, %zu entries of the tokenizer%s",
                 file, folder, r->n_compared, r->n_exact, lossless, r->n_hparams, r->n_tokens,
                 prompts);
    else
        snprintf(out, CONV_SENTENCE_BYTES, "%.200s %s %.200s: %zu entries of the tokenizer%s", file,
                 r->n_prompts ? "makes the prompts of" : "has the tokens of", folder, r->n_tokens,
                 r->n_prompts ? prompts : "; no prompts were compared");
    say_prompts(out, strlen(out), r);
}

const char *conv_sentence(char out[CONV_SENTENCE_BYTES], const struct conv_result *r,
                          const char *file, const char *folder)
{
    size_t n[CONV_N_KINDS] = {0}, used;
    for (size_t i = 0; i < r->n_keys; i++)
        n[r->keys[i].kind]++;
    if (!conv_result_differs(r)) {
        say_right(out, r, file, folder);
        return out;
    }
    bool unrelated = conv_result_unrelated(r);
    used = (size_t)snprintf(out, CONV_SENTENCE_BYTES,
                            unrelated ? "%.200s is another model's file, not what %.200s gives: "
                            : r->n_compared       ? "%.200s is not what %.200s gives: "
                            : r->n_prompts_differ ? "%.200s makes other prompts than %.200s: "
                                                  : "%.200s has another tokenizer than %.200s: ",
                            file, folder);
    if (unrelated)
        used += (size_t)snprintf(out + used, CONV_SENTENCE_BYTES - used,
                                 "%zu of %zu matrices have no correlation with the folder's",
                                 r->n_unrelated, r->n_matrices);
    else if (r->n_tensors)
        used = say_tensors(out, used, r);
    size_t begin = used;
    bool first = !unrelated && !r->n_tensors;
    used = say_others(out, used, first, n[CONV_HPARAM], "hyper-parameter", "hyper-parameters");
    used = say_others(out, used, first && used == begin, n[CONV_TOKEN], "entry of the tokenizer",
                      "entries of the tokenizer");
    char of[64];
    snprintf(of, sizeof of, "of %zu prompts", r->n_prompts);
    used = say_others(out, used, first && used == begin, r->n_prompts_differ, of, of);
    used += say_lossless(out, used, r, "; ");
    say_prompts(out, used, r);
    return out;
}
