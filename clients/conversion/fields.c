#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arithmetic.h"
#include "base/array.h"
#include "base/text/escape.h"
#include "clients/conversion/keys.h"

enum { SHOWN = 60 };

/** Bytes as they may be shown, cut. */
static void show(char *to, size_t capacity, size_t most, struct base_string text)
{
    base_printable(to, capacity - sizeof "...", text.data, base_min(text.n_bytes, most));
    if (text.n_bytes > most)
        memcpy(to + strlen(to), "...", sizeof "...");
}

void conv_differ(struct conv_result *out, enum conv_kind kind, const char *key,
                 struct base_string expected, struct base_string found)
{
    struct status_why why;
    for (size_t i = 0; i < out->n_keys; i++)
        if (strcmp(out->keys[i].key, key) == 0) /* told by another file, too */
            return;
    if (base_array_reserve(out->keys, out->key_capacity, out->n_keys + 1, "differences", &why)) {
        status_keep(&out->kept, STATUS_MEMORY, "%s", why.text);
        return;
    }
    struct conv_key *k = &out->keys[out->n_keys++];
    k->kind = kind;
    size_t most = kind == CONV_PROMPT ? CONV_VALUE_BYTES : SHOWN; /* those are cut */
    show(k->key, sizeof k->key, SHOWN, (struct base_string){key, strlen(key)});
    show(k->expected, sizeof k->expected, most, expected);
    show(k->found, sizeof k->found, most, found);
}

void conv_differ_text(struct conv_result *out, enum conv_kind kind, const char *key,
                      const char *expected, const char *found)
{
    conv_differ(out, kind, key, (struct base_string){expected, strlen(expected)},
                (struct base_string){found, strlen(found)});
}

void conv_note(struct conv_result *out, const char *format, ...)
{
    va_list arguments;
    if (out->n_notes == CONV_NOTES)
        return;
    va_start(arguments, format);
    vsnprintf(out->notes[out->n_notes++], CONV_NOTE_BYTES, format, arguments);
    va_end(arguments);
}
