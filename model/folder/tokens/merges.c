/* The member model.merges of tokenizer.json: "left right", or [left, right]. */
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/text/quote.h"
#include "model/folder/tokens/state.h"

/** Where a merge lies in the buffer of all. */
struct place {
    size_t at, n;
};

struct merges {
    struct base_buffer text;
    struct place *items;
    size_t n, capacity;
};

/** The halves of one, neither empty nor with a blank in it. */
static bool halves(const cJSON *item, struct base_string out[2])
{
    const cJSON *left = cJSON_IsArray(item) ? item->child : NULL;
    const cJSON *right = left ? left->next : NULL;
    const char *blank = cJSON_IsString(item) ? strchr(item->valuestring, ' ') : NULL;
    if (blank) {
        out[0] = (struct base_string){item->valuestring, (size_t)(blank - item->valuestring)};
        out[1] = (struct base_string){blank + 1, strlen(blank + 1)};
    } else if (cJSON_IsString(left) && cJSON_IsString(right) && !right->next) {
        out[0] = (struct base_string){left->valuestring, strlen(left->valuestring)};
        out[1] = (struct base_string){right->valuestring, strlen(right->valuestring)};
    } else {
        return false;
    }
    for (int i = 0; i < 2; i++)
        if (out[i].n_bytes == 0 || memchr(out[i].data, ' ', out[i].n_bytes))
            return false;
    return true;
}

static enum status read(struct merges *m, const struct model_folder_tokens *f, const cJSON *list,
                        struct status_why *why)
{
    for (const cJSON *item = list->child; item; item = item->next) {
        struct base_string half[2];
        if (!halves(item, half))
            return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_UNSUPPORTED, why,
                                     "model.merges[%zu] is no pair of tokens without blanks", m->n);
        if (base_array_reserve(m->items, m->capacity, m->n + 1, "merges", why))
            return STATUS_MEMORY;
        m->items[m->n++] = (struct place){m->text.n, half[0].n_bytes + 1 + half[1].n_bytes};
        base_buffer_add(&m->text, half[0].data, half[0].n_bytes);
        base_buffer_add(&m->text, " ", 1);
        base_buffer_add(&m->text, half[1].data, half[1].n_bytes);
    }
    return base_buffer_check(&m->text, "merges", why);
}

/** Write them without those that come again later: the last of equal pairs counts there, and the
 *  first in GGUF. */
static enum status write(const struct merges *m, struct model_folder_tokens *f,
                         struct status_why *why)
{
    struct base_strtab seen = {0};
    struct base_string *kept = NULL;
    size_t n = m->n;
    enum status status = base_array_new(kept, m->n, "merges", why);
    for (size_t i = m->n; i > 0 && !status; i--) {
        const struct base_string text = {m->text.data + m->items[i - 1].at, m->items[i - 1].n};
        int32_t number;
        size_t n_before = seen.n;
        status = base_strtab_add(&seen, text, &number, why);
        if (!status && seen.n > n_before)
            kept[--n] = text;
    }
    if (!status)
        gguf_layout_strings(f->layout, "tokenizer.ggml.merges", kept + n, m->n - n);
    base_strtab_free(&seen);
    free(kept);
    return status;
}

enum status model_tokens_merges(struct model_folder_tokens *f, struct status_why *why)
{
    const cJSON *list = base_field_get(f->model, "merges").json;
    struct merges m = {0};
    if (!cJSON_IsArray(list))
        return model_tokens_fail(f, MODEL_JSON_TOKENIZER, STATUS_FORMAT, why,
                                 "model.merges is no list");
    enum status status = read(&m, f, list, why);
    if (!status)
        status = write(&m, f, why);
    base_buffer_free(&m.text);
    free(m.items);
    return status;
}
