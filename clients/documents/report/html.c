#include "clients/documents/report/html.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/text/escape.h"
#include "base/text/printable.h"
#include "base/text/utf8.h"

static const char *entity(char c)
{
    return c == '&'    ? "&amp;"
           : c == '<'  ? "&lt;"
           : c == '>'  ? "&gt;"
           : c == '"'  ? "&quot;"
           : c == '\'' ? "&#39;"
                       : NULL;
}

static void put_text(struct base_file *file, const char *text)
{
    size_t n_bytes = strlen(text);
    for (size_t i = 0; i < n_bytes;) {
        size_t n = base_utf8_decode(text + i, n_bytes - i, NULL);
        n = n ? n : 1;
        char shown[4 * 4 + 1];
        const char *named = entity(text[i]);
        if (named)
            base_file_write(file, named, strlen(named));
        else
            base_file_printf(file, "%s", base_printable(shown, sizeof shown, text + i, n));
        i += n;
    }
}

/* One conversion, at `spec`; returns what follows it. */
static const char *put_argument(struct base_file *file, const char *spec, va_list *arguments)
{
    if (*spec == 's') {
        put_text(file, va_arg(*arguments, const char *));
    } else if (*spec == 'd') {
        base_file_printf(file, "%d", va_arg(*arguments, int));
    } else if (*spec == 'z') {
        base_file_printf(file, "%zu", va_arg(*arguments, size_t));
        spec++;
    } else if (*spec == '%') {
        base_file_write(file, spec, 1);
    } else {
        assert(*spec == '.');
        int digits = 0;
        while (*++spec >= '0' && *spec <= '9')
            digits = 10 * digits + (*spec - '0');
        double value = base_unsigned_nan(va_arg(*arguments, double));
        base_file_printf(file, *spec == 'f' ? "%.*f" : "%.*g", digits, value);
    }
    return spec + 1;
}

void doc_html(struct base_file *file, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    while (*format) {
        size_t n = strcspn(format, "%");
        base_file_write(file, format, n);
        format += n;
        if (*format)
            format = put_argument(file, format + 1, &arguments);
    }
    va_end(arguments);
}
