#include "model/remarks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status model_remark(struct model_remarks *remarks, struct status_why *why, const char *format,
                         ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    size_t n_bytes = strlen(line);
    char *text = realloc(remarks->text, remarks->n_bytes + n_bytes + 2);
    if (!text)
        return status_fail(why, STATUS_MEMORY, "no memory for a remark of %zu bytes", n_bytes);
    memcpy(text + remarks->n_bytes, line, n_bytes);
    memcpy(text + remarks->n_bytes + n_bytes, "\n", 2);
    remarks->text = text;
    remarks->n_bytes += n_bytes + 1;
    return STATUS_OK;
}
