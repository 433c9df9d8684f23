/* cli/options/args.h: how the lists of options are read. */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"
#include "cli/commands.h"
#include "cli/options/perplexity.h"

static const struct cli_command perplexity = {
    .name = "perplexity",
    .usage = "",
    .options = cli_perplexity_options,
    .settings_bytes = sizeof(struct cli_perplexity_settings),
};

/* Parse the words of a line that are separated by single blanks. */
static enum status parse(char *line, struct cli_perplexity_settings *settings,
                         struct cli_args *args, struct status_why *why)
{
    char *argv[32];
    int argc = 0;
    argv[argc++] = line;
    for (char *c = line; *c; c++)
        if (*c == ' ') {
            *c = '\0';
            argv[argc++] = c + 1;
            assert_in_range(argc, 1, 31);
        }
    cli_perplexity_defaults(settings);
    return cli_args_parse(&perplexity, argc, argv, settings, args, why);
}

static void assert_refused(const char *text, const char *sentence)
{
    char line[256];
    struct cli_perplexity_settings settings;
    struct cli_args args;
    struct status_why why = {""};
    snprintf(line, sizeof line, "perplexity -m x %s", text);
    assert_int_equal(parse(line, &settings, &args, &why), STATUS_USAGE);
    assert_string_equal(why.text, sentence);
    cli_args_release(&perplexity, &settings);
}

static struct cli_perplexity_settings accept(const char *text, struct cli_args *args)
{
    static char line[512];
    struct cli_perplexity_settings settings;
    struct status_why why = {""};
    snprintf(line, sizeof line, "perplexity -m x %s", text);
    enum status status = parse(line, &settings, args, &why);
    assert_string_equal(why.text, "");
    assert_int_equal(status, STATUS_OK);
    return settings;
}

static void test_values_of_every_type(void **state)
{
    (void)state;
    struct cli_args args;
    struct cli_perplexity_settings s =
        accept("-c 256 --chunks -1 --rope-freq-base 1e6 --isa scalar --llama-compat "
               "--rope-scaling yarn -b 7 -q",
               &args);
    assert_string_equal(s.model, "x");
    assert_int_equal(s.windows.n_ctx.value, 256);
    assert_int_equal(s.windows.n_chunks, -1);
    assert_true(s.evaluate.load.rope_freq_base == 1e6);
    assert_int_equal(s.evaluate.machine.isa, CLI_ISA_SCALAR);
    assert_int_equal(s.evaluate.load.rope_scaling, 2);
    assert_true(s.llama_compat && args.quiet);
    assert_int_equal(s.evaluate.machine.n_batch, 7);
    assert_string_equal(args.ignored, "");
}

static void test_defaults(void **state)
{
    (void)state;
    struct cli_args args;
    struct cli_perplexity_settings s = accept("-m x", &args);
    assert_int_equal(s.windows.n_chunks, -1);
    assert_int_equal(s.evaluate.machine.isa, CLI_ISA_AUTO);
    assert_int_equal(s.evaluate.load.rope_scaling, -1);
    assert_true(isnan(s.evaluate.load.yarn_ext_factor) && isnan(s.evaluate.load.rope_scale));
    assert_int_equal(s.windows.n_ctx.value, -1);
}

static void test_spellings(void **state)
{
    (void)state;
    struct cli_args args;
    assert_int_equal(accept("--ctx-size 99", &args).windows.n_ctx.value, 99);
    assert_int_equal(accept("--ctx_size 99", &args).windows.n_ctx.value, 99);
    assert_int_equal(accept("--ctx-size=99", &args).windows.n_ctx.value, 99);
    assert_int_equal(accept("--ctx_size=99", &args).windows.n_ctx.value, 99);
    assert_string_equal(accept("--prompt=a=b", &args).text.prompt, "a=b");
    assert_string_equal(accept("-p -c", &args).text.prompt, "-c");
    assert_int_equal(accept("-c 2 --ctx-size 2", &args).windows.n_ctx.value, 2);
    assert_refused("-c 1 -c 2", "-c is given twice, as '1' and as '2'; it takes one value");
}

