/*
 * How ranks meet: strangers that connect to rank 0, ranks that do not come, somebody else at rank
 * 0's address, and an end that nobody hears.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clients/cluster/team.h"
#include "tests/harness/cmocka.h"

/** A connection to where a team listens; says these bytes. */
static int call(const struct cluster_team *team, const void *bytes, size_t n_bytes)
{
    struct sockaddr_in to = {.sin_family = AF_INET,
                             .sin_addr.s_addr = htonl(INADDR_LOOPBACK),
                             .sin_port = team->address.port};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    assert_int_equal(send(fd, bytes, n_bytes, MSG_NOSIGNAL), n_bytes);
    return fd;
}

/** What a rank says first, as the other side expects it. */
struct hello {
    struct cluster_message head;
    uint8_t token[BASE_SHA256_BYTES];
    uint32_t rank, process;
    char host[CLUSTER_TEAM_HOST];
};
enum { HELLO_BYTES = sizeof(struct cluster_message) + 108 };

static struct hello hello_of(const struct cluster_team *team, uint32_t rank)
{
    struct hello hello = {.head = {.kind = CLUSTER_MESSAGE_GREETING, .n_bytes = 108}, .rank = rank};
    memcpy(hello.token, team->address.token, sizeof hello.token);
    return hello;
}

/** A rank that comes, and has nothing to offer. */
static void *join(void *address)
{
    struct cluster_team team = {0};
    struct status_why why = {"there is no such file"};
    assert_int_equal(cluster_team_join(&team, 1, address, CLUSTER_TEAM_SECONDS, &why), STATUS_OK);
    assert_int_equal(cluster_team_ready(&team, STATUS_IO, NULL, &why), STATUS_OK);
    cluster_team_close(&team);
    return NULL;
}

/** More than wait at the same time, all before the rank; each alone would be waited for. */
static void strangers_are_turned_away(void **state)
{
    (void)state;
    enum { N_KINDS = 6, N_EACH = 40, N = N_KINDS * N_EACH };
    struct cluster_team team = {0};
    struct status_why why = {""};
    pthread_t thread;
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\nAccept: */*\r\nUser-Agent: "
                                  "a stranger with more to say than a rank has to say, on and on, "
                                  "until it is turned away\r\n\r\n";
    int strangers[N];
    assert_int_equal(cluster_team_listen(&team, 2, true, &why), STATUS_OK);
    struct hello right = hello_of(&team, 1), no_token = right, no_rank = hello_of(&team, 2),
                 zero = hello_of(&team, 0);
    no_token.token[5] ^= 1;
    for (int i = 0; i < N;) {
        strangers[i++] = call(&team, "", 0);                   /* silent */
        strangers[i++] = call(&team, &right, HELLO_BYTES / 2); /* stops in the middle */
        strangers[i++] = call(&team, request, sizeof request);
        strangers[i++] = call(&team, &no_token, HELLO_BYTES);
        strangers[i++] = call(&team, &no_rank, HELLO_BYTES);
        strangers[i++] = call(&team, &zero, HELLO_BYTES);
    }
    assert_int_equal(pthread_create(&thread, NULL, join, &team.address), 0);
    assert_int_equal(cluster_team_gather(&team, CLUSTER_TEAM_SECONDS, NULL, &why), STATUS_OK);
    assert_int_equal(cluster_team_agree(&team, "{}", NULL, &why), STATUS_IO); /* the right one */
    pthread_join(thread, NULL);
    for (int i = 0; i < N; i++) {
        char byte;
        assert_true(recv(strangers[i], &byte, 1, 0) <= 0);
        close(strangers[i]);
    }
    cluster_team_close(&team);
}

/** A rank that is there is not taken over by one that says it is the same. */
static void a_second_rank_of_a_number_is_turned_away(void **state)
{
    (void)state;
    struct cluster_team team = {0};
    struct status_why why = {""};
    struct cluster_message welcome;
    char byte;
    assert_int_equal(cluster_team_listen(&team, 3, true, &why), STATUS_OK);
    struct hello one = hello_of(&team, 1), two = hello_of(&team, 2);
    int first = call(&team, &one, HELLO_BYTES), second = call(&team, &one, HELLO_BYTES);
    int other = call(&team, &two, HELLO_BYTES);
    assert_int_equal(cluster_team_gather(&team, CLUSTER_TEAM_SECONDS, NULL, &why), STATUS_OK);
    assert_int_equal(recv(first, &welcome, sizeof welcome, MSG_WAITALL), sizeof welcome);
    assert_int_equal(welcome.kind, CLUSTER_MESSAGE_WELCOME);
    assert_true(recv(second, &byte, 1, 0) <= 0);
    assert_int_equal(recv(other, &welcome, sizeof welcome, MSG_WAITALL), sizeof welcome);
    close(first);
    close(second);
    close(other);
    cluster_team_close(&team);
}

