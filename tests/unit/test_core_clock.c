// links: core
#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#include <cmocka.h>

static void times_are_written_as_rfc_3339(void **state)
{
	(void)state;
	static const struct {
		int64_t us;
		const char *text;
	} cases[] = {
		{ 0, "1970-01-01T00:00:00.000000Z" },
		{ 1, "1970-01-01T00:00:00.000001Z" },
		{ -1, "1969-12-31T23:59:59.999999Z" },
		{ -1000000, "1969-12-31T23:59:59.000000Z" },
		{ 1796021152123456, "2026-11-30T06:45:52.123456Z" },
		{ 951782400000000, "2000-02-29T00:00:00.000000Z" },
		{ -62167219200000000, "0000-01-01T00:00:00.000000Z" },
		{ -62135596800000000, "0001-01-01T00:00:00.000000Z" },
		{ -62167219200000001, "-62167219200000001" },
		{ 253402300799999999, "9999-12-31T23:59:59.999999Z" },
		{ 253402300800000000, "253402300800000000" },
		{ INT64_MAX, "9223372036854775807" },
		{ TIME_NONE, "-9223372036854775808" },
	};
	char text[32];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(clock_format(cases[i].us, text, sizeof(text)), cases[i].text);
}

static void the_clocks_go_forward(void **state)
{
	(void)state;
	int64_t mono = clock_mono_ms();

	assert_true(clock_real_us() > 1700000000000000); /* us, not ms */
	assert_true(clock_mono_ms() >= mono);
}

static void waits_stay_within_bounds_and_grow(void **state)
{
	(void)state;
	struct backoff backoff;
	bool reached_high = false;

	backoff_init(&backoff, 100, 5000);
	assert_int_equal(backoff_next(&backoff), 100);
	int64_t last = 100;
	for (int i = 0; i < 2000; i++) {
		int64_t wait = backoff_next(&backoff);
		assert_in_range(wait, 100, last * 3 < 5000 ? last * 3 : 5000);
		reached_high = reached_high || wait > 2500;
		last = wait;
	}
	assert_true(reached_high);
	backoff_reset(&backoff);
	assert_int_equal(backoff_next(&backoff), 100);
}

static void bounds_at_the_edge(void **state)
{
	(void)state;
	struct backoff backoff;

	backoff_init(&backoff, 7, 7);
	for (int i = 0; i < 10; i++)
		assert_int_equal(backoff_next(&backoff), 7);
	backoff_init(&backoff, 1, INT64_MAX);
	for (int i = 0; i < 500; i++)
		assert_true(backoff_next(&backoff) >= 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(times_are_written_as_rfc_3339),
		cmocka_unit_test(the_clocks_go_forward),
		cmocka_unit_test(waits_stay_within_bounds_and_grow),
		cmocka_unit_test(bounds_at_the_edge),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
