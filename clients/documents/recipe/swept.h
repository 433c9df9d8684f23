/**
 * A sweep's document, "assay-sweep": what each group of tensors costs with each type. Taken as
 * hostile; docs/json.md has its fields.
 */
#ifndef DOCUMENTS_RECIPE_SWEPT_H
#define DOCUMENTS_RECIPE_SWEPT_H

#include <stdbool.h>

#include "base/buffer.h"
#include "clients/documents/results/document.h"

/** More candidates than anybody has; bounds what a hostile document can ask for. */
enum { DOC_MAX_MIXED = 1024 };

/** A model's file as a document names it. Texts point into the document. */
struct doc_mixed_file {
    const char *path;
    const char *id, *sha256; /* NULL: the document has none */
};

/** A type for a group. */
struct doc_swept_choice {
    size_t file;      /* of the sweep's files */
    const char *type; /* of the group's tensors, "+" between different ones */
    uint64_t n_bytes;
    double nats, error; /* what it adds to the divergence of the first file, and its error */
};

/** Tensors that are taken together. */
struct doc_swept_group {
    const char *name;
    const char **tensors; /* [n_tensors] */
    size_t n_tensors;
    size_t first, n_choices; /* in the sweep's choices; the first one is the tensors of files[0] */
};

/** A tensor that is in no group: it comes from files[0]. */
struct doc_swept_rest {
    const char *name, *type;
    uint64_t n_bytes;
};

/** Zero-initialise; release with doc_swept_free. */
struct doc_swept {
    struct doc_document document;
    struct doc_mixed_file base, *files; /* [n_files]: what the groups begin with; the candidates */
    bool around_base;                   /* files[0] is the base */
    double kld, kld_error;              /* of files[0] from the base */
    struct doc_swept_group *groups;
    struct doc_swept_choice *choices;
    struct doc_swept_rest *rest;
    size_t n_files, n_groups, n_choices, n_rest;
    size_t n_left_out;      /* choices whose divergence is not finite */
    size_t n_odd;           /* choices of tensors that are no versions of the base's */
    struct base_buffer odd; /* the first of them: "blk.0.ffn_up.weight of x.gguf, ..." */
    const char **tensors;   /* [n_tensors]: of all groups */
    size_t n_tensors;
    uint64_t n_weights; /* of files[0] */
    bool complete;      /* nothing was left out because the sweep was interrupted */
};

/** Take over what an open document says. Fails: STATUS_FORMAT, STATUS_MEMORY. */
enum status doc_swept_take(struct doc_swept *s, struct status_why *why);
/** Read and take over; sha256 as doc_read_as. Fails: also as that. */
enum status doc_swept_read(struct doc_swept *s, const char *path, char sha256[BASE_HEX],
                           struct status_why *why);
void doc_swept_free(struct doc_swept *s);

/**
 * The members file, id and sha256 of an object about a model's file. path: where it says so; NULL:
 * `file` is the path.
 */
struct doc_mixed_file doc_mixed_file(struct base_field object, const char *path);

#endif
