#include "model/remarks.h"

#include <stdio.h>
#include <string.h>

void model_remark(struct model_remarks *remarks, const char *format, ...)
{
    char text[512], line[sizeof text + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    snprintf(line, sizeof line, "%s\n", text);
    if (!remarks->lines.data || !strstr(remarks->lines.data, line))
        base_buffer_add(&remarks->lines, line, strlen(line));
}
