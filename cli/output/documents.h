/** What results have of documents, and of a run that may end early: lines and members. */
#ifndef CLI_OUTPUT_DOCUMENTS_H
#define CLI_OUTPUT_DOCUMENTS_H

#include "base/json/build.h"
#include "cli/input/windows.h"
#include "eval/metrics.h"

/** Print a table of files, if there are several, one of categories, and both means. */
void cli_groups_print(const struct eval_groups *groups, const struct eval_documents *documents);
/** Members `files`, `categories`, `documents` and `macro` of an object. */
void cli_json_add_groups(struct base_json *json, cJSON *o, const struct eval_groups *groups,
                         const struct eval_documents *documents);

/** With --stop-when-se: a line, and a member `stop` of an object. Else nothing. */
void cli_stop_print(const struct cli_windows *windows);
void cli_json_add_stop(struct base_json *json, cJSON *o, const struct cli_windows *windows);

#endif
