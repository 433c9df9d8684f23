/**
 * Whole evaluations of synthetic models, made on the way and removed again: seconds by phase.
 *
 * usage: bench_model [--shape 1b] [--archs llama] [--types F16,Q8_0,Q4_K_M,IQ3_S]
 *                    [--vocabs 32000,128256] [--experts N]
 *                    [--ctx 512] [--tokens 2048] [--runs 3] [-t THREADS] [--isa NAME] [--batch N]
 *                    [--precision exact|high|fast] [--tile N] [--layers N] [--kld] [--cold]
 *                    [--folder DIR] [--files A.gguf,B.gguf]
 *
 * --files times these instead of models that it makes (wide_models.py writes such).
 * Configurations take turns, --runs times; the fastest run of each is printed. Its columns from
 * `load` to `rest` add up to `total`; `cpu` is the processor time of all threads. `load` opens
 * model and backend; `decode`, `pack` and `multiply` are what products of layers and head consist
 * of; `fold` makes scores of logits; `head` is what decode, pack, multiply and fold contain of the
 * output matrix. GFLOP/s is what multiply reaches, all threads together. att/prod sets the time of
 * an operation of attention against that of one in the products, decoding and packing included.
 * ps/madd is processor time by multiply-adds of products and attention, of the run that took least
 * of it; `of 1st` sets it against the first architecture's with the same type and vocabulary.
 * --kld compares the model with itself, which scores two heads with all divergences.
 * --cold drops the model from the page cache before each run.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/bench.h"
#include "bench/synthetic.h"
#include "eval/metrics/perplexity.h"
#include "eval/run/run.h"
#include "eval/scorer/cost.h"
#include "eval/units/windows.h"
#include "kernels/backend.h"
#include "kernels/cpu/cpu.h"
#include "tests/harness/rng.h"

enum { MAX_CASES = 32, PATH_BYTES = 512, NAME_BYTES = 24 };

struct settings {
    struct synthetic model;
    char *archs, *types, *vocabs; /* lists with commas; cut up when they are read */
    char *files;                  /* likewise; NULL: models are made */
    const char *folder;
    size_t n_ctx, n_tokens, n_runs, n_batch, n_tile;
    struct kern_cpu_options cpu;
    bool kld, cold;
};

/** One run, as seconds. */
struct times {
    double load, total;
    double cpu; /* processor time of all threads */
    struct kern_times phases;
};

/** A configuration, its file, its fastest run and what that must give. */
struct bench {
    struct synthetic model;
    char arch[NAME_BYTES], type[NAME_BYTES], path[PATH_BYTES], products[2 * NAME_BYTES];
    struct times best;
    double least_cpu;          /* of any run */
    const struct bench *first; /* architecture */
    bool made;                 /* the file is removed at the end */
    double nll;
    double product_flops, pair_flops; /* of a run, one model */
    size_t n_inputs, n_models;
};

static struct bench cases[MAX_CASES];

static void remove_files(void)
{
    for (size_t i = 0; i < MAX_CASES; i++)
        if (cases[i].made)
            unlink(cases[i].path);
}

static void must(enum status status, const struct status_why *why)
{
    if (status == STATUS_OK)
        return;
    fprintf(stderr, "bench_model: %s\n", why->text);
    exit(1);
}

static void check(bool ok, const char *what)
{
    struct status_why why;
    snprintf(why.text, sizeof why.text, "%s", what);
    must(ok ? STATUS_OK : STATUS_MEMORY, &why);
}

/** Random tokens instead of a text: what they are does not change the work. */
static struct eval_stream random_stream(size_t n, size_t n_vocab)
{
    struct eval_stream stream = {.ids = malloc(n * sizeof *stream.ids),
                                 .n_text_bytes = calloc(n, sizeof *stream.n_text_bytes),
                                 .n = n};
    check(stream.ids && stream.n_text_bytes, "no memory for the tokens");
    struct rng rng = rng_open(0, 1);
    for (size_t i = 0; i < n; i++)
        stream.ids[i] = (int32_t)rng_below(&rng, n_vocab);
    return stream;
}

