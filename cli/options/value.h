/** What an option's row makes of a value: the half of cli/options/args.h that knows the types. */
#ifndef CLI_OPTIONS_VALUE_H
#define CLI_OPTIONS_VALUE_H

#include "cli/options/args.h"

/** An option being set. */
struct cli_value {
    const struct cli_option *option;
    const char *spelling; /* as it was given; or the name of its variable */
    const char *value;    /* NULL where it takes none */
    void *target;         /* the setting; of the type that the row says */
};

/** Set it; what is ignored is noted in `args`. Fails: STATUS_USAGE, STATUS_MEMORY. */
enum status cli_value_set(const struct cli_value *setting, struct cli_args *args,
                          struct status_why *why);

/** Append a copy of n_bytes of text. Fails: STATUS_MEMORY. */
enum status cli_list_append(struct cli_list *list, const char *text, size_t n_bytes,
                            struct status_why *why);
void cli_list_clear(struct cli_list *list);

/* kv_types.c */

struct cli_kv_list;
/** In place of what is there. Fails: STATUS_USAGE (no type, too many exceptions), STATUS_MEMORY. */
enum status cli_kv_set(const struct cli_value *setting, struct status_why *why);
void cli_kv_clear(struct cli_kv_list *caches);

#endif
