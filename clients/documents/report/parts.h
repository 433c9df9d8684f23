/** The files of page/, which the build puts into the program (cmake/embed.cmake). */
#ifndef DOCUMENTS_REPORT_PARTS_H
#define DOCUMENTS_REPORT_PARTS_H

#include "base/text/string.h"

extern const struct base_string doc_part_page_html, doc_part_page_css, doc_part_page_js,
    doc_part_chart_css;

#endif
