/*
 * Tiles of random batches, played through with a buffer of key rows that holds token numbers
 * instead of keys: every query must find exactly the keys that it attends to. So do runs of
 * recurrent layers with states.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/recurrent.h"
#include "model/forward/tile.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/rng.h"

enum { MAX_SEGMENTS = 64, MAX_TOKENS = 4096, NO_TOKEN = -1 };

struct play {
    struct model_segment segments[MAX_SEGMENTS];
    struct model_batch batch;
    struct model_tile_limits limits;
    ptrdiff_t rows[2 * MAX_TOKENS]; /* which token's key a row holds */
    struct kern_query_range ranges[MAX_TOKENS];
    int32_t positions[MAX_TOKENS];
    struct kern_run runs[MAX_TOKENS];
    ptrdiff_t states[MODEL_N_STATES]; /* which token's state each holds: the one after it */
};

/** Families with up to five children, lengths up to 60. */
static void make_batch(struct play *p, struct rng *r)
{
    size_t n = 0;
    size_t start = 0;
    size_t n_families = 1 + rng_below(r, 8);
    size_t longest = 0;
    for (size_t f = 0; f < n_families; f++) {
        size_t parent = n;
        size_t n_children = rng_below(r, 2) ? rng_below(r, 6) : 0;
        for (size_t c = 0; c <= n_children; c++) {
            struct model_segment *s = &p->segments[n++];
            *s = (struct model_segment){
                .start = start, .n_tokens = 1 + rng_below(r, 60), .parent = -1};
            if (c > 0) {
                s->parent = (ptrdiff_t)parent;
                s->first_position = (int32_t)p->segments[parent].n_tokens;
            }
            start += s->n_tokens;
            size_t end = (size_t)s->first_position + s->n_tokens;
            longest = end > longest ? end : longest;
        }
    }
    p->batch = (struct model_batch){.n_tokens = start, .segments = p->segments, .n_segments = n};
    p->limits.n_tokens = 1 + rng_below(r, 200);
    p->limits.n_kv_rows =
        (longest > p->limits.n_tokens ? longest : p->limits.n_tokens) + rng_below(r, 20);
    for (size_t i = 0; i < 2 * MAX_TOKENS; i++)
        p->rows[i] = NO_TOKEN;
    for (size_t i = 0; i < MODEL_N_STATES; i++)
        p->states[i] = NO_TOKEN;
}

/** The rows that a range points at hold the keys that its queries attend to, in order. */
static void check_range(const struct play *p, const struct kern_query_range *range,
                        const struct model_segment *s)
{
    size_t n_parent = s->parent >= 0 ? p->segments[s->parent].n_tokens : 0;
    assert_int_equal(range->n_parent, n_parent);
    for (size_t j = 0; j < n_parent; j++)
        assert_int_equal(p->rows[range->parent_kv_row + j], p->segments[s->parent].start + j);
    for (size_t j = 0; j < range->q_offset + range->n_q; j++)
        assert_int_equal(p->rows[range->kv_row + j], s->start + j);
}

/**
 * Each run goes on from the token before its first one: states and other runs hold tokens. No state
 * is saved that another run of the tile goes on from, and none that no later tile needs.
 */
static void check_runs(struct play *p, const struct model_tile *tile, size_t n_ranges)
{
    assert_int_equal(model_tile_runs(&p->batch, tile, p->runs), n_ranges);
    size_t tile_end = tile->start + tile->n_tokens, family_end = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        const struct kern_run *run = &p->runs[i];
        const struct model_segment *s = &p->segments[tile->segment + i];
        const struct kern_query_range *range = &p->ranges[i];
        size_t n_parent = range->n_parent, first = tile->start + run->row;
        assert_int_equal(run->row, range->q_row);
        assert_int_equal(run->n, range->n_q);
        assert_int_equal(run->index, n_parent + range->q_offset);
        ptrdiff_t before = first > s->start ? (ptrdiff_t)first - 1
                           : n_parent ? (ptrdiff_t)(p->segments[s->parent].start + n_parent) - 1
                                      : NO_TOKEN;
        ptrdiff_t found = NO_TOKEN;
        if (run->parent >= 0)
            found =
                (ptrdiff_t)(tile->start + p->runs[run->parent].row + p->runs[run->parent].n) - 1;
        else if (run->from >= 0)
            found = p->states[run->from];
        assert_true(run->parent == KERN_NONE || run->from == KERN_NONE);
        assert_int_equal(found, before);
        for (family_end = tile->segment + i + 1;
             family_end < p->batch.n_segments && p->segments[family_end].parent >= 0;)
            family_end++;
        const struct model_segment *last = &p->segments[family_end - 1];
        bool cut = first + run->n < s->start + s->n_tokens;
        bool wanted = cut || (s->parent < 0 && last->start + last->n_tokens > tile_end);
        assert_int_equal(run->to >= 0, wanted);
    }
    for (size_t i = 0; i < n_ranges; i++) {
        if (p->runs[i].to >= 0)
            p->states[p->runs[i].to] = (ptrdiff_t)(tile->start + p->runs[i].row + p->runs[i].n) - 1;
    }
    struct status_why why = {""};
    if (kern_runs_check(p->runs, n_ranges, "tile", &why) != STATUS_OK)
        fail_msg("%s", why.text);
}

