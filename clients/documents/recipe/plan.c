#include "clients/documents/recipe/plan.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/size.h"

enum { ALIGNMENT = 32 }; /* where the first file is not there to say another one */
static const char no_digest[] = "0000000000000000000000000000000000000000000000000000000000000000";

static enum status open_files(struct doc_plan *p, struct status_why *why)
{
    const struct doc_swept *s = p->sweep;
    struct doc_mixture *m = &p->mixture;
    *m = (struct doc_mixture){.names = s->files, .n_files = s->n_files};
    if (base_array_new(m->files, s->n_files, "files", why))
        return STATUS_MEMORY;
    enum status status = STATUS_OK;
    for (size_t f = 0; f < s->n_files && !status; f++) {
        struct stat about;
        if (stat(s->files[f].path, &about) == 0 || errno != ENOENT)
            status = gguf_open(&m->files[f], s->files[f].path, why);
    }
    p->measured = m->files[0] != NULL;
    return status;
}

/* The bytes of a choice in a file: known from its tensors, or guessed from their sum. */
static enum status weigh(struct doc_plan *p, const struct doc_swept_group *g, size_t choice,
                         struct status_why *why)
{
    const struct doc_swept_choice *c = &p->sweep->choices[choice];
    const struct gguf_file *file = p->mixture.files[c->file];
    uint64_t n_bytes = 0;
    p->n_bytes[choice] = file ? 0 : base_round_up(c->n_bytes, p->alignment);
    for (size_t i = 0; i < g->n_tensors && file; i++) {
        const struct gguf_tensor *t = gguf_tensor_find(file, g->tensors[i]);
        if (!t)
            return status_fail(why, STATUS_FORMAT,
                               "%s: has no tensor '%s'; expected the file that was swept",
                               p->sweep->files[c->file].path, g->tensors[i]);
        n_bytes += t->n_bytes;
        p->n_bytes[choice] += base_round_up(t->n_bytes, p->alignment);
    }
    if (file && n_bytes != c->n_bytes)
        return status_fail(why, STATUS_FORMAT,
                           "%s: the tensors of group '%s' have %" PRIu64 " bytes, in %s they have "
                           "%" PRIu64 "; expected the file that was swept",
                           p->sweep->files[c->file].path, g->name, n_bytes,
                           p->sweep->document.json.file, c->n_bytes);
    return STATUS_OK;
}

/* What does not depend on choices: metadata, and the tensors that are in no group. */
static enum status weigh_others(struct doc_plan *p, struct status_why *why)
{
    const struct doc_swept *s = p->sweep;
    const struct gguf_file *file = p->mixture.files[0];
    p->n_weights = s->n_weights;
    for (size_t i = 0; i < s->n_rest; i++) {
        p->other_tensor_bytes += s->rest[i].n_bytes;
        p->other_bytes += base_round_up(s->rest[i].n_bytes, p->alignment);
    }
    if (!file)
        return STATUS_OK;
    enum status status = doc_mixture_begin(&p->mixture, why);
    if (!status)
        status = doc_mixture_lay_out(&p->mixture, no_digest, why);
    p->other_bytes = p->mixture.directory.n_bytes_whole;
    p->other_tensor_bytes = p->n_weights = 0;
    for (size_t i = 0; i < gguf_n_tensors(file); i++) {
        const struct gguf_tensor *t = gguf_tensor_at(file, i);
        p->other_tensor_bytes += t->n_bytes;
        p->n_weights += t->n_rows * t->ne[0];
    }
    for (size_t g = 0; g < s->n_groups; g++) {
        p->other_bytes -= p->n_bytes[s->groups[g].first];
        p->other_tensor_bytes -= s->choices[s->groups[g].first].n_bytes;
    }
    return status;
}

/*
 * What each choice adds to the divergence of the first file. A divergence from the base itself
 * cannot be below 0: what rounding made of it is 0.
 */
