/* Options that go together, or do not, and those of one mode of a command. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/words.h"
#include "cli/commands.h"

static const struct cli_command *const ruled[] = {
    &cli_command_perplexity, &cli_command_record, &cli_command_kld,   &cli_command_check,
    &cli_command_imatrix,    &cli_command_table,  &cli_command_sweep, &cli_command_best,
};
enum { N_RULED = sizeof ruled / sizeof *ruled };

/* Whether a command has the option that a word of a rule names, as --name or --name=word. */
static bool is_option_of(const struct cli_command *command, const char *word)
{
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(word, "= "), word);
    const char *equals = word + strlen(name);
    struct cli_rows rows = {.next = command->options};
    for (const struct cli_option *row; (row = cli_rows_next(&rows));)
        if (row->names && base_words_index(row->names, name) >= 0) {
            char choice[64];
            if (*equals != '=')
                return true;
            snprintf(choice, sizeof choice, "%.*s", (int)strcspn(equals + 1, " "), equals + 1);
            return row->type == CLI_CHOICE && base_words_index(row->choices, choice) >= 0;
        }
    return false;
}

/* only NULL: any command may have it. */
static void check_words(const struct cli_command *only, const char *words)
{
    const char *word;
    size_t length;
    while (words && (words = base_words_next(words, &word, &length))) {
        bool found = only && is_option_of(only, word);
        for (size_t i = 0; i < N_RULED && !only; i++)
            found |= is_option_of(ruled[i], word);
        if (!found)
            fail_msg("%s: a rule names %.*s", only ? only->name : "all", (int)length, word);
    }
}

/* A name that is misspelt would be a rule that never holds. */
static void test_rules_name_options(void **state)
{
    (void)state;
    for (size_t i = 0; i <= N_RULED; i++) {
        const struct cli_command *command = i ? ruled[i - 1] : NULL;
        const struct cli_rule *rules = command ? command->rules : cli_shared_rules;
        unsigned modes = 0;
        for (size_t m = 0; command && command->modes && command->modes[m]; m++)
            modes |= 1u << m;
        for (const struct cli_rule *r = rules; r && r->options; r++) {
            check_words(command, r->options);
            check_words(command, r->others);
            assert_int_equal(r->modes & ~modes, 0);
            assert_int_equal(r->relation == CLI_ONLY, r->modes && !r->others);
        }
    }
}

struct apples {
    int64_t n;
    int kind;
    bool a, b, c, d;
};

static int mode_of_apples(const void *settings)
{
    return ((const struct apples *)settings)->d;
}

static void test_rules(void **state)
{
    (void)state;
    static const struct cli_option options[] = {
        {"-n", CLI_COUNT, "N", "n", offsetof(struct apples, n), 0, 9, .env = "ASSAY_TEST_N"},
        {"--kind", CLI_CHOICE, "K", "k", offsetof(struct apples, kind), .choices = "one two"},
        {"-a --apple", CLI_ON, NULL, "a", offsetof(struct apples, a)},
        {"-b", CLI_ON, NULL, "b", offsetof(struct apples, b)},
        {"-c", CLI_ON, NULL, "c", offsetof(struct apples, c)},
        {"-d", CLI_ON, NULL, "d", offsetof(struct apples, d)},
        {0},
    };
    static const struct cli_rule rules[] = {
        {"-n", CLI_NEEDS, "-a --kind=two -b", "so it is"},
        {"--apple", CLI_NOT_WITH, "-b -c"},
        {"-b -c", CLI_ONE_OF, .why = "what is wanted"},
        {"-c", CLI_ONLY, .modes = 1},
        {0},
    };
    static const char *const modes[] = {"a hill", "a lake", NULL};
    static const struct cli_command command = {.name = "ruled",
                                               .usage = "",
                                               .options = options,
                                               .rules = rules,
                                               .modes = modes,
                                               .mode = mode_of_apples,
                                               .settings_bytes = sizeof(struct apples)};
    static const struct {
        const char *words, *said; /* said NULL: nothing is wrong */
    } cases[] = {
        {"-n 0", NULL}, /* what it is anyway */
        {"-n 1", "-n goes with -a, --kind two and -b only: so it is"},
        {"-n 1 --kind one", "-n goes with -a, --kind two and -b only: so it is"},
        {"-n 1 --kind two", NULL},
        {"-n 1 -b", NULL},
        {"-a -c", "--apple does not go with -c"},
        {"-b -c", "-b and -c both say what is wanted: give one"},
        {"-c", NULL},
        {"-c -d", "-c is for a hill; with a lake it would do nothing"},
        {"-d", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[64], *argv[8] = {text};
        int argc = 1;
        snprintf(text, sizeof text, "%s", cases[i].words);
        char *rest = text;
        while ((argv[argc] = strsep(&rest, " ")))
            argc++;
        struct apples settings = {0};
        struct cli_args args;
        struct status_why why = {""};
        enum status status = cli_args_parse(&command, argc, argv, &settings, &args, &why);
        assert_string_equal(why.text, cases[i].said ? cases[i].said : "");
        assert_int_equal(status, cases[i].said ? STATUS_USAGE : STATUS_OK);
    }
    setenv("ASSAY_TEST_N", "3", 1); /* a variable is for whichever run it is of use to */
    char name[] = "ruled", *argv[] = {name};
    struct apples settings = {0};
    struct cli_args args;
    assert_int_equal(cli_args_parse(&command, 1, argv, &settings, &args, NULL), STATUS_OK);
    assert_int_equal(settings.n, 3);
    unsetenv("ASSAY_TEST_N");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_name_options),
        cmocka_unit_test(test_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
