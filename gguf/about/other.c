#include "gguf/about/other.h"

#include <string.h>

#include "base/content/kind.h"
#include "base/content/written.h"

const char *gguf_other(const char *path)
{
    char found[BASE_WRITTEN_NAME];
    if (!base_file_begins_with(path, (struct base_string){"GGUF", 4}))
        return NULL;
    const char *name = base_written_name(found, path); /* a constant: it is no document */
    bool is_model = !name || strcmp(name, BASE_MODEL) == 0 || strcmp(name, BASE_MIXTURE) == 0;
    return is_model ? NULL : name;
}