static void add_up(struct doc_plan *p)
{
    const struct doc_swept *s = p->sweep;
    double sum = 0;
    int exponent;
    for (size_t g = 0; g < s->n_groups; g++) {
        double most = 0;
        for (size_t i = 0; i < s->groups[g].n_choices; i++) {
            size_t c = s->groups[g].first + i;
            double nats = s->choices[c].nats;
            p->nats[c] = s->around_base && nats < 0 ? 0 : nats;
            most = fmax(most, fabs(p->nats[c]));
        }
        sum += most;
        p->first[g] = s->groups[g].first;
    }
    p->first[s->n_groups] = s->n_choices;
    frexp(sum, &exponent);
    p->exponent = sum > 0 ? 60 - exponent : 0;
}

enum status doc_plan_make(struct doc_plan *p, const struct doc_swept *sweep, struct status_why *why)
{
    *p = (struct doc_plan){.sweep = sweep, .alignment = ALIGNMENT};
    if (base_array_new(p->n_bytes, sweep->n_choices, "choices", why) ||
        base_array_new(p->nats, sweep->n_choices, "choices", why) ||
        base_array_new(p->first, sweep->n_groups + 1, "groups", why))
        return STATUS_MEMORY;
    enum status status = open_files(p, why);
    if (!status && p->measured)
        status = gguf_get_u32(p->mixture.files[0], "general.alignment", &p->alignment,
                              &(bool){false}, why);
    for (size_t g = 0; g < sweep->n_groups && !status; g++)
        for (size_t i = 0; i < sweep->groups[g].n_choices && !status; i++)
            status = weigh(p, &sweep->groups[g], sweep->groups[g].first + i, why);
    if (!status)
        status = weigh_others(p, why);
    if (!status)
        add_up(p);
    return status;
}

void doc_plan_free(struct doc_plan *p)
{
    doc_mixture_free(&p->mixture);
    free(p->n_bytes);
    free(p->nats);
    free(p->first);
    *p = (struct doc_plan){0};
}

bool doc_target_given(const struct doc_target *t)
{
    return t->size || !isnan(t->bpw) || !isnan(t->kld);
}

enum status doc_target_check(const struct doc_target *t, struct status_why *why)
{
    uint64_t n_bytes;
    if ((t->size != NULL) + !isnan(t->bpw) + !isnan(t->kld) > 1)
        return status_fail(why, STATUS_USAGE, "--size, --bpw and --kld: expected one of them");
    if (t->size && !base_size_parse(t->size, &n_bytes))
        return status_fail(why, STATUS_USAGE,
                           "--size: '%s' is not a size, expected bytes, or a number with KiB, MiB, "
                           "GiB, TiB, kB, MB, GB or TB",
                           t->size);
    if (t->size && base_size_lacks_unit(t->size))
        return status_fail(why, STATUS_USAGE, "--size: %s is %s bytes: did you mean %sMB, or %sGB?",
                           t->size, t->size, t->size, t->size);
    if (t->bpw <= 0 || t->bpw > 64)
        return status_fail(why, STATUS_USAGE, "--bpw: %g is out of range, expected up to 64",
                           t->bpw);
    if (t->kld < 0)
        return status_fail(why, STATUS_USAGE, "--kld: %g is out of range, expected 0 or more",
                           t->kld);
    return STATUS_OK;
}

/* The limit in what the optimiser counts. */
static int64_t limit_of(const struct doc_plan *p, const struct doc_target *t)
{
    uint64_t n_bytes = 0;
    if (t->size && base_size_parse(t->size, &n_bytes))
        return (int64_t)n_bytes - (int64_t)p->other_bytes;
    if (!isnan(t->bpw))
        return (int64_t)(t->bpw * (double)p->n_weights / 8) - (int64_t)p->other_tensor_bytes;
    double units = floor(ldexp(t->kld - p->sweep->kld, p->exponent));
    return (int64_t)fmin(fmax(units, -0x1p62), 0x1p62);
}

