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
    static const char *const names[] = {[STATUS_OK] = "ok",
                                        [STATUS_USAGE] = "usage",
                                        [STATUS_IO] = "io",
                                        [STATUS_FORMAT] = "format",
                                        [STATUS_UNSUPPORTED] = "unsupported",
                                        [STATUS_CHANGED] = "changed",
                                        [STATUS_MEMORY] = "memory",
                                        [STATUS_DEVICE] = "device",
                                        [STATUS_NONFINITE] = "nonfinite",
                                        [STATUS_EXCEEDED] = "exceeded",
                                        [STATUS_CANCELLED] = "cancelled"};
    return (unsigned)code <= STATUS_CANCELLED ? names[code] : "unknown";
}
