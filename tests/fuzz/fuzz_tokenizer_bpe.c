/* Byte-level BPE: any merges, any text, each pre-tokeniser; the tokens must spell the text. */
#include <stdio.h>
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

static const struct model_pretokenizer_row *pick_pre(uint8_t flags)
{
    size_t n = 0;
    while (model_pretokenizer_row_at(n))
        n++;
    return model_pretokenizer_row_at(flags % n);
}

/** For pieces that are merged from characters. */
static void add_byte_tokens(struct tokens *t)
{
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        tokens_add(t, (struct base_string){name, 6}, 0, MODEL_TOKEN_BYTE);
    }
}

/** of_bytes: a token is a text in stand-ins. */
static void check(const struct model_tokenizer *tokenizer, struct input in, bool of_bytes)
{
    const char *text = (const char *)in.p;
    size_t n_bytes = (size_t)(in.end - in.p);
    for (int parse = 0; parse < 2; parse++) {
        struct model_tokens ids = input_tokenize(tokenizer, in, parse);
        /* What is invalid is replaced, and special tokens that are ASCII cut no character. */
        if (of_bytes && n_bytes > 0 && base_utf8_first_bad(text, n_bytes) == n_bytes) {
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
    const struct model_pretokenizer_row *pre = pick_pre(flags);
    bool of_bytes = !(pre->flags & MODEL_PRE_CHARACTERS);
    if (of_bytes)
        add_stand_ins(t);
    else
        add_byte_tokens(t);
    struct merges merges;
    merges_make(&merges, t, &in);
    for (size_t n = input_byte(&in) % 8; n > 0; n--) {
        struct base_string special = input_string(&in, 8);
        if (is_ascii(special))
            tokens_add(t, special, 0, n % 2 ? MODEL_TOKEN_USER_DEFINED : MODEL_TOKEN_CONTROL);
    }
    struct gguf_writer *w;
    struct status_why why;
    require(gguf_writer_new(&w, &why) == STATUS_OK);
    gguf_writer_string(w, "tokenizer.ggml.model", "gpt2");
    gguf_writer_string(w, "tokenizer.ggml.pre", pre->name);
    gguf_writer_bool(w, "tokenizer.ggml.add_bos_token", false);
    gguf_writer_strings(w, "tokenizer.ggml.merges", merges.text, merges.n);
    tokens_write(t, w);
    void *file_bytes;
    struct gguf_file *file;
    struct model_tokenizer *tokenizer = input_open(w, &file_bytes, &file);
    check(tokenizer, in, of_bytes);
    model_tokenizer_close(tokenizer);
    gguf_close(file);
    free(file_bytes);
    free(t);
    return 0;
}
