/** A configuration file as llama.cpp reads it: which of its keys count, and their values. */
#ifndef CLI_PERPLEXITY_INI_H
#define CLI_PERPLEXITY_INI_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct cli_ini_entry {
    bool general; /* of the section [*], which comes before [default] */
    char *key, *value;
};

/** Zero-initialise; release with cli_ini_free. */
struct cli_ini {
    struct cli_ini_entry *entries; /* in the order in which they apply */
    size_t n;
    char *text; /* that keys and values lie in */
};

/**
 * Keep the keys of [*], then those of [default], which is also what stands before any section; each
 * sorted by its bytes and with its last value. A section that begins again forgets what it had.
 * Other sections are of servers and left out. A value ends at a `;` or `#`; blanks around it do not
 * count. bytes: copied. out: empty.
 * Fails: STATUS_FORMAT (a line of another form: its number and what is in it), STATUS_MEMORY.
 */
enum status cli_ini_parse(struct cli_ini *out, const char *bytes, size_t n_bytes,
                          struct status_why *why);

void cli_ini_free(struct cli_ini *ini);

#endif
