#include "clients/documents/results/texts.h"

#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"

/* Where the hashes come from stands in docs/results.md. */
static const struct doc_known_text known[] = {
    {"173c87a53759e0201f33e0ccf978e510c2042d7f2cb78229d9a50d79b9e7dd08", "WikiText-2 (test)",
     "wiki.test.raw, the form that published perplexities refer to"},
    {"93dfa3fc298fe84db9e5628f9b31a630d965e3a6a3dc3a751e08f9d199ac4cf1",
     "WikiText-2 (test, from rows)",
     "the test split put together from the data set's rows, not the bytes of wiki.test.raw: its "
     "figures are not those of that file"},
};

const struct doc_known_text *doc_known_text(const char *sha256)
{
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].sha256, sha256) == 0)
            return &known[i];
    return NULL;
}

const char *doc_text_name(char out[DOC_TEXT_NAME], struct doc_document *document)
{
    struct base_field root = doc_root(document);
    const cJSON *files = base_field_get(root, "run.text_files").json;
    const char *sha256 = base_field_string(root, "text.sha256");
    const char *file = base_field_string(root, "run.text_file");
    const struct doc_known_text *text = sha256 ? doc_known_text(sha256) : NULL;
    if (text)
        snprintf(out, DOC_TEXT_NAME, "%s", text->name);
    else if (file)
        base_printable_text(out, DOC_TEXT_NAME, base_file_name(file));
    else if (cJSON_GetArraySize(files) == 1 && cJSON_IsString(files->child))
        base_printable_text(out, DOC_TEXT_NAME, base_file_name(files->child->valuestring));
    else if (cJSON_IsArray(files))
        snprintf(out, DOC_TEXT_NAME, "%d files", cJSON_GetArraySize(files));
    else if (base_field_find(root, "text").json)
        snprintf(out, DOC_TEXT_NAME, "a text of the command line");
    else
        snprintf(out, DOC_TEXT_NAME, "the text of the base's file");
    return out;
}
