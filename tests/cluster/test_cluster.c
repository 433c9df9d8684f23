/*
 * Several ranks over loopback, each a thread of this program, so that no MPI is needed: the bits of
 * one, also with layers divided, rows through rank 0, refusals and ranks that die.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clients/cluster/exchange.h"
#include "clients/cluster/pipeline.h"
#include "clients/cluster/remote.h"
#include "tests/eval/evaluation.h"
#include "tests/harness/cmocka.h"

#define F16 ASSAY_SOURCE_DIR "/data/tiny.F16.gguf"
#define Q4  ASSAY_SOURCE_DIR "/data/tiny.Q4_K_M.gguf"
enum { N_CTX = 32, N_WINDOWS = 7, MAX_RANKS = 3, MANY_RANKS = 6 };
static const char settings[] = "{\"n_ctx\": 32, \"model\": {\"id\": \"abc\"}}";

static size_t n_windows = N_WINDOWS;

static struct setup usual(void)
{
    struct setup setup = setup_usual(Q4, N_CTX, n_windows);
    setup.batch_tokens = 2 * N_CTX;
    setup.cpu.n_threads = 1;
    setup.candidates[0] = F16;
    setup.n_candidates = 1;
    return setup;
}

/** A rank but 0, in its thread. */
struct rank {
    size_t number;
    struct cluster_team_address address;
    const char *settings;
    enum status opened;
    bool dies;       /* in its first batch, or */
    bool dies_early; /* when it was told to begin, or */
    bool dies_late;  /* when it has told where it listens */
    size_t n_shares; /* of the layers, with dies; 0: not divided */
    pthread_t thread;
    enum status status; /* of its part of the run */
    struct status_why why;
};

/** Wait for a message. */
static void await(struct cluster_link *link, enum cluster_message_kind kind)
{
    struct cluster_message message = {0};
    struct status_why why;
    char *body = NULL;
    while (message.kind != kind) {
        free(body);
        assert_int_equal(cluster_link_receive(link, &message, &why), STATUS_OK);
        assert_int_equal(cluster_link_read_text(link, &message, &body, &why), STATUS_OK);
    }
    free(body);
}

/** Take a batch and no more: the connections break. */
static void die(struct cluster_link *link, const struct rank *r)
{
    struct cluster_pipe pipe = {0};
    struct status_why why;
    await(link, CLUSTER_MESSAGE_START);
    if (r->dies_early)
        return;
    if (r->dies_late) {
        struct cluster_team_address address = {.port = htons(1)}; /* where nobody listens */
        struct cluster_part part = {&address, sizeof address};
        assert_int_equal(
            cluster_link_send(link, CLUSTER_MESSAGE_ADDRESS, STATUS_OK, &part, 1, &why), 0);
        return;
    }
    if (r->n_shares)
        assert_int_equal(cluster_pipe_join(&pipe, link, r->number, r->n_shares, true, &why),
                         STATUS_OK);
    if (pipe.in.n_links)
        await(&pipe.in.links[0], CLUSTER_MESSAGE_STREAM);
    else
        await(link, CLUSTER_MESSAGE_BATCH);
    cluster_pipe_close(&pipe);
}

static void *rank_main(void *opaque)
{
    struct rank *r = opaque;
    struct cluster_team team = {0};
    struct evaluation e;
    struct setup setup = usual();
    evaluation_open(&e, &setup);
    r->status = cluster_team_join(&team, r->number, &r->address, CLUSTER_TEAM_SECONDS, &r->why);
    setup.link = team.links;
    if (!r->status && r->opened)
        status_fail(&r->why, r->opened, "there is no such file");
    if (!r->status)
        r->status = cluster_team_ready(&team, r->opened, r->settings, &r->why);
    if (!r->status && (r->dies || r->dies_early || r->dies_late))
        die(setup.link, r);
    else if (!r->status && !r->opened)
        r->status = evaluation_run(&e, &setup, &r->why);
    cluster_team_close(&team);
    evaluation_close(&e);
    return NULL;
}

/** Ranks 1 .. n - 1 as `ranks` describes them. The team is gathered. */
static void start(struct cluster_team *team, struct rank *ranks, size_t n)
{
    struct status_why why = {""};
    assert_int_equal(cluster_team_listen(team, n, true, &why), STATUS_OK);
    for (size_t i = 1; i < n; i++) {
        ranks[i].number = i;
        ranks[i].address = team->address;
        ranks[i].settings = ranks[i].settings ? ranks[i].settings : settings;
        assert_int_equal(pthread_create(&ranks[i].thread, NULL, rank_main, &ranks[i]), 0);
    }
    if (cluster_team_gather(team, CLUSTER_TEAM_SECONDS, NULL, &why) != STATUS_OK)
        fail_msg("%s", why.text);
}

