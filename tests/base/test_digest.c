/* Digests against Python's hashlib: the expected strings are its output for the same bytes. */
#include "base/digest.h"
#include "tests/harness/cmocka.h"

static void digests_of_known_bytes(void **state)
{
    (void)state;
    char hex[BASE_HEX];
    assert_int_equal(base_sha256(hex, "", 0, NULL), STATUS_OK);
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert_int_equal(base_sha256(hex, "abc", 3, NULL), STATUS_OK);
    assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

/** struct.pack('<5i', 1, 259, 13, -1, 2000000000) */
static void ids_are_little_endian(void **state)
{
    (void)state;
    static const int32_t ids[] = {1, 259, 13, -1, 2000000000};
    char hex[BASE_HEX];
    assert_int_equal(base_sha256_ids(hex, ids, 5, NULL), STATUS_OK);
    assert_string_equal(hex, "20b2849a919ecbecb3bd4cd13313a6aebb0d1e1c9c3e8e5f2747e799127b32c3");
}

/** b''.join(struct.pack('<i', i * i % 32003) for i in range(5000)): several slabs. */
static void ids_beyond_one_slab(void **state)
{
    (void)state;
    static int32_t ids[5000];
    for (int32_t i = 0; i < 5000; i++)
        ids[i] = i * i % 32003;
    char hex[BASE_HEX];
    assert_int_equal(base_sha256_ids(hex, ids, 5000, NULL), STATUS_OK);
    assert_string_equal(hex, "2fa75ee8ff0bc57b6d69026c11a94e8f01dd0d9b2955357be2fb3395c6785259");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(digests_of_known_bytes),
        cmocka_unit_test(ids_are_little_endian),
        cmocka_unit_test(ids_beyond_one_slab),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
