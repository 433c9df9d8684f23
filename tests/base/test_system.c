/* base/system/system.h: what callers rely on in both of its forms. */
#include "tests/harness/cmocka.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/system/system.h"

static void assert_flags(int fd, bool waits)
{
    assert_true(fd >= 0);
    assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    assert_int_equal(!(fcntl(fd, F_GETFL) & O_NONBLOCK), waits);
}

static void test_pipe(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(base_system_pipe(ends), 0);
    struct pollfd about = {.fd = ends[0], .events = POLLIN};
    assert_flags(ends[0], true);
    assert_flags(ends[1], true);
    assert_int_equal(poll(&about, 1, 0), 0);
    assert_int_equal(write(ends[1], "", 1), 1);
    assert_int_equal(poll(&about, 1, 0), 1);
    close(ends[0]);
    close(ends[1]);
}

/* A write to one who has hung up is an error, and no signal ends the process. */
static void test_sockets(void **state)
{
    (void)state;
    struct sockaddr_un at = {.sun_family = AF_UNIX}; /* the system chooses a name */
    socklen_t length = sizeof at;
    int listener = base_system_socket(AF_UNIX, true), caller = base_system_socket(AF_UNIX, false);
    assert_flags(listener, true);
    assert_flags(caller, false);
    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at.sun_family), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &length), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(connect(caller, (struct sockaddr *)&at, length), 0);
    int fd = base_system_accept(listener, false);
    assert_flags(fd, false);
    assert_false(base_system_hung_up(fd));
    assert_int_equal(base_system_send(caller, "x", 1), 1);
    assert_false(base_system_hung_up(fd));
    char byte;
    assert_int_equal(read(fd, &byte, 1), 1);
    close(caller);
    assert_true(base_system_hung_up(fd));
    signal(SIGPIPE, SIG_DFL);
    assert_int_equal(base_system_send(fd, "x", 1), -1);
    close(fd);
    close(listener);
}

static void test_pages_move(void **state)
{
    (void)state;
    size_t n = 2 * (size_t)sysconf(_SC_PAGESIZE);
    int how = MAP_PRIVATE | MAP_ANONYMOUS;
    char *to = mmap(NULL, n, PROT_READ, how, -1, 0);
    char *from = mmap(NULL, n, PROT_READ | PROT_WRITE, how, -1, 0);
    assert_true(to != MAP_FAILED && from != MAP_FAILED);
    memset(from, 7, n);
    assert_int_equal(mprotect(from, n, PROT_READ), 0);
    assert_int_equal(base_system_move_pages(from, to, n), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(to[i], 7);
    assert_int_equal(msync(from, n, MS_ASYNC), -1); /* nothing is mapped there */
    munmap(to, n);
}

/* Pages of a file come back as they are in it. */
static void test_pages_dropped(void **state)
{
    (void)state;
    size_t n = 2 * (size_t)sysconf(_SC_PAGESIZE);
    char path[] = "test_system_XXXXXX", *full = malloc(n);
    int fd = mkstemp(path);
    assert_true(full && fd >= 0);
    unlink(path);
    memset(full, 7, n);
    assert_int_equal(write(fd, full, n), n);
    char *data = mmap(NULL, n, PROT_READ, MAP_PRIVATE, fd, 0);
    assert_true(data != MAP_FAILED);
    base_system_drop_pages(data, n);
    assert_memory_equal(data, full, n);
    munmap(data, n);
    close(fd);
    free(full);
}

static void test_signal(void **state)
{
    (void)state;
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1);
    sigprocmask(SIG_BLOCK, &set, NULL);
    assert_int_equal(base_system_signal(&set, 0), 0);
    kill(getpid(), SIGUSR1);
    assert_int_equal(base_system_signal(&set, 60), SIGUSR1);
    double began = base_clock_seconds();
    assert_int_equal(base_system_signal(&set, 0.05), 0);
    assert_true(base_clock_seconds() - began >= 0.05);
}

static void test_process(void **state)
{
    (void)state;
    char path[PATH_MAX];
    assert_true(base_system_program(path));
    assert_int_equal(*path, '/');
    assert_string_equal(strrchr(path, '/'), "/test_system");
    assert_in_range(base_system_processors(), 1, sysconf(_SC_NPROCESSORS_CONF));
    /* Not KiB, not pages: a C program has at least 256 KiB, and this one below 4 GiB. */
    assert_in_range((uint64_t)base_system_peak(), 1 << 18, UINT32_MAX);
    assert_in_range((uint64_t)base_system_resident(), 1 << 18, UINT32_MAX);
    double whole = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    assert_true(base_system_available() > 1 << 20 && base_system_available() <= whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pipe),       cmocka_unit_test(test_sockets),
        cmocka_unit_test(test_pages_move), cmocka_unit_test(test_pages_dropped),
        cmocka_unit_test(test_signal),     cmocka_unit_test(test_process),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
