// links: core store
/* The binary formats of parameters, byte by byte, and the faults. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"
#include "store/store_columns.h"
#include "store/store_param.h"

#include <string.h>

#define DAY_US INT64_C(86400000000)

static struct params params;

static int setup(void **state)
{
	(void)state;
	params_init(&params);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	params_done(&params);
	return 0;
}

static void assert_value(size_t at, const void *bytes, size_t len)
{
	assert_int_equal(params.formats[at], 1);
	assert_int_equal(params.lengths[at], len);
	assert_non_null(params.values[at]);
	assert_memory_equal(params.values[at], bytes, len);
}

static void scalars_are_big_endian(void **state)
{
	(void)state;
	struct uuid uuid = { "0123456789abcde" };

	param_bool(&params, true);
	param_int2(&params, -2);
	param_int4(&params, 0x01020304);
	param_int8(&params, -1);
	param_text(&params, VIEW_LITERAL("caf\xC3\xA9"));
	param_text(&params, VIEW_LITERAL(""));
	param_bytes(&params, VIEW_LITERAL("\0\1"));
	param_uuid(&params, &uuid);
	param_null(&params);
	param_text(&params, VIEW_NULL);
	param_name(&params, NULL);
	param_time(&params, TIME_NONE);
	params_seal(&params);
	assert_value(0, "\1", 1);
	assert_value(1, "\xFF\xFE", 2);
	assert_value(2, "\1\2\3\4", 4);
	assert_value(3, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8);
	assert_value(4, "caf\xC3\xA9", 5);
	assert_value(5, "", 0);
	assert_value(6, "\0\1", 2);
	assert_value(7, uuid.bytes, 16);
	for (size_t i = 8; i < 12; i++)
		assert_null(params.values[i]);
	assert_int_equal(params.len, 12);
	assert_int_equal(params.fault, PARAMS_GOOD);
}

static int32_t sent_day(int64_t time_us)
{
	params_reset(&params);
	param_day(&params, time_us);
	const uint8_t *bytes = (const uint8_t *)params.values[0];
	return (int32_t)((uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 |
	                 bytes[3]);
}

static void days_are_utc_and_within_bounds(void **state)
{
	(void)state;
	assert_int_equal(sent_day(10957 * DAY_US), 0); /* 2000-01-01 */
	assert_int_equal(sent_day(10957 * DAY_US - 1), -1);
	assert_int_equal(sent_day(10958 * DAY_US - 1), 0);
	assert_int_equal(sent_day(0), -10957);
	assert_int_equal(sent_day(-1), -10957);
	assert_int_equal(sent_day(INT64_MIN), -10957);
	assert_int_equal(sent_day(INT64_MAX), 2932896 - 10957); /* 9999-12-31 */
}

static void arrays_are_as_the_server_reads_them(void **state)
{
	(void)state;
	static const uint8_t numbers[] = { 0, 0, 0, 1, 0, 0, 0,   0,   0,   0,   0,   20,  0,   0,  0,
		                               2, 0, 0, 0, 1, 0, 0,   0,   8,   0,   0,   0,   0,   0,  0,
		                               0, 7, 0, 0, 0, 8, 255, 255, 255, 255, 255, 255, 255, 254 };
	static const uint8_t texts[] = { 0, 0, 0, 1, 0, 0, 0, 1,   0,   0,   0,   25,  0, 0, 0, 3, 0,
		                             0, 0, 1, 0, 0, 0, 1, 'a', 255, 255, 255, 255, 0, 0, 0, 0 };
	static const uint8_t none[] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x0B, 0x86 };

	param_array(&params, PG_INT8, 2);
	item_int8(&params, 7);
	item_time(&params, -2);
	param_int4(&params, 5);
	param_array(&params, PG_TEXT, 3);
	item_name(&params, "a");
	item_text(&params, VIEW_NULL);
	item_text(&params, VIEW_LITERAL(""));
	param_uuids(&params, NULL, 0);
	size_t total = params_seal(&params);
	assert_value(0, numbers, sizeof(numbers));
	assert_value(1, "\0\0\0\5", 4);
	assert_value(2, texts, sizeof(texts));
	assert_value(3, none, sizeof(none));
	assert_int_equal(total, sizeof(numbers) + 4 + sizeof(texts) + sizeof(none));
}

static void nul_in_a_text_is_a_fault_and_in_bytes_is_none(void **state)
{
	(void)state;
	param_bytes(&params, VIEW_LITERAL("a\0b"));
	assert_int_equal(params.fault, PARAMS_GOOD);
	param_text(&params, VIEW_LITERAL("a\0b"));
	param_text(&params, VIEW_LITERAL("\0"));
	assert_int_equal(params.fault, PARAMS_NUL);
	assert_int_equal(params.fault_at, 2); /* the first one */
	params_reset(&params);
	assert_int_equal(params.fault, PARAMS_GOOD);
	param_array(&params, PG_TEXT, 1);
	item_text(&params, VIEW_LITERAL("\0"));
	assert_int_equal(params.fault, PARAMS_NUL);
	assert_int_equal(params.fault_at, 1);
}

static void what_is_too_large_is_a_fault(void **state)
{
	(void)state;
	buffer_done(&params.arrays);
	buffer_init(&params.arrays, 64);
	param_array(&params, PG_TEXT, 3);
	item_name(&params, "short");
	item_text(&params, VIEW_LITERAL("much longer than what is left of the sixty-four bytes of this buffer"));
	item_null(&params);
	assert_int_equal(params.fault, PARAMS_LARGE);
	params_seal(&params);
	params_reset(&params);
	assert_int_equal(params.fault, PARAMS_GOOD);
	param_int4(&params, 1);
	params_seal(&params);
	assert_value(0, "\0\0\0\1", 4);
}

static void columns_become_arrays(void **state)
{
	(void)state;
	struct pair {
		int32_t number;
		struct view text;
	} first = { 1, VIEW_LITERAL("x") }, second = { 2, VIEW_NULL };
	static const struct column columns[] = {
		{ PG_TEXT, column_put_view, offsetof(struct pair, text) },
		{ PG_INT4, column_put_int4, offsetof(struct pair, number) },
	};
	const void *rows[] = { &first, &second };
	static const uint8_t texts[] = { 0, 0, 0, 1, 0, 0, 0, 1, 0, 0,   0,   25,  0,   0,  0,
		                             2, 0, 0, 0, 1, 0, 0, 0, 1, 'x', 255, 255, 255, 255 };

	params_columns(&params, columns, COLUMNS_LEN(columns), rows, 2);
	params_seal(&params);
	assert_int_equal(params.len, 2);
	assert_value(0, texts, sizeof(texts));
	assert_int_equal(params.lengths[1], 20 + 2 * 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(scalars_are_big_endian, setup, teardown),
		cmocka_unit_test_setup_teardown(days_are_utc_and_within_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(arrays_are_as_the_server_reads_them, setup, teardown),
		cmocka_unit_test_setup_teardown(nul_in_a_text_is_a_fault_and_in_bytes_is_none, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_too_large_is_a_fault, setup, teardown),
		cmocka_unit_test_setup_teardown(columns_become_arrays, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
