/* clients/serve/http/host.h: which names of the header Host are this machine's. */
#include "tests/harness/cmocka.h"
#include <stdio.h>
#include <string.h>

#include "clients/serve/http/host.h"

static void expect(bool own, const char *const *values, const char *given)
{
    for (; *values; values++)
        if (serve_host_is_own(*values, given) != own)
            fail_msg("'%s' where --host is %s: expected %d", *values, given, own);
}

static void test_own_names(void **state)
{
    static const char *const values[] = {"localhost",
                                         "LocalHost:8080",
                                         "localhost.",
                                         "localhost.:1",
                                         "127.0.0.1",
                                         "127.0.0.1:65535",
                                         "127.0.0.1.:80",
                                         "127.255.0.3",
                                         "[::1]",
                                         "[::1]:8080",
                                         "[0:0:0:0:0:0:0:1]:8080",
                                         NULL};
    (void)state;
    expect(true, values, "127.0.0.1");
    expect(true, values, "::1");
    expect(true, values, "my-pc.lan");
}

static void test_names_of_others(void **state)
{
    static const char *const values[] = {"",
                                         ".",
                                         ":",
                                         ":80",
                                         "evil.example",
                                         "localhost.evil.com",
                                         "localhostess.example",
                                         "localhost-evil.com",
                                         "evil.localhost",
                                         "xlocalhost",
                                         "localhost..",
                                         ".localhost",
                                         "localhost ",
                                         " localhost",
                                         "localhost\t",
                                         "localhost,evil.com",
                                         "localhost/",
                                         "localhost@evil.com",
                                         "user@localhost",
                                         "localhost:",
                                         "localhost:x",
                                         "localhost:80x",
                                         "localhost:80:80",
                                         "localhost:-1",
                                         "localhost: 80",
                                         "localhost:123456",
                                         "localhost:80.evil.com",
                                         "http://localhost",
                                         "127.0.0.1.evil.com",
                                         "127.0.0.1..",
                                         "..",
                                         "127.0.0.1.5",
                                         "127.0.0.256",
                                         "127.0.0.01",
                                         "127.0.0",
                                         "127.1",
                                         "127",
                                         "2130706433",
                                         "0x7f.0.0.1",
                                         "0.0.0.0",
                                         "10.0.0.1",
                                         "192.168.0.1:8080",
                                         "128.0.0.1",
                                         "1.127.0.0",
                                         "::1",
                                         "::1:8080",
                                         "[",
                                         "[]",
                                         "[::1",
                                         "::1]",
                                         "[::1]x",
                                         "[::1].",
                                         "[::1].evil.com",
                                         "[::1]:",
                                         "[::1]:x",
                                         "[[::1]]",
                                         "[::1%lo]",
                                         "[::]",
                                         "[::2]",
                                         "[::ffff:127.0.0.1]",
                                         "[fe80::1]",
                                         "[x].evil.com",
                                         "[x]",
                                         "[localhost]",
                                         "[127.0.0.1]",
                                         "[:8080",
                                         "my-pc",
                                         "my-pc.lan.evil.com",
                                         "my-pc.lan:x",
                                         NULL};
    (void)state;
    expect(false, values, "127.0.0.1");
    expect(false, values, "my-pc.lan");
    expect(false, values, "");
}

static void test_the_name_that_was_given(void **state)
{
    static const char *const names[] = {"my-pc.lan", "MY-PC.lan.", "my-pc.LAN:8080", NULL};
    static const char *const addresses[] = {"[fe80::1]", "[FE80:0::1]:80", NULL};
    (void)state;
    expect(true, names, "my-pc.lan");
    expect(true, names, "My-PC.lan.");
    expect(false, names, "my-pc.la");
    expect(false, names, "my-pc.lan2");
    expect(true, addresses, "fe80::1");
    expect(false, addresses, "fe80::2");
}

static void test_long_ones(void **state)
{
    char value[1000];
    (void)state;
    memset(value, 'a', sizeof value);
    value[sizeof value - 1] = '\0';
    assert_false(serve_host_is_own(value, "localhost"));
    value[0] = '[';
    assert_false(serve_host_is_own(value, "localhost"));
    value[300] = ']';
    assert_false(serve_host_is_own(value, "localhost"));
    memset(value, '1', sizeof value - 1);
    memcpy(value, "localhost:", 10);
    assert_false(serve_host_is_own(value, "localhost"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_names),
        cmocka_unit_test(test_names_of_others),
        cmocka_unit_test(test_the_name_that_was_given),
        cmocka_unit_test(test_long_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
