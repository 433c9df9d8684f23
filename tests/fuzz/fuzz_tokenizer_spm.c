/* SentencePiece and gemma4: any vocabulary, any text; the tokens must spell the text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/utf8.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenizer_input.h"

enum { USER_DEFINED = 1, SPACE_PREFIX = 2, GEMMA4 = 4, AS_FILE = 128 };

static void make_vocabulary(struct tokens *t, struct input *in, bool user_defined)
{
    static const char *const first[] = {"<unk>", "<s>", "</s>"};
    for (size_t i = 0; i < 3; i++)
        tokens_add(t, (struct base_string){first[i], strlen(first[i])}, 0,
                   i ? MODEL_TOKEN_CONTROL : MODEL_TOKEN_UNKNOWN);
    for (unsigned b = 0; b < 256; b++) {
        char name[8];
        snprintf(name, sizeof name, "<0x%02X>", b);
        tokens_add(t, (struct base_string){name, 6}, 0, MODEL_TOKEN_BYTE);
    }
    for (size_t n = input_byte(in) % 64; n > 0; n--) {
        float score = -(float)(input_byte(in) % 8);
        tokens_add(t, input_string(in, 16), score,
                   user_defined && n % 4 == 0 ? MODEL_TOKEN_USER_DEFINED : MODEL_TOKEN_NORMAL);
    }
}

/* Spaces and U+2581 are one and the same to the tokens: write both as a space. */
static size_t unify_spaces(char *text, size_t n_bytes)
{
    size_t n = 0;
    for (size_t i = 0; i < n_bytes; n++) {
        bool meta = n_bytes - i >= 3 && memcmp(text + i, "\xE2\x96\x81", 3) == 0;
        text[n] = meta ? ' ' : text[i];
        i += meta ? 3 : 1;
    }
    return n;
}

/*
 * Whether each lead byte is followed by what it announces: else U+2581 may fall apart. gemma4
 * replaces what is not well-formed.
 */
static bool characters_are_whole(struct input text, bool well_formed)
{
    size_t n_bytes = (size_t)(text.end - text.p);
    if (well_formed)
        return base_utf8_first_bad((const char *)text.p, n_bytes) == n_bytes;
    while (text.p < text.end) {
        size_t n = *text.p < 0xC0 ? 1 : *text.p < 0xE0 ? 2 : *text.p < 0xF0 ? 3 : 4;
        if (n > (size_t)(text.end - text.p))
            return false;
        for (size_t i = 1; i < n; i++)
            if ((text.p[i] & 0xC0) != 0x80)
                return false;
        text.p += n;
    }
    return true;
}

static void check_spelling(const struct model_tokenizer *tokenizer, const struct model_tokens *ids,
                           struct input text, bool prefix)
{
    size_t n = (size_t)(text.end - text.p), n_spelled;
    char *expected = malloc(n + 1);
    require(expected != NULL);
    expected[0] = ' ';
    memcpy(expected + prefix, text.p, n);
    n = unify_spaces(expected, n + prefix);
    char *spelled = input_spelled(tokenizer, ids, &n_spelled);
    n_spelled = unify_spaces(spelled, n_spelled);
    require(n == n_spelled && memcmp(expected, spelled, n) == 0);
    free(expected);
    free(spelled);
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
    make_vocabulary(t, &in, flags & USER_DEFINED);
    struct gguf_writer *w;
    struct status_why why;
    require(gguf_writer_new(&w, &why) == STATUS_OK);
    gguf_writer_string(w, "tokenizer.ggml.model", flags & GEMMA4 ? "gemma4" : "llama");
    gguf_writer_bool(w, "tokenizer.ggml.add_space_prefix", flags & SPACE_PREFIX);
    if (flags & GEMMA4) {
        struct merges merges;
        merges_make(&merges, t, &in);
        gguf_writer_strings(w, "tokenizer.ggml.merges", merges.text, merges.n);
        gguf_writer_u32(w, "tokenizer.ggml.bos_token_id", 1);
    }
    tokens_write(t, w);
    void *file_bytes;
    struct gguf_file *file;
    struct model_tokenizer *tokenizer = input_open(w, &file_bytes, &file);

    struct model_tokens ids = input_tokenize(tokenizer, in, true);
    free(ids.ids);
    ids = input_tokenize(tokenizer, in, false);
    /* A byte token's own name, met in the text, spells its byte instead. */
    if (!(flags & USER_DEFINED) && characters_are_whole(in, flags & GEMMA4) && in.p < in.end &&
        !memmem(in.p, (size_t)(in.end - in.p), "<0x", 3))
        check_spelling(tokenizer, &ids, in, (flags & (SPACE_PREFIX | GEMMA4)) == SPACE_PREFIX);
    free(ids.ids);
    model_tokenizer_close(tokenizer);
    gguf_close(file);
    free(file_bytes);
    free(t);
    return 0;
}