static void test_lists(void **state)
{
    (void)state;
    struct cli_args args;
    struct cli_perplexity_settings s =
        accept("--override-kv a=int:1,b=str:x --override-kv \"c=str:1,\"\"2\"\"\"", &args);
    assert_int_equal(s.evaluate.load.overrides.n, 3);
    assert_string_equal(s.evaluate.load.overrides.items[0], "a=int:1");
    assert_string_equal(s.evaluate.load.overrides.items[1], "b=str:x");
    assert_string_equal(s.evaluate.load.overrides.items[2], "c=str:1,\"2\"");
    cli_args_release(&perplexity, &s);
    assert_refused("--override-kv \"a", "--override-kv: '\"a' has a quote that is not closed");
}

static void test_ignored_options(void **state)
{
    (void)state;
    struct cli_args args;
    struct cli_perplexity_settings s =
        accept("-fa -ub 512 --mlock --numa distribute -ctk f32", &args);
    assert_string_equal(args.ignored, "-fa, -ub, --mlock, --numa");
    cli_args_release(&perplexity, &s);
    accept("-fa on -c 7", &args);
    assert_string_equal(args.ignored, "-fa");
    accept("--flash-attn=auto", &args);
    assert_string_equal(args.ignored, "--flash-attn");
}

static void test_values_that_change_nothing(void **state)
{
    (void)state;
    struct cli_args args;
    accept("-ctk-last f32,1 -ser -1,0 --attention causal", &args);
    assert_string_equal(args.notes, "");
    accept("-ctv-first f16 -ctk-first bf16,3", &args); /* said once */
    assert_string_equal(args.notes, "keys and values of the first and last layers are rounded as "
                                    "the others are: by -ctk and -ctv\n");
    assert_string_equal(args.ignored, "");
    assert_refused(
        "-ser -2,1",
        "-ser: leaving out experts by their shares is not implemented (--experts-used N takes "
        "the N best); -1,0 leaves out none");
}

/* A value is taken where it is one, else the next option would be lost. */
static void test_optional_values(void **state)
{
    (void)state;
    struct cli_args args;
    struct cli_perplexity_settings s = accept("--fit --kl-divergence --fit OFF -fa On -c 7", &args);
    assert_true(s.kl_divergence);
    assert_int_equal(s.windows.n_ctx.value, 7);
    assert_string_equal(args.ignored, "--fit, --fit, -fa");
    accept("--context-shift --fit", &args);
    assert_string_equal(args.ignored, "--context-shift, --fit");
}

static void test_refused_options(void **state)
{
    (void)state;
    assert_refused("-ctk-first q8_0,3",
                   "-ctk-first q8_0,3: expected f32, f16 or bf16, of which the last two are not "
                   "rounded to; -ctk and -ctv round some layers otherwise, and -ctk an indexer's "
                   "keys: q8_0,layers 0-3:f16,indexer:q8_0");
    assert_refused("--lora a.gguf",
                   "--lora a.gguf: adapters are not implemented; merge it into the model first");
    assert_refused("--control-vector-layer-range 1 2",
                   "--control-vector-layer-range 1: control vectors are not implemented");
}

static void test_malformed(void **state)
{
    (void)state;
    assert_refused("--chunkz 3", "unknown option --chunkz; did you mean --chunks?");
    assert_refused("--ctxsize 3", "unknown option --ctxsize; did you mean --ctx-size?");
    assert_refused("--qwertyuiop", "unknown option --qwertyuiop; see assay help perplexity");
    assert_refused("-c", "-c needs a value: -c N");
    assert_refused("-c 12x", "-c: '12x' is not a whole number, or several with commas between");
    assert_refused("-c -1", "-c: -1 is out of range, expected 0 to 2147483647");
    assert_refused("-c 99999999999999999999",
                   "-c: 99999999999999999999 is out of range, expected 0 to 2147483647");
    assert_refused("--rope-freq-base nan", "--rope-freq-base: 'nan' is not a finite number");
    assert_refused("--isa sse2", "--isa: 'sse2' is not one of: " CLI_ISAS);
    assert_refused("--precision low", "--precision: 'low' is not one of: high exact fast");
    assert_refused("--quiet=1", "--quiet takes no value, found '1'");
    char line[] = "perplexity -c 7";
    struct cli_perplexity_settings settings;
    struct cli_args args;
    struct status_why why;
    assert_int_equal(parse(line, &settings, &args, &why), STATUS_USAGE);
    assert_string_equal(why.text, "-m is missing; see assay help perplexity");
    assert_refused("text.txt", "unexpected argument 'text.txt'; did you mean -f text.txt?");
}

