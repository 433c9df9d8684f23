/* What a file has and no code of its architecture asked for. */
#include "base/text/quote.h"
#include "model/bind/bind.h"
#include "model/state.h"

enum { LISTED = 10 };

void model_unknown_add(struct model *m, struct model_unknown *unknown, struct base_string name)
{
    struct base_quoted shown;
    if (m->kept.status)
        return;
    base_quote(&shown, name);
    if (!unknown->allowed)
        model_bind_fail(m, STATUS_FORMAT,
                        "%s %s is not understood by architecture %s, and results without it may be "
                        "wrong",
                        unknown->what, shown.text, m->arch->name);
    else if (unknown->n++ < LISTED)
        model_remark(&m->remarks, "%s %s is not understood and %s", unknown->what, shown.text,
                     unknown->effect);
}

void model_unknown_end(struct model *m, const struct model_unknown *unknown)
{
    if (unknown->n > LISTED)
        model_remark(&m->remarks, "and %zu more such %ss", unknown->n - LISTED, unknown->what);
}
