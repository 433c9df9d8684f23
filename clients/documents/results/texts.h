/** Texts that published figures refer to, recognised by their hash. */
#ifndef DOCUMENTS_RESULTS_TEXTS_H
#define DOCUMENTS_RESULTS_TEXTS_H

#include "clients/documents/results/document.h"

/** A text that others have, too. */
struct doc_known_text {
    const char *sha256; /* of the file's bytes */
    const char *name;   /* for a title: "WikiText-2 (test)" */
    const char *about;  /* for a sentence: which form of it */
};

/** The known text of a digest, or NULL. */
const struct doc_known_text *doc_known_text(const char *sha256);

enum { DOC_TEXT_NAME = 160 };
/**
 * What the text of a result is called: the known text's name, else the name of its file, cut at
 * `out`'s end, "N files" of documents, "the base's text" where only the base's file knows it.
 */
const char *doc_text_name(char out[DOC_TEXT_NAME], struct doc_document *document);

#endif
