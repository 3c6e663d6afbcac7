// links: worker schemas vault config store consumer producer core
// Where intake stands: places that are gone, positions that went back, approvals that wait for suspends.
#include "test_intake_item.h"

/* ---- places ---- */

static void a_place_past_the_end_raises_the_alarm(void **state)
{
	set_place(SUSPENDS, 0, 10);
	kafka.end[0][0] = 3;
	struct intake *intake = begin(state);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_ALARM);
	assert_null(fetched(SUSPENDS, 0));
	assert_non_null(fetched(SUSPENDS, 1)); /* the others go on */
	kafka.end[0][0] = 20;
	intake_restart_in(intake, 0);
	restart(intake);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_NO);
	assert_int_equal(fetched(SUSPENDS, 0)->offset, 10);
}

static void a_place_that_retention_took_raises_the_alarm(void **state)
{
	set_place(SUSPENDS, 0, 10);
	kafka.low[0][0] = 11;
	kafka.end[0][0] = 30;
	begin(state);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_ALARM);
	assert_null(fetched(SUSPENDS, 0));
}

static void the_last_record_is_compared_where_it_is_still_there(void **state)
{
	set_place(SUSPENDS, 0, 10);
	place_of(SUSPENDS, 0)->has_last = true;
	place_of(SUSPENDS, 0)->last_offset = 7;
	kafka.end[0][0] = 10;
	struct intake *intake = begin(state);
	assert_int_equal(fetched(SUSPENDS, 0)->offset, 7);
	assert_true(intake_part(intake, SUSPENDS, 0)->verify);
	kafka.low[0][0] = 8;
	intake_restart_in(intake, 0);
	restart(intake);
	assert_int_equal(fetched(SUSPENDS, 0)->offset, 10);
	assert_false(intake_part(intake, SUSPENDS, 0)->verify);
}

/* ---- approvals that wait ---- */

static void look(struct intake *intake)
{
	struct error error;

	assert_int_equal(intake_look(intake, &error), FATE_OK);
	if (!intake->running)
		restart(intake);
}

static void approvals_wait_for_the_suspends_that_stood(void **state)
{
	kafka.end[0][0] = 2;
	struct intake *intake = begin(state);
	assert_null(fetched(APPROVALS, 0));
	look(intake);
	assert_false(intake->approvals_open);
	kafka.end[0][0] = 50; /* what comes later is not waited for */
	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "s2");
	run_well(intake);
	look(intake);
	assert_false(intake->approvals_open); /* the other one has no row yet */
	intake_part(intake, SUSPENDS, 1)->received = 0;
	run_well(intake);
	look(intake);
	assert_true(intake->approvals_open);
	assert_non_null(fetched(APPROVALS, 0));
	assert_true(atomic_load(&intake->worker->caught_up));
}

static void a_partition_that_waits_is_not_waited_for(void **state)
{
	set_place(SUSPENDS, 1, 0);
	set_place(SUSPENDS, 0, 10);
	kafka.end[0][0] = 3;
	struct intake *intake = begin(state);
	look(intake);
	assert_true(intake->approvals_open);
}

static struct intake *begin_open(void **state)
{
	set_place(SUSPENDS, 0, 10);
	set_place(SUSPENDS, 1, 10);
	set_place(APPROVALS, 0, 10);
	kafka.end[0][0] = kafka.end[0][1] = kafka.end[1][0] = 10;
	struct intake *intake = begin(state);
	look(intake);
	assert_true(intake->approvals_open);
	return intake;
}

