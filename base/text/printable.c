#include "base/text/printable.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/escape.h"
#include "base/text/utf8.h"

const char *base_printable_text(char *out, size_t capacity, const char *text)
{
    return base_printable(out, capacity, text, strlen(text));
}

/* A word's underscore is none that emphasises. */
static bool within_word(const char *text, size_t i)
{
    return i > 0 && isalnum((unsigned char)text[i - 1]) && isalnum((unsigned char)text[i + 1]);
}

/* "://", "www." and "@" make links of what is around them. */
static bool is_markup(const char *text, size_t i)
{
    if (text[i] == '_')
        return !within_word(text, i);
    if (text[i] == ':')
        return text[i + 1] == '/';
    if (text[i] == '.')
        return i >= 3 && strncmp(text + i - 3, "www", 3) == 0;
    if (text[i] == '@')
        return isalpha((unsigned char)text[i + 1]);
    return strchr("\\`*[]<>&~$|", text[i]);
}

/* In a code span a bar alone needs a backslash. A cut leaves no half of a character. */
static const char *write_text(char *out, size_t capacity, const char *text, bool code)
{
    char shown[BASE_PATH_BYTES];
    size_t used = 0, n_quotes = code ? 1 : 0;
    base_printable_text(shown, sizeof shown, text);
    memcpy(out, "`", n_quotes);
    used += n_quotes;
    for (size_t i = 0, n; shown[i]; i += n) {
        bool marked = code ? shown[i] == '|' : is_markup(shown, i);
        n = base_utf8_decode(shown + i, strlen(shown + i), NULL);
        if (used + marked + n + n_quotes >= capacity)
            break;
        if (marked)
            out[used++] = '\\';
        memcpy(out + used, code && shown[i] == '`' ? "'" : shown + i, n);
        used += n;
    }
    memcpy(out + used, "`", n_quotes);
    out[used + n_quotes] = '\0';
    return out;
}

const char *base_markdown(char *out, size_t capacity, const char *text)
{
    return write_text(out, capacity, text, false);
}

const char *base_markdown_code(char *out, size_t capacity, const char *text)
{
    return write_text(out, capacity, text, true);
}

const char *base_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}

double base_unsigned_nan(double x)
{
    return isnan(x) ? fabs(x) : x;
}

double base_shown(double x, int n_decimals)
{
    return fabs(x) <= 0.5 * pow(10, -n_decimals) ? 0 : base_unsigned_nan(x);
}
