#include "tests/kernels/score_results.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/backend.h"
#include "tests/harness/cmocka.h"

static struct results results_open(const struct kern_score *op)
{
    struct results r = {.n_rows = op->n_heads * op->n_rows,
                        .n_targets = op->n_heads * op->n_targets,
                        .n_tops = op->n_rows * KERN_TOP_MAX};
    r.rows = calloc(r.n_rows + 1, sizeof *r.rows);
    r.targets = calloc(r.n_targets + 1, sizeof *r.targets);
    r.pairs = calloc(r.n_rows + 1, sizeof *r.pairs);
    r.tops = calloc(r.n_tops + 1, sizeof *r.tops);
    assert_true(r.rows && r.targets && r.pairs && r.tops);
    return r;
}

void results_close(struct results *r)
{
    free(r->rows);
    free(r->targets);
    free(r->pairs);
    free(r->tops);
}

struct results score(struct kern_backend *b, struct kern_score op, bool pairs)
{
    struct results r = results_open(&op);
    op.rows = r.rows;
    op.target_scores = r.targets;
    op.pairs = pairs ? r.pairs : NULL;
    op.tops = op.want_js ? NULL : r.tops;
    struct status_why why = {""};
    if (kern_score(b, &op, &why) != STATUS_OK)
        fail_msg("%s", why.text);
    return r;
}

void assert_same_number(double found, double expected, const char *what, size_t i)
{
    if (memcmp(&found, &expected, sizeof found) != 0 && !(isnan(found) && isnan(expected)))
        fail_msg("%s %zu is %a, expected %a", what, i, found, expected);
}

void assert_same(const struct results *found, const struct results *expected)
{
    for (size_t i = 0; i < found->n_rows; i++) {
        const struct kern_row_score *a = &found->rows[i], *b = &expected->rows[i];
        assert_same_number(a->max_logit, b->max_logit, "max_logit of row", i);
        assert_same_number(a->log_sum, b->log_sum, "log_sum of row", i);
        assert_same_number(a->entropy, b->entropy, "entropy of row", i);
        assert_int_equal(a->argmax, b->argmax);
        assert_same_number(a->beyond, b->beyond, "beyond", i);
        const struct kern_pair_score *p = &found->pairs[i], *q = &expected->pairs[i];
        assert_same_number(p->kl, q->kl, "kl of row", i);
        assert_same_number(p->reverse_kl, q->reverse_kl, "reverse_kl of row", i);
        assert_same_number(p->js, q->js, "js of row", i);
        assert_same_number(p->tv, q->tv, "tv of row", i);
        assert_memory_equal(p->common_top, q->common_top, sizeof p->common_top);
    }
    for (size_t i = 0; i < found->n_tops; i++) {
        assert_int_equal(found->tops[i].token, expected->tops[i].token);
        assert_same_number(found->tops[i].log_prob, expected->tops[i].log_prob, "top", i);
    }
    for (size_t i = 0; i < found->n_targets; i++) {
        assert_same_number(found->targets[i].log_prob, expected->targets[i].log_prob, "target", i);
        assert_int_equal(found->targets[i].rank, expected->targets[i].rank);
    }
}

/** Put a head's hidden rows into the CUDA backend's memory; a recorded head has none. */
static void put_hidden(struct cuda_pair *p, struct kern_head *head, size_t n_rows)
{
    if (!head->recorded)
        head->hidden = cuda_pair_put(p, head->hidden, n_rows * head->matrix->n_cols);
}

static void free_hidden(struct cuda_pair *p, struct kern_head *head)
{
    if (!head->recorded)
        cuda_pair_take(p, (float *)(uintptr_t)head->hidden, NULL, 0);
}

struct results score_cuda(struct cuda_pair *p, struct kern_score op, bool pairs)
{
    struct kern_head heads[SCENE_HEADS];
    for (size_t h = 0; h < op.n_heads; h++) {
        heads[h] = op.heads[h];
        put_hidden(p, &heads[h], op.n_rows);
    }
    op.heads = heads;
    struct results r = score(p->cuda, op, pairs);
    for (size_t h = 0; h < op.n_heads; h++)
        free_hidden(p, &heads[h]);
    return r;
}
