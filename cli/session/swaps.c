#include "cli/session/swaps.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/printable.h"
#include "cli/process/faults.h"
#include "model/swap.h"

/** An open file with tensors for a model. */
struct cli_donor {
    struct gguf_file *file;
    size_t n_uses;
};

static enum status donor_open(struct cli_donor **out, const char *path, struct status_why *why)
{
    struct cli_donor *donor = calloc(1, sizeof *donor);
    *out = donor;
    if (!donor)
        return status_fail(why, STATUS_MEMORY, "no memory to open %s", path);
    donor->n_uses = 1;
    return gguf_open(&donor->file, path, why);
}

static void donor_release(struct cli_donor *donor)
{
    if (!donor || --donor->n_uses)
        return;
    for (size_t i = 0; donor->file && i < gguf_n_shards(donor->file); i++) {
        uint64_t n_bytes, data_offset;
        const void *data = gguf_shard_data(donor->file, i, &n_bytes, &data_offset);
        cli_mapping_forget(data, (size_t)n_bytes);
    }
    gguf_close(donor->file);
    free(donor);
}

/** Where the tensor of that name is in the list, or would be. */
static size_t find(const struct cli_swaps *s, const char *name, bool *found)
{
    size_t i = 0;
    int order = 1;
    while (i < s->n && (order = strcmp(s->items[i].own->name, name)) < 0)
        i++;
    *found = i < s->n && order == 0;
    return i;
}

/** Let the list say what the model uses now: takes the use of the donor over. Room is there. */
static void note(struct cli_swaps *s, const struct cli_swap *swap)
{
    bool found;
    size_t i = find(s, swap->own->name, &found);
    if (found)
        donor_release(s->items[i].donor);
    if (found && !swap->donor)
        memmove(s->items + i, s->items + i + 1, (--s->n - i) * sizeof *s->items);
    else if (!found && swap->donor)
        memmove(s->items + i + 1, s->items + i, (s->n++ - i) * sizeof *s->items);
    if (swap->donor)
        s->items[i] = *swap;
}

/** Another name for another model. */
static enum status rename_model(struct cli_swaps *s, struct status_why *why)
{
    struct cli_model *model = s->model;
    memcpy(model->id, s->own_id, sizeof s->own_id);
    memcpy(model->sha256, s->own_sha256, sizeof s->own_sha256);
    model->swaps = s->n ? s : NULL;
    if (!s->n)
        return STATUS_OK;
    struct base_digest *digest = base_digest_open();
    base_digest_add(digest, s->own_id, strlen(s->own_id));
    for (size_t i = 0; i < s->n; i++) {
        const struct cli_swap *swap = &s->items[i];
        base_digest_add(digest, swap->own->name, strlen(swap->own->name) + 1);
        base_digest_add(digest, swap->sha256, strlen(swap->sha256));
    }
    model->sha256[0] = '\0';
    return base_digest_close(digest, model->id, why);
}

/** The donor of one of the n swaps before, if it is of this file; else it is opened. */
static enum status find_donor(struct cli_swap *out, const struct cli_swap_wanted *wanted, size_t n,
                              struct status_why *why)
{
    for (size_t i = 1; i <= n; i++) {
        const char *file = (wanted - i)->file;
        if (!file || strcmp(file, wanted->file) != 0)
            continue;
        out->donor = (out - i)->donor;
        out->donor->n_uses++;
        return STATUS_OK;
    }
    return donor_open(&out->donor, wanted->file, why);
}

