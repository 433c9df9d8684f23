/* Failures of binding, of which the model keeps the first. */
#include <stdarg.h>
#include <stdio.h>

#include "model/bind/bind.h"
#include "model/state.h"

void model_bind_fail(struct model *m, enum status code, const char *format, ...)
{
    struct status_why what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    status_keep(&m->kept, code, "%s: %s", gguf_path(m->file), what.text);
}

void model_tensor_fail(struct model *m, const struct model_tensor *tensor, enum status code,
                       const char *format, ...)
{
    struct status_why what;
    va_list args;
    va_start(args, format);
    vsnprintf(what.text, sizeof what.text, format, args);
    va_end(args);
    status_keep(&m->kept, code, "%s: tensor '%s' %s", gguf_path(tensor->file), tensor->source->name,
                what.text);
}
