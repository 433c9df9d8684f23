#include "cli/sweep/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static enum status no_memory(struct status_why *why)
{
    return status_fail(why, STATUS_MEMORY, "no memory for the groups of tensors");
}

/** Append a type's name to "Q4_K+F32", unless it is there. */
static void add_type(char *types, size_t capacity, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = types; *at; at += *at == '+') {
        size_t length = strcspn(at, "+");
        if (length == n && memcmp(at, name, n) == 0)
            return;
        at += length;
    }
    size_t used = strlen(types);
    snprintf(types + used, capacity - used, "%s%s", used ? "+" : "", name);
}

static void add_tensor(struct cli_sweep_group *g, const struct gguf_tensor *t)
{
    struct cli_sweep_place place = cli_sweep_place(t->name);
    if (g->n_tensors == 0)
        g->place = place;
    if (g->place.layer != place.layer)
        g->place.layer = SIZE_MAX;
    if (strcmp(g->place.role, place.role) != 0)
        *g->place.role = '\0';
    g->tensors[g->n_tensors++] = t;
    g->n_elements += t->n_rows * t->ne[0];
    g->n_bytes += t->n_bytes;
    add_type(g->type, sizeof g->type, t->type->name);
}

/** The group of a name, made where there is none yet. */
static enum status find_group(struct cli_sweep_groups *gs, const char *name, size_t *number,
                              struct status_why *why)
{
    int32_t known = base_strtab_find(&gs->names, (struct base_string){name, strlen(name)});
    *number = known < 0 ? gs->n : (size_t)known;
    if (known >= 0)
        return STATUS_OK;
    if (base_array_reserve(gs->items, gs->capacity, gs->n + 1, "groups", why))
        return STATUS_MEMORY;
    char *copy = strdup(name);
    gs->items[gs->n++] = (struct cli_sweep_group){.name = copy};
    if (!copy)
        return no_memory(why);
    return base_strtab_add(&gs->names, (struct base_string){copy, strlen(copy)}, &known, why);
}

static enum status sort_tensor(struct cli_sweep_groups *gs, const struct gguf_tensor *t,
                               const struct cli_sweep_names *names, struct status_why *why)
{
    char name[CLI_SWEEP_NAME_BYTES];
    bool in_group;
    size_t number;
    gs->n_weights += t->n_rows * t->ne[0];
    enum status status = cli_sweep_name(names, t->name, name, &in_group, why);
    if (status)
        return status;
    if (!in_group) {
        gs->rest[gs->n_rest++] = t;
        return STATUS_OK;
    }
    status = find_group(gs, name, &number, why);
    if (status)
        return status;
    struct cli_sweep_group *g = &gs->items[number];
    const struct gguf_tensor **grown =
        realloc(g->tensors, (g->n_tensors + 1) * sizeof *grown); /* groups are small, or few */
    if (!grown)
        return no_memory(why);
    g->tensors = grown;
    add_tensor(g, t);
    return STATUS_OK;
}

static bool differ(const struct gguf_tensor *a, const struct gguf_tensor *b)
{
    return a->type != b->type || a->n_bytes != b->n_bytes ||
           memcmp(a->ne, b->ne, sizeof a->ne) != 0 || !gguf_tensor_same(a, b);
}

/** Where a quantizer would make another tensor: of matrices. */
static bool quantised(const struct gguf_tensor *t)
{
    return t->ne[1] > 1 && t->ne[0] % 32 == 0;
}

/** What a candidate has for group g. n_swaps 0: nothing, or nothing else than the model. */
static enum status make_choice(struct cli_sweep_choice *choice, const struct cli_sweep_group *g,
                               const struct gguf_file *file, bool unmade, struct status_why *why)
{
    if (base_array_new(choice->swaps, g->n_tensors, "swaps", why))
        return STATUS_MEMORY;
    for (size_t i = 0; i < g->n_tensors; i++) {
        const struct gguf_tensor *from = gguf_tensor_find(file, g->tensors[i]->name);
        if (!from) {
            choice->n_swaps = 0;
            return STATUS_OK;
        }
        choice->n_bytes += from->n_bytes;
        add_type(choice->type, sizeof choice->type, from->type->name);
        if (unmade ? quantised(from) : differ(g->tensors[i], from))
            choice->swaps[choice->n_swaps++] = (struct eval_swap){from->name, file, from};
    }
    return STATUS_OK;
}

