/*
 * Values of the header Host: any bytes, after a line with what --host was given. What is taken for
 * a name of this machine holds nothing else, with another port, too.
 */
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

#include "clients/serve/http/host.h"
#include "tests/fuzz/fuzz.h"

static bool begins(const char *s, const char *with, size_t n)
{
    return strncasecmp(s, with, n) == 0;
}

/** What is true of a value that was accepted. */
static void check(const char *value, const char *given, char *changed, size_t capacity)
{
    size_t n_given = strlen(given);
    n_given -= n_given > 0 && given[n_given - 1] == '.';
    bool is_given = n_given > 0 && begins(value, given, n_given);
    require(is_given || begins(value, "localhost", 9) || begins(value, "127.", 4) || *value == '[');
    require(is_given || strcspn(value, "/@ ,%") == strlen(value));
    snprintf(changed, capacity, "%s.evil.com", value);
    require(is_given || *given || !serve_host_is_own(changed, given));
    size_t n = strcspn(value, *value == '[' ? "]" : ":");
    snprintf(changed, capacity, "%.*s%s:80", (int)n, value, *value == '[' ? "]" : "");
    require(serve_host_is_own(changed, given));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *given = calloc(n_bytes + 1, 1), *value = given, *changed = malloc(n_bytes + 16);
    require(given && changed);
    if (n_bytes)
        memcpy(given, data, n_bytes);
    char *line = strchr(given, '\n');
    if (line) {
        *line = '\0';
        value = line + 1;
    }
    if (serve_host_is_own(value, given))
        check(value, given, changed, n_bytes + 16);
    free(changed);
    free(given);
    return 0;
}
