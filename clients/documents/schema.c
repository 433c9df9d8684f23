#include "clients/documents/schema.h"

void doc_json_begin(struct base_json *json, const char *schema)
{
    base_json_begin(json);
    base_json_text(json, json->root, "schema", schema);
    base_json_int(json, json->root, "schema_version", DOC_SCHEMA_VERSION);
}

enum status doc_json_end(struct base_json *json, struct base_file *file, struct status_why *why)
{
    enum status status = base_json_write(json, file, why);
    base_json_free(json);
    return status;
}
