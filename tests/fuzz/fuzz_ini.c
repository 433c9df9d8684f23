/*
 * A configuration file of llama.cpp's: any bytes. What is kept of it is sorted, each key once, and
 * neither a key nor a value has what ends it.
 */
#include <stdlib.h>

#include "cli/perplexity/ini.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    char *bytes = fuzz_copy(data, n_bytes);
    struct status_why why = {""};
    struct cli_ini ini = {0};
    enum status status = cli_ini_parse(&ini, bytes, n_bytes, &why);
    require(!status == !*why.text);
    for (size_t i = 0; i < ini.n && !status; i++) {
        const struct cli_ini_entry *entry = &ini.entries[i], *before = i ? entry - 1 : NULL;
        size_t n = strlen(entry->value);
        require(*entry->key && !strpbrk(entry->key, "\r\n=[]#; \t"));
        require(!strpbrk(entry->value, "\r\n;#"));
        require(n == 0 || (entry->value[n - 1] != ' ' && entry->value[n - 1] != '\t'));
        require(!before || before->general >= entry->general);
        require(!before || before->general != entry->general ||
                strcmp(before->key, entry->key) < 0);
    }
    cli_ini_free(&ini);
    free(bytes);
    return 0;
}
