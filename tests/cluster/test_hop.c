/*
 * Streams between two ranks: in order, sent while the caller goes on, never more than two batches
 * ahead of who takes them; waiting ends with the caller's look, or when the connection broke.
 */
#include <string.h>
#include <sys/socket.h>

#include "clients/cluster/hop.h"
#include "tests/harness/cmocka.h"

/* More than a socket holds. */
enum { N_BYTES = 8 << 20, N_BATCHES = 6 };

/** Two ends in one process. */
struct ends {
    struct cluster_link links[2];
    struct cluster_hop *out, *in;
    int looks_left; /* until waiting is ended; below 0: it never is */
};

static enum status look(void *user, struct status_why *why)
{
    struct ends *e = user;
    if (e->looks_left-- == 0)
        return status_fail(why, STATUS_CANCELLED, "enough");
    return STATUS_OK;
}

static struct cluster_hop *open_hop(struct ends *e, int fd, bool sends)
{
    struct cluster_hop *hop;
    struct cluster_link *link = &e->links[sends];
    struct cluster_hop_options options = {
        .link = link, .sends = sends, .n_bytes = N_BYTES, .look = look, .user = e};
    cluster_link_open(link, fd, sends ? "rank 2" : "rank 1");
    assert_int_equal(cluster_hop_open(&hop, &options, NULL), STATUS_OK);
    return hop;
}

static void open_ends(struct ends *e)
{
    int fds[2];
    *e = (struct ends){.looks_left = -1};
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
    e->in = open_hop(e, fds[0], false);
    e->out = open_hop(e, fds[1], true);
}

static void close_ends(struct ends *e)
{
    cluster_hop_close(e->out);
    cluster_hop_close(e->in);
    cluster_link_close(&e->links[0]);
    cluster_link_close(&e->links[1]);
}

static void give(struct ends *e, uint64_t number)
{
    assert_int_equal(cluster_hop_await(e->out, NULL), STATUS_OK);
    e->out->batch = (struct cluster_remote_batch){number, number + 1};
    e->out->n_bytes = N_BYTES - (size_t)number;
    memset(e->out->values, (int)number + 1, e->out->n_bytes);
    cluster_hop_pass(e->out);
}

static void take(struct ends *e, uint64_t number)
{
    assert_int_equal(cluster_hop_await(e->in, NULL), STATUS_OK);
    assert_int_equal(e->in->batch.first, number);
    assert_int_equal(e->in->batch.end, number + 1);
    assert_int_equal(e->in->n_bytes, N_BYTES - number);
    const char *bytes = (const char *)e->in->values;
    assert_int_equal(bytes[0], number + 1);
    assert_int_equal(memcmp(bytes, bytes + 1, e->in->n_bytes - 1), 0);
    cluster_hop_pass(e->in);
}

static void in_order_and_two_at_most(void **state)
{
    (void)state;
    struct ends e;
    open_ends(&e);
    give(&e, 0); /* one has come, and waits */
    give(&e, 1); /* one is being sent */
    e.looks_left = 3;
    assert_int_equal(cluster_hop_await(e.out, NULL), STATUS_CANCELLED);
    for (uint64_t i = 0; i < N_BATCHES; i++) {
        take(&e, i);
        if (i + 2 < N_BATCHES)
            give(&e, i + 2);
    }
    e.looks_left = 3;
    assert_int_equal(cluster_hop_await(e.in, NULL), STATUS_CANCELLED);
    close_ends(&e);
}

/** Also of a batch that is on its way. */
static void a_broken_connection_is_told(void **state)
{
    (void)state;
    struct ends e;
    struct status_why why = {""};
    open_ends(&e);
    give(&e, 0);
    give(&e, 1);
    shutdown(e.links[1].fd, SHUT_RDWR);
    take(&e, 0); /* it had come */
    e.looks_left = 5;
    assert_int_equal(cluster_hop_await(e.in, &why), STATUS_CANCELLED); /* the caller knows why */
    e.looks_left = -1;
    assert_int_equal(cluster_hop_await(e.out, &why), STATUS_DEVICE);
    assert_string_equal(why.text, "the connection to rank 2 broke");
    close_ends(&e);
}

static void what_is_too_long_is_refused(void **state)
{
    (void)state;
    struct ends e;
    struct status_why why = {""};
    open_ends(&e);
    struct cluster_message head = {.kind = CLUSTER_MESSAGE_STREAM,
                                   .n_bytes = N_BYTES + sizeof(struct cluster_remote_batch) + 1};
    assert_int_equal(send(e.links[1].fd, &head, sizeof head, 0), sizeof head);
    assert_int_equal(cluster_hop_await(e.in, &why), STATUS_DEVICE);
    assert_non_null(strstr(why.text, "rank 1 sent a message of kind "));
    close_ends(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_and_two_at_most),
        cmocka_unit_test(a_broken_connection_is_told),
        cmocka_unit_test(what_is_too_long_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
