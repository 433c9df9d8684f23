/* Which of the tokens that were written each list is of. llama.cpp's relatives give no list where a
 * token ends within a character: the lists that are there do not follow each other. */
#include <stdint.h>

#include "clients/probe/api/read.h"

/** Forget the lists of written tokens whose place is not known. */
static void forget_unplaced(struct probe_answer *a)
{
    size_t n = 0;
    for (size_t i = 0; i < a->n_places; i++)
        if (!a->places[i].generated || a->places[i].index != SIZE_MAX)
            a->places[n++] = a->places[i];
    a->n_places = n;
}

/** Lists have the place at which two ways to match them with the tokens agree. */
static void place(struct probe_answer *a)
{
    size_t at = 0, end = a->written.n;
    for (size_t i = 0; i < a->n_places; i++) { /* each as early as it can be */
        struct probe_place *p = &a->places[i];
        if (!p->generated)
            continue;
        while (at < a->written.n && a->written.ids[at] != p->token)
            at++;
        p->index = at < a->written.n ? at++ : SIZE_MAX;
    }
    for (size_t i = a->n_places; i-- > 0;) { /* and as late */
        struct probe_place *p = &a->places[i];
        if (!p->generated)
            continue;
        while (end > 0 && a->written.ids[end - 1] != p->token)
            end--;
        if (end == 0 || p->index != --end)
            p->index = SIZE_MAX;
    }
    forget_unplaced(a);
}

void probe_read_written(struct probe_answer *a, const cJSON *ids, int64_t n_written, size_t n_lists)
{
    const cJSON *id;
    cJSON_ArrayForEach(id, ids)
    {
        probe_read_token(a, &a->written, id);
    }
    if (a->written.n > n_lists)
        place(a);
    else if (a->written.n == 0 && n_written > 1 && (uint64_t)n_written > n_lists) {
        for (size_t i = 0; i < a->n_places; i++)
            if (a->places[i].generated)
                a->places[i].index = SIZE_MAX;
        forget_unplaced(a);
    }
}
