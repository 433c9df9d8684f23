/* cli/session/progress.h: when progress is shown, and what it says; the digits of its figures
 * (cli/output/figure.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/output/figure.h"
#include "cli/process/say.h"
#include "cli/session/progress.h"

static struct eval_progress at(double fraction, double seconds)
{
    return (struct eval_progress){
        .n_tokens_done = (size_t)(fraction * 40),
        .n_tokens = 40,
        .fraction = fraction,
        .seconds = seconds,
        .seconds_left = fraction > 0 ? seconds * (1 - fraction) / fraction : (double)NAN,
    };
}

static void assert_text(struct eval_progress now, bool bar, const char *expected)
{
    char text[160];
    cli_progress_text(text, sizeof text, &now, &(struct cli_progress){.bar = bar}, 80);
    assert_string_equal(text, expected);
}

static void test_text(void **state)
{
    (void)state;
    assert_text(at(0.25, 20), false, "assay: 25 % done, 1:00 left");
    assert_text(at(0.5, 3723), false, "assay: 50 % done, 1:02:03 left");
    assert_text(at(0, 1), false, "assay: 0 % done, ? left");
    assert_text(at(0.999, 10), true,
                "[#############################.]  99 %  39 of 40 tokens  0:00 left");
    assert_text(at(0, 0), true, "[..............................]   0 %  0 of 40 tokens  ? left");
    struct eval_progress bytes = at(0.5, 10);
    bytes.n_tokens = bytes.n_tokens_done = 0;
    assert_text(bytes, true, "[###############...............]  50 %  0:10 left");
}

/* Figures are shown as far as whole ones fit into the terminal's line. */
static void test_figures(void **state)
{
    (void)state;
    static const struct {
        size_t width;
        const char *text;
    } rows[] = {
        {60, "[#####.....]  50 %  0:10 left  KLD Q8 4.3e-05  Q4é 0.0036"},
        {58, "[#####.....]  50 %  0:10 left  KLD Q8 4.3e-05  Q4é 0.0036"},
        {57, "[#####.....]  50 %  0:10 left  KLD Q8 4.3e-05 …"},
        {48, "[#####.....]  50 %  0:10 left  KLD Q8 4.3e-05 …"},
        {47, "[#####.....]  50 %  0:10 left …"},
        {20, "[#####.....]  50 %  0:10 left"},
    };
    struct eval_progress now = at(0.5, 10);
    struct cli_progress how = {.bar = true, .figures = "  KLD Q8 4.3e-05  Q4é 0.0036"};
    char text[160];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        cli_progress_text(text, sizeof text, &now, &how, rows[i].width);
        assert_string_equal(text, rows[i].text);
    }
    how.figures = NULL;
    cli_progress_text(text, sizeof text, &now, &how, 79);
    assert_string_equal(text, "[#####.....]  50 %  0:10 left");
    how = (struct cli_progress){.figures = "  KLD Q8 4.3e-05  Q4é 0.0036"};
    cli_progress_text(text, sizeof text, &now, &how, 20);
    assert_string_equal(text, "assay: 50 % done, 0:10 left  KLD Q8 4.3e-05  Q4é 0.0036");
}

