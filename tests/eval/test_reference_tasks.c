/*
 * Choice tasks against what llama.cpp printed for them. Tolerances of the reference: scores
 * within 5e-3 for F16 and 0.2 for Q4_K_M, whose activations it rounds to 8 bits; the same choice
 * wherever the margin exceeds twice that.
 * usage: test_reference_tasks hellaswag-40|hellaswag-300|winogrande|multiple_choice [MODEL]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/content/text.h"
#include "eval/units/choice.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "run_units.h"
#include "tests/harness/cmocka.h"

static const char *part; /* names the reference */
static const char *only; /* this model; NULL: both */

struct fixture {
    struct model *model;
    struct kern_backend *backend;
    struct base_text text;
    struct eval_dataset dataset;
    struct eval_choices choices;
};

static void must(enum status status, const struct status_why *why)
{
    if (status != STATUS_OK)
        fail_msg("%s: %s", status_name(status), why->text);
}

static enum eval_choice_kind kind(void)
{
    return part[0] == 'h'   ? EVAL_HELLASWAG
           : part[0] == 'w' ? EVAL_WINOGRANDE
                            : EVAL_MULTIPLE_CHOICE;
}

static void load_tasks(struct fixture *f)
{
    static const char *const names[] = {"hellaswag.txt", "winogrande.csv", "multiple_choice.bin"};
    char path[512];
    struct status_why why = {""};
    snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/text/tasks/%s", names[kind()]);
    must(base_text_read_whole(&f->text, path, BASE_TEXT_MAX_BYTES, &why), &why);
    if (kind() == EVAL_HELLASWAG)
        must(eval_dataset_hellaswag(&f->dataset, f->text.data, f->text.n_bytes, &why), &why);
    else if (kind() == EVAL_WINOGRANDE)
        must(eval_dataset_winogrande(&f->dataset, f->text.data, f->text.n_bytes, true, &why), &why);
    else
        must(eval_dataset_multiple_choice(&f->dataset, f->text.data, f->text.n_bytes, &why), &why);
    const char *dash = strchr(part, '-');
    struct eval_choices_options options = {
        .kind = kind(),
        .n_tasks = dash ? strtoul(dash + 1, NULL, 10) : 0,
        .llama_compat = true,
    };
    must(eval_choices_make(&f->choices, &f->dataset, &options, model_tokenizer(f->model), &why),
         &why);
}

static void open_all(struct fixture *f, const char *name)
{
    *f = (struct fixture){0};
    char path[512];
    struct status_why why = {""};
    struct gguf_file *file;
    struct model_options options = {0};
    struct kern_cpu_options cpu = {.isa_cap = KERN_ISA_COUNT - 1};
    snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/models/tiny.%s.gguf", name);
    must(gguf_open(&file, path, &why), &why);
    must(model_open(&f->model, file, &options, &why), &why);
    must(kern_cpu_open(&f->backend, &cpu, &why), &why);
    load_tasks(f);
    struct eval_run_stats stats;
    must(run_units(&f->choices.sequences.units, f->model, f->backend, 4096, &stats, &why), &why);
}

static void close_all(struct fixture *f)
{
    eval_choices_free(&f->choices);
    eval_dataset_free(&f->dataset);
    base_text_free(&f->text);
    kern_close(f->backend);
    model_close(f->model);
}

/** How far the best score is above the second. */
static double margin(const struct eval_choice_task *t)
{
    double first = -HUGE_VAL, second = -HUGE_VAL;
    for (size_t i = 0; i < t->n_choices; i++) {
        double s = eval_choice_score(&t->choices[i]).mean;
        if (s > first) {
            second = first;
            first = s;
        } else if (s > second) {
            second = s;
        }
    }
    return first - second;
}

/** Where it stands so far, from "n, percent" of the reference. */
struct count {
    size_t n, n_right, n_other;
    double largest; /* difference of a score */
};

/** Winogrande prints scores, choice and answer; the others only the share of right choices. */
static void check_line(struct count *c, const struct fixture *f, const char *line, double tolerance)
{
    size_t n;
    double percent;
    if (sscanf(line, "%zu %lf", &n, &percent) != 2)
        return;
    assert_int_equal(n, c->n + 1);
    assert_true(n <= f->choices.n);
    const struct eval_choice_task *t = &f->choices.tasks[c->n++];
    size_t n_right = (size_t)lround(percent / 100 * (double)n);
    bool theirs = n_right > c->n_right;
    c->n_right = n_right;
    bool ours = eval_choice_winners(t, kind() == EVAL_WINOGRANDE).mean == t->answer;
    if (ours != theirs) {
        c->n_other++;
        assert_true(margin(t) <= 2 * tolerance);
    }
    if (kind() != EVAL_WINOGRANDE)
        return;
    double scores[2];
    size_t choice, answer;
    assert_int_equal(
        sscanf(line, "%*u %*f %lf %lf %zu %zu", &scores[0], &scores[1], &choice, &answer), 4);
    assert_int_equal(answer, t->answer + 1);
    for (size_t i = 0; i < 2; i++)
        c->largest = fmax(c->largest, fabs(eval_choice_score(&t->choices[i]).mean - scores[i]));
}

/** Choices that may differ: those that the reference's README counts, by rounding alone. */
static void check_model(const char *name, double tolerance, size_t max_others)
{
    if (only && strcmp(only, name) != 0)
        return;
    struct fixture f;
    open_all(&f, name);
    char path[512], line[1024];
    snprintf(path, sizeof path, ASSAY_REFERENCE_DIR "/reference/tasks/%s.%s.txt", part, name);
    FILE *stream = fopen(path, "r");
    if (!stream)
        fail_msg("%s: cannot open", path);
    struct count c = {0};
    while (fgets(line, sizeof line, stream))
        check_line(&c, &f, line, tolerance);
    fclose(stream);
    print_message("%s %s: %zu tasks, %zu other choices, largest difference of a score %.2e\n", part,
                  name, c.n, c.n_other, c.largest);
    assert_int_equal(c.n, f.choices.n);
    assert_true(c.n_other <= max_others);
    assert_true(c.largest <= tolerance);
    close_all(&f);
}

static void agrees_with_llama(void **state)
{
    (void)state;
    check_model("F16", 5e-3, kind() == EVAL_MULTIPLE_CHOICE);
    check_model("Q4_K_M", 0.2, 4);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_error("usage: %s hellaswag-40|hellaswag-300|winogrande|multiple_choice [MODEL]\n",
                    argv[0]);
        return 2;
    }
    part = argv[1];
    only = argc > 2 ? argv[2] : NULL;
    if (access(ASSAY_REFERENCE_DIR "/text/tasks", R_OK) != 0) {
        print_message("no reference material at %s: skipped\n", ASSAY_REFERENCE_DIR);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(agrees_with_llama)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
