/* Byte-level BPE: any merges, any text, each pre-tokeniser; the tokens must spell the text. */
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "model/tokenizer/pretokenizer.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenizer_input.h"

enum { AS_FILE = 128, STAND_INS = 256 };

static bool is_ascii(struct base_string s)
{
    for (size_t i = 0; i < s.n_bytes; i++)
        if (s.data[i] & 0x80)
            return false;
    return true;
}

static void add_stand_ins(struct tokens *t)
{
    uint32_t next = 0x100;
    for (uint32_t b = 0; b < STAND_INS; b++) {
        bool printable = (b > 0x20 && b < 0x7F) || (b > 0xA0 && b != 0xAD);
        char text[4];
        size_t n = base_utf8_encode(printable ? b : next++, text);
        tokens_add(t, (struct base_string){text, n}, 0, MODEL_TOKEN_NORMAL);
    }
}

/* Join two tokens picked by the input; returns the merge in `out`, empty if there is none. */
static struct base_string make_merge(struct tokens *t, struct input *in, char out[128])
{
    size_t left = (input_byte(in) | (size_t)input_byte(in) << 8) % t->n;
    size_t right = (input_byte(in) | (size_t)input_byte(in) << 8) % t->n;
    struct base_string l = t->text[left], r = t->text[right];
    if (l.n_bytes + r.n_bytes > 48)
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

static size_t make_merges(struct tokens *t, struct input *in, struct base_string *merges,
                          char (*bytes)[128])
{
    size_t n = 0;
    for (size_t tries = input_byte(in) % 64; tries > 0; tries--) {
        merges[n] = make_merge(t, in, bytes[n]);
        n += merges[n].n_bytes > 0;
    }
    return n;
}

static const char *pick_pre(uint8_t flags)
{
    size_t n = 0;
    while (model_pretokenizer_row_at(n))
        n++;
    return model_pretokenizer_row_at(flags % n)->name;
}

static void check(const struct model_tokenizer *tokenizer, struct input in)
{
    const char *text = (const char *)in.p;
    size_t n_bytes = (size_t)(in.end - in.p);
    for (int parse = 0; parse < 2; parse++) {
        struct model_tokens ids = input_tokenize(tokenizer, in, parse);
        /* What is invalid is replaced, and special tokens that are ASCII cut no character. */
        if (n_bytes > 0 && base_utf8_first_bad(text, n_bytes) == n_bytes) {
            size_t n_spelled;
            char *spelled = input_spelled(tokenizer, &ids, &n_spelled);
            require(n_spelled == n_bytes && memcmp(spelled, text, n_bytes) == 0);
            free(spelled);
        }
        free(ids.ids);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    struct input in = {data, data + n_bytes};
    uint8_t flags = input_byte(&in);
    if (flags & AS_FILE) {
        input_as_file(in);
        return 0;
    }
    struct tokens *t = calloc(1, sizeof *t);
    require(t != NULL);
    add_stand_ins(t);
    struct base_string merges[64];
    char bytes[64][128];
    size_t n_merges = make_merges(t, &in, merges, bytes);
    for (size_t n = input_byte(&in) % 8; n > 0; n--) {
        struct base_string special = input_string(&in, 8);
        if (is_ascii(special))
            tokens_add(t, special, 0, n % 2 ? MODEL_TOKEN_USER_DEFINED : MODEL_TOKEN_CONTROL);
    }
    struct gguf_writer *w;
    struct status_why why;
    require(gguf_writer_new(&w, &why) == STATUS_OK);
    gguf_writer_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(w, "tokenizer.ggml.pre", pick_pre(flags));
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_strings(w, "tokenizer.ggml.merges", merges, n_merges);
    tokens_write(t, w);
    void *file_bytes;
    struct gguf_file *file;
    struct model_tokenizer *tokenizer = input_open(w, &file_bytes, &file);
    check(tokenizer, in);
    model_tokenizer_close(tokenizer);
    gguf_close(file);
    free(file_bytes);
    free(t);
    return 0;
}