static void test_digits(void **state)
{
    (void)state;
    static const struct {
        double value, error;
        const char *text;
    } rows[] = {
        {0.003623, 0.0000482, "0.003623 ± 0.000048"},
        {4.344e-5, 4.2e-7, "4.344e-05 ± 4.2e-07"},
        {0, 4.2e-7, "0 ± 4.2e-07"},
        {3e-9, 4.2e-7, "3e-09 ± 4.2e-07"},
        {81.599079, 2.701011, "81.6 ± 2.7"},
        {95.11, 0.0996, "95.11 ± 0.10"},
        {724.3, 173.2, "720 ± 170"},
        {72.37, 17.33, "72 ± 17"},
        {-0.004, 0.23, "0.00 ± 0.23"},
        {3.14159e9, 2.7e7, "3.142e+09 ± 2.7e+07"},
        {100, 0, "100 ± 0"},
        {61.172154, (double)NAN, "61.1722"},
        {(double)INFINITY, 1, "inf"},
        {-(double)NAN, 0, "nan"},
    };
    static const struct {
        double value;
        const char *text;
    } alone[] = {
        {0.039478, "0.0395"}, {0.00009996, "1.00e-04"}, {0.0001, "0.000100"}, {0, "0"},
        {16.0088, "16.0"},    {12345, "12345"},         {-0.5, "-0.500"},     {2e9, "2.00e+09"},
        {(double)NAN, "nan"}};
    char text[CLI_FIGURE_BYTES];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_string_equal(cli_figure_with_error(text, rows[i].value, rows[i].error),
                            rows[i].text);
    for (size_t i = 0; i < sizeof alone / sizeof alone[0]; i++)
        assert_string_equal(cli_figure(text, alone[i].value, 3), alone[i].text);
}

/* Lines that a run prints whose fraction grows evenly: `steps` reports over `seconds`. */
static size_t lines_of_run(double seconds, size_t steps, bool quiet)
{
    FILE *captured = tmpfile();
    assert_non_null(captured);
    fflush(stderr);
    int saved = dup(STDERR_FILENO);
    assert_true(dup2(fileno(captured), STDERR_FILENO) >= 0);
    struct cli_progress progress;
    cli_be_quiet(quiet);
    cli_progress_begin(&progress);
    for (size_t i = 0; i <= steps; i++) {
        double fraction = (double)i / (double)steps;
        struct eval_progress now = at(fraction, fraction * seconds);
        cli_progress_update(&progress, &now);
    }
    cli_progress_clear(&progress);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(saved);

    rewind(captured);
    size_t n = 0;
    for (int c; (c = fgetc(captured)) != EOF;)
        n += c == '\n';
    fclose(captured);
    return n;
}

static void test_how_often(void **state)
{
    (void)state;
    assert_int_equal(lines_of_run(1.5, 1000, false), 0);       /* over before a line is due */
    assert_int_equal(lines_of_run(100, 1000, false), 9);       /* each tenth, but not the end */
    assert_in_range(lines_of_run(10, 1000, false), 2, 4);      /* at least two seconds apart */
    assert_in_range(lines_of_run(6000, 9999, false), 95, 105); /* at least one a minute */
    assert_int_equal(lines_of_run(100, 1000, true), 0);
}

/* Where both streams show in one place, an open line of the one ends before the other's. */
static void test_open_line(void **state)
{
    (void)state;
    FILE *captured = tmpfile();
    assert_non_null(captured);
    fflush(stdout);
    int saved[] = {dup(STDOUT_FILENO), dup(STDERR_FILENO)};
    dup2(fileno(captured), STDOUT_FILENO);
    dup2(fileno(captured), STDERR_FILENO);
    struct cli_progress progress;
    cli_be_quiet(false);
    cli_progress_begin(&progress);
    struct eval_progress now = at(0.5, 50);
    for (int i = 0; i < 2; i++) {
        fputs("[1]4.5,", stdout);
        cli_progress_line_open(&progress);
        fflush(stdout);
        if (i == 0)
            cli_progress_update(&progress, &now);
        else
            cli_progress_line_end(&progress);
    }
    cli_progress_line_end(&progress); /* no line is open: nothing */
    fflush(stdout);
    dup2(saved[0], STDOUT_FILENO);
    dup2(saved[1], STDERR_FILENO);

    char text[200] = "";
    rewind(captured);
    assert_in_range(fread(text, 1, sizeof text - 1, captured), 1, sizeof text - 1);
    fclose(captured);
    close(saved[0]);
    close(saved[1]);
    assert_non_null(strstr(text, "[1]4.5,[1]4.5,\n"));
    assert_null(strstr(text, "done"));
    assert_int_equal(text[strlen(text) - 2], ',');
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),      cmocka_unit_test(test_figures),
        cmocka_unit_test(test_digits),    cmocka_unit_test(test_how_often),
        cmocka_unit_test(test_open_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
