#include "base/status.h"

#include <stdio.h>
#include <string.h>

#include "base/text/printable.h"

/* A sentence is one line of printable text, whatever names it was made of. */
__attribute__((format(printf, 2, 0))) static void write_sentence(struct status_why *why,
                                                                 const char *format, va_list args)
{
    char sentence[sizeof why->text];
    vsnprintf(sentence, sizeof sentence, format, args);
    base_printable_text(why->text, sizeof why->text, sentence);
}

#undef status_fail
enum status status_fail(struct status_why *why, enum status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (why)
        write_sentence(why, format, args);
    va_end(args);
    return code;
}

void status_keep(struct status_kept *kept, enum status code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!kept->status)
        write_sentence(&kept->why, format, args);
    va_end(args);
    kept->status = kept->status ? kept->status : code;
}

enum status status_of(const struct status_kept *kept, struct status_why *why)
{
    if (kept->status && why)
        *why = kept->why;
    return kept->status;
}

void status_context(struct status_why *why, const char *format, ...)
{
    if (!why || !why->text[0])
        return;
    char context[sizeof why->text], sentence[sizeof context + sizeof ": " + sizeof why->text];
    va_list args;
    va_start(args, format);
    vsnprintf(sentence, sizeof context, format, args);
    va_end(args);
    base_printable_text(context, sizeof context, sentence);
    size_t n = strlen(context);
    if (strncmp(why->text, context, n) == 0 && strncmp(why->text + n, ": ", 2) == 0)
        return;
    snprintf(sentence, sizeof sentence, "%s: %s", context, why->text);
    base_printable_text(why->text, sizeof why->text, sentence);
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
