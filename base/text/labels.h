/** What models are called where several are shown together: tables, charts, lines. */
#ifndef BASE_TEXT_LABELS_H
#define BASE_TEXT_LABELS_H

#include <stddef.h>

#include "base/status.h"

enum {
    BASE_LABEL_WIDTH = 32,                       /* columns, where there is nothing narrower */
    BASE_LABEL_BYTES = 4 * BASE_LABEL_WIDTH + 1, /* room for as many characters */
};

struct base_label {
    char text[BASE_LABEL_BYTES];
};

/**
 * A text that may hold anything, made printable, in `width` columns: where it is longer, an
 * ellipsis stands for its middle.   width: 8 to BASE_LABEL_WIDTH.
 * Returns label->text.
 */
const char *base_label_fit(struct base_label *label, const char *text, size_t width);

/** What a model can be called by. name, type: of the model; NULL or "": not known. */
struct base_named {
    const char *path, *name, *type;
};

/**
 * Short names of model files that are shown together: without folders (where file names are the
 * same and paths are not, with them), without ".gguf" and the number of a part, without what all of
 * them begin and end with, in whole words ("-", ".", "/" and blanks end a word, the dot of a number
 * does not), and in BASE_LABEL_WIDTH columns, as base_label_fit has it. Different files have
 * different labels; a single file, and files that are all the same, keep their name. A file whose
 * name is a hash, as in stores of programs, has the name and the type of its model instead.
 * models: [n]. out: [n].   Fails: STATUS_MEMORY.
 */
enum status base_labels(struct base_label *out, const struct base_named *models, size_t n,
                        struct status_why *why);

#endif
