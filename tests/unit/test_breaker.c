// links: worker core
// The window of a circuit breaker: when it trips, when not, and against counting all of it anew.
#include "worker/breaker.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <string.h>

#define CAP_MAX 40

static uint8_t ring[CAP_MAX];
static struct breaker breaker;

static void add(const char *outcomes)
{
	for (; *outcomes != '\0'; outcomes++)
		breaker_add(&breaker, *outcomes == 'x');
}

static bool trips(const char *outcomes)
{
	bool dead[200];
	size_t len = strlen(outcomes);

	assert_true(len <= sizeof(dead));
	for (size_t i = 0; i < len; i++)
		dead[i] = outcomes[i] == 'x';
	return breaker_trips(&breaker, dead, len);
}

static void an_empty_window_trusts(void **state)
{
	(void)state;
	breaker_init(&breaker, ring, 10);
	assert_false(trips("x"));
	assert_false(trips("xxxxxxxxx"));
	assert_true(trips("xxxxxxxxxx"));
	add("xxxxxxxxx");
	assert_false(trips("."));
	assert_true(trips("x"));
}

static void more_than_half_of_a_full_window_trips(void **state)
{
	(void)state;
	breaker_init(&breaker, ring, 10);
	add(".....xxxx");
	assert_false(trips("x"));
	assert_false(trips("x."));
	assert_true(trips("xx"));
	assert_false(trips(""));
}

/* What is good is taken in although the window is bad still: nothing is in the way once it was mended. */
static void only_a_dead_one_trips(void **state)
{
	(void)state;
	breaker_init(&breaker, ring, 4);
	add("xxxx");
	assert_false(trips("."));
	assert_false(trips(".."));
	assert_true(trips(".x"));
	assert_false(trips("...x"));
}

static void in_the_middle_of_a_batch_is_enough(void **state)
{
	(void)state;
	breaker_init(&breaker, ring, 4);
	assert_true(trips("xxx.x........."));
	assert_true(trips("....xxx......."));
	assert_false(trips("x.x.x.x.x.x.x."));
}

static void after_a_trip_fewer_suffice(void **state)
{
	(void)state;
	breaker_init(&breaker, ring, 40);
	add("xxxxxxxxxxxxxxxxxxxx");
	breaker_reset(&breaker, BREAKER_LEAST);
	assert_false(trips("xxxxxxxxxxxxxxx"));
	assert_true(trips("xxxxxxxxxxxxxxxx"));
	add("....................");
	assert_false(trips("xxxxxxxxxxxxxxxxxxxx"));
	assert_true(trips("xxxxxxxxxxxxxxxxxxxxx"));
	breaker_init(&breaker, ring, 3);
	breaker_reset(&breaker, BREAKER_LEAST);
	assert_true(trips("xxx"));
}

static void without_a_window_it_never_trips(void **state)
{
	(void)state;
	breaker_init(&breaker, NULL, 0);
	add("xxxxxxxx");
	assert_false(trips("xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"));
	assert_int_equal(breaker_bytes(0), 0);
	assert_int_equal(breaker_bytes(1000), 125);
	assert_int_equal(breaker_bytes(1001), 126);
}

/* The last `cap` of everything that ever was, counted one by one. */
static bool trips_plainly(const bool *all, size_t before, size_t len, size_t cap, size_t least)
{
	for (size_t end = before + 1; end <= before + len; end++) {
		size_t seen = end < cap ? end : cap, bad = 0;
		for (size_t i = end - seen; i < end; i++)
			bad += all[i] ? 1 : 0;
		if (all[end - 1] && seen >= least && 2 * bad > seen)
			return true;
	}
	return false;
}

static unsigned draw(unsigned below)
{
	static uint64_t random = 88172645463325252;

	random ^= random << 13;
	random ^= random >> 7;
	random ^= random << 17;
	return (unsigned)(random >> 33) % below;
}

static void any_window_is_as_counted_plainly(void **state)
{
	(void)state;
	bool all[400];
	int tripped = 0;

	for (int round = 0; round < 2000; round++) {
		size_t cap = 1 + draw(CAP_MAX), before = draw(200);
		size_t len = draw(200);
		unsigned percent = draw(100);
		breaker_init(&breaker, ring, cap);
		for (size_t i = 0; i < before + len; i++)
			all[i] = draw(100) < percent;
		for (size_t i = 0; i < before; i++)
			breaker_add(&breaker, all[i]);
		bool expected = trips_plainly(all, before, len, cap, cap);
		assert_int_equal(breaker_trips(&breaker, all + before, len), expected);
		tripped += expected ? 1 : 0;
	}
	assert_true(tripped > 200 && tripped < 1800);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_window_trusts),
		cmocka_unit_test(more_than_half_of_a_full_window_trips),
		cmocka_unit_test(only_a_dead_one_trips),
		cmocka_unit_test(in_the_middle_of_a_batch_is_enough),
		cmocka_unit_test(after_a_trip_fewer_suffice),
		cmocka_unit_test(without_a_window_it_never_trips),
		cmocka_unit_test(any_window_is_as_counted_plainly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
