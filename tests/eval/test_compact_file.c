/*
 * eval/reference/compact_file.h and what it stands on: rows as they are stored, and a reader that
 * believes no field.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "compact_fixture.h"
#include "eval/reference/compact_source.h"
#include "kernels/quant/bytes.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

/** The half that is nearest to x, of two the one with an even code: by looking at all. */
static float nearest_half(float x)
{
    float best = INFINITY;
    for (uint32_t code = 0; code < 0x7c00; code++) {
        float value = kern_half_to_float(code);
        double d = fabs((double)value - (double)fabsf(x)),
               least = fabs((double)best - (double)fabsf(x));
        if (d < least || (d == least && code % 2 == 0))
            best = value;
    }
    return copysignf(best, x);
}

/** A row of two: the first, 2^15 (1 - 2^-24), makes the scale 1. */
static float stored(float x)
{
    uint8_t bytes[8];
    float row[2] = {0x1.fffffep14f, x}, out[2];
    struct eval_compact_error error = {0};
    assert_int_equal(eval_compact_row_bytes(EVAL_COMPACT_F16, 2), sizeof bytes);
    eval_compact_rows_encode(EVAL_COMPACT_F16, bytes, row, 1, 2, &error);
    eval_compact_rows_decode(EVAL_COMPACT_F16, out, bytes, 1, 2);
    return out[1];
}

static void halves_are_the_nearest(void **state)
{
    (void)state;
    struct rng rng = rng_open(rng_seed(), 0);
    static const float chosen[] = {0,        -0.0f,        1,        2049,        2051,
                                   0x1p-24f, 0x1p-25f,     0x3p-26f, 0x1p-26f,    0x1.8p-24f,
                                   0x1p-14f, 0x1.ffcp-15f, 32760,    0x1.ffep14f, FLT_MIN,
                                   1e-45f,   -2049};
    for (size_t i = 0; i < sizeof chosen / sizeof *chosen; i++)
        assert_true(stored(chosen[i]) == nearest_half(chosen[i]));
    assert_true(signbit(stored(-0.0f)));
    for (size_t i = 0; i < 500; i++) {
        float x = ldexpf(rng_float(&rng, -1, 1), (int)rng_below(&rng, 44) - 29);
        assert_true(stored(x) == nearest_half(x));
    }
    for (uint32_t code = 0; code < 0x7800; code++) /* below 2^15 each half is kept */
        assert_true(stored(kern_half_to_float(code)) == kern_half_to_float(code));
}

/** Whatever its size a row loses as little, and what is said to be lost is. */
static void rows_of_any_size_lose_little(void **state)
{
    (void)state;
    enum { WIDTH = 33, N = 4 };
    struct rng rng = rng_open(rng_seed(), 1);
    size_t n_bytes = N * (size_t)eval_compact_row_bytes(EVAL_COMPACT_F16, WIDTH);
    uint8_t *bytes = malloc(n_bytes);
    for (int exponent = -140; exponent <= 127; exponent += 3) {
        float rows[N * WIDTH], out[N * WIDTH];
        for (size_t i = 0; i < N * WIDTH; i++)
            rows[i] = ldexpf(rng_float(&rng, -1, 1), exponent);
        struct eval_compact_error error = {0};
        eval_compact_rows_encode(EVAL_COMPACT_F16, bytes, rows, N, WIDTH, &error);
        eval_compact_rows_decode(EVAL_COMPACT_F16, out, bytes, N, WIDTH);
        double lost = 0, squares = 0;
        for (size_t i = 0; i < N * WIDTH; i++) {
            double d = (double)rows[i] - (double)out[i];
            lost += d * d;
            squares += (double)rows[i] * (double)rows[i];
        }
        double rms = eval_compact_error_rms(&error);
        assert_true(fabs(rms - (lost > 0 ? sqrt(lost / squares) : 0)) <= 1e-12);
        assert_true(error.largest >= rms);
        /* Half a unit of 11 bits; below 2^-126 - 24 float32 itself has fewer. */
        assert_true(exponent < -138 || error.largest <= 0x1p-11);
    }
    free(bytes);
}

