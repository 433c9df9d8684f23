#include "model/remarks.h"

#include <stdio.h>

enum status model_remark(struct model_remarks *remarks, struct status_why *why, const char *format,
                         ...)
{
    char line[512];
    va_list args;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    base_buffer_format(&remarks->lines, "%s\n", line);
    return base_buffer_check(&remarks->lines, "a remark", why);
}
