/** The files of page/, which the build puts into the program (cmake/embed.cmake). */
#ifndef CLI_REPORT_PARTS_H
#define CLI_REPORT_PARTS_H

#include <stddef.h>

struct cli_part {
    const char *bytes; /* no NUL behind them */
    size_t n_bytes;
};

extern const struct cli_part cli_part_page_html, cli_part_page_css, cli_part_page_js,
    cli_part_chart_css;

#endif