static void ranks_that_do_not_come_are_named(void **state)
{
    (void)state;
    static const struct {
        size_t n_ranks;
        uint32_t there;
        const char *missing;
    } cases[] = {{2, 0, "rank 1 of 2 did not connect to rank 0 ("},
                 {4, 3, "ranks 1 to 2 of 4 did not connect"},
                 {6, 3, "ranks 1 to 2, 4 to 5 of 6 did not connect"},
                 {4, 2, "ranks 1, 3 of 4 did not connect"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cluster_team team = {0};
        struct status_why why = {""};
        assert_int_equal(cluster_team_listen(&team, cases[i].n_ranks, true, &why), STATUS_OK);
        struct hello hello = hello_of(&team, cases[i].there);
        int fd = call(&team, &hello, HELLO_BYTES);
        assert_int_equal(cluster_team_gather(&team, 0.3, NULL, &why), STATUS_DEVICE);
        assert_non_null(strstr(why.text, cases[i].missing));
        assert_non_null(strstr(why.text, " within 0.3 s; "));
        close(fd);
        cluster_team_close(&team);
    }
}

/** Somebody else at rank 0's address, who hangs up on whoever calls. */
struct other {
    int listener;
    const char *says;
};

static void *hang_up(void *opaque)
{
    const struct other *other = opaque;
    struct pollfd about = {.fd = other->listener, .events = POLLIN};
    while (poll(&about, 1, -1) > 0 && !(about.revents & POLLHUP)) {
        int fd = accept(other->listener, NULL, NULL);
        (void)send(fd, other->says, strlen(other->says), MSG_NOSIGNAL);
        close(fd);
    }
    return NULL;
}

static void who_does_not_answer_is_not_rank_0(void **state)
{
    (void)state;
    static const char *const says[] = {NULL, "", "SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"};
    for (size_t i = 0; i < sizeof says / sizeof *says; i++) {
        struct cluster_team listening = {0}, team = {0};
        struct status_why why = {""};
        pthread_t thread;
        assert_int_equal(cluster_team_listen(&listening, 2, true, &why), STATUS_OK);
        struct other other = {listening.listener, says[i]};
        if (says[i])
            assert_int_equal(pthread_create(&thread, NULL, hang_up, &other), 0);
        assert_int_equal(cluster_team_join(&team, 1, &listening.address, 0.3, &why), STATUS_DEVICE);
        assert_non_null(strstr(why.text, "): who is there does not answer as rank 0 does"));
        shutdown(listening.listener, SHUT_RDWR);
        if (says[i])
            pthread_join(thread, NULL);
        cluster_team_close(&team);
        cluster_team_close(&listening);
    }
}

/** The end is told to everybody who can hear it, and to who cannot nobody listens. */
static void the_end_waits_for_nobody(void **state)
{
    (void)state;
    struct cluster_team team = {0};
    struct status_why why = {""};
    struct cluster_message message;
    static const char bytes[4096];
    assert_int_equal(cluster_team_listen(&team, 3, true, &why), STATUS_OK);
    struct hello hellos[] = {hello_of(&team, 1), hello_of(&team, 2)};
    int stuck = call(&team, &hellos[0], HELLO_BYTES), other = call(&team, &hellos[1], HELLO_BYTES);
    assert_int_equal(cluster_team_gather(&team, CLUSTER_TEAM_SECONDS, NULL, &why), STATUS_OK);
    while (send(team.links[0].fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0)
        ; /* until no more fits */
    cluster_team_end(&team, STATUS_OK);
    assert_int_equal(recv(other, &message, sizeof message, MSG_WAITALL), sizeof message);
    assert_int_equal(recv(other, &message, sizeof message, MSG_WAITALL), sizeof message);
    assert_int_equal(message.kind, CLUSTER_MESSAGE_END);
    close(stuck);
    close(other);
    cluster_team_close(&team);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strangers_are_turned_away),
        cmocka_unit_test(a_second_rank_of_a_number_is_turned_away),
        cmocka_unit_test(ranks_that_do_not_come_are_named),
        cmocka_unit_test(who_does_not_answer_is_not_rank_0),
        cmocka_unit_test(the_end_waits_for_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
