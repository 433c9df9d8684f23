/* assay mix: a model's file of tensors of several files, as a recipe says. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/file/part_file.h"
#include "base/system/system.h"
#include "base/text/printable.h"
#include "base/text/size.h"
#include "cli/commands.h"
#include "cli/options/common.h"
#include "cli/process/say.h"
#include "cli/process/signals.h"
#include "cli/session/outputs.h"
#include "cli/session/progress.h"
#include "cli/sweep/donors.h"
#include "clients/documents/recipe/mixture.h"
#include "clients/documents/recipe/recipe_document.h"

struct settings {
    const char *output;
    bool force;
};

enum { PIECE_BYTES = 8 << 20 }; /* written at once; between two of them Ctrl-C is seen */

/* Open the base and what a tensor comes from; are they what was measured? */
static enum status open_files(struct doc_mixture *m, const struct doc_recipe *r, const char *output,
                              struct status_why *why)
{
    const struct cli_named_file out = {"-o", output};
    m->names = r->files;
    m->n_files = r->n_files;
    if (base_array_new(m->files, r->n_files, "files", why))
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    for (size_t f = 0; f < r->n_files && !status; f++) {
        bool used = f == 0, checked = false;
        for (size_t i = 0; i < r->n_tensors && !used; i++)
            used = r->tensors[i].file == f;
        if (!used)
            continue;
        status = gguf_open(&m->files[f], r->files[f].path, why);
        if (status && strstr(r->files[f].path, "/" CLI_DONORS_FOLDER))
            status_context(why, "a model that assay sweep --types made and deleted; sweep again "
                                "with --keep DIR, or have llama-quantize make the file, by "
                                "what assay recipe --tensor-types writes");
        if (!status)
            status = cli_outputs_check_model(&out, 1, "the recipe", m->files[f], why);
        if (!status)
            status = doc_mixed_check(m->files[f], &r->files[f], &checked, why);
        if (!status && !checked)
            cli_say("assay: note: %s: the recipe has no id of it, so it is not checked\n",
                    r->files[f].path);
    }
    return status ? status : doc_mixture_begin(m, why);
}

static enum status choose(struct doc_mixture *m, const struct doc_recipe *r, struct status_why *why)
{
    const struct gguf_file *base = m->files[0];
    for (size_t i = 0; i < r->n_tensors; i++) {
        const struct doc_recipe_tensor *want = &r->tensors[i];
        const struct gguf_tensor *t = gguf_tensor_find(base, want->name),
                                 *u = gguf_tensor_find(m->files[want->file], want->name);
        if (!t || !u)
            return status_fail(why, STATUS_FORMAT, "%s: has no tensor '%s', which %s takes",
                               gguf_path(t ? m->files[want->file] : base), want->name,
                               r->document.json.file);
        if (want->type && strcmp(want->type, u->type->name) != 0)
            return status_fail(why, STATUS_FORMAT, "%s: tensor '%s' is %s, in %s it is %s",
                               gguf_path(m->files[want->file]), want->name, u->type->name,
                               r->document.json.file, want->type);
        m->from[t - gguf_tensor_at(base, 0)] = want->file;
    }
    size_t n_more = gguf_n_tensors(base) - r->n_tensors;
    if (n_more)
        cli_say("assay: note: %zu tensor%s that %s does not name come%s from %s\n", n_more,
                status_plural(n_more), r->document.json.file, n_more == 1 ? "s" : "",
                gguf_path(base));
    return STATUS_OK;
}

/** A file that is being written. */
struct writing {
    struct base_part *part;
    struct cli_progress progress;
    const atomic_bool *cancel;
    double started;
    uint64_t n_done, n_bytes;
};

static void show(struct writing *w)
{
    double seconds = base_clock_seconds() - w->started,
           done = (double)w->n_done / (double)w->n_bytes;
    cli_progress_update(&w->progress,
                        &(struct eval_progress){.fraction = done,
                                                .seconds = seconds,
                                                .seconds_left = seconds * (1 - done) / done});
}

static enum status write_tensor(struct writing *w, const struct gguf_tensor *t, uint64_t offset,
                                struct status_why *why)
{
    const uint8_t *data = t->data;
    enum status status = STATUS_OK;
    for (uint64_t at = 0; at < t->n_bytes && !status; at += PIECE_BYTES) {
        size_t n = base_min(t->n_bytes - at, PIECE_BYTES);
        status = base_part_write(w->part, offset + at, data + at, n, why);
        /* The whole pages are not needed in memory any more. */
        size_t page = (size_t)sysconf(_SC_PAGESIZE), before = -(uintptr_t)(data + at) & (page - 1);
        if (n > before + page)
            base_system_drop_pages((char *)(uintptr_t)(data + at + before),
                                   (n - before) & ~(page - 1));
        w->n_done = offset + at + n;
        show(w);
        if (!status && atomic_load(w->cancel))
            status = status_fail(why, STATUS_CANCELLED, "interrupted: nothing was written");
    }
    return status;
}