static void after_a_restore_they_wait_again(void **state)
{
	struct intake *intake = begin_open(state);

	kafka.end[0][1] = 12;
	set_place(SUSPENDS, 1, 4); /* also one that is another worker's */
	look(intake);
	assert_false(intake->approvals_open);
	assert_false(atomic_load(&intake->worker->caught_up));
	assert_null(fetched(APPROVALS, 0));
	assert_int_equal(fetched(SUSPENDS, 1)->offset, 4);
	set_place(SUSPENDS, 1, 11); /* the end that stands now is waited for, not the one of the start */
	intake_restart_in(intake, 0);
	restart(intake);
	look(intake);
	assert_false(intake->approvals_open);
	set_place(SUSPENDS, 1, 12);
	intake_restart_in(intake, 0);
	restart(intake);
	look(intake);
	assert_true(intake->approvals_open);
}

static void a_batch_of_approvals_notices_a_restore(void **state)
{
	struct intake *intake = begin_open(state);
	struct error error;

	assert_int_equal(add(intake, APPROVALS, 0, 10, "a1"), FATE_OK);
	set_place(SUSPENDS, 0, 9);
	assert_int_equal(run(intake, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_STALE);
	assert_int_equal(db.world->decisions_len, 0);
	assert_false(intake->approvals_open);
}

/* After a failover that lost a suspend of another partition nothing needs to look gone back here. */
static void a_new_connection_makes_them_wait_again(void **state)
{
	struct intake *intake = begin_open(state);

	kafka.end[0][1] = 12;
	db.connections++;
	intake_restart_in(intake, 0);
	restart(intake);
	assert_false(intake->approvals_open);
	assert_null(fetched(APPROVALS, 0));
	look(intake);
	assert_false(intake->approvals_open);
	set_place(SUSPENDS, 1, 12);
	intake_restart_in(intake, 0);
	restart(intake);
	look(intake);
	assert_true(intake->approvals_open);
}

static void ends_are_asked_for_anew_even_while_they_wait(void **state)
{
	kafka.end[0][0] = 100;
	set_place(SUSPENDS, 0, 60);
	set_place(SUSPENDS, 1, 0);
	struct intake *intake = begin(state);
	look(intake);
	assert_int_equal(intake->targets[0], 100);
	kafka.end[0][0] = 150;
	set_place(SUSPENDS, 0, 50);
	look(intake);
	assert_int_equal(intake->targets[0], 150);
	set_place(SUSPENDS, 0, 40); /* seen at a restart, not at a look */
	kafka.end[0][0] = 160;
	intake_restart_in(intake, 0);
	restart(intake);
	assert_int_equal(intake->targets[0], 160);
}

static void an_idle_intake_notices_its_own_positions(void **state)
{
	struct intake *intake = begin_open(state);

	set_place(APPROVALS, 0, 8);
	look(intake);
	assert_true(intake->approvals_open); /* no suspend went back */
	assert_int_equal(fetched(APPROVALS, 0)->offset, 8);
}

static void what_was_read_of_a_lost_assignment_is_dropped(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	intake_revoked(intake);
	assert_int_equal(intake->items_len, 0);
	assert_null(intake_part(intake, SUSPENDS, 0));
	kafka.given_len = 1;
	assert_int_equal(intake_assigned(intake, &error), FATE_OK);
	restart(intake);
	assert_int_equal(kafka.fetched_len, 1);
	kafka.away = true;
	intake_restart_in(intake, 0);
	set_place(SUSPENDS, 0, 1);
	assert_int_equal(intake_restart(intake, &error), FATE_RETRY);
	assert_false(intake->running);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_place_past_the_end_raises_the_alarm),
		TEST(a_place_that_retention_took_raises_the_alarm),
		TEST(the_last_record_is_compared_where_it_is_still_there),
		TEST(approvals_wait_for_the_suspends_that_stood),
		TEST(a_partition_that_waits_is_not_waited_for),
		TEST(after_a_restore_they_wait_again),
		TEST(a_batch_of_approvals_notices_a_restore),
		TEST(a_new_connection_makes_them_wait_again),
		TEST(ends_are_asked_for_anew_even_while_they_wait),
		TEST(an_idle_intake_notices_its_own_positions),
		TEST(what_was_read_of_a_lost_assignment_is_dropped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
