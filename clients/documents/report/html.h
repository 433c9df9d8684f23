/**
 * Pieces of HTML and SVG. Text from outside can get into a page through doc_html alone, which
 * escapes it; names and tokens are hostile.
 */
#ifndef DOCUMENTS_REPORT_HTML_H
#define DOCUMENTS_REPORT_HTML_H

#include "base/file/atomic_file.h"

/**
 * Write `format`, which is markup, and its arguments, which are text: %s is escaped for an element
 * and for an attribute in double quotes; control characters and what is not UTF-8 become \xHH, and
 * characters that turn the direction of what follows U+FFFD. Also %zu, %d, %%, and
 * %.Nf and %.Ng of a double; nothing else.
 */
__attribute__((format(printf, 2, 3))) void doc_html(struct base_file *file, const char *format,
                                                    ...);

#endif
