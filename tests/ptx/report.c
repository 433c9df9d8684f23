#include "tests/ptx/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/ptx/block.h"

enum { EXIT_FINDING = 3 };

const char *ptx_report_name(const struct ptx_kernel *k)
{
    static char name[64];
    const char *type = strstr(k->name, "decodeIL9gguf_type"), *run = strstr(k->name, "run_");
    if (type) {
        snprintf(name, sizeof name, "DECODE %ld", strtol(type + 18, NULL, 10));
        return name;
    }
    const char *end = run ? strstr(run, "kern_") : NULL;
    if (!end)
        return k->name;
    /* `run_NAME`, E, then the arguments' type with its length. */
    while (end[-1] >= '0' && end[-1] <= '9')
        end--;
    snprintf(name, sizeof name, "%.*s", (int)(end - 1 - (run + 4)), run + 4);
    return name;
}

/** How many findings are said before the test ends; the environment may ask for more than one. */
static long n_wanted(void)
{
    const char *text = getenv("ASSAY_PTX_FINDINGS");
    return text ? strtol(text, NULL, 10) : 1;
}

void ptx_block_report(const struct ptx_block *b, uint32_t line, unsigned thread, bool is_fatal,
                      const char *format, ...)
{
    static long n_said;
    fflush(stdout);
    fprintf(stderr, "ptx: %s, %s:%u, block %zu, thread %u: ", ptx_report_name(b->kernel),
            b->kernel->file, line, b->number, thread);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    if (is_fatal || ++n_said >= n_wanted())
        _exit(EXIT_FINDING);
}

void ptx_report_coverage(const struct ptx_program *program, const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        return;
    }
    for (size_t i = 0; i < program->n_kernels; i++) {
        const struct ptx_kernel *k = &program->kernels[i];
        for (size_t c = 0; c < k->n_code; c++)
            fprintf(f, "%s\t%u\t%llu\n", ptx_report_name(k), k->code[c].line,
                    (unsigned long long)k->hits[c]);
    }
    fclose(f);
}

static void report_lines(FILE *f, struct ptx_kernel *k)
{
    const char *comma = "";
    fputs(", \"lines\": [", f);
    for (size_t i = 0; i < k->n_code; i++) {
        if (k->hits[i] > 0)
            fprintf(f, "%s[%u,%llu]", comma, k->code[i].line, (unsigned long long)k->hits[i]);
        comma = k->hits[i] > 0 ? "," : comma;
        k->hits[i] = 0;
    }
    fputs("]}\n", f);
}

void ptx_report_counts(FILE *f, const char *scene, struct ptx_program *program,
                       struct ptx_traffic *traffic)
{
#define COUNT(name) fprintf(f, ", \"" #name "\": %llu", (unsigned long long)t->name)
    for (size_t i = 0; i < program->n_kernels; i++) {
        const struct ptx_traffic *t = &traffic[i];
        if (t->launches == 0)
            continue;
        fprintf(f, "{\"scene\": \"%s\", \"kernel\": \"%s\"", scene,
                ptx_report_name(&program->kernels[i]));
        COUNT(launches), COUNT(blocks), COUNT(threads);
        COUNT(read_bytes), COUNT(written_bytes), COUNT(read_sectors), COUNT(written_sectors);
        COUNT(read_once), COUNT(written_once), COUNT(shared_bytes), COUNT(shared_accesses);
        COUNT(shared_cycles), COUNT(local_bytes), COUNT(shared_size);
        report_lines(f, &program->kernels[i]);
        traffic[i] = (struct ptx_traffic){0};
    }
#undef COUNT
}