static void what_is_not_finite_stays_so(void **state)
{
    (void)state;
    float rows[4] = {NAN, INFINITY, -INFINITY, 3}, out[4];
    uint8_t bytes[12];
    struct eval_compact_error error = {0};
    eval_compact_rows_encode(EVAL_COMPACT_F16, bytes, rows, 1, 4, &error);
    eval_compact_rows_decode(EVAL_COMPACT_F16, out, bytes, 1, 4);
    assert_true(isnan(out[0]) && out[1] == INFINITY && out[2] == -INFINITY && out[3] == 3);
    assert_true(isnan(eval_compact_error_rms(&error)) && isnan(error.largest));
    float zeros[2] = {0, 0};
    struct eval_compact_error none = {0};
    eval_compact_rows_encode(EVAL_COMPACT_F16, bytes, zeros, 1, 2, &none);
    assert_true(eval_compact_error_rms(&none) == 0 && none.largest == 0);
}

static enum status view(struct eval_compact_file *file, const struct compact_bytes *bytes,
                        struct status_why *why)
{
    return eval_compact_view(file, "base", bytes->data, bytes->n_bytes, why);
}

static void a_whole_file_is_read(void **state)
{
    (void)state;
    for (enum eval_compact_kind kind = EVAL_COMPACT_F32; kind <= EVAL_COMPACT_F16; kind++) {
        struct compact_bytes bytes = compact_make(kind, NULL);
        struct eval_compact_file file;
        struct status_why why = {""};
        view(&file, &bytes, &why);
        assert_string_equal(why.text, "");
        struct eval_stream stream;
        assert_int_equal(eval_compact_stream(&stream, &file, &why), STATUS_OK);
        assert_int_equal(stream.n, 26);
        assert_int_equal(stream.ids[17], 1);
        assert_int_equal(stream.n_text_bytes[3], 3);
        assert_true(stream.has_bos);
        struct eval_compact_reading reading;
        struct eval_row_source source;
        assert_int_equal(eval_compact_source_open(&source, &reading, &file, 1, &why), STATUS_OK);
        const void *rows;
        source.expect(source.user, 0, 6);
        assert_int_equal(source.rows(source.user, 2, 3, &rows, &why), STATUS_OK);
        /* Values of a few bits: no kind loses any. Row 2 of the second window, then the third. */
        float first, second;
        memcpy(&first, rows, sizeof first);
        memcpy(&second, (const float *)rows + 32, sizeof second);
        assert_true(first == (float)((2 * 32 * 37 + 11) % 64) / 16 - 2);
        assert_true(second == (float)(2 * 11 % 64) / 16 - 2);
        assert_true(file.checked[1] && file.checked[2] && !file.checked[0]);
        eval_compact_source_close(&reading);
        eval_stream_free(&stream);
        eval_compact_close(&file);
        free(bytes.data);
    }
}

/** Bytes of the file that are changed, with whatever covers them made right. */
struct damage {
    size_t offset;
    uint64_t value;
    size_t n_bytes;
    enum status status;
    const char *sentence;
};

