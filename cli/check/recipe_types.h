/** assay check --recipe: whether a file's tensors have the types that a recipe says. */
#ifndef CLI_CHECK_RECIPE_TYPES_H
#define CLI_CHECK_RECIPE_TYPES_H

#include "cli/options/common.h"

/**
 * The whole of it.   recipes: of --recipe, rules one after the other.
 * Fails: STATUS_EXCEEDED (a type is another one); as gguf_list, doc_type_rules_add.
 */
enum status cli_recipe_types_check(const char *model, const struct cli_list *recipes,
                                   const struct cli_output_settings *output,
                                   struct status_why *why);

#endif
