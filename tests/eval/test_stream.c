/*
 * Token streams and per-token lines, with the vocabulary of the bundled model
 * (SentencePiece, BOS 1, byte tokens 3 to 258, a space in front of every text).
 */
#include <math.h>

#include "eval/metrics/per_token.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/temp.h"

static struct gguf_file *file;
static struct model_tokenizer *tokenizer;

static int open_vocabulary(void **state)
{
    (void)state;
    struct status_why why = {0};
    if (gguf_open(&file, ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf", &why) != STATUS_OK ||
        model_tokenizer_open(&tokenizer, file, NULL, false, &why) != STATUS_OK) {
        print_error("%s\n", why.text);
        return -1;
    }
    return 0;
}

static int close_vocabulary(void **state)
{
    (void)state;
    model_tokenizer_close(tokenizer);
    gguf_close(file);
    return 0;
}

static void make(struct eval_stream *stream, const char *text, size_t n_bytes, bool bos, bool lines)
{
    char *bytes = malloc(n_bytes + 1);
    assert_non_null(bytes);
    memcpy(bytes, text, n_bytes);
    struct base_text t = {.data = bytes, .n_bytes = n_bytes};
    struct eval_stream_options options = {.bos_in_front = bos, .split_lines = lines};
    struct status_why why = {0};
    if (eval_stream_make(stream, tokenizer, &t, &options, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    free(bytes);
}

static size_t bytes_of(const struct eval_stream *stream)
{
    size_t sum = 0;
    for (size_t i = 0; i < stream->n; i++)
        sum += stream->n_text_bytes[i];
    return sum;
}

/** The lengths add up to the text, though the vocabulary has put a space in front. */
static void counts_every_byte_once(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t n;
    } texts[] = {
        {"The town", 8},
        {" The town", 9},
        {"  two  spaces ", 14},
        {"\n", 1},
        {"a", 1},
        {"caf\xc3\xa9 \xe4\xb8\xad\xe6\x96\x87", 12},
        {"line\nand line\n", 14},
        {"x\0y", 3},
        {"a\xe2\x96\x81"
         "b",
         5},                                           /* U+2581 itself, */
        {"\xe2\x96\x81\xe2\x96\x81 \xe2\x96\x81", 10}, /* in front and in a row, */
        {"\xe2\x96 \x96\x81 \xc3 x", 9},               /* and parts of it */
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct eval_stream stream;
        for (int lines = 0; lines < 2; lines++) {
            make(&stream, texts[i].text, texts[i].n, true, lines);
            assert_true(stream.has_bos);
            assert_int_equal(stream.ids[0], model_token_bos(tokenizer));
            assert_int_equal(stream.n_text_bytes[0], 0);
            assert_int_equal(bytes_of(&stream), texts[i].n);
            eval_stream_free(&stream);
        }
    }
}

/** Neither BOS unless asked for, nor ever EOS. */
static void adds_what_was_asked_for(void **state)
{
    (void)state;
    struct eval_stream with, without;
    make(&with, "The town", 8, true, false);
    make(&without, "The town", 8, false, false);
    assert_false(without.has_bos);
    assert_int_equal(with.n, without.n + 1);
    assert_memory_equal(with.ids + 1, without.ids, without.n * sizeof *without.ids);
    assert_int_not_equal(without.ids[without.n - 1], model_token_eos(tokenizer));
    char hex[BASE_HEX];
    assert_int_equal(base_sha256_ids(hex, with.ids, with.n, NULL), STATUS_OK);
    assert_string_equal(hex, with.sha256);
    eval_stream_free(&with);
    eval_stream_free(&without);
}

/** Line by line is the ids of each line, one after the other. */
static void splits_lines(void **state)
{
    (void)state;
    static const char text[] = "One line.\n\nAnother one\nlast";
    static const struct {
        size_t from, n;
    } lines[] = {{0, 10}, {10, 1}, {11, 12}, {23, 4}};
    struct eval_stream whole, split;
    make(&split, text, sizeof text - 1, true, true);
    size_t at = 1;
    for (size_t i = 0; i < 4; i++) {
        struct eval_stream line;
        make(&line, text + lines[i].from, lines[i].n, false, false);
        assert_true(at + line.n <= split.n);
        assert_memory_equal(split.ids + at, line.ids, line.n * sizeof *line.ids);
        assert_memory_equal(split.n_text_bytes + at, line.n_text_bytes,
                            line.n * sizeof *line.n_text_bytes);
        at += line.n;
        eval_stream_free(&line);
    }
    assert_int_equal(at, split.n);
    make(&whole, text, sizeof text - 1, true, false);
    assert_int_not_equal(whole.n, split.n);
    eval_stream_free(&whole);
    eval_stream_free(&split);
}

/** Control tokens in a text are text, unless the option says otherwise. */
static void parses_control_tokens_on_request(void **state)
{
    (void)state;
    char bytes[] = "a</s>b";
    struct base_text text = {.data = bytes, .n_bytes = 6};
    for (int parse = 0; parse < 2; parse++) {
        struct eval_stream stream;
        struct eval_stream_options options = {.parse_special = parse};
        assert_int_equal(eval_stream_make(&stream, tokenizer, &text, &options, NULL), STATUS_OK);
        bool found = false;
        for (size_t i = 0; i < stream.n; i++)
            found |= stream.ids[i] == model_token_eos(tokenizer);
        assert_int_equal(found, parse);
        assert_int_equal(bytes_of(&stream), 6);
        eval_stream_free(&stream);
    }
}

/**
 * Two windows of three tokens, one position scored in each; the second is not done at first.
 * The ids are byte tokens (3 + byte) and " the" (263).
 */
static void per_token_lines(void **state)
{
    (void)state;
    int32_t ids[] = {1, 3 + 'x', 3 + '\t', 3 + 'y', 3 + 'z', 263};
    struct eval_stream stream = {.ids = ids, .n = 6};
    struct eval_plan plan;
    struct eval_plan_options options = {.n_ctx = 3, .bos = 1};
    struct eval_table table;
    assert_int_equal(eval_plan_make(&plan, &options, stream.n, NULL), STATUS_OK);
    assert_int_equal(eval_table_make(&table, EVAL_N_COLUMNS, 2, 1, NULL), STATUS_OK);
    static const double scores[][2] = {
        {-1.0 / 3, -(double)INFINITY}, {1, 32000}, {2.0 / 3e5, (double)NAN}};
    for (size_t c = 0; c < EVAL_N_COLUMNS; c++)
        for (size_t w = 0; w < 2; w++)
            *eval_table_row(&table, (enum eval_column)c, w) = scores[c][w];
    table.done[0] = true;

    char folder[64], path[128];
    temp_make(folder);
    temp_path(path, folder, "tokens.tsv");
    static const char header[] = "window\tposition\ttoken_id\ttoken\tlogprob\trank\tentropy\n";
    static const char *const lines[] = {"0\t1\t12\t\\t\t-0.333333333333\t1\t6.66666666667e-06\n",
                                        "1\t1\t263\t the\t-inf\t32000\tnan\n"};
    for (size_t n_done = 1; n_done <= 2; n_done++) {
        struct base_file *out;
        table.done[1] = n_done == 2;
        assert_int_equal(base_file_create(&out, path, NULL, NULL), STATUS_OK);
        assert_int_equal(eval_per_token_write(out, &plan, &stream, &table, tokenizer, NULL),
                         STATUS_OK);
        assert_int_equal(base_file_commit(out, NULL), STATUS_OK);
        char expected[256], *found = temp_read(path);
        snprintf(expected, sizeof expected, "%s%s%s", header, lines[0],
                 n_done == 2 ? lines[1] : "");
        assert_string_equal(found, expected);
        free(found);
    }
    eval_table_free(&table);
    unlink(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_every_byte_once),
        cmocka_unit_test(adds_what_was_asked_for),
        cmocka_unit_test(splits_lines),
        cmocka_unit_test(parses_control_tokens_on_request),
        cmocka_unit_test(per_token_lines),
    };
    return cmocka_run_group_tests(tests, open_vocabulary, close_vocabulary);
}