static const struct damage damages[] = {
    {0, 'x', 1, STATUS_FORMAT, "base: is not a base file of assay"},
    {8, 5, 4, STATUS_UNSUPPORTED, "is a base file of version 5; expected 1 to 4"},
    {8, 0, 4, STATUS_UNSUPPORTED, "is a base file of version 0; expected 1 to 4"},
    {8, 4, 4, STATUS_FORMAT, "the first scored position is 4; expected 0 to 0"},
    {12, 2, 4, STATUS_FORMAT, "the kind of the rows is 2; expected 0 to 1"},
    {16, 0, 8, STATUS_FORMAT, "the width is 0; expected 1 to"},
    {16, 33, 8, STATUS_FORMAT, "the width is 33; expected a multiple of 32"},
    {16, UINT64_MAX, 8, STATUS_FORMAT, "the width is 18446744073709551615"},
    {24, 0, 8, STATUS_FORMAT, "the number of logits is 0"},
    {24, 1ull << 40, 8, STATUS_FORMAT, "the number of logits is 1099511627776"},
    {24, 1 << 20, 8, STATUS_FORMAT, "is cut off, 0 of its 3 windows are whole"},
    {32, 2, 4, STATUS_FORMAT, "the place of the head is 2; expected 0 to 1"},
    {32, 1, 4, STATUS_FORMAT, "the length of the head's path is 0; expected 1"},
    {36, 4, 4, STATUS_UNSUPPORTED, "the head's type is 4 ("},
    {36, UINT32_MAX, 4, STATUS_UNSUPPORTED, "the head's type is 4294967295 (unknown)"},
    {40, 0x7fc00000, 4, STATUS_FORMAT, "the scale of the logits is nan"},
    {40, 0, 4, STATUS_FORMAT, "the scale of the logits is 0"},
    {44, 16, 4, STATUS_FORMAT, "BOS has the id 16; expected -1 (none) to 15"},
    {44, (uint32_t)-2, 4, STATUS_FORMAT, "BOS has the id -2"},
    {48, 2, 4, STATUS_FORMAT, "the mark of BOS before the text is 2"},
    {52, 0x41f00000, 4, STATUS_FORMAT,
     "the soft cap of the logits is 30; expected 0, as version 1"},
    {56, 2, 8, STATUS_FORMAT, "the context size is 2; expected 3 to"},
    {56, UINT64_MAX, 8, STATUS_FORMAT, "the context size is 18446744073709551615"},
    {64, 5, 8, STATUS_FORMAT, "the first scored position is 5; expected 4 to 4"},
    {72, UINT64_MAX, 8, STATUS_FORMAT, "the number of scored positions is"},
    {80, 0, 8, STATUS_FORMAT, "the number of windows is 0; expected 1 to 3"},
    {80, 4, 8, STATUS_FORMAT, "the number of windows is 4; expected 1 to 3"},
    {80, 2, 8, STATUS_FORMAT, "has 2752 bytes; expected 2304, as the header says"},
    {88, 7, 8, STATUS_FORMAT, "the number of tokens is 7; expected 8 to"},
    {88, UINT64_MAX / 4, 8, STATUS_FORMAT, "the number of tokens is"},
    {88, INT64_MAX / 64, 8, STATUS_FORMAT, "is cut off"},
    {96, UINT64_MAX, 8, STATUS_FORMAT, "the length of the description is"},
    {104, 1, 8, STATUS_FORMAT, "the length of the head's path is 1; expected 0 to 0"},
    {336, 1, 4, STATUS_FORMAT, "the mark of a bias is 1; expected 0 to 0"},
    {340, 1, 4, STATUS_FORMAT, "the type of the bias is 1; expected 0 to 0"},
    {350, 1, 1, STATUS_FORMAT, "byte 350 of the header is 1; expected 0"},
    {400, 9, 1, STATUS_FORMAT, "byte 400 of the header is 9; expected 0"},
    {512, 16, 4, STATUS_FORMAT, "token 0 has the id 16; expected 0 to 15"},
    {516, UINT32_MAX, 4, STATUS_FORMAT, "token 1 has the id -1"},
};

static void every_field_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
        const struct damage *d = &damages[i];
        struct compact_bytes bytes = compact_make(EVAL_COMPACT_F32, NULL);
        memcpy(bytes.data + d->offset, &d->value, d->n_bytes);
        if (d->offset < EVAL_COMPACT_HEADER_BYTES)
            compact_seal(bytes.data);
        else
            compact_seal_parts(bytes.data, bytes.n_bytes);
        struct eval_compact_file file;
        struct status_why why = {""};
        enum status status = view(&file, &bytes, &why);
        if (!strstr(why.text, d->sentence))
            fail_msg("damage %zu: \"%s\", expected \"%s\"", i, why.text, d->sentence);
        assert_int_equal(status, d->status);
        free(bytes.data);
    }
}

static void a_soft_cap_is_read(void **state)
{
    (void)state;
    static const float caps[] = {30.0f, -1.0f, INFINITY, NAN};
    for (size_t i = 0; i < 4; i++) {
        struct compact_bytes bytes = compact_make(EVAL_COMPACT_F32, NULL);
        memcpy(bytes.data + 8, &(uint32_t){2}, 4);
        memcpy(bytes.data + 52, &caps[i], 4);
        compact_seal(bytes.data);
        struct eval_compact_file file;
        struct eval_compact_reading reading;
        struct eval_row_source source;
        struct status_why why = {""};
        assert_int_equal(view(&file, &bytes, &why), i ? STATUS_FORMAT : STATUS_OK);
        if (i) {
            assert_non_null(strstr(why.text, "the soft cap of the logits is"));
        } else {
            assert_int_equal(eval_compact_source_open(&source, &reading, &file, 0, &why), 0);
            assert_true(source.soft_cap == 30.0f);
            eval_compact_source_close(&reading);
            eval_compact_close(&file);
        }
        free(bytes.data);
    }
}