static enum status write_file(struct writing *w, const struct doc_mixture *m,
                              struct status_why *why)
{
    const struct gguf_directory *d = &m->directory;
    const struct gguf_tensor *last = NULL;
    enum status status = base_part_write(w->part, 0, d->bytes, d->n_bytes, why);
    for (size_t i = 0; i < gguf_layout_n_tensors(m->layout) && !status; i++) {
        last = gguf_layout_tensor_at(m->layout, i);
        status = write_tensor(w, m->tensors[i], last->offset, why);
    }
    uint64_t end = last ? last->offset + last->n_bytes : d->n_bytes;
    if (!status && end < d->n_bytes_whole) /* between tensors the file has zeros anyway */
        status = base_part_write(w->part, d->n_bytes_whole - 1, "", 1, why);
    for (size_t f = 0; f < m->n_files && !status; f++)
        if (m->files[f])
            status = gguf_check_unchanged(m->files[f], why);
    return status;
}

static enum status write_out(const struct doc_mixture *m, const struct settings *s,
                             struct status_why *why)
{
    struct writing w = {.cancel = cli_interrupt_catch(), .n_bytes = m->directory.n_bytes_whole};
    const struct base_part_options options = {
        .n_bytes = w.n_bytes, .kind = BASE_MIXTURE, .force = s->force};
    enum status status = base_part_open(&w.part, s->output, &options, why);
    if (status)
        return status;
    cli_progress_begin(&w.progress);
    w.started = base_clock_seconds();
    status = write_file(&w, m, why);
    cli_progress_clear(&w.progress);
    if (!status)
        return base_part_commit(w.part, why);
    base_part_close(w.part, false);
    return status;
}

static void print_result(const struct doc_mixture *m, const struct settings *s)
{
    char name[BASE_PATH_BYTES];
    uint64_t n_bytes = 0, n_weights = 0;
    size_t n = gguf_layout_n_tensors(m->layout), n_other = 0;
    for (size_t i = 0; i < n; i++) {
        n_bytes += m->tensors[i]->n_bytes;
        n_weights += m->tensors[i]->n_rows * m->tensors[i]->ne[0];
        n_other += m->from[i] != 0;
    }
    char size[BASE_SIZE_BYTES];
    double whole = (double)m->directory.n_bytes_whole;
    printf("%s: %" PRIu64 " bytes (%s), %.4f bits per weight, %zu tensor%s, %zu not from the "
           "base\n",
           base_printable_text(name, sizeof name, s->output), m->directory.n_bytes_whole,
           base_size_text(size, whole, base_size_unit(NULL, whole)),
           8 * (double)n_bytes / (double)n_weights, n, status_plural(n), n_other);
}

static enum status run_mix(const void *settings, const struct cli_args *args,
                           struct status_why *why)
{
    const struct settings *s = settings;
    const struct cli_named_file output = {"-o", s->output}, input = {"mix", args->operands[0]};
    struct doc_recipe recipe = {0};
    struct doc_mixture m = {0};
    char sha256[BASE_HEX];
    enum status status = cli_outputs_check(&output, 1, &input, 1, why);
    if (!status)
        status = doc_recipe_read(&recipe, input.path, sha256, why);
    if (!status)
        status = open_files(&m, &recipe, s->output, why);
    if (!status)
        status = choose(&m, &recipe, why);
    if (!status)
        status = doc_mixture_lay_out(&m, sha256, why);
    if (!status)
        status = write_out(&m, s, why);
    if (!status)
        print_result(&m, s);
    doc_mixture_free(&m);
    doc_recipe_free(&recipe);
    return status;
}

static const struct cli_option options[] = {
    {"-o --output", CLI_TEXT, "FILE", "the file to write; it is FILE.part until it is complete",
     offsetof(struct settings, output), .required = true, .usual = true},
    {.type = CLI_GROUP, .group = cli_force_options, .offset = offsetof(struct settings, force)},
    {"-q --quiet", CLI_QUIET, NULL, "nothing but errors on standard error"},
    {0},
};

const struct cli_command cli_command_mix = {
    .name = "mix",
    .usage = "RECIPE.json -o FILE [options]",
    .n_operands = 1,
    .summary = "Write a model file of tensors from several files, as a recipe says.",
    .description =
        "RECIPE.json is what assay recipe --json wrote. Nothing is quantised: tensors are\n"
        "copied as they are, from the files that were measured, and other files are refused.\n"
        "The metadata are those of the first file of the recipe.",
    .examples = "assay mix recipe.json -o mixed.gguf\n"
                "The file of a recipe: tensors of several files in one, copied as they are.",
    .options = options,
    .settings_bytes = sizeof(struct settings),
    .run = run_mix,
};
