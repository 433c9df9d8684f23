/*
 * The answer of a server: any bytes. What is taken of it must be consistent, and so must the lists
 * that are made of it for a prompt, and what a server says of itself by it.
 */
#include <math.h>
#include <stdlib.h>

#include "base/json/parse.h"
#include "clients/probe/api/about.h"
#include "clients/probe/ask/lists.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/tokenizer_input.h"

static void check_answer(const struct probe_answer *a)
{
    for (size_t i = 0; i < a->n_places; i++) {
        const struct probe_place *place = &a->places[i];
        require(place->n > 0 && place->first + place->n <= a->n_entries);
        for (size_t k = 0; k < place->n; k++) {
            const struct probe_entry *e = &a->entries[place->first + k];
            require(e->id >= -1 && e->log_q <= 1 && e->log_q >= -1e4);
            require(e->text + e->n_text <= a->n_bytes);
        }
        require(place->text.at + place->text.n <= a->n_bytes);
    }
}

/** As /v1/models and as /props. */
static void check_about(const char *bytes, size_t n_bytes)
{
    struct probe_about about = {.n_ctx = -1, .said = {.n_bytes = -1, .n_weights = -1}};
    cJSON *page = NULL;
    (void)base_json_parse(&page, bytes, n_bytes, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        (i ? probe_about_props : probe_about_models)(&about, page);
        require(about.n_ctx == -1 || (about.n_ctx >= 1 && about.n_ctx <= INT32_MAX));
        require(memchr(about.model, '\0', sizeof about.model) != NULL);
        require(memchr(about.said.path, '\0', sizeof about.said.path) != NULL);
        require(about.said.n_bytes == -1 || about.said.n_bytes >= 1);
        require(!about.api || (about.api >= probe_apis && about.api < probe_apis + PROBE_N_APIS));
    }
    probe_said_free(&about.said);
    cJSON_Delete(page);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    enum { LENGTH = 5 };
    const struct model_tokenizer *t = input_vocabulary();
    static struct probe_names *names;
    require(names || probe_names_make(&names, t, NULL) == STATUS_OK);
    char *bytes = fuzz_copy(data, n_bytes), words[64];
    struct probe_answer answer = {0};
    struct probe_lists lists = {0};
    struct status_why why = {""};
    enum status status = probe_answer_read(&answer, bytes, n_bytes, &why);
    require(!status || *why.text);
    if (!status) {
        check_answer(&answer);
        static const int32_t ids[LENGTH] = {1, 2, 3, 4, 5};
        const struct probe_asked asked = {0, LENGTH, PROBE_FRESH, ids, 0, 4};
        require(!probe_lists_add(&lists, &answer, &asked, names, &why));
    }
    for (size_t i = 0; i < lists.n; i++) {
        const struct probe_sample *s = &lists.items[i];
        require(s->position >= 1 && s->position <= LENGTH && s->n > 0);
        require(s->first + s->n <= lists.n_entries);
        for (size_t k = 0; k < s->n; k++)
            require(lists.ids[s->first + k] >= 0 &&
                    (size_t)lists.ids[s->first + k] < model_n_vocab(t));
    }
    check_about(bytes, n_bytes);
    probe_answer_error(words, sizeof words, bytes, n_bytes);
    probe_lists_free(&lists);
    probe_answer_free(&answer);
    free(bytes);
    return 0;
}