/** Also where the head is elsewhere. */
static void a_bias_is_read(void **state)
{
    (void)state;
    for (int by_path = 0; by_path < 2; by_path++) {
        struct compact_bytes bytes =
            compact_make_biased(EVAL_COMPACT_F32, by_path ? "/models/f16.gguf" : NULL);
        struct eval_compact_file file;
        struct eval_compact_reading reading;
        struct eval_row_source source;
        struct status_why why = {""};
        assert_int_equal(view(&file, &bytes, &why), STATUS_OK);
        assert_int_equal(file.layout.version, 3);
        assert_int_equal(eval_compact_source_open(&source, &reading, &file, 0, &why), STATUS_OK);
        assert_int_equal(source.bias->type, GGUF_TYPE_F16);
        assert_int_equal(source.bias->n_cols, 16);
        const uint8_t *last = (const uint8_t *)source.bias->data + 30;
        assert_true(kern_load_half(last) == 3.75f);
        eval_compact_source_close(&reading);
        eval_compact_close(&file);
        static const struct damage wrong[] = {
            {336, 2, 4, STATUS_FORMAT, "the mark of a bias is 2; expected 0 to 1"},
            {340, 4, 4, STATUS_UNSUPPORTED, "the bias's type is 4 ("},
            {340, GGUF_TYPE_Q8_0, 4, STATUS_FORMAT, "type Q8_0, of which there is no row of 16"},
        };
        for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
            uint32_t right;
            memcpy(&right, bytes.data + wrong[i].offset, 4);
            memcpy(bytes.data + wrong[i].offset, &wrong[i].value, 4);
            compact_seal(bytes.data);
            assert_int_equal(view(&file, &bytes, &why), wrong[i].status);
            if (!strstr(why.text, wrong[i].sentence))
                fail_msg("\"%s\", expected \"%s\"", why.text, wrong[i].sentence);
            memcpy(bytes.data + wrong[i].offset, &right, 4);
        }
        free(bytes.data);
    }
}

