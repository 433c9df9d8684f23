#include "base/status.h"

#include <stdio.h>
#include <string.h>

#undef status_fail
enum status status_fail(struct status_why *why, enum status code, const char *format, ...)
{
    if (why) {
        va_list args;
        va_start(args, format);
        vsnprintf(why->text, sizeof why->text, format, args);
        va_end(args);
    }
    return code;
}

void status_context(struct status_why *why, const char *format, ...)
{
    if (!why || !why->text[0])
        return;
    char sentence[sizeof why->text];
    memcpy(sentence, why->text, sizeof sentence);
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    size_t used = strlen(why->text);
    snprintf(why->text + used, sizeof why->text - used, ": %s", sentence);
}

const char *status_name(enum status code)
{
    switch (code) {
    case STATUS_OK:
        return "ok";
    case STATUS_USAGE:
        return "usage";
    case STATUS_IO:
        return "io";
    case STATUS_FORMAT:
        return "format";
    case STATUS_UNSUPPORTED:
        return "unsupported";
    case STATUS_CHANGED:
        return "changed";
    case STATUS_MEMORY:
        return "memory";
    case STATUS_DEVICE:
        return "device";
    case STATUS_NONFINITE:
        return "nonfinite";
    case STATUS_EXCEEDED:
        return "exceeded";
    case STATUS_CANCELLED:
        return "cancelled";
    }
    return "unknown";
}