static enum gguf_type accept_cache_k(const char *text)
{
    struct cli_args args;
    struct cli_perplexity_settings s = accept(text, &args);
    assert_int_equal(s.evaluate.load.cache_k.n, 1);
    enum gguf_type type = s.evaluate.load.cache_k.items[0].type.type;
    cli_args_release(&perplexity, &s);
    return type;
}

static void test_environment(void **state)
{
    (void)state;
    struct cli_args args;
    setenv("LLAMA_ARG_CTX_SIZE", "128", 1);
    setenv("ASSAY_ISA", "scalar", 1);
    struct cli_perplexity_settings s = accept("-t 1", &args);
    assert_int_equal(s.windows.n_ctx.value, 128);
    assert_int_equal(s.evaluate.machine.isa, CLI_ISA_SCALAR);
    assert_int_equal(accept("-c 64", &args).windows.n_ctx.value, 64);

    setenv("LLAMA_ARG_CTX_SIZE", "many", 1);
    assert_refused(
        "-t 1", "LLAMA_ARG_CTX_SIZE: 'many' is not a whole number, or several with commas between");
    unsetenv("LLAMA_ARG_CTX_SIZE");
    setenv("LLAMA_ARG_CACHE_TYPE_K", "q8_0", 1);
    assert_int_equal(accept_cache_k("-t 1"), GGUF_TYPE_Q8_0);
    assert_int_equal(accept_cache_k("-ctk f16"), GGUF_TYPE_F16);
    unsetenv("LLAMA_ARG_CACHE_TYPE_K");
    unsetenv("ASSAY_ISA");
}

static const struct cli_command *const commands[] = {
    &cli_command_perplexity, &cli_command_record,  &cli_command_kld,     &cli_command_check,
    &cli_command_score,      &cli_command_compare, &cli_command_table,   &cli_command_tokenize,
    &cli_command_info,       &cli_command_dump,    &cli_command_version,
};

static size_t n_rows_with(const struct cli_command *command, const char *name)
{
    size_t n = 0;
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        n += row->names && base_words_index(row->names, name) >= 0;
    return n;
}

/* Every spelling of a command's list is unique, and all are dashes and letters. */
static void test_no_spelling_twice(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        struct cli_rows rows = {.next = commands[i]->options};
        for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
            const char *names = row->names ? row->names : "", *name;
            size_t length;
            while ((names = base_words_next(names, &name, &length))) {
                char word[64];
                snprintf(word, sizeof word, "%.*s", (int)length, name);
                assert_int_equal(word[0], '-');
                size_t n_found = n_rows_with(commands[i], word);
                if (n_found != 1)
                    fail_msg("%s: %s is in %zu rows", commands[i]->name, word, n_found);
            }
        }
    }
}

static size_t bytes_of_setting(enum cli_option_type type)
{
    switch (type) {
    case CLI_ON:
    case CLI_OFF:
        return sizeof(bool);
    case CLI_TEXT:
    case CLI_NAMED:
        return sizeof(const char *);
    case CLI_COUNT:
        return sizeof(int64_t);
    case CLI_NUMBER:
        return sizeof(double);
    case CLI_CHOICE:
        return sizeof(int);
    case CLI_KV:
        return sizeof(struct cli_kv_list);
    case CLI_LIST:
    case CLI_EACH:
    case CLI_OPERANDS:
        return sizeof(struct cli_list);
    default:
        return 0;
    }
}

/* A group at a wrong offset would leave the struct, or meet another option's setting. */
static void test_every_setting_has_its_place(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
        enum cli_option_type taken[4096] = {0}; /* CLI_HEADING: not taken */
        assert_in_range(commands[i]->settings_bytes, 0, sizeof taken / sizeof *taken);
        struct cli_rows rows = {.next = commands[i]->options};
        for (const struct cli_option *row; (row = cli_rows_next(&rows));) {
            size_t at = rows.at, n = bytes_of_setting(row->type);
            enum cli_option_type type = row->type == CLI_OFF ? CLI_ON : row->type; /* may share */
            if (at + n > commands[i]->settings_bytes && n)
                fail_msg("%s: %s is set outside", commands[i]->name, row->names);
            for (size_t k = 0; k < n; k++) {
                bool shared = taken[at + k] == CLI_ON && type == CLI_ON;
                if (taken[at + k] && !shared)
                    fail_msg("%s: %s sets another option's", commands[i]->name, row->names);
                taken[at + k] = type;
            }
        }
    }
}