static void documents_are_read(void **state)
{
    (void)state;
    struct compact_bytes bytes = compact_make_documents(EVAL_COMPACT_F16);
    struct eval_compact_file file;
    struct eval_documents d;
    struct status_why why = {""};
    view(&file, &bytes, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(file.layout.version, 4);
    assert_int_equal(eval_compact_documents(&d, &file, &why), STATUS_OK);
    assert_int_equal(d.n, 3);
    assert_int_equal(d.n_files, 2);
    assert_string_equal(d.paths[1], "b.jsonl");
    assert_int_equal(d.files[1].n_bytes, 101);
    assert_int_equal(d.files[1].n, 2);
    assert_true(d.files[0].sha256[63] == 'a' && d.files[1].sha256[0] == 'b');
    assert_string_equal(d.items[2].id, "b");
    assert_null(d.items[0].id);
    assert_true(d.items[0].category == EVAL_NO_CATEGORY && d.items[2].category == 0);
    assert_int_equal(d.items[2].first, 5);
    assert_int_equal(d.items[2].line, 2);
    assert_true(d.scored[1] && !d.scored[5 + 12] && d.scored[5 + 13] && !d.scored[5]);
    assert_int_equal(d.stream.ids[17], 1);
    assert_int_equal(d.stream.n_text_bytes[3], 3);
    static const size_t rows[] = {0, 4, 6, 8, 11, 12};
    assert_int_equal(file.layout.n_windows, 5);
    for (size_t w = 0; w < 6; w++)
        assert_int_equal(eval_compact_first_row(&file, w), rows[w]);
    for (size_t row = 0, w = 0; row < 12; row++) {
        w += row == rows[w + 1];
        assert_int_equal(eval_compact_window_of(&file, row), w);
    }
    struct eval_compact_reading reading;
    struct eval_row_source source;
    const void *found;
    float value;
    assert_int_equal(eval_compact_source_open(&source, &reading, &file, 1, &why), STATUS_OK);
    assert_int_equal(source.rows(source.user, 1, 2, &found, &why), STATUS_OK);
    memcpy(&value, (const float *)found + 32, sizeof value); /* row 0 of window 2 */
    assert_true(value == (float)22 / 16 - 2);
    assert_true(file.checked[1] && file.checked[2] && !file.checked[0] && !file.checked[3]);
    eval_compact_source_close(&reading);
    eval_documents_free(&d);
    eval_compact_close(&file);
    free(bytes.data);
}

/** Where parts of the documents are, from the offsets of a file. */
enum part { IN_HEADER, IN_DOCUMENTS, IN_NAMES, IN_SCORED };
static const struct {
    enum part part;
    struct damage damage;
} wrong_documents[] = {
    {IN_HEADER, {64, 1, 8, STATUS_FORMAT, "the first scored position is 1; expected 0 to 0"}},
    {IN_HEADER, {72, 0, 8, STATUS_FORMAT, "the number of scored positions is 0; expected 1 to 25"}},
    {IN_HEADER, {80, 13, 8, STATUS_FORMAT, "the number of windows is 13; expected 1 to 12"}},
    {IN_HEADER, {80, 3, 8, STATUS_FORMAT, "as the header says"}},
    {IN_HEADER, {88, 1, 8, STATUS_FORMAT, "the number of tokens is 1; expected 2 to"}},
    {IN_HEADER, {376, 0, 8, STATUS_FORMAT, "the number of documents is 0; expected 1 to"}},
    {IN_HEADER, {376, UINT64_MAX, 8, STATUS_FORMAT, "the number of documents is 18446744073709"}},
    {IN_HEADER, {376, INT64_MAX / 64, 8, STATUS_FORMAT, "the file is cut off; record it again"}},
    {IN_HEADER, {384, 0, 8, STATUS_FORMAT, "the number of the documents' files is 0"}},
    {IN_HEADER,
     {384, 1 << 20, 8, STATUS_FORMAT, "the length of the names is 28; expected 1048576"}},
    {IN_HEADER, {384, 1, 8, STATUS_FORMAT, "as the header says"}},
    {IN_HEADER, {392, 4, 8, STATUS_FORMAT, "the number of categories is 4; expected 0 to 3"}},
    {IN_HEADER, {392, 0, 8, STATUS_FORMAT, "document 2: its category is 0; expected -1"}},
    {IN_HEADER, {392, 3, 8, STATUS_FORMAT, "the names of the documents end early"}},
    {IN_HEADER, {400, UINT64_MAX, 8, STATUS_FORMAT, "the length of the names is"}},
    {IN_HEADER, {400, 33, 8, STATUS_FORMAT, "5 bytes follow the last name"}},
    {IN_HEADER, {400, 20, 8, STATUS_FORMAT, "byte "}},
    {IN_HEADER, {450, 1, 1, STATUS_FORMAT, "byte 450 of the header is 1; expected 0"}},
    {IN_DOCUMENTS, {0, 27, 8, STATUS_FORMAT, "document 0: the number of tokens is 27; expected 0"}},
    {IN_DOCUMENTS,
     {0, UINT64_MAX, 8, STATUS_FORMAT, "document 0: the number of tokens is 18446744"}},
    {IN_DOCUMENTS,
     {64, 20, 8, STATUS_FORMAT, "document 2: the number of tokens is 20; expected 21"}},
    {IN_DOCUMENTS, {0, 4, 8, STATUS_FORMAT, "expected 22 to 22"}},
    {IN_DOCUMENTS,
     {80, 0, 4, STATUS_FORMAT, "document 2: the number of its file is 0; expected 1"}},
    {IN_DOCUMENTS,
     {80, 2, 4, STATUS_FORMAT, "document 2: the number of its file is 2; expected 1"}},
    {IN_DOCUMENTS, {84, 1, 4, STATUS_FORMAT, "document 2: its category is 1; expected -1"}},
    {IN_DOCUMENTS, {84, (uint32_t)-2, 4, STATUS_FORMAT, "document 2: its category is -2"}},
    {IN_DOCUMENTS, {84, (uint32_t)-1, 4, STATUS_FORMAT, "1 categories have names; the documents"}},
    {IN_DOCUMENTS, {88, 2, 4, STATUS_FORMAT, "the mark of a name is 2; expected 0 to 1"}},
    {IN_DOCUMENTS, {88, 0, 4, STATUS_FORMAT, "2 bytes follow the last name"}},
    {IN_DOCUMENTS, {92, 1, 4, STATUS_FORMAT, "its last field is 1; expected 0 to 0"}},
    {IN_NAMES, {27, 'x', 1, STATUS_FORMAT, "the names of the documents end early"}},
    {IN_SCORED, {3, 2, 1, STATUS_FORMAT, "the mark of its token 3 is 2; expected 0 or 1"}},
    {IN_SCORED,
     {5, 1, 1, STATUS_FORMAT, "document 2: the mark of its token 0 is 1; expected 0, as"}},
    {IN_SCORED, {3, 0, 1, STATUS_FORMAT, "with 12 scored positions in them"}},
};

static void every_field_of_documents_is_checked(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof wrong_documents / sizeof *wrong_documents; i++) {
        const struct damage *d = &wrong_documents[i].damage;
        struct compact_bytes bytes = compact_make_documents(EVAL_COMPACT_F32);
        struct eval_compact_file file;
        struct status_why why = {""};
        assert_int_equal(view(&file, &bytes, &why), STATUS_OK);
        const uint64_t at[] = {0, file.offsets.documents, file.offsets.names, file.offsets.scored};
        eval_compact_close(&file);
        memcpy(bytes.data + at[wrong_documents[i].part] + d->offset, &d->value, d->n_bytes);
        compact_seal_parts(bytes.data, bytes.n_bytes);
        enum status status = view(&file, &bytes, &why);
        if (!strstr(why.text, d->sentence))
            fail_msg("damage %zu: \"%s\", expected \"%s\"", i, why.text, d->sentence);
        assert_int_equal(status, d->status);
        free(bytes.data);
    }
}