static void end(struct cluster_team *team, struct rank *ranks, size_t n)
{
    cluster_team_close(team);
    for (size_t i = 1; i < n; i++)
        pthread_join(ranks[i].thread, NULL);
}

static void assert_same_table(const struct eval_table *a, const struct eval_table *b)
{
    assert_memory_equal(a->cells, b->cells,
                        a->n_columns * a->n_windows * a->n_scored * sizeof(double));
}

static void same_bits_for_divided_layers(void **state)
{
    (void)state;
    static const struct {
        size_t n_ranks, n_shares, batch_tokens;
    } cases[] = {{2, 2, N_CTX}, {3, 3, 2 * N_CTX}, {4, 2, N_CTX}, {MANY_RANKS, 3, N_CTX}};
    struct evaluation one, several;
    struct setup setup = usual();
    evaluate(&one, &setup);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct rank ranks[MANY_RANKS] = {0};
        struct cluster_team team = {0};
        struct status_why why = {""};
        start(&team, ranks, cases[c].n_ranks);
        assert_int_equal(cluster_team_agree(&team, settings, NULL, &why), STATUS_OK);
        setup.team = &team;
        setup.n_shares = cases[c].n_shares;
        setup.batch_tokens = cases[c].batch_tokens;
        evaluate(&several, &setup);
        assert_same_table(&one.table, &several.table);
        assert_same_table(&one.candidate_tables[0], &several.candidate_tables[0]);
        assert_int_equal(several.stats.n_inputs, one.stats.n_inputs);
        assert_true(several.memory.weights < one.memory.weights);
        evaluation_close(&several);
        end(&team, ranks, cases[c].n_ranks);
        for (size_t i = 1; i < cases[c].n_ranks; i++)
            assert_int_equal(ranks[i].status, STATUS_OK);
    }
    evaluation_close(&one);
}

/** A sink that keeps what it gets. */
struct kept {
    float *rows;
    size_t next, width;
};

static enum status keep(void *user, struct kern_backend *backend, size_t first, size_t n_rows,
                        const void *rows, struct status_why *why)
{
    (void)backend, (void)why;
    struct kept *k = user;
    assert_int_equal(first, k->next); /* in order, each once */
    memcpy(k->rows + first * k->width, rows, n_rows * k->width * sizeof(float));
    k->next += n_rows;
    return STATUS_OK;
}

static void same_bits_for_any_number_of_ranks(void **state)
{
    (void)state;
    struct evaluation one, several;
    struct setup setup = usual();
    evaluate(&one, &setup);
    for (size_t n = 2; n <= MAX_RANKS; n++) {
        struct rank ranks[MAX_RANKS] = {0};
        struct cluster_team team = {0};
        struct status_why why = {""};
        start(&team, ranks, n);
        assert_int_equal(cluster_team_agree(&team, settings, NULL, &why), STATUS_OK);
        setup.team = &team;
        evaluate(&several, &setup);
        assert_same_table(&one.table, &several.table);
        assert_same_table(&one.candidate_tables[0], &several.candidate_tables[0]);
        assert_int_equal(several.stats.n_inputs, one.stats.n_inputs);
        evaluation_close(&several);
        end(&team, ranks, n);
        for (size_t i = 1; i < n; i++)
            assert_int_equal(ranks[i].status, STATUS_OK);
    }
    evaluation_close(&one);
}

static void rows_come_to_rank_0_in_order(void **state)
{
    (void)state;
    struct kept kept[2];
    struct evaluation e;
    for (size_t n = 1; n <= 2; n++) {
        struct setup setup = usual();
        struct rank ranks[2] = {0};
        struct cluster_team team = {0};
        struct status_why why = {""};
        evaluation_open(&e, &setup);
        struct kept *k = &kept[n - 1];
        *k = (struct kept){.width = (size_t)model_hparams(e.model)->n_embd};
        k->rows = calloc(N_WINDOWS * e.plan.n_scored * k->width, sizeof *k->rows);
        assert_non_null(k->rows);
        struct eval_row_sink sink = {.kind = EVAL_ROWS_HIDDEN, .user = k, .write = keep};
        setup.sink = &sink;
        if (n > 1) {
            start(&team, ranks, n);
            assert_int_equal(cluster_team_agree(&team, settings, NULL, &why), STATUS_OK);
            setup.team = &team;
        }
        assert_int_equal(evaluation_run(&e, &setup, &why), STATUS_OK);
        assert_int_equal(k->next, N_WINDOWS * e.plan.n_scored);
        if (n > 1) {
            end(&team, ranks, n);
            assert_memory_equal(kept[0].rows, kept[1].rows, k->next * k->width * sizeof *k->rows);
        }
        evaluation_close(&e);
    }
    free(kept[0].rows);
    free(kept[1].rows);
}

