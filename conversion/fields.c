#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "conversion/keys.h"

enum { SHOWN = 60 };

/** Bytes as they may be shown: in quotes where they are no number, cut. */
static void show(char *to, size_t capacity, struct base_string text)
{
    size_t used = 0;
    for (size_t i = 0; i < text.n_bytes && used + 8 < capacity && i < SHOWN; i++) {
        unsigned char c = (unsigned char)text.data[i];
        if (c < ' ' || c == 0x7f || c >= 0x80)
            used += (size_t)snprintf(to + used, capacity - used, "\\x%02x", c);
        else
            to[used++] = (char)c;
    }
    to[used] = 0;
    if (text.n_bytes > SHOWN && used + 4 < capacity)
        memcpy(to + used, "...", 4);
}

enum status conv_differ(struct conv_result *out, enum conv_kind kind, const char *key,
                        struct base_string expected, struct base_string found,
                        struct status_why *why)
{
    for (size_t i = 0; i < out->n_keys; i++)
        if (strcmp(out->keys[i].key, key) == 0) /* told by another file, too */
            return STATUS_OK;
    enum status status =
        base_array_reserve(out->keys, out->key_capacity, out->n_keys + 1, "differences", why);
    if (status)
        return status;
    struct conv_key *k = &out->keys[out->n_keys++];
    k->kind = kind;
    show(k->key, sizeof k->key, (struct base_string){key, strlen(key)});
    show(k->expected, sizeof k->expected, expected);
    show(k->found, sizeof k->found, found);
    return STATUS_OK;
}

enum status conv_differ_text(struct conv_result *out, enum conv_kind kind, const char *key,
                             const char *expected, const char *found, struct status_why *why)
{
    return conv_differ(out, kind, key, (struct base_string){expected, strlen(expected)},
                       (struct base_string){found, strlen(found)}, why);
}