static void bits_are_covered(struct compact_bytes bytes)
{
    for (size_t i = 0; i < bytes.n_bytes; i++) {
        bytes.data[i] ^= 1;
        struct eval_compact_file file;
        struct status_why why = {""};
        enum status status = view(&file, &bytes, &why);
        for (size_t w = 0; w < file.layout.n_windows && status == STATUS_OK; w++)
            status = eval_compact_check_window(&file, w, &why);
        assert_int_not_equal(status, STATUS_OK);
        eval_compact_close(&file);
        bytes.data[i] ^= 1;
    }
    free(bytes.data);
}

/** One bit anywhere is told, before or when its rows are used. */
static void every_bit_is_covered(void **state)
{
    (void)state;
    bits_are_covered(compact_make_biased(EVAL_COMPACT_F16, NULL));
    bits_are_covered(compact_make_documents(EVAL_COMPACT_F16));
}

static void a_file_that_is_cut_off_is_told(void **state)
{
    (void)state;
    struct compact_bytes bytes = compact_make(EVAL_COMPACT_F32, NULL);
    const size_t window_bytes = 3 * 32 * 4;
    for (size_t n = 0; n < bytes.n_bytes; n++) {
        struct eval_compact_file file;
        struct status_why why = {""};
        /* A copy of its own, so that a sanitizer sees every byte that is read too many. */
        uint8_t *copy = aligned_alloc(64, (n + 63) / 64 * 64 + 64);
        memcpy(copy, bytes.data, n);
        assert_int_equal(eval_compact_view(&file, "base", copy, n, &why), STATUS_FORMAT);
        size_t missing = (bytes.n_bytes - n + window_bytes - 1) / window_bytes;
        char expected[64];
        snprintf(expected, sizeof expected, "%zu of its 3 windows are whole",
                 missing < 3 ? 3 - missing : 0);
        if (n >= EVAL_COMPACT_HEADER_BYTES)
            assert_non_null(strstr(why.text, expected));
        free(copy);
    }
    free(bytes.data);
}

static void a_path_is_a_string(void **state)
{
    (void)state;
    struct compact_bytes bytes = compact_make(EVAL_COMPACT_F32, "/models/f16.gguf");
    struct eval_compact_file file;
    struct status_why why = {""};
    assert_int_equal(view(&file, &bytes, &why), STATUS_OK);
    assert_string_equal(file.head_path, "/models/f16.gguf");
    assert_null(file.head.data);
    uint64_t path = file.offsets.path;
    eval_compact_close(&file);
    bytes.data[path + 3] = '\0';
    compact_seal_parts(bytes.data, bytes.n_bytes);
    assert_int_equal(view(&file, &bytes, &why), STATUS_FORMAT);
    assert_non_null(strstr(why.text, "the head's path has a zero byte"));
    free(bytes.data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(halves_are_the_nearest),
        cmocka_unit_test(rows_of_any_size_lose_little),
        cmocka_unit_test(what_is_not_finite_stays_so),
        cmocka_unit_test(a_whole_file_is_read),
        cmocka_unit_test(every_field_is_checked),
        cmocka_unit_test(a_soft_cap_is_read),
        cmocka_unit_test(a_bias_is_read),
        cmocka_unit_test(documents_are_read),
        cmocka_unit_test(every_field_of_documents_is_checked),
        cmocka_unit_test(every_bit_is_covered),
        cmocka_unit_test(a_file_that_is_cut_off_is_told),
        cmocka_unit_test(a_path_is_a_string),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
