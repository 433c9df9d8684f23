/* Addresses: what is taken, and what is refused without repeating a password. */
#include <stdlib.h>
#include <string.h>

#include "clients/probe/http/http.h"
#include "tests/harness/cmocka.h"

static void addresses_lose_their_ends(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
        {"http://127.0.0.1:8080/", "http://127.0.0.1:8080"},
        {"http://127.0.0.1:8080/v1", "http://127.0.0.1:8080"},
        {"https://host/a/v1/", "https://host/a"},
        {"HTTP://[::1]:1", "HTTP://[::1]:1"},
        {"http://v1", "http://v1"},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        char *found;
        assert_int_equal(probe_address(&found, pairs[i][0], NULL), STATUS_OK);
        assert_string_equal(found, pairs[i][1]);
        free(found);
    }
}

static void others_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",           "http://",         "ftp://host",
                                        "host:80",    "http:///path",    "http://h/?a=b",
                                        "http://h#x", "http://a:pass@h", "http://h h",
                                        "http://h\n", "file:///etc"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct status_why why = {""};
        char *found;
        assert_int_equal(probe_address(&found, wrong[i], &why), STATUS_USAGE);
        assert_null(found);
        assert_null(strstr(why.text, "pass@"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_lose_their_ends),
        cmocka_unit_test(others_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
