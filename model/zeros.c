/* Files that a download has set room aside for, and not filled. */
#include <inttypes.h>
#include <string.h>

#include "base/text/quote.h"
#include "gguf/about/zeros.h"
#include "model/state.h"

enum { LISTED = 4, SHARE_OF_VOCABULARY = 16 };

struct found {
    struct model *m;
    size_t n;
};

/** Rows that no token has, or that nothing was learnt for, are 0 in published models. */
static bool may_be_tokens(const struct gguf_zeros *z)
{
    static const char *const names[] = {"token_embd.weight", "output.weight",
                                        "per_layer_token_embd.weight"};
    bool is = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        is |= strcmp(z->first->name, names[i]) == 0;
    return is && z->first == z->last && z->n_signs == 0 &&
           z->n_bytes <= z->first->n_bytes / SHARE_OF_VOCABULARY;
}

static enum status take(void *user, const struct gguf_zeros *z, struct status_why *why)
{
    struct found *f = user;
    struct base_quoted first, last;
    const char *path = gguf_shard_path(f->m->file, z->shard);
    base_quote(&first, (struct base_string){z->first->name, strlen(z->first->name)});
    base_quote(&last, (struct base_string){z->last->name, strlen(z->last->name)});
    bool one = z->first == z->last;
    if (z->n_signs >= GGUF_SURE_SIGNS && z->n_bytes >= GGUF_LEAST_ZEROS)
        return status_fail(why, STATUS_FORMAT,
                           "%s: nothing but zeros in %" PRIu64 " bytes from byte %" PRIu64
                           " on, in tensor %s%s%s, expected weights; this may be an incomplete "
                           "download: compare the file's SHA-256, or download it again",
                           path, z->n_bytes, z->offset, first.text, one ? "" : " to ",
                           one ? "" : last.text);
    if (may_be_tokens(z) || ++f->n > LISTED)
        return STATUS_OK;
    if (one && z->n_bytes >= z->first->n_bytes)
        model_remark(&f->m->remarks,
                     "tensor %s has nothing but zeros: this may be an incomplete download",
                     first.text);
    else
        model_remark(&f->m->remarks,
                     "%" PRIu64 " bytes of tensor %s%s%s are zeros: this may be an incomplete "
                     "download",
                     z->n_bytes, first.text, one ? "" : " to ", one ? "" : last.text);
    return STATUS_OK;
}

enum status model_check_zeros(struct model *m, struct status_why *why)
{
    struct found f = {.m = m};
    enum status status = gguf_zeros_find(m->file, take, &f, why);
    if (!status && f.n > LISTED)
        model_remark(&m->remarks, "and %zu more stretches of zeros", f.n - LISTED);
    return status;
}
