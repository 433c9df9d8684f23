#include "tests/ptx/mutants.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/ptx/parse.h"
#include "tests/ptx/report.h"
#include "tests/ptx/text.h"

enum {
    MAX_SECONDS = 30, /* of a processor, that a change may take */
    MAX_SCENES = 5    /* that a comparison is tried in where it makes a difference */
};

struct mutant {
    size_t kernel, at;  /* the instruction's number */
    struct ptx_ins own; /* as it is */
    struct ptx_ins ins; /* what is there instead */
    unsigned n_tries;
    bool done;
};

static struct ptx_machine *machine;
static struct mutant *list;
static size_t n, n_left;
static bool *matters; /* of each, in this scene; memory that is shared with the probe */
static FILE *said, *results;
static size_t scene, *tried; /* tried: the last scene of each kernel */
static enum { TEST, PROBE, MUTANT } role;

/** In the probe: the kernel's number, and the change of the comparison that has its operands there.
 */
static size_t watched, *changes_at;

static struct ptx_kernel *kernel_of(size_t i)
{
    return &machine->program.kernels[i];
}

/** Whether the change is of this kernel, and is yet to be found. */
static bool is_left(size_t i, size_t kernel)
{
    return list[i].kernel == kernel && !list[i].done;
}

static bool is_comparison(const struct mutant *c)
{
    return c->own.kind == PTX_ALU;
}

static void read_change(char *row)
{
    char *line = strchr(row, '\t'), *text = line ? strchr(line + 1, '\t') : NULL;
    if (!text)
        abort();
    *line = *text = 0;
    struct mutant change = {.kernel = ptx_machine_find(machine, row)};
    unsigned long number = strtoul(line + 1, NULL, 10);
    if (change.kernel == machine->program.n_kernels)
        abort();
    struct ptx_kernel *k = kernel_of(change.kernel);
    while (change.at < k->n_code && k->code[change.at].line != number)
        change.at++;
    if (change.at == k->n_code)
        abort();
    change.own = k->code[change.at];
    change.ins = ptx_parse_change(&machine->program, k, change.at, text + 1);
    list = ptx_grow(list, (n + 1) * sizeof *list);
    list[n++] = change;
}

static FILE *open_file(const char *name, const char *mode)
{
    FILE *f = name ? fopen(name, mode) : tmpfile();
    if (!f) {
        perror(name);
        abort();
    }
    return f;
}

void ptx_mutants_open(struct ptx_machine *m, const char *changes, const char *results_name)
{
    if (!changes || !results_name)
        return;
    machine = m;
    FILE *f = open_file(changes, "r");
    char *row = NULL;
    size_t size = 0;
    for (ssize_t length; (length = getline(&row, &size, f)) > 0;) {
        row[length - 1] = 0;
        read_change(row);
    }
    free(row);
    fclose(f);
    n_left = n;
    results = open_file(results_name, "a");
    said = open_file(NULL, NULL);
    matters = mmap(NULL, n + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (matters == MAP_FAILED)
        abort();
    tried = memset(ptx_grow(NULL, m->program.n_kernels * sizeof *tried), 0xff,
                   m->program.n_kernels * sizeof *tried);
}

/** 0 in the child. */
static pid_t split(void)
{
    fflush(NULL);
    if (ftruncate(fileno(said), 0) != 0 || lseek(fileno(said), 0, SEEK_SET) != 0)
        abort();
    pid_t child = fork();
    if (child < 0)
        abort();
    if (child == 0) {
        const struct rlimit limit = {MAX_SECONDS, MAX_SECONDS};
        if (dup2(fileno(said), 1) < 0 || dup2(fileno(said), 2) < 0 ||
            setrlimit(RLIMIT_CPU, &limit) != 0)
            abort();
    }
    return child;
}

static int wait_for(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child)
        abort();
    return status;
}

/** In the probe, in place of a comparison: does the change make another result? */
static void compare(uint8_t *file, const uint32_t *at, uint32_t mask)
{
    size_t i = changes_at[at - kernel_of(watched)->operands];
    const struct ptx_ins *other = &list[i].ins;
    uint32_t *p = ptx_register(file, at[0]), before = *p, changed;
    other->alu(file, other->at, mask);
    changed = *p;
    *p = before;
    list[i].own.alu(file, at, mask);
    matters[i] |= *p != changed;
}

static void begin_probe(size_t kernel)
{
    struct ptx_kernel *k = kernel_of(kernel);
    role = PROBE;
    watched = kernel;
    changes_at = ptx_grow(NULL, (k->n_operands + 1) * sizeof *changes_at);
    memset(k->hits, 0, k->n_code * sizeof *k->hits);
    for (size_t i = 0; i < n; i++) {
        matters[i] = false;
        if (!is_left(i, kernel) || !is_comparison(&list[i]))
            continue;
        changes_at[list[i].own.at - k->operands] = i;
        k->code[list[i].at].alu = compare;
    }
}

static void end_probe(void)
{
    for (size_t i = 0; i < n; i++) {
        if (is_left(i, watched) && !is_comparison(&list[i]))
            matters[i] = kernel_of(watched)->hits[list[i].at] > 0;
    }
}

static void end_child(void)
{
    if (role == PROBE)
        end_probe();
    if (role != TEST)
        _exit(0);
}

/** What the interpreter found, or else the test. */
static void report(size_t i, int status)
{
    char text[4096];
    ssize_t length = pread(fileno(said), text, sizeof text - 1, 0);
    text[length > 0 ? length : 0] = 0;
    const char *finding = strstr(text, "ptx: ");
    const char *what = finding                       ? finding
                       : !WIFSIGNALED(status)        ? "another exit code"
                       : WTERMSIG(status) == SIGABRT ? "a wrong result"
                       : WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL ? "no end"
                                                                                    : "a signal";
    fprintf(results, "%zu\t%.*s\n", i, (int)strcspn(what, "\n"), what);
    list[i].done = true;
    n_left--;
}

void ptx_mutants_launch(size_t kernel)
{
    size_t n_here = 0;
    for (size_t i = 0; i < n; i++)
        n_here += is_left(i, kernel);
    if (role != TEST || n_here == 0 || tried[kernel] == scene)
        return;
    tried[kernel] = scene;
    pid_t child = split();
    if (child == 0) {
        begin_probe(kernel);
        return;
    }
    if (wait_for(child) != 0)
        abort();
    for (size_t i = 0; i < n; i++) {
        bool enough = is_comparison(&list[i]) && list[i].n_tries == MAX_SCENES;
        if (!is_left(i, kernel) || !matters[i] || enough)
            continue;
        list[i].n_tries++;
        child = split();
        if (child == 0) {
            role = MUTANT;
            kernel_of(kernel)->code[list[i].at] = list[i].ins;
            return;
        }
        int status = wait_for(child);
        if (status != 0)
            report(i, status);
    }
    if (n_left == 0) {
        fclose(results);
        _exit(0);
    }
}

void ptx_mutants_scene(void)
{
    end_child();
    scene++;
}

void ptx_mutants_close(void)
{
    end_child();
    for (size_t i = 0; i < n; i++) {
        bool reached = kernel_of(list[i].kernel)->hits[list[i].at] > 0;
        if (!list[i].done)
            fprintf(results, "%zu\t%s\n", i,
                    list[i].n_tries > 0 ? "survived"
                    : reached           ? "survived, never different"
                                        : "unreached");
        free((void *)(uintptr_t)list[i].ins.at);
    }
    if (!machine)
        return;
    fclose(results);
    fclose(said);
    munmap(matters, n + 1);
    free(tried);
    free(list);
}