static void drop_from_cache(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return;
    (void)fdatasync(fd); /* pages not yet written would stay */
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
}

/** The evaluation's own part of a run: its mean NLL. */
static double evaluate(const struct settings *s, struct bench *b, struct kern_backend *backend,
                       const struct model *model)
{
    struct status_why why = {""};
    struct eval_stream stream = random_stream(s->n_tokens + 1, model_hparams(model)->n_vocab);
    struct eval_plan plan;
    struct eval_plan_options plan_options = {.n_ctx = s->n_ctx, .bos = -1};
    must(eval_plan_make(&plan, &plan_options, stream.n, &why), &why);
    const struct model *const candidates[] = {model};
    struct eval_models models = {.model = model,
                                 .backends = &backend,
                                 .n_backends = 1,
                                 .candidates = candidates,
                                 .n_candidates = s->kld ? 1 : 0};
    struct eval_table tables[2] = {{0}, {0}};
    must(eval_table_make(&tables[0], EVAL_N_COLUMNS, plan.n_windows, plan.n_scored, &why), &why);
    if (s->kld)
        must(eval_table_make(&tables[1], EVAL_N_PAIR_COLUMNS, plan.n_windows, plan.n_scored, &why),
             &why);
    struct eval_windows windows = {
        .plan = &plan, .stream = &stream, .tables = tables, .n_tables = 1 + models.n_candidates};
    struct eval_run_options options = {.tile_tokens = s->n_tile};
    eval_windows_open(&windows);
    must(eval_run_prepare(&windows.units, &models, s->n_batch, &why), &why);
    must(eval_run(&windows.units, &models, &options, NULL, &why), &why);
    eval_windows_close(&windows);
    struct eval_perplexity_result result;
    eval_perplexity(&result, &plan, &stream, tables);

    struct eval_cost cost = {0};
    eval_cost_add(&cost, model);
    double n = (double)plan.n_windows, products = (double)plan.n_inputs * cost.token;
    b->n_inputs = plan.n_windows * plan.n_inputs;
    b->n_models = 1 + models.n_candidates;
    b->pair_flops = n * (eval_cost_segment(&cost, plan.n_inputs) - products);
    b->product_flops = n * (products + eval_cost_head(model, plan.n_scored));
    eval_table_free(&tables[0]);
    eval_table_free(&tables[1]);
    eval_stream_free(&stream);
    return result.figures.nll.value;
}

static double cpu_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

/** One run from opening to closing, checked against the runs before. */
static void run_once(const struct settings *s, struct bench *b, bool first)
{
    struct status_why why = {""};
    if (s->cold)
        drop_from_cache(b->path);
    double started = base_clock_seconds(), cpu_started = cpu_seconds();
    struct kern_backend *backend;
    must(kern_cpu_open(&backend, &s->cpu, &why), &why);
    struct gguf_file *file;
    must(gguf_open(&file, b->path, &why), &why);
    struct model *model;
    struct model_options model_options = {0};
    must(model_open(&model, file, &model_options, &why), &why);
    struct times times = {.load = base_clock_seconds() - started};
    b->model.n_vocab = (uint32_t)model_hparams(model)->n_vocab;
    double nll = evaluate(s, b, backend, model);
    times.total = base_clock_seconds() - started;
    times.cpu = cpu_seconds() - cpu_started;
    kern_times_read(backend, &times.phases);
    snprintf(b->products, sizeof b->products, "%s, %s", kern_describe(backend).isa,
             kern_describe(backend).products);
    model_close(model);
    kern_close(backend);
    check(nll == nll && (first || nll == b->nll), "the mean NLL is not the same in every run");
    b->nll = nll;
    if (first || times.total < b->best.total)
        b->best = times;
    if (first || times.cpu < b->least_cpu)
        b->least_cpu = times.cpu;
}

/** Processor time of a multiply-add, in picoseconds. */
static double madd_time(const struct bench *b)
{
    return 1e12 * b->least_cpu / ((double)b->n_models * (b->product_flops + b->pair_flops) / 2);
}

