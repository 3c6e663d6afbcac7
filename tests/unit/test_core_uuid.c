// links: core
#include "core/clock.h"
#include "core/uuid.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void both_cases_are_read_and_lower_case_is_written(void **state)
{
	(void)state;
	struct uuid lower;
	struct uuid upper;
	char text[UUID_TEXT_LEN + 1];

	assert_true(uuid_parse(VIEW_LITERAL("01890a5d-ac96-774b-bcce-b302099a8057"), &lower));
	assert_true(uuid_parse(VIEW_LITERAL("01890A5D-AC96-774B-bcce-B302099A8057"), &upper));
	assert_int_equal(uuid_compare(&lower, &upper), 0);
	assert_int_equal(lower.bytes[0], 0x01);
	assert_int_equal(lower.bytes[15], 0x57);
	uuid_format(&upper, text);
	assert_string_equal(text, "01890a5d-ac96-774b-bcce-b302099a8057");
}

static void any_version_is_a_uuid(void **state)
{
	(void)state;
	struct uuid uuid;

	assert_true(uuid_parse(VIEW_LITERAL("00000000-0000-0000-0000-000000000000"), &uuid));
	assert_true(uuid_parse(VIEW_LITERAL("ffffffff-ffff-ffff-ffff-ffffffffffff"), &uuid));
	assert_true(uuid_parse(VIEW_LITERAL("6ba7b810-9dad-11d1-80b4-00c04fd430c8"), &uuid));
}

static void what_is_not_a_uuid(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"01890a5d-ac96-774b-bcce-b302099a805",
		"01890a5d-ac96-774b-bcce-b302099a80577",
		"01890a5dac96774bbcceb302099a8057",
		"{01890a5d-ac96-774b-bcce-b302099a805}",
		"01890a5d-ac96-774b-bcce-b302099a805g",
		"01890a5d-ac96-774b-bcce-b302099a805 ",
		" 1890a5d-ac96-774b-bcce-b302099a8057",
		"01890a5d_ac96_774b_bcce_b302099a8057",
		"01890a5-dac96-774b-bcce-b302099a8057",
		"01890a5d-ac96-774b-bcceb-302099a8057",
		"0x890a5d-ac96-774b-bcce-b302099a8057",
		"+1890a5d-ac96-774b-bcce-b302099a8057",
		"--------------------------------------",
		"01890a5d-ac96-774b-bcce-b302099a8\xEF\xBC\x91", /* a full-width digit */
	};
	struct uuid uuid = { { 0x77 } };

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(uuid_parse(view_of(bad[i]), &uuid));
	assert_false(uuid_parse(VIEW_NULL, &uuid));
	assert_false(uuid_parse(VIEW_LITERAL("01890a5d-ac96-774b-bcce-b302099a805\0"), &uuid));
	assert_int_equal(uuid.bytes[0], 0x77); /* not clobbered */
}

static void the_order_is_that_of_the_text(void **state)
{
	(void)state;
	struct uuid a;
	struct uuid b;

	assert_true(uuid_parse(VIEW_LITERAL("01890a5d-ac96-774b-bcce-b302099a8057"), &a));
	assert_true(uuid_parse(VIEW_LITERAL("f1890a5d-ac96-774b-bcce-b302099a8056"), &b));
	assert_true(uuid_compare(&a, &b) < 0);
	assert_true(uuid_compare(&b, &a) > 0);
}

static int64_t ms_of(const struct uuid *uuid)
{
	int64_t ms = 0;

	for (int i = 0; i < 6; i++)
		ms = ms << 8 | uuid->bytes[i];
	return ms;
}

static void version_7_has_time_version_and_variant(void **state)
{
	(void)state;
	struct uuid last = { { 0 } };
	struct error error;

	for (int i = 0; i < 1000; i++) {
		struct uuid uuid;
		int64_t before = clock_real_us() / 1000;
		assert_int_equal(uuid_make_v7(&uuid, &error), FATE_OK);
		int64_t after = clock_real_us() / 1000;
		assert_in_range(ms_of(&uuid), before, after);
		assert_int_equal(uuid.bytes[6] >> 4, 7);
		assert_int_equal(uuid.bytes[8] >> 6, 2);
		assert_int_not_equal(uuid_compare(&uuid, &last), 0);
		last = uuid;
	}
}

static void version_8_keeps_the_hash(void **state)
{
	(void)state;
	const uint8_t ones[16] = { 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF,
		                       0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF };
	struct uuid uuid;
	char text[UUID_TEXT_LEN + 1];

	uuid_make_v8(ones, &uuid);
	uuid_format(&uuid, text);
	assert_string_equal(text, "ffffffff-ffff-8fff-bfff-ffffffffffff");
	uuid_make_v8((const uint8_t[16]){ 0 }, &uuid);
	uuid_format(&uuid, text);
	assert_string_equal(text, "00000000-0000-8000-8000-000000000000");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_cases_are_read_and_lower_case_is_written),
		cmocka_unit_test(any_version_is_a_uuid),
		cmocka_unit_test(what_is_not_a_uuid),
		cmocka_unit_test(the_order_is_that_of_the_text),
		cmocka_unit_test(version_7_has_time_version_and_variant),
		cmocka_unit_test(version_8_keeps_the_hash),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
