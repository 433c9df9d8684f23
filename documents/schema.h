/** What all documents begin with: a schema and its version. */
#ifndef DOCUMENTS_SCHEMA_H
#define DOCUMENTS_SCHEMA_H

#include "base/json/build.h"

/** The version of all documents: `schema_version`. */
enum { DOC_SCHEMA_VERSION = 1 };

/** The schemas that several rooms name. */
#define DOC_SWEEP_SCHEMA   "assay-sweep"
#define DOC_RECIPE_SCHEMA  "assay-recipe"
#define DOC_IMATRIX_SCHEMA "assay-imatrix-info"

/** Begin a document of this schema, at this version. */
void doc_json_begin(struct base_json *json, const char *schema);
/** Write it and release it. Fails: as base_json_write. */
enum status doc_json_end(struct base_json *json, struct base_file *file, struct status_why *why);

#endif
