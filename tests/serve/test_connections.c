/*
 * clients/serve/http/connections.h: who is cut when there are more connections than places. Clients
 * are sockets of loopback addresses; one that is cut reads the end.
 */
#include "tests/harness/cmocka.h"
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients/serve/http/connections.h"

enum { PLACES = 4, MOST = 6, N = 16 };
static const double long_time = 1e6;

struct client {
    int fd; /* of the client */
    int served;
    struct serve_http_connection *c;
};

struct server {
    int listening;
    struct sockaddr_in address;
    struct serve_connections *all;
    struct client clients[N];
    size_t n;
};

static void begin(struct server *s, double seconds, double patience)
{
    socklen_t n_bytes = sizeof s->address;
    const struct serve_connections_options options = {
        .n_places = PLACES, .n_most = MOST, .seconds = seconds, .patience = patience};
    *s = (struct server){.listening = socket(AF_INET, SOCK_STREAM, 0),
                         .address = {.sin_family = AF_INET}};
    s->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(s->listening, (struct sockaddr *)&s->address, sizeof s->address), 0);
    assert_int_equal(listen(s->listening, N), 0);
    assert_int_equal(getsockname(s->listening, (struct sockaddr *)&s->address, &n_bytes), 0);
    assert_int_equal(serve_connections_open(&s->all, &options, NULL), STATUS_OK);
}

/** A client of the address 127.0.0.`last`. */
static struct client *enter(struct server *s, uint8_t last)
{
    struct client *client = &s->clients[s->n++];
    struct sockaddr_in from = {.sin_family = AF_INET};
    from.sin_addr.s_addr = htonl(0x7F000000 | last);
    client->fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(client->fd, (struct sockaddr *)&from, sizeof from), 0);
    assert_int_equal(connect(client->fd, (struct sockaddr *)&s->address, sizeof s->address), 0);
    client->served = accept(s->listening, NULL, NULL);
    assert_true(client->served >= 0);
    client->c = serve_connection_enter(s->all, client->served);
    assert_non_null(client->c);
    return client;
}

static void end(struct server *s)
{
    for (size_t i = 0; i < s->n; i++) {
        serve_connection_leave(s->clients[i].c);
        close(s->clients[i].served);
        close(s->clients[i].fd);
    }
    serve_connections_close(s->all);
    close(s->listening);
}

static bool is_cut(const struct client *client)
{
    struct pollfd about = {.fd = client->fd, .events = POLLIN};
    char byte;
    return poll(&about, 1, 0) == 1 && recv(client->fd, &byte, 1, 0) == 0;
}

static void expect_cut(const struct server *s, const char *which)
{
    char found[N + 1] = "";
    for (size_t i = 0; i < s->n; i++)
        found[i] = is_cut(&s->clients[i]) ? 'x' : '.';
    assert_string_equal(found, which);
}

static void test_the_oldest_that_waits_goes(void **state)
{
    (void)state;
    struct server s;
    begin(&s, long_time, 0);
    for (int i = 0; i < PLACES; i++)
        enter(&s, 1);
    expect_cut(&s, "....");
    enter(&s, 1);
    expect_cut(&s, "x....");
    assert_true(serve_connection_take_place(s.clients[1].c));
    serve_connection_limit(s.clients[2].c, 0); /* it is being answered */
    enter(&s, 1);
    expect_cut(&s, "x..x..");
    serve_connection_wait(s.clients[1].c); /* since now */
    enter(&s, 1);
    expect_cut(&s, "x..xx..");
    end(&s);
}

static void test_the_address_with_most_goes_first(void **state)
{
    (void)state;
    struct server s;
    begin(&s, long_time, 0);
    enter(&s, 5);
    enter(&s, 6);
    enter(&s, 7);
    enter(&s, 7);
    enter(&s, 8);
    expect_cut(&s, "..x..");
    enter(&s, 9); /* each has one: the oldest */
    expect_cut(&s, "x.x...");
    end(&s);
}

static void test_places_are_counted(void **state)
{
    (void)state;
    struct server s;
    begin(&s, long_time, 0);
    for (int i = 0; i < PLACES; i++) {
        struct client *client = enter(&s, 1);
        assert_true(serve_connection_take_place(client->c));
        assert_true(serve_connection_take_place(client->c)); /* it has it */
    }
    struct client *late = enter(&s, 1);
    assert_false(serve_connection_take_place(late->c));
    serve_connection_wait(s.clients[0].c);
    assert_true(serve_connection_take_place(late->c));
    assert_false(serve_connection_take_place(s.clients[0].c));
    serve_connection_leave(s.clients[1].c);
    s.clients[1].c = NULL;
    assert_true(serve_connection_take_place(s.clients[0].c));
    end(&s);
}

static void test_young_ones_stay_while_there_is_room(void **state)
{
    (void)state;
    struct server s;
    begin(&s, long_time, long_time);
    for (int i = 0; i < MOST; i++)
        enter(&s, 1);
    expect_cut(&s, "......");
    enter(&s, 1);
    expect_cut(&s, "x......");
    end(&s);
}

/** A byte now and then does not help: the time is that of the whole request. */
static void test_time_is_over(void **state)
{
    (void)state;
    struct server s;
    char byte;
    begin(&s, 1e-3, long_time);
    const struct client *client = enter(&s, 1);
    while (send(client->fd, "x", 1, MSG_NOSIGNAL) == 1) {
        struct pollfd about = {.fd = client->fd, .events = POLLIN};
        if (poll(&about, 1, 10) == 1)
            break;
    }
    assert_true(recv(client->fd, &byte, 1, 0) <= 0);
    end(&s);
}

/** What is still sent is taken, so that the client gets to read the reply before it. */
static void test_the_end_of_a_reply(void **state)
{
    (void)state;
    struct server s;
    char bytes[65536] = "the body", reply[16] = "";
    begin(&s, long_time, long_time);
    const struct client *client = enter(&s, 1);
    assert_int_equal(send(client->served, "reply", 5, 0), 5);
    assert_int_equal(send(client->fd, bytes, sizeof bytes, 0), sizeof bytes);
    assert_int_equal(shutdown(client->fd, SHUT_WR), 0);
    serve_connection_finish(client->c, long_time);
    assert_int_equal(recv(client->served, bytes, sizeof bytes, 0), 0);
    assert_int_equal(recv(client->fd, reply, sizeof reply, 0), 5);
    assert_string_equal(reply, "reply");
    assert_int_equal(recv(client->fd, reply, sizeof reply, 0), 0);
    end(&s);
    begin(&s, long_time, long_time);
    client = enter(&s, 1);
    serve_connection_finish(client->c, 1e-3); /* it sends nothing, and is not waited for */
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_oldest_that_waits_goes),
        cmocka_unit_test(test_the_address_with_most_goes_first),
        cmocka_unit_test(test_places_are_counted),
        cmocka_unit_test(test_young_ones_stay_while_there_is_room),
        cmocka_unit_test(test_time_is_over),
        cmocka_unit_test(test_the_end_of_a_reply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