static void check_tile(struct play *p, const struct model_tile *tile)
{
    assert_true(tile->n_tokens >= 1 && tile->n_tokens <= p->limits.n_tokens);
    assert_true(tile->kv_row + tile->n_tokens <= p->limits.n_kv_rows);
    for (size_t i = 0; i < tile->n_tokens; i++)
        p->rows[tile->kv_row + i] = (ptrdiff_t)(tile->start + i);
    size_t n_ranges = model_tile_ranges(&p->batch, tile, p->ranges, p->positions);
    size_t row = 0;
    for (size_t i = 0; i < n_ranges; i++) {
        const struct kern_query_range *range = &p->ranges[i];
        const struct model_segment *s = &p->segments[tile->segment + i];
        assert_int_equal(range->q_row, row);
        assert_true(range->n_q > 0);
        assert_int_equal(s->start + range->q_offset, tile->start + row);
        assert_true(range->q_offset + range->n_q <= s->n_tokens);
        for (size_t q = 0; q < range->n_q; q++)
            assert_int_equal(p->positions[row + q],
                             s->first_position + (int32_t)(range->q_offset + q));
        check_range(p, range, s);
        row += range->n_q;
    }
    assert_int_equal(row, tile->n_tokens);
    check_runs(p, tile, n_ranges);
}

/** A family that fits a tile is in one tile. */
static void check_families(const struct play *p, const struct model_tile *tile)
{
    size_t end = tile->start + tile->n_tokens;
    for (size_t i = 0; i < p->batch.n_segments;) {
        size_t from = p->segments[i].start;
        size_t to = from;
        do
            to = p->segments[i].start + p->segments[i].n_tokens;
        while (++i < p->batch.n_segments && p->segments[i].parent >= 0);
        bool touched = from < end && to > tile->start;
        bool inside = from >= tile->start && to <= end;
        if (touched && to - from <= p->limits.n_tokens)
            assert_true(inside);
    }
}

static void test_random_batches(void **state)
{
    (void)state;
    static struct play p;
    for (uint64_t round = 0; round < 2000; round++) {
        struct rng r = rng_open(rng_seed(), round);
        make_batch(&p, &r);
        assert_int_equal(model_batch_check(&p.batch, NULL), STATUS_OK);
        size_t n_tiles = 0;
        size_t start = 0;
        size_t segment = 0;
        while (start < p.batch.n_tokens) {
            struct model_tile tile = model_tile_at(&p.batch, &p.limits, start, segment);
            assert_int_equal(tile.start, start);
            check_tile(&p, &tile);
            check_families(&p, &tile);
            segment = model_tile_next_segment(&p.batch, &tile);
            start += tile.n_tokens;
            n_tiles++;
        }
        assert_int_equal(segment, p.batch.n_segments);
        assert_int_equal(n_tiles, model_tile_count(&p.batch, &p.limits));
    }
}

/** Windows of equal length share tiles; one longer than a tile is swept. */
static void test_windows(void **state)
{
    (void)state;
    static const struct {
        size_t window, n_windows, tile, n_tiles;
    } cases[] = {
        {512, 8, 2048, 2},  {512, 7, 2048, 2},  {600, 4, 2048, 2},
        {2048, 2, 2048, 2}, {4096, 2, 2048, 4}, {3000, 2, 2048, 4},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        struct model_segment segments[8];
        for (size_t i = 0; i < cases[c].n_windows; i++)
            segments[i] = (struct model_segment){
                .start = i * cases[c].window, .n_tokens = cases[c].window, .parent = -1};
        struct model_batch batch = {.n_tokens = cases[c].n_windows * cases[c].window,
                                    .segments = segments,
                                    .n_segments = cases[c].n_windows};
        size_t rows = cases[c].window > cases[c].tile ? cases[c].window : cases[c].tile;
        struct model_tile_limits limits = {cases[c].tile, rows};
        assert_int_equal(model_tile_count(&batch, &limits), cases[c].n_tiles);
    }
}

/** Broken batches are refused. */
static void test_batch_check(void **state)
{
    (void)state;
    static const struct model_segment good[] = {
        {0, 5, 0, -1}, {5, 3, 5, 0}, {8, 2, 5, 0}, {10, 4, 0, -1}};
    struct model_segment s[4];
    struct model_batch batch = {.n_tokens = 14, .segments = s, .n_segments = 4};
    struct status_why why;
    static const struct {
        size_t i;
        struct model_segment broken;
        const char *says;
    } cases[] = {
        {0, {1, 4, 0, -1}, "segment 0 covers tokens 1 to 5"},
        {1, {5, 0, 5, 0}, "segment 1 covers tokens 5 to 5"},
        {3, {10, 5, 0, -1}, "segment 3 covers tokens 10 to 15"},
        {3, {10, 3, 0, -1}, "segments cover 13 of 14 tokens"},
        {1, {5, 3, 4, 0}, "segment 1 begins at position 4, expected 5"},
        {0, {0, 5, 1, -1}, "segment 0 begins at position 1, expected 0"},
        {1, {5, 3, 5, 1}, "segment 1 has parent 1"},
        {2, {8, 2, 8, 1}, "segment 2 has parent 1"},
        {1, {5, 3, 0, -1}, "segment 2 does not follow its parent 0 directly"},
    };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (size_t i = 0; i < 4; i++)
            s[i] = i == cases[c].i ? cases[c].broken : good[i];
        assert_int_equal(model_batch_check(&batch, &why), STATUS_USAGE);
        if (strncmp(why.text, cases[c].says, strlen(cases[c].says)) != 0)
            fail_msg("found \"%s\", expected \"%s...\"", why.text, cases[c].says);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_batches),
        cmocka_unit_test(test_windows),
        cmocka_unit_test(test_batch_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
