/** What all documents begin with: a schema and its version. */
#ifndef DOCUMENTS_SCHEMA_H
#define DOCUMENTS_SCHEMA_H

#include "base/json/build.h"

/** The version of all documents: `schema_version`. */
enum { DOC_SCHEMA_VERSION = 1 };

/** The schemas that several files name. */
#define DOC_SWEEP_SCHEMA           "assay-sweep"
#define DOC_RECIPE_SCHEMA          "assay-recipe"
#define DOC_RECIPE_CHECK_SCHEMA    "assay-recipe-check"
#define DOC_IMATRIX_SCHEMA         "assay-imatrix-info"
#define DOC_IMATRIX_COMPARE_SCHEMA "assay-imatrix-compare"
#define DOC_COMPARE_SCHEMA         "assay-compare"
#define DOC_COMPARE_FILES_SCHEMA   "assay-compare-files"
#define DOC_PLAN_SCHEMA            "assay-plan"
#define DOC_DRAFT_SCHEMA           "assay-draft"
#define DOC_BOUNDS_SCHEMA          "assay-kld-bounds"
#define DOC_SERVER_SCHEMA          "assay-server-check"
#define DOC_CONVERSION_SCHEMA      "assay-conversion"

/** Begin a document of this schema, at this version. */
void doc_json_begin(struct base_json *json, const char *schema);
/** Write it and release it. Fails: as base_json_write. */
enum status doc_json_end(struct base_json *json, struct base_file *file, struct status_why *why);

#endif
