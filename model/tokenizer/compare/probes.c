/* Texts that tell pre-tokenisers apart, and the names of one that is known by its pieces. */
#include <stdlib.h>
#include <string.h>

#include "base/text/quote.h"
#include "model/tokenizer/compare/compare.h"
#include "model/tokenizer/state.h"

static const char *const probes[] = {
    "The quick brown fox's 3 tests: it'S we'LL I'd they'VE, DON'T; x=1234567, 12.5% of $1,000!!!",
    "see (https://example.org/a/b?c=d&e=1) and #tags, @names, half-hearted <p>words</p>/ok/",
    "def main(self):\n    return {\"k\": [1, 22, 333, 4444, 55555]}\n\n\n\tif a<=b && c!=d: go  // "
    "ok",
    "   leading,  double   triple    spaces \t tabs \n \n\n  lines\r\n\r\n \r\nand a trailing end  "
    " ",
    "CamelCaseWord HTTPServer iPhone ÀÉÎÕ straße ΑΒΓαβγ ПриветМИР ǅungla ªº",
    "हिन्दी में किताबें ภาษาไทยง่าย עברית العربيّة தமிழ்",
    "今天是2024年12月31日，天气很好。日本語のカタカナとひらがな々〇ー！한국어 문장입니다 １２３",
    "中文ไทยລາວမြန်မာភាសាខ្មែរ한국カナ漢字",
    "1234x 12345_ 999, 7654321 ²³ ½ Ⅷ ٣٤٥ १२३ 3.14 10^6",
    " ...---!!! /// \\\\ «»“”‘’ $$$ ^^ ~~ || '' \"\" \n!!\n..\r\n;;/\n",
    "one two three four, five\nsix  seven  8 nine Ankara'dan",
    "it'ſ a　b。　c\u2009d \u2028e … 「引用」、；：",
    "🙂👍🏽 👨‍👩‍👧 ☃ 100€ ±5°",
};

struct base_string model_probe(size_t i)
{
    const char *text = i < sizeof probes / sizeof *probes ? probes[i] : NULL;
    return (struct base_string){text, text ? strlen(text) : 0};
}

/** Where the pieces of all texts end, in bytes. */
struct cuts {
    size_t *ends;
    size_t n, capacity, at;
    struct status_why *why;
};

static enum status cut(struct cuts *c, size_t n_bytes)
{
    if (base_array_reserve(c->ends, c->capacity, c->n + 1, "pieces", c->why))
        return STATUS_MEMORY;
    c->at += n_bytes;
    c->ends[c->n++] = c->at;
    return STATUS_OK;
}

static enum status cut_piece(void *user, const char *piece, size_t n_bytes)
{
    (void)piece;
    return cut(user, n_bytes);
}

static enum status cut_declared(void *user, struct base_string piece)
{
    return cut(user, piece.n_bytes);
}

static enum status cut_token(void *user, int32_t token)
{
    (void)token;
    return cut(user, 0);
}

/** How a tokenizer cuts them: what its tokenizer.json declares, or with a pre-tokeniser's row. */
static enum status cut_all(struct cuts *c, const struct model_declared *declared,
                           const struct model_pretokenizer *pre)
{
    const struct model_declared_sink sink = {cut_declared, cut_token, c};
    struct model_tok_run run = {.why = c->why};
    struct base_string text;
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && (text = model_probe(i)).data; i++)
        status = declared->has_declared
                     ? model_declared_cut(declared, text, false, &sink, c->why)
                     : model_pretokenizer_split(pre, &run, text.data, text.n_bytes, cut_piece, c);
    model_tok_run_free(&run);
    return status;
}

/** Append the names of rows that cut as `t` does; of those that treat whole pieces as it does. */
static enum status list_names(char out[MODEL_DIFFERENCE_BYTES], const struct model_tokenizer *t,
                              const struct cuts *wanted, bool ignore_merges, struct status_why *why)
{
    const struct model_declared none = {0};
    const struct model_pretokenizer_row *row;
    enum status status = STATUS_OK;
    for (size_t i = 0; !status && (row = model_pretokenizer_row_at(i)); i++) {
        struct model_pretokenizer pre = {0};
        struct cuts cuts = {.why = why};
        if (!(row->flags & MODEL_PRE_WHOLE) == ignore_merges || row->flags & MODEL_PRE_CHARACTERS)
            continue;
        status = model_pretokenizer_init(&pre, (struct base_string){row->name, strlen(row->name)},
                                         t->bpe.pre.as_llama_cpp, why);
        if (!status)
            status = cut_all(&cuts, &none, &pre);
        if (!status && cuts.n == wanted->n &&
            memcmp(cuts.ends, wanted->ends, cuts.n * sizeof *cuts.ends) == 0)
            base_list_name(out, MODEL_DIFFERENCE_BYTES, row->name);
        model_pretokenizer_free(&pre);
        free(cuts.ends);
    }
    return status;
}

enum status model_tokenizer_names(char out[MODEL_DIFFERENCE_BYTES], const struct model_tokenizer *t,
                                  struct status_why *why)
{
    struct cuts wanted = {.why = why};
    enum status status = STATUS_OK;
    *out = 0;
    if (t->vocab.kind != MODEL_VOCAB_BPE)
        return STATUS_OK;
    status = cut_all(&wanted, &t->declared, &t->bpe.pre);
    if (!status)
        status = list_names(out, t, &wanted, t->bpe.ignore_merges, why);
    if (!status && !*out)
        status = list_names(out, t, &wanted, !t->bpe.ignore_merges, why);
    free(wanted.ends);
    return status;
}
