// links: worker core
/* How long a topic keeps records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/waits.h"

static void retention_is_read(void **state)
{
	(void)state;
	assert_int_equal(waits_retention("604800000"), 604800000);
	assert_int_equal(waits_retention("0"), 0);
	assert_int_equal(waits_retention("-1"), WAITS_FOR_EVER);
}

/* It is multiplied to microseconds by whoever tells of it. */
static void the_largest_number_is_for_ever(void **state)
{
	(void)state;
	assert_int_equal(waits_retention("9223372036854775807"), WAITS_FOR_EVER);
	assert_int_equal(waits_retention("9223372036854776"), WAITS_FOR_EVER);
	assert_int_equal(waits_retention("9223372036854775"), INT64_C(9223372036854775));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retention_is_read),
		cmocka_unit_test(the_largest_number_is_for_ever),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
