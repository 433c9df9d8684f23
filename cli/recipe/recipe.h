/** assay recipe: which file each tensor should come from. */
#ifndef CLI_RECIPE_RECIPE_H
#define CLI_RECIPE_RECIPE_H

#include "base/file/atomic_file.h"
#include "clients/documents/recipe/plan.h"

struct cli_recipe_settings {
    struct doc_target target;
    int64_t n_points;
    const char *json_file, *types_file, *suite_file;
    bool force;
};

/** What is printed and written. */
struct cli_recipe {
    const struct cli_recipe_settings *settings;
    const char *sweep_file, *sweep_sha256;
    struct doc_swept sweep;
    struct doc_plan plan;
    struct doc_plan_curve curve;
    size_t *chosen; /* [n_groups]; NULL: there was no target */
    struct doc_plan_figures figures;
    double gap;
};

/** How many groups have a type; of a list that ends at n, most groups first. */
struct cli_type_count {
    const char *type;
    size_t n_groups;
};

/** counts: [n_groups]. Returns how many types there are. */
size_t cli_recipe_count(const struct doc_plan *plan, const size_t *chosen,
                        struct cli_type_count *counts);

/* files.c: what is written. Fails: STATUS_MEMORY, STATUS_USAGE (a type that is not known). */

enum status cli_recipe_write_json(const struct cli_recipe *r, struct base_file *file,
                                  struct status_why *why);

/**
 * A line `^name$=type` for each tensor: what llama-quantize --tensor-type-file reads. With
 * `comments`, which that would not understand, it is a recipe of GGUF-Tool-Suite.
 */
enum status cli_recipe_write_types(const struct cli_recipe *r, struct base_file *file,
                                   bool comments, struct status_why *why);

#endif
