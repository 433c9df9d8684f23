/* The rows of a list of options and of the groups in it, one after the other. */
#include <assert.h>

#include "cli/options/args.h"

static bool ends_list(const struct cli_option *row)
{
    return !row->names && !row->help;
}

const struct cli_option *cli_rows_next(struct cli_rows *rows)
{
    rows->more = "";
    for (;;) {
        const struct cli_option *row = rows->next;
        if (row->type == CLI_GROUP) {
            assert(rows->depth < CLI_GROUP_DEPTH);
            rows->outer[rows->depth].after = row + 1;
            rows->outer[rows->depth++].base = rows->base;
            rows->next = row->group;
            rows->base += row->offset;
            if (row->help)
                rows->more = row->help;
        } else if (!ends_list(row)) {
            rows->next++;
            rows->at = rows->base + row->offset;
            return row;
        } else if (rows->depth) {
            rows->next = rows->outer[--rows->depth].after;
            rows->base = rows->outer[rows->depth].base;
        } else {
            return NULL;
        }
    }
}