/** Each swap must be possible: it is tried, and taken back. */
static enum status try_choice(struct cli_sweep_choice *choice, struct model *trial,
                              struct status_why *why)
{
    const struct eval_variant variant = {choice->swaps, choice->n_swaps};
    choice->stage = SIZE_MAX;
    for (size_t i = 0; i < choice->n_swaps; i++) {
        size_t stage = model_swap_stage(trial, choice->swaps[i].name);
        choice->stage = stage < choice->stage ? stage : choice->stage;
    }
    enum status status = eval_variant_enter(trial, NULL, &variant, why);
    return status ? status : eval_variant_enter(trial, &variant, NULL, why);
}

static enum status add_choices(struct cli_sweep_groups *gs, size_t group,
                               const struct cli_sweep_candidates *from, struct model *trial,
                               struct status_why *why)
{
    struct cli_sweep_group *g = &gs->items[group];
    g->first_choice = gs->n_choices;
    for (size_t c = 0; c < from->n; c++) {
        if (base_array_reserve(gs->choices, gs->choice_capacity, gs->n_choices + 1, "choices", why))
            return STATUS_MEMORY;
        struct cli_sweep_choice *choice = &gs->choices[gs->n_choices];
        *choice = (struct cli_sweep_choice){.group = group, .candidate = c};
        enum status status =
            make_choice(choice, g, model_file(from->items[c].model), from->unmade, why);
        if (!status && choice->n_swaps)
            status = try_choice(choice, trial, why);
        if (status || !choice->n_swaps) {
            free(choice->swaps);
            if (status)
                return status;
            continue;
        }
        g->n_choices++;
        gs->n_choices++;
    }
    return STATUS_OK;
}

static void free_group(struct cli_sweep_group *g)
{
    free(g->name);
    free(g->tensors);
}

/** Tensors of groups without a choice belong to the rest; the other groups move up. */
static void drop_empty(struct cli_sweep_groups *gs)
{
    size_t n = 0;
    for (size_t i = 0; i < gs->n; i++) {
        struct cli_sweep_group *g = &gs->items[i];
        if (g->n_choices == 0) {
            for (size_t t = 0; t < g->n_tensors; t++)
                gs->rest[gs->n_rest++] = g->tensors[t];
            free_group(g);
            continue;
        }
        for (size_t c = 0; c < g->n_choices; c++)
            gs->choices[g->first_choice + c].group = n;
        gs->items[n++] = *g;
    }
    gs->n = n;
}

enum status cli_sweep_groups_make(struct cli_sweep_groups *gs, const struct model *around,
                                  const struct cli_sweep_candidates *from,
                                  const struct cli_sweep_names *names, struct status_why *why)
{
    const struct gguf_file *file = model_file(around);
    size_t n = gguf_n_tensors(file);
    struct model *trial = NULL;
    gs->rest = calloc(n + 1, sizeof *gs->rest);
    enum status status = gs->rest ? model_share(&trial, around, why) : no_memory(why);
    for (size_t i = 0; i < n && !status; i++)
        status = sort_tensor(gs, gguf_tensor_at(file, i), names, why);
    for (size_t i = 0; i < gs->n && !status; i++)
        status = add_choices(gs, i, from, trial, why);
    model_close(trial);
    if (status)
        return status;
    if (gs->n == 0)
        return status_fail(why, STATUS_USAGE, "--group matches no tensor's name");
    drop_empty(gs);
    if (gs->n == 0)
        return status_fail(why, STATUS_USAGE,
                           "%s: none of its groups of tensors is another one in a model that "
                           "--from names",
                           gguf_path(file));
    return STATUS_OK;
}

void cli_sweep_groups_free(struct cli_sweep_groups *gs)
{
    for (size_t i = 0; i < gs->n; i++)
        free_group(&gs->items[i]);
    for (size_t i = 0; i < gs->n_choices; i++)
        free(gs->choices[i].swaps);
    base_strtab_free(&gs->names);
    free(gs->items);
    free(gs->choices);
    free(gs->rest);
    *gs = (struct cli_sweep_groups){0};
}
