// links: core
#include "core/clock.h"
#include "core/deadline.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <time.h>

#include <cmocka.h>

static atomic_int done;

static void quick(void *context)
{
	*(int *)context = 7;
}

static void slow(void *context)
{
	struct timespec moment = { 0, 300000000 };

	(void)context;
	nanosleep(&moment, NULL);
	done = 1;
}

static void what_ends_in_time_is_waited_for(void **state)
{
	int64_t begun = clock_mono_ms();
	int value = 0;
	bool started;

	(void)state;
	assert_true(deadline_run(quick, &value, 10000, &started));
	assert_true(started);
	assert_int_equal(value, 7);
	assert_true(clock_mono_ms() - begun < 5000);
}

static void what_does_not_is_left_alone(void **state)
{
	int64_t begun = clock_mono_ms();
	bool started;

	(void)state;
	assert_false(deadline_run(slow, NULL, 20, &started));
	assert_true(started);
	assert_true(clock_mono_ms() - begun < 290 || done);
	while (!done)
		assert_true(clock_mono_ms() - begun < 10000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_ends_in_time_is_waited_for),
		cmocka_unit_test(what_does_not_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
