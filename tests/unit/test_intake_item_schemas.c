// links: worker schemas vault config store consumer producer core
// Records in a schema that the registry is asked for: their partition waits, and nobody else.
#include "test_intake_item.h"

static void look_at_parked(struct intake *intake)
{
	struct error error;

	assert_int_equal(intake_look_at_parked(intake, &error), FATE_OK);
}

/* Long enough for others to be told. */
static void age(struct intake *intake, int32_t partition)
{
	intake_part(intake, SUSPENDS, partition)->parked_ms -= 60000;
	look_at_parked(intake);
}

static void a_partition_waits_and_the_others_go_on(void **state)
{
	struct intake *intake = begin(state);

	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "u2");
	assert_true(kafka.pauses);
	assert_string_equal(kafka.paused, SUSPENDS);
	feed(intake, 1, 0, "s3");
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 1);
	assert_int_equal(next_of(SUSPENDS, 1), 1);
	look_at_parked(intake);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_NO); /* most registries answer at once */
	age(intake, 0);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_REGISTRY);
	news = 1; /* of something else */
	look_at_parked(intake);
	assert_true(kafka.pauses);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_REGISTRY);
	news = 2;
	look_at_parked(intake);
	assert_false(kafka.pauses);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_NO);
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
	assert_int_equal(kafka.starts, 1); /* nothing was fetched again for it */
}

/* What a registry did not have may be there some time, and nobody says so. */
static void without_news_it_is_tried_now_and_then(void **state)
{
	struct intake *intake = begin(state);
	struct part *part;

	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "u2");
	part = intake_part(intake, SUSPENDS, 0);
	part->news = news = 2;
	look_at_parked(intake);
	assert_true(part->parked);
	part->tried_ms -= 60000;
	look_at_parked(intake);
	assert_false(part->parked);
	assert_false(kafka.pauses);
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
}

static void the_first_record_of_all_makes_a_row_that_can_wait(void **state)
{
	struct intake *intake = begin(state);

	feed(intake, 0, 7, "u1");
	assert_true(intake->moved);
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 7);
	age(intake, 0);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_REGISTRY);
	news = 1;
	look_at_parked(intake);
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 8);
}

static void a_restart_lets_go_and_meets_it_again(void **state)
{
	struct intake *intake = begin(state);

	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "u2");
	run_well(intake);
	age(intake, 0);
	kafka.end[0][0] = 2;
	intake_restart_in(intake, 0);
	assert_false(intake_part(intake, SUSPENDS, 0)->parked);
	restart(intake);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_NO);
	assert_int_equal(fetched(SUSPENDS, 0)->offset, 0); /* the last one is compared, then comes offset 1 */
	feed(intake, 0, 1, "u2");
	assert_true(intake_part(intake, SUSPENDS, 0)->parked);
	intake_revoked(intake);
	assert_int_equal(intake->parts_len, 0);
}

static void one_that_goes_on_meets_a_full_batch(void **state)
{
	struct intake *intake = begin(state);
	char value[] = "s1";

	feed(intake, 0, 0, "u1");
	for (int64_t i = 0; i < (int64_t)intake->items_cap; i++) {
		value[1] = (char)('1' + i % 9);
		feed(intake, 1, i, value);
	}
	assert_int_equal(intake->items_len, intake->items_cap);
	news = 1;
	look_at_parked(intake);
	assert_int_equal(intake->items_len, 1);
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_partition_waits_and_the_others_go_on),
		TEST(without_news_it_is_tried_now_and_then),
		TEST(the_first_record_of_all_makes_a_row_that_can_wait),
		TEST(a_restart_lets_go_and_meets_it_again),
		TEST(one_that_goes_on_meets_a_full_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
