/* Recorded answers of servers: any lines. Lists must be of tokens and positions that there are. */
#include <stdlib.h>

#include "clients/probe/ask/records.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenizer_input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    const struct model_tokenizer *t = input_vocabulary();
    static struct probe_names *names;
    require(names || probe_names_make(&names, t, NULL) == STATUS_OK);
    char *bytes = fuzz_copy(data, n_bytes);
    struct probe_records records;
    struct status_why why = {""};
    enum status status = probe_records_read(&records, bytes, n_bytes, t, names, &why);
    require(!status || *why.text);
    for (size_t i = 0; i < records.lists.n; i++) {
        const struct probe_sample *s = &records.lists.items[i];
        require(s->window < records.n);
        const struct probe_window *w = &records.windows[s->window];
        require(s->position >= 1 && s->position <= s->length && s->length <= w->tokens.n);
        for (size_t k = 0; k < w->tokens.n; k++)
            require(w->tokens.ids[k] >= 0 && (size_t)w->tokens.ids[k] < model_n_vocab(t));
    }
    probe_records_free(&records);
    free(bytes);
    return 0;
}
