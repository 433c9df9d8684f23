/* Which kind of file another program wrote. */
#include <string.h>

#include "clients/trace/file.h"

enum status trace_file_read(struct trace_file *out, const char *path, struct status_why *why)
{
    *out = (struct trace_file){.n = 0};
    enum status status = base_text_read_whole(&out->text, path, BASE_TEXT_MAX_BYTES, why);
    if (status)
        return status;
    const char *begin = out->text.data;
    bool arrays = out->text.n_bytes >= 4 &&
                  (memcmp(begin, "PK\3\4", 4) == 0 || memcmp(begin, "\x93NUM", 4) == 0 ||
                   memcmp(begin, "PK\5\6", 4) == 0);
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    status = arrays ? trace_file_arrays(out, (struct base_string){name, strlen(name)}, why)
                    : trace_file_log(out, why);
    if (status)
        status_context(why, "%s", path);
    return status;
}
