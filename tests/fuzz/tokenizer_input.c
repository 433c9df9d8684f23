#include "tests/fuzz/tokenizer_input.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/harness/gguf_bytes.h"

uint8_t input_byte(struct input *in)
{
    return in->p < in->end ? *in->p++ : 0;
}

struct base_string input_string(struct input *in, size_t limit)
{
    size_t n = input_byte(in) % limit, left = (size_t)(in->end - in->p);
    n = n < left ? n : left;
    struct base_string s = {(const char *)in->p, n};
    in->p += n;
    return s;
}

static uint8_t look(struct base_string text)
{
    unsigned sum = 0;
    for (size_t i = 0; i < text.n_bytes; i++)
        sum = sum * 31 + (uint8_t)text.data[i];
    return (uint8_t)sum;
}

int32_t tokens_find(const struct tokens *t, struct base_string text)
{
    for (size_t i = t->first[look(text)]; i > 0; i = t->next[i - 1])
        if (t->text[i - 1].n_bytes == text.n_bytes &&
            memcmp(t->text[i - 1].data, text.data, text.n_bytes) == 0)
            return (int32_t)i - 1;
    return -1;
}

int32_t tokens_add(struct tokens *t, struct base_string text, float score,
                   enum model_token_type type)
{
    if (text.n_bytes == 0 || t->n == TOKENS_LIMIT || text.n_bytes > sizeof t->bytes - t->n_bytes ||
        tokens_find(t, text) >= 0)
        return -1;
    memcpy(t->bytes + t->n_bytes, text.data, text.n_bytes);
    t->text[t->n] = (struct base_string){t->bytes + t->n_bytes, text.n_bytes};
    t->n_bytes += text.n_bytes;
    t->scores[t->n] = score;
    t->types[t->n] = (int32_t)type;
    t->next[t->n] = t->first[look(text)];
    t->first[look(text)] = (uint16_t)(t->n + 1);
    return (int32_t)t->n++;
}

void tokens_write(const struct tokens *t, struct gguf_writer *w)
{
    gguf_writer_strings(w, "tokenizer.ggml.tokens", t->text, t->n);
    gguf_writer_f32s(w, "tokenizer.ggml.scores", t->scores, t->n);
    gguf_writer_i32s(w, "tokenizer.ggml.token_type", t->types, t->n);
}

/* Join two tokens picked by the input; the merge is empty if there is none. */
static struct base_string make_merge(struct tokens *t, struct input *in, char out[128])
{
    size_t left = (input_byte(in) | (size_t)input_byte(in) << 8) % t->n;
    size_t right = (input_byte(in) | (size_t)input_byte(in) << 8) % t->n;
    struct base_string l = t->text[left], r = t->text[right];
    /* A half with a space in it would be read as another pair. */
    if (l.n_bytes + r.n_bytes > 48 || memchr(l.data, ' ', l.n_bytes))
        return (struct base_string){0};
    memcpy(out, l.data, l.n_bytes);
    memcpy(out + l.n_bytes, r.data, r.n_bytes);
    struct base_string joined = {out, l.n_bytes + r.n_bytes};
    if (tokens_add(t, joined, 0, MODEL_TOKEN_NORMAL) < 0 && tokens_find(t, joined) < 0)
        return (struct base_string){0};
    memmove(out + l.n_bytes + 1, out + l.n_bytes, r.n_bytes);
    out[l.n_bytes] = ' ';
    return (struct base_string){out, l.n_bytes + 1 + r.n_bytes};
}

void merges_make(struct merges *m, struct tokens *t, struct input *in)
{
    m->n = 0;
    for (size_t tries = input_byte(in) % MERGES_LIMIT; tries > 0; tries--) {
        m->text[m->n] = make_merge(t, in, m->bytes[m->n]);
        m->n += m->text[m->n].n_bytes > 0;
    }
}

struct model_tokenizer *input_open(struct gguf_writer *w, void **data, struct gguf_file **file)
{
    size_t n_bytes;
    struct status_why why;
    struct model_tokenizer *t;
    require(gguf_writer_finish_memory(w, data, &n_bytes, &why) == STATUS_OK);
    require(gguf_bytes_open(file, *data, n_bytes, "input", &why) == STATUS_OK);
    require(model_tokenizer_open(&t, *file, NULL, false, &why) == STATUS_OK);
    return t;
}

void input_as_file(struct input in)
{
    struct gguf_file *file;
    struct model_tokenizer *t;
    struct status_why why = {0};
    if (gguf_bytes_open(&file, in.p, (size_t)(in.end - in.p), "input", &why) != STATUS_OK)
        return;
    if (model_tokenizer_open(&t, file, NULL, false, &why) == STATUS_OK) {
        static const char text[] = " a ab <s>b\n\xE2\x96\x81 12345's\xFF";
        struct model_tokens ids = {0};
        if (model_tokenize(t, text, sizeof text, true, &ids, &why) == STATUS_OK)
            require(ids.n > 0);
        free(ids.ids);
    } else {
        require(!t && why.text[0] && !strchr(why.text, '\n'));
    }
    model_tokenizer_close(t);
    gguf_close(file);
}

struct model_tokens input_tokenize(const struct model_tokenizer *t, struct input text,
                                   bool parse_special)
{
    struct model_tokens once = {0}, twice = {0};
    struct status_why why;
    for (int i = 0; i < 2; i++)
        require(model_tokenize(t, (const char *)text.p, (size_t)(text.end - text.p), parse_special,
                               i ? &twice : &once, &why) == STATUS_OK);
    require(once.n == twice.n);
    for (size_t i = 0; i < once.n; i++) {
        require(once.ids[i] >= 0 && (size_t)once.ids[i] < model_n_vocab(t));
        require(once.ids[i] == twice.ids[i]);
    }
    free(twice.ids);
    return once;
}

char *input_spelled(const struct model_tokenizer *t, const struct model_tokens *ids,
                    size_t *n_bytes)
{
    *n_bytes = 0;
    for (size_t i = 0; i < ids->n; i++)
        *n_bytes += model_token_bytes(t, ids->ids[i], NULL, 0);
    char *bytes = malloc(*n_bytes + 1);
    require(bytes != NULL);
    size_t at = 0;
    for (size_t i = 0; i < ids->n; i++)
        at += model_token_bytes(t, ids->ids[i], bytes + at, *n_bytes - at);
    return bytes;
}

const struct model_tokenizer *input_vocabulary(void)
{
    static const char *const words[] = {"<unk>", "<s>", "</s>", "\xE2\x96\x81the", "ing", "er"};
    static struct model_tokenizer *tokenizer;
    static struct tokens tokens;
    static struct gguf_file *file;
    static void *bytes;
    if (tokenizer)
        return tokenizer;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        tokens_add(&tokens, (struct base_string){words[i], strlen(words[i])}, 0,
                   i == 0  ? MODEL_TOKEN_UNKNOWN
                   : i < 3 ? MODEL_TOKEN_CONTROL
                           : MODEL_TOKEN_NORMAL);
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        tokens_add(&tokens, (struct base_string){name, 6}, 0, MODEL_TOKEN_BYTE);
    }
    struct gguf_writer *w;
    struct status_why why;
    require(gguf_writer_new(&w, &why) == STATUS_OK);
    gguf_writer_string(w, "tokenizer.ggml.model", "llama");
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", true);
    gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", INPUT_BOS);
    tokens_write(&tokens, w);
    tokenizer = input_open(w, &bytes, &file);
    return tokenizer;
}