/** What becomes of a run with these ranks. */
static enum status outcome(struct rank *ranks, size_t n, struct status_why *why)
{
    struct evaluation e;
    struct cluster_team team = {0};
    struct setup setup = usual();
    setup.n_shares = ranks[0].n_shares;
    start(&team, ranks, n);
    evaluation_open(&e, &setup);
    setup.team = &team;
    enum status status = cluster_team_agree(&team, settings, NULL, why);
    if (status)
        cluster_team_end(&team, status);
    else
        status = evaluation_run(&e, &setup, why);
    end(&team, ranks, n);
    evaluation_close(&e);
    return status;
}

static void a_rank_that_dies_ends_the_run(void **state)
{
    (void)state;
    n_windows = 100; /* so many that rank 1 comes to have a batch */
    struct rank ranks[3] = {[1] = {.dies = true}};
    struct status_why why = {""};
    assert_int_equal(outcome(ranks, 3, &why), STATUS_DEVICE);
    assert_non_null(strstr(why.text, "rank 1 ("));
    assert_non_null(strstr(why.text, ") died while it evaluated windows "));
    assert_non_null(strstr(why.text, " of 100 (62 tokens)"));
    assert_int_equal(ranks[2].status, STATUS_OK); /* told in an orderly way */
    n_windows = N_WINDOWS;
}

/** The first rank of a group is its worker, the others are watched. */
static void a_rank_with_some_layers_that_dies_ends_the_run(void **state)
{
    (void)state;
    n_windows = 40;
    for (size_t dying = 1; dying < MANY_RANKS; dying++) {
        struct rank ranks[MANY_RANKS] = {{.n_shares = 3}};
        struct status_why why = {""};
        char name[16];
        snprintf(name, sizeof name, "rank %zu (", dying);
        ranks[dying] = (struct rank){.dies = true, .n_shares = 3};
        assert_int_equal(outcome(ranks, MANY_RANKS, &why), STATUS_DEVICE);
        assert_non_null(strstr(why.text, name));
        assert_non_null(strstr(why.text, ") died while it evaluated layers "));
        assert_non_null(strstr(why.text, " of 40 ("));
        for (size_t i = 1; i < MANY_RANKS; i++) /* told in an orderly way */
            assert_int_equal(ranks[i].status, STATUS_OK);
    }
    n_windows = N_WINDOWS;
}

/** Before it is connected to its neighbours; rank 0 does not wait for it until the time is over. */
static void a_rank_that_dies_between_connections_ends_the_run(void **state)
{
    (void)state;
    const struct rank dying[] = {{.number = 1, .dies_early = true, .n_shares = 3},
                                 {.number = 2, .dies_early = true, .n_shares = 3},
                                 {.number = 2, .dies_late = true, .n_shares = 3}};
    for (size_t i = 0; i < sizeof dying / sizeof *dying; i++) {
        struct rank ranks[3] = {{.n_shares = 3}};
        struct status_why why = {""};
        char sentence[32];
        ranks[dying[i].number] = dying[i];
        assert_int_equal(outcome(ranks, 3, &why), STATUS_DEVICE);
        snprintf(sentence, sizeof sentence, "rank %zu (", dying[i].number);
        if (strstr(why.text, "cannot connect to rank 2"))
            continue; /* rank 1 noticed it first */
        /* Before it was given anything, or, where rank 0 was faster, with its first batch. */
        if (!strstr(why.text, sentence) || !strstr(why.text, ") died "))
            fail_msg("expected that %s...) died: %s", sentence, why.text);
    }
}

static void differences_are_refused(void **state)
{
    (void)state;
    struct rank ranks[3] = {[2] = {.settings = "{\"n_ctx\": 64, \"model\": {\"id\": \"abc\"}}"}};
    struct status_why why = {""};
    assert_int_equal(outcome(ranks, 3, &why), STATUS_USAGE);
    assert_non_null(strstr(why.text, "rank 2 ("));
    assert_non_null(strstr(why.text, ") has n_ctx 64, rank 0 has 32; expected the same program"));
    assert_int_equal(ranks[1].status, STATUS_OK);
}

static void what_fails_elsewhere_is_told(void **state)
{
    (void)state;
    struct rank ranks[2] = {[1] = {.opened = STATUS_IO}};
    struct status_why why = {""};
    assert_int_equal(outcome(ranks, 2, &why), STATUS_IO);
    assert_non_null(strstr(why.text, "): there is no such file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(same_bits_for_any_number_of_ranks),
        cmocka_unit_test(same_bits_for_divided_layers),
        cmocka_unit_test(rows_come_to_rank_0_in_order),
        cmocka_unit_test(a_rank_that_dies_ends_the_run),
        cmocka_unit_test(a_rank_with_some_layers_that_dies_ends_the_run),
        cmocka_unit_test(differences_are_refused),
        cmocka_unit_test(what_fails_elsewhere_is_told),
        cmocka_unit_test(a_rank_that_dies_between_connections_ends_the_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
