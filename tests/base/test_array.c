/* Arrays and buffers that grow. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "tests/harness/cmocka.h"
#include "tests/harness/failing_alloc.h"

static void test_array_keeps_its_items(void **state)
{
    (void)state;
    struct status_why why = {""};
    uint32_t *items = NULL;
    size_t capacity = 0, n_moves = 0;
    for (size_t n = 0; n < 10000; n++) {
        size_t before = capacity;
        assert_int_equal(base_array_reserve(items, capacity, n + 1, "items", &why), STATUS_OK);
        assert_true(capacity > n);
        n_moves += capacity != before;
        items[n] = (uint32_t)n;
    }
    for (size_t n = 0; n < 10000; n++)
        assert_int_equal(items[n], n);
    assert_in_range(n_moves, 2, 20);
    free(items);
}

static void test_array_without_memory(void **state)
{
    (void)state;
    struct status_why why = {""};
    double *items = NULL;
    size_t capacity = 0;
    assert_int_equal(base_array_reserve(items, capacity, 3, "numbers", &why), STATUS_OK);
    items[2] = 7;
    double *before = items;
    size_t capacity_before = capacity;

    failing_alloc_begin(0, false);
    enum status status = base_array_reserve(items, capacity, capacity + 1, "numbers", &why);
    assert_true(failing_alloc_end());
    assert_int_equal(status, STATUS_MEMORY);
    assert_string_equal(why.text, "no memory for 65 numbers");
    assert_ptr_equal(items, before);
    assert_int_equal(capacity, capacity_before);
    assert_true(items[2] == 7);

    /* More bytes than there are addresses: nothing wraps. */
    status = base_array_reserve(items, capacity, SIZE_MAX / 4, "numbers", NULL);
    assert_int_equal(status, STATUS_MEMORY);
    assert_int_equal(capacity, capacity_before);
    free(items);
}

static void test_new_array(void **state)
{
    (void)state;
    struct status_why why = {""};
    uint64_t *items = NULL;
    assert_int_equal(base_array_new(items, 0, "items", &why), STATUS_OK);
    assert_non_null(items);
    free(items);
    assert_int_equal(base_array_new(items, 100, "items", &why), STATUS_OK);
    for (size_t i = 0; i < 100; i++)
        assert_int_equal(items[i], 0);
    free(items);
    assert_int_equal(base_array_new(items, SIZE_MAX / 4, "items", &why), STATUS_MEMORY);
    assert_null(items);
    failing_alloc_begin(0, false);
    enum status status = base_array_new(items, 2, "items", &why);
    assert_true(failing_alloc_end());
    assert_int_equal(status, STATUS_MEMORY);
    assert_string_equal(why.text, "no memory for 2 items");
}

static void test_buffer(void **state)
{
    (void)state;
    struct base_buffer b = {0};
    base_buffer_add(&b, NULL, 0);
    assert_string_equal(b.data, "");
    char expected[3000] = "";
    for (int i = 0; i < 500; i++) {
        base_buffer_format(&b, "%d,", i);
        snprintf(expected + strlen(expected), 16, "%d,", i);
    }
    assert_int_equal(b.n, strlen(expected));
    base_buffer_add(&b, "a\0b", 3);
    assert_memory_equal(b.data + strlen(expected), "a\0b", 4); /* and the end */
    b.data[strlen(expected)] = '\0';
    assert_int_equal(base_buffer_check(&b, "a text", NULL), STATUS_OK);
    char *text = base_buffer_take(&b);
    assert_string_equal(text, expected);
    free(text);
    assert_null(b.data);
    assert_int_equal(b.n, 0);
    text = base_buffer_take(&b);
    assert_string_equal(text, "");
    free(text);
}

static void test_buffer_that_failed(void **state)
{
    (void)state;
    struct status_why why = {""};
    struct base_buffer b = {0};
    base_buffer_add(&b, "first", 5);
    char long_text[200];
    memset(long_text, 'x', sizeof long_text);
    failing_alloc_begin(0, false);
    base_buffer_add(&b, long_text, sizeof long_text);
    assert_true(failing_alloc_end());
    base_buffer_add(&b, "!", 1); /* there is room, and a hole in front of it */
    base_buffer_format(&b, "%s", "!");
    assert_false(base_buffer_reserve(&b, 1));
    assert_true(b.failed);
    assert_string_equal(b.data, "first");
    assert_int_equal(base_buffer_check(&b, "a text", &why), STATUS_MEMORY);
    assert_string_equal(why.text, "no memory for a text");
    assert_null(base_buffer_take(&b));
    assert_false(b.failed); /* it is empty again */

    base_buffer_add(&b, "x", 1);
    assert_false(base_buffer_reserve(&b, SIZE_MAX - 1));
    assert_null(base_buffer_take(&b));
    base_buffer_add(&b, "x", 1);
    assert_string_equal(b.data, "x");
    base_buffer_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_array_keeps_its_items),
        cmocka_unit_test(test_array_without_memory),
        cmocka_unit_test(test_new_array),
        cmocka_unit_test(test_buffer),
        cmocka_unit_test(test_buffer_that_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