/* Groups within groups: offsets add up, and what a group adds goes to its first row only. */
static void test_nested_groups(void **state)
{
    (void)state;
    static const struct cli_option inner[] = {
        {.names = "--a", CLI_COUNT, "N", "a", .offset = 8, .max = 9},
        {.names = "--b", CLI_EACH, "X", "b", .offset = 16, .required = true},
        {0},
    };
    static const struct cli_option middle[] = {
        {.type = CLI_GROUP, .group = inner, .offset = 8},
        {.names = "--c", CLI_COUNT, "N", "c", .offset = 40, .max = 9},
        {0},
    };
    static const struct cli_option outer[] = {
        {.type = CLI_GROUP, .group = middle, .offset = 8, .help = " (default: 1)"},
        {.names = "--d", CLI_COUNT, "N", "d", .max = 9},
        {0},
    };
    static const struct {
        const char *name, *more;
        size_t at;
    } expected[] = {{"--a", " (default: 1)", 24}, {"--b", "", 32}, {"--c", "", 48}, {"--d", "", 0}};
    struct cli_rows rows = {.next = outer};
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        const struct cli_option *row = cli_rows_next(&rows);
        assert_non_null(row);
        assert_string_equal(row->names, expected[i].name);
        assert_string_equal(rows.more, expected[i].more);
        assert_int_equal(rows.at, expected[i].at);
    }
    assert_null(cli_rows_next(&rows));

    static const struct cli_command command = {
        .name = "nested", .usage = "", .options = outer, .settings_bytes = 7 * sizeof(int64_t)};
    int64_t settings[7] = {0};
    struct cli_args args;
    struct status_why why;
    char line[] = "--a", value[] = "4";
    char *argv[] = {line, line, value};
    assert_int_equal(cli_args_parse(&command, 3, argv, settings, &args, &why), STATUS_USAGE);
    assert_string_equal(why.text, "--b is missing; see assay help nested");
    assert_int_equal(settings[3], 4);
}

static void test_nearest_name(void **state)
{
    (void)state;
    char nearest[16];
    size_t distance = 3;
    assert_string_equal(
        base_nearest_name("adcb", "xyz abcd abdc", nearest, sizeof nearest, &distance), "abcd");
    assert_int_equal(distance, 2); /* b and d are not neighbours: two letters replaced */
    distance = 3;
    assert_string_equal(base_nearest_name("acbd", "abcd", nearest, sizeof nearest, &distance),
                        "abcd");
    assert_int_equal(distance, 1);
    distance = 2;
    assert_null(base_nearest_name("zzzz", "abcd", nearest, sizeof nearest, &distance));
    static const struct {
        const char *word, *names, *likely;
    } rows[] = {
        {"ppl", "kld perplexity dump", "perplexity"},
        {"perp", "sweep perplexity", "perplexity"},
        {"versoin", "version", "version"},
        {"--chunk", "--chunk-from --chunks", "--chunks"},
        {"--jsn", "--js --json", "--json"},
        {"--frob", "--file --from", "--from"},
        {"--", "--model", NULL},
        {"frobnicate", "info tokenize", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t rank = SIZE_MAX;
        const char *found =
            base_likely_name(rows[i].word, rows[i].names, nearest, sizeof nearest, &rank);
        assert_string_equal(found ? found : "", rows[i].likely ? rows[i].likely : "");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_every_type),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_ignored_options),
        cmocka_unit_test(test_values_that_change_nothing),
        cmocka_unit_test(test_optional_values),
        cmocka_unit_test(test_refused_options),
        cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_environment),
        cmocka_unit_test(test_no_spelling_twice),
        cmocka_unit_test(test_every_setting_has_its_place),
        cmocka_unit_test(test_nested_groups),
        cmocka_unit_test(test_nearest_name),
    };
    unsetenv("ASSAY_ISA");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
