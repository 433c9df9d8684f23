/*
 * What is said of time and in figures. cli/session/progress.h: when progress is shown, and what it
 * says; cli/plan/plan.h: from counts and a pace to times of a run.
 */
#include "tests/harness/cmocka.h"
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/plan/plan.h"
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
    struct eval_progress race = at(0.25, 20);
    race.seconds_to_look = 5;
    assert_text(race, false, "assay: 25 % done, 0:05 to the next look, at most 1:00 left");
    assert_text(race, true, "[##........]  25 %  0:05 to the next look, at most 1:00 left");
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
    assert_int_equal(lines_of_run(100, 1000, false), 10);      /* at first, each tenth */
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

static void test_words(void **state)
{
    (void)state;
    static const struct {
        double n;
        const char *duration, *bytes;
    } cases[] = {
        {0, "0.00 s", "0.00 kB"},          {0.094, "0.09 s", "0.00 kB"},
        {9.94, "9.9 s", "0.01 kB"},        {9.96, "10 s", "0.01 kB"},
        {59.4, "59 s", "0.06 kB"},         {59.6, "1 min", "0.06 kB"},
        {80, "1 min 20 s", "0.08 kB"},     {599.6, "10 min", "0.60 kB"},
        {2100, "35 min", "2.10 kB"},       {3569, "59 min", "3.57 kB"},
        {3571, "1 h 00 min", "3.57 kB"},   {7500, "2 h 05 min", "7.50 kB"},
        {35999, "10 h 00 min", "36.0 kB"}, {97200, "27 h", "97.2 kB"},
        {999499, "278 h", "999 kB"},       {999501, "278 h", "1.00 MB"},
        {37e9, "10277778 h", "37.0 GB"},   {(double)INFINITY, "longer than can be said", "inf PB"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[CLI_PLAN_TEXT];
        assert_string_equal(cli_plan_duration(text, cases[i].n), cases[i].duration);
        assert_string_equal(cli_plan_bytes(text, cases[i].n), cases[i].bytes);
    }
}

/* A run of 100 batches: 1000 s of layers, 200 s of the head, 50 s beside them. */
static const struct cli_plan_work work = {.n_batches = 100,
                                          .n_tokens = 50000,
                                          .forward = 1e14,
                                          .head = 1e13,
                                          .weights = 4e9,
                                          .memory = 6e9,
                                          .moved = 4e11};
static const struct cli_plan_pace pace = {.n_tokens = 500,
                                          .seconds = 8,
                                          .forward = 1e11,
                                          .head = 5e10,
                                          .rest = 1e-3,
                                          .loading = 3,
                                          .processor_loading = 2,
                                          .opening = 1,
                                          .n_busy = 8};
static const struct cli_plan_machine machine = {.n_threads = 8,
                                                .n_processors = 16,
                                                .available = 8e9,
                                                .absent = 1e9,
                                                .disk = 5e8,
                                                .bandwidth = 2e10};

static const struct cli_outlook nothing_known = {0};

static void test_scale(void **state)
{
    (void)state;
    struct cli_plan_times t = cli_plan_scale(&work, &pace, &machine, &nothing_known);
    assert_true(t.layers == 1000 && t.head == 200 && t.rest == 50 && t.loading == 4);
    assert_true(t.total == 1254 && t.alone == t.total && t.processor == 2 + 1250 * 8);
    assert_true(t.disk == 2 && t.n_read == 1e9); /* once, while the layers are computed */
    assert_int_equal(t.limit, CLI_PLAN_ARITHMETIC);

    struct cli_plan_machine other = machine;
    other.bandwidth = 7e8; /* the weights alone take more than half of the layers' time */
    assert_int_equal(cli_plan_scale(&work, &pace, &other, &nothing_known).limit, CLI_PLAN_MEMORY);
    other.available = 5e9; /* each pass reads all */
    other.disk = 1e8;
    t = cli_plan_scale(&work, &pace, &other, &nothing_known);
    assert_true(t.n_read == 4e11 && t.disk == 4000 && t.total == 4004);
    assert_int_equal(t.limit, CLI_PLAN_DISK);
    other.on_device = true;
    assert_int_equal(cli_plan_scale(&work, &pace, &other, &nothing_known).limit, CLI_PLAN_DEVICE);

    struct cli_plan_pace disturbed = pace; /* it had a quarter of the processors */
    disturbed.n_busy = 2;
    t = cli_plan_scale(&work, &disturbed, &machine, &nothing_known);
    assert_true(t.total == 1254 && t.alone == 2 + 1250 / 4.0);
    disturbed.seconds = 0.1; /* too short to tell */
    t = cli_plan_scale(&work, &disturbed, &machine, &nothing_known);
    assert_true(t.alone == t.total);

    struct cli_plan_work done = {.memory = 1e9};
    t = cli_plan_scale(&done, &pace, &machine, &nothing_known);
    assert_true(t.total == 3 && t.alone == 3 && t.processor == 2 && t.layers == 0);
}

static void test_ways(void **state)
{
    (void)state;
    struct cli_plan_times t = cli_plan_scale(&work, &pace, &machine, &nothing_known);
    struct cli_plan_way ways[CLI_PLAN_MAX_WAYS];
    struct cli_outlook outlook = {.fewer = "--chunks",
                                  .n_fewer = 655,
                                  .ways = {{"--by layer", 5e13, 5e12}, {"--by role", 2e14, 1e13}},
                                  .n_ways = 2};
    /* What is dearer is no way; 655 / 4, 16 and 64 down to powers of two. */
    assert_int_equal(cli_plan_ways(ways, &t, &work, &outlook), 4);
    assert_string_equal(ways[0].option, "--by layer");
    assert_true(ways[0].seconds == 4 + 1250 / 2.0 && ways[0].wider == 1);
    assert_string_equal(ways[1].option, "--chunks 128");
    assert_string_equal(ways[2].option, "--chunks 32");
    assert_string_equal(ways[3].option, "--chunks 8");
    assert_true(fabs(ways[1].seconds - (4 + 1250 * 128 / 655.0)) < 1e-9);
    assert_true(fabs(ways[1].wider - sqrt(655 / 128.0)) < 1e-12);
    /* Beside other programs loading took longer than all would take alone. */
    struct cli_plan_pace disturbed = pace;
    disturbed.n_busy = 2;
    disturbed.loading = 1e4;
    t = cli_plan_scale(&work, &disturbed, &machine, &nothing_known);
    assert_int_equal(cli_plan_ways(ways, &t, &work, &outlook), 4);
    assert_true(ways[0].seconds == 2 + 1250 / 4.0 / 2);
    outlook = (struct cli_outlook){.fewer = "--chunks", .n_fewer = 7};
    assert_int_equal(cli_plan_ways(ways, &t, &work, &outlook), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text),      cmocka_unit_test(test_figures),
        cmocka_unit_test(test_how_often), cmocka_unit_test(test_open_line),
        cmocka_unit_test(test_words),     cmocka_unit_test(test_scale),
        cmocka_unit_test(test_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