/** The swap that is wanted, after n others; its file is open. */
static enum status make(const struct cli_swaps *s, struct cli_swap *out,
                        const struct cli_swap_wanted *wanted, size_t n, struct status_why *why)
{
    const struct gguf_file *file = model_file(s->model->model);
    *out = (struct cli_swap){.own = gguf_tensor_find(file, wanted->tensor)};
    if (!out->own)
        return status_fail(why, STATUS_USAGE, "%s has no such tensor", gguf_path(file));
    if (!wanted->file)
        return STATUS_OK;
    enum status status = find_donor(out, wanted, n, why);
    if (status)
        return status;
    out->from = gguf_tensor_find(out->donor->file, wanted->tensor);
    if (!out->from)
        return status_fail(why, STATUS_USAGE, "%s has no such tensor", wanted->file);
    size_t n_faults = cli_mapping_faults();
    status = base_sha256(out->sha256, out->from->data, (size_t)out->from->n_bytes, why);
    if (!status && cli_mapping_faults() != n_faults)
        status = status_fail(why, STATUS_IO, "%s: a part of it cannot be read", wanted->file);
    return status;
}

static enum status use(struct cli_swaps *s, const struct cli_swap *swap, struct status_why *why)
{
    return model_swap(s->model->model, swap->own->name, swap->donor ? swap->donor->file : NULL,
                      swap->from, why);
}

/** What is in force for the tensor of a swap. */
static struct cli_swap in_force(const struct cli_swaps *s, const struct cli_swap *swap)
{
    bool found;
    size_t i = find(s, swap->own->name, &found);
    return found ? s->items[i] : (struct cli_swap){.own = swap->own};
}

enum status cli_swaps_apply(struct cli_swaps *s, const struct cli_swap_wanted *wanted, size_t n,
                            size_t *wrong, const atomic_bool *cancel, struct status_why *why)
{
    *wrong = n;
    struct cli_swap *swaps;
    if (base_array_reserve(s->items, s->capacity, s->n + n + 1, "swapped tensors", why) ||
        base_array_new(swaps, n + 1, "swapped tensors", why))
        return STATUS_MEMORY;
    if (!*s->own_id) {
        memcpy(s->own_id, s->model->id, sizeof s->own_id);
        memcpy(s->own_sha256, s->model->sha256, sizeof s->own_sha256);
    }
    enum status status = STATUS_OK;
    size_t n_made = 0, n_used = 0;
    for (; n_made < n && !status; n_made++) {
        status = atomic_load(cancel) ? status_fail(why, STATUS_CANCELLED, "cancelled")
                                     : make(s, &swaps[n_made], &wanted[n_made], n_made, why);
        if (!status)
            status = use(s, &swaps[n_made], why);
        n_used += !status;
        if (status) {
            status_context(why, "%s", wanted[n_made].tensor);
            *wrong = n_made;
        }
    }
    for (size_t i = n_used; status && i-- > 0;) {
        const struct cli_swap before = in_force(s, &swaps[i]);
        (void)use(s, &before, NULL); /* it was possible before */
    }
    for (size_t i = 0; i < n_made; i++)
        if (status)
            donor_release(swaps[i].donor);
        else
            note(s, &swaps[i]);
    free(swaps);
    return status ? status : rename_model(s, why);
}

void cli_swaps_close(struct cli_swaps *s)
{
    for (size_t i = 0; i < s->n; i++) {
        const struct cli_swap own = {.own = s->items[i].own};
        (void)use(s, &own, NULL);
    }
    for (size_t i = 0; i < s->n; i++)
        donor_release(s->items[i].donor);
    free(s->items);
    *s = (struct cli_swaps){0};
}

void cli_swaps_add_json(struct base_json *json, cJSON *o, const struct cli_swaps *swaps)
{
    cJSON *list = base_json_list(json, o, "swapped");
    for (size_t i = 0; i < swaps->n; i++) {
        const struct cli_swap *swap = &swaps->items[i];
        cJSON *entry = base_json_object(json, list, NULL);
        base_json_text(json, entry, "name", swap->own->name);
        base_json_text(json, entry, "type", gguf_type_name(swap->from->type_id));
        base_json_uint(json, entry, "n_bytes", swap->from->n_bytes);
        base_json_text(json, entry, "sha256", swap->sha256);
        base_json_text(json, entry, "file", base_file_name(gguf_path(swap->donor->file)));
    }
}