static void print_case(const struct bench *b)
{
    const double *p = b->best.phases.seconds;
    double total = b->best.total, n_models = (double)b->n_models;
    double products = p[KERN_PHASE_LINEAR] + p[KERN_PHASE_SCORE] - p[KERN_PHASE_FOLD];
    double multiply = products - p[KERN_PHASE_DECODE] - p[KERN_PHASE_PACK];
    double rest = total - b->best.load - products - p[KERN_PHASE_ATTENTION] - p[KERN_PHASE_FOLD];
    double relative = (p[KERN_PHASE_ATTENTION] / b->pair_flops) / (products / b->product_flops);
    printf(
        "%-19s %-8s %7u %7.2f %7.2f %6.2f %8.2f %7.2f %6.2f %6.2f %8.2f %8.2f | %7.2f %9.1f %8.1f "
        "%8.2f %8.2f %6.3f\n",
        b->arch, b->model.type, b->model.n_vocab, b->best.load, p[KERN_PHASE_DECODE],
        p[KERN_PHASE_PACK], multiply, p[KERN_PHASE_ATTENTION], p[KERN_PHASE_FOLD], rest, total,
        b->best.cpu, p[KERN_PHASE_SCORE], n_models * (double)b->n_inputs / (total - b->best.load),
        1e-9 * n_models * b->product_flops / multiply, relative, madd_time(b),
        madd_time(b) / madd_time(b->first));
}

/** A file for each architecture of a type and a vocabulary; returns the number of cases. */
static size_t make_archs(const struct settings *s, const char *vocab, const char *type, size_t n)
{
    struct status_why why = {""};
    char *archs = strdup(s->archs);
    check(archs, "no memory for a list");
    size_t first = n;
    for (char *next = archs, *arch; (arch = strsep(&next, ",")) != NULL; n++) {
        check(n < MAX_CASES, "too many architectures, types and vocabularies");
        struct bench *b = &cases[n];
        *b = (struct bench){.model = s->model, .first = &cases[first], .made = true};
        snprintf(b->arch, sizeof b->arch, "%s", arch);
        snprintf(b->type, sizeof b->type, "%s", type);
        b->model.arch = b->arch;
        b->model.type = b->type;
        b->model.n_vocab = (uint32_t)strtoul(vocab, NULL, 10);
        snprintf(b->path, sizeof b->path, "%s/bench_model.%d.%s.%s.%s.gguf", s->folder,
                 (int)getpid(), arch, type, vocab);
        must(synthetic_write(&b->model, b->path, &why), &why);
    }
    free(archs);
    return n;
}

/** A case for each of the files that were given, by its name. */
static size_t take_files(const struct settings *s)
{
    size_t n = 0;
    for (char *rest = s->files, *path; (path = strsep(&rest, ",")) != NULL; n++) {
        check(n < MAX_CASES, "too many files");
        struct bench *b = &cases[n];
        *b = (struct bench){.model = {.type = "-"}, .first = &cases[0]};
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        snprintf(b->arch, sizeof b->arch, "%.*s", (int)strcspn(name, "."), name);
        snprintf(b->path, sizeof b->path, "%s", path);
    }
    return n;
}

static size_t make_cases(const struct settings *s)
{
    size_t n = 0;
    for (char *rest = s->vocabs, *vocab; (vocab = strsep(&rest, ",")) != NULL;) {
        char *types = strdup(s->types);
        check(types, "no memory for a list");
        for (char *next = types, *type; (type = strsep(&next, ",")) != NULL;)
            n = make_archs(s, vocab, type, n);
        free(types);
    }
    return n;
}

/** Options with a number, and where it goes. */
struct number_option {
    const char *name;
    size_t *value;
};

static bool read_number(const struct number_option *options, const char *name, const char *text)
{
    for (; options->name; options++) {
        if (strcmp(options->name, name) != 0)
            continue;
        char *end;
        *options->value = strtoul(text, &end, 10);
        return *text && !*end && *options->value > 0;
    }
    return false;
}

static bool read_precision(enum kern_precision *precision, const char *name)
{
    static const char *const names[] = {[KERN_PRECISION_EXACT] = "exact",
                                        [KERN_PRECISION_HIGH] = "high",
                                        [KERN_PRECISION_FAST] = "fast"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        *precision = (enum kern_precision)i;
        if (strcmp(names[i], name) == 0)
            return true;
    }
    return false;
}