enum status doc_plan_choices(const struct doc_plan *p, const struct doc_target *t,
                             struct doc_choice **out, struct status_why *why)
{
    const struct doc_swept *s = p->sweep;
    bool of_tensors = t && !isnan(t->bpw), of_nats = t && !isnan(t->kld);
    if (base_array_new(*out, s->n_choices, "choices", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < s->n_choices; i++) {
        int64_t n_bytes = (int64_t)(of_tensors ? s->choices[i].n_bytes : p->n_bytes[i]);
        int64_t units = llround(ldexp(p->nats[i], p->exponent));
        (*out)[i] =
            of_nats ? (struct doc_choice){units, n_bytes} : (struct doc_choice){n_bytes, units};
    }
    return STATUS_OK;
}

static enum status fail_too_low(const struct doc_plan *p, const struct doc_target *t,
                                const struct doc_selection *lightest, struct status_why *why)
{
    struct doc_plan_figures f = doc_plan_figures(p, lightest->chosen);
    if (t->size)
        return status_fail(why, STATUS_USAGE,
                           "--size %s: the smallest file of this sweep has %" PRIu64 " bytes",
                           t->size, f.n_bytes);
    if (!isnan(t->bpw))
        return status_fail(why, STATUS_USAGE,
                           "--bpw %g: the smallest file of this sweep has %.4f bits per weight",
                           t->bpw, f.bits_per_weight);
    return status_fail(why, STATUS_USAGE,
                       "--kld %g: the least that is predicted of this sweep is %.6g", t->kld,
                       f.kld);
}

enum status doc_plan_choose(const struct doc_plan *p, const struct doc_target *t, size_t *chosen,
                            double *gap, struct status_why *why)
{
    struct doc_selection selection = {.chosen = chosen};
    struct doc_knapsack k = {p->sweep->n_groups, p->first, NULL};
    struct doc_choice *choices;
    enum status status = doc_plan_choices(p, t, &choices, why);
    if (status)
        return status;
    k.choices = choices;
    status = doc_knapsack_solve(&k, limit_of(p, t), 0, &selection, why);
    if (status == STATUS_USAGE)
        fail_too_low(p, t, &selection, why);
    double units = (double)(selection.cost - selection.bound);
    *gap = isnan(t->kld) ? ldexp(units, -p->exponent) : units;
    free(choices);
    return status;
}

const struct doc_swept_choice *doc_plan_choice(const struct doc_plan *p, const size_t *chosen,
                                               size_t group)
{
    return &p->sweep->choices[p->sweep->groups[group].first + chosen[group]];
}

struct doc_plan_figures doc_plan_figures(const struct doc_plan *p, const size_t *chosen)
{
    const struct doc_swept *s = p->sweep;
    struct doc_plan_figures f = {.n_bytes = p->other_bytes,
                                 .n_tensor_bytes = p->other_tensor_bytes,
                                 .kld = s->kld,
                                 .kld_error = s->kld_error};
    for (size_t g = 0; g < s->n_groups; g++) {
        size_t c = s->groups[g].first + chosen[g];
        f.n_bytes += p->n_bytes[c];
        f.n_tensor_bytes += s->choices[c].n_bytes;
        f.kld += p->nats[c];
        if (chosen[g])
            f.kld_error += s->choices[c].error;
    }
    f.bits_per_weight = 8 * (double)f.n_tensor_bytes / (double)p->n_weights;
    return f;
}

const char *doc_plan_type(const struct doc_plan *p, const struct doc_swept_choice *choice,
                          const char *tensor)
{
    const struct gguf_file *file = p->mixture.files[choice->file];
    const struct gguf_tensor *t = file ? gguf_tensor_find(file, tensor) : NULL;
    return t ? t->type->name : strchr(choice->type, '+') ? NULL : choice->type;
}