static bool read_isa(enum kern_isa *isa, const char *name)
{
    for (*isa = KERN_ISA_SCALAR; *isa < KERN_ISA_COUNT; ++*isa)
        if (strcmp(kern_isa_name(*isa), name) == 0)
            return true;
    return false;
}

/** False if the command line makes no sense. */
static bool read_settings(struct settings *s, char **argv)
{
    size_t n_threads = 0, n_layers = 0, n_experts = 0;
    const struct number_option numbers[] = {
        {"--ctx", &s->n_ctx},     {"--tokens", &s->n_tokens}, {"--runs", &s->n_runs},
        {"--batch", &s->n_batch}, {"--tile", &s->n_tile},     {"-t", &n_threads},
        {"--layers", &n_layers},  {"--experts", &n_experts},  {NULL, NULL}};
    for (; *argv; argv++) {
        const char *name = *argv;
        if (strcmp(name, "--kld") == 0 || strcmp(name, "--cold") == 0) {
            *(name[2] == 'k' ? &s->kld : &s->cold) = true;
            continue;
        }
        char *value = *++argv;
        if (!value)
            return false;
        if (strcmp(name, "--shape") == 0)
            s->model.shape = value;
        else if (strcmp(name, "--archs") == 0)
            s->archs = value;
        else if (strcmp(name, "--types") == 0)
            s->types = value;
        else if (strcmp(name, "--vocabs") == 0)
            s->vocabs = value;
        else if (strcmp(name, "--folder") == 0)
            s->folder = value;
        else if (strcmp(name, "--files") == 0)
            s->files = value;
        else if (strcmp(name, "--precision") == 0) {
            if (!read_precision(&s->cpu.precision, value))
                return false;
        } else if (!(strcmp(name, "--isa") == 0 ? read_isa(&s->cpu.isa_cap, value)
                                                : read_number(numbers, name, value)))
            return false;
    }
    s->cpu.n_threads = (unsigned)n_threads;
    s->model.n_layers = (uint32_t)n_layers;
    s->model.n_experts = (uint32_t)n_experts;
    return true;
}

int main(int argc, char **argv)
{
    char archs[] = "llama", types[] = "F16,Q8_0,Q4_K_M,IQ3_S", vocabs[] = "32000,128256";
    struct settings s = {.model = {.shape = "1b"},
                         .archs = archs,
                         .types = types,
                         .vocabs = vocabs,
                         .folder = "/tmp",
                         .n_ctx = 512,
                         .n_tokens = 2048,
                         .n_runs = 3,
                         .cpu = {.isa_cap = KERN_ISA_AVX512,
                                 .precision = KERN_PRECISION_HIGH,
                                 .amx = KERN_AMX_HARDWARE}};
    if (argc < 1 || !read_settings(&s, argv + 1)) {
        fputs("usage: the comment at the top of bench/bench_model.c\n", stderr);
        return 2;
    }
    bench_print_machine();
    atexit(remove_files);
    size_t n = s.files ? take_files(&s) : make_cases(&s);
    for (size_t run = 0; run < s.n_runs; run++)
        for (size_t i = 0; i < n; i++)
            run_once(&s, &cases[i], run == 0);
    printf("# %s; shape %s, n_ctx %zu, %zu tokens, fastest of %zu runs%s%s; seconds\n",
           cases[0].products, s.files ? "of the files" : s.model.shape, s.n_ctx, s.n_tokens,
           s.n_runs, s.kld ? ", kld" : "", s.cold ? ", cold" : "");
    printf("%-19s %-8s %7s %7s %7s %6s %8s %7s %6s %6s %8s %8s | %7s %9s %8s %8s %8s %6s\n", "arch",
           "type", "vocab", "load", "decode", "pack", "multiply", "attent.", "fold", "rest",
           "total", "cpu", "head", "tokens/s", "GFLOP/s", "att/prod", "ps/madd", "of 1st");
    for (size_t i = 0; i < n; i++) {
        print_case(&cases[i]);
    }
    return 0;
}
