// links: worker schemas vault config store consumer producer core
// Two threads of an intake: one batch is with the database while the next is collected, and what came of the one is
// known before the other is begun.
#include "test_intake_item.h"

#include <pthread.h>
#include <semaphore.h>
#include <time.h>

/* The storing thread stands before its COMMIT from `reached` to `released`. */
static sem_t reached;
static sem_t released;

static void stand(void)
{
	sem_post(&reached);
	sem_wait(&released);
}

static struct intake *begin_two(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	assert_int_equal(intake_stage_open(intake, &error), FATE_OK);
	db.at_commit = stand;
	return intake;
}

static int setup_two(void **state)
{
	sem_init(&reached, 0, 0);
	sem_init(&released, 0, 0);
	return setup(state);
}

static int teardown_two(void **state)
{
	struct room *room = *state;

	for (int i = 0; i < 4; i++) /* who still stands, after a test that failed, goes on */
		sem_post(&released);
	intake_stage_close(&room->intake);
	assert_false(intake_is_storing(&room->intake));
	sem_destroy(&reached);
	sem_destroy(&released);
	return teardown(state);
}

/* False: it has ended without a COMMIT. */
static bool comes_to_commit(const struct intake *intake)
{
	for (;;) {
		struct timespec soon;
		clock_gettime(CLOCK_REALTIME, &soon);
		soon.tv_sec++;
		if (sem_timedwait(&reached, &soon) == 0)
			return true;
		if (intake_has_ended(intake))
			return false;
	}
}

/* Gives the other thread what was collected, and returns when that one stands before its COMMIT. */
static void pass_on(struct intake *intake)
{
	struct error error;

	assert_int_equal(intake_pass_on(intake, &error), FATE_OK);
	assert_int_equal(intake->items_len, 0);
	assert_false(intake->moved);
	assert_true(comes_to_commit(intake));
	assert_true(intake_is_storing(intake));
	assert_false(intake_has_ended(intake));
}

static enum fate let_go_on(struct intake *intake, struct error *error)
{
	sem_post(&released);
	return intake_settle(intake, error);
}

static void let_go_on_well(struct intake *intake)
{
	struct error error;

	assert_int_equal(let_go_on(intake, &error), FATE_OK);
	assert_false(intake_is_storing(intake));
}

/* ---- as it goes ---- */

static void the_next_is_collected_while_one_is_stored(void **state)
{
	struct intake *intake = begin_two(state);
	const struct part *part = intake_part(intake, SUSPENDS, 0);

	feed(intake, 0, 0, "s1");
	pass_on(intake);
	feed(intake, 0, 1, "s2");
	feed(intake, 1, 4, "s3");
	assert_int_equal(next_of(SUSPENDS, 0), NOWHERE);
	assert_int_equal(part->received, 2);
	let_go_on_well(intake);
	assert_int_equal(db.commits, 1);
	assert_int_equal(db.world->rows_len, 1);
	assert_int_equal(next_of(SUSPENDS, 0), 1);
	assert_int_equal(next_of(SUSPENDS, 1), NOWHERE);
	assert_int_equal(part->durable, 1);
	assert_int_equal(part->received, 2);
	assert_int_equal(kafka.reports, 1);
	assert_int_equal(intake->items_len, 2);
	pass_on(intake); /* from where the first has ended */
	feed(intake, 0, 2, "s4");
	let_go_on_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
	assert_int_equal(next_of(SUSPENDS, 1), 5);
	assert_int_equal(db.world->rows_len, 3);
	assert_int_equal(kafka.reports, 3);
	db.at_commit = NULL;
	run_well(intake); /* in this thread */
	assert_int_equal(next_of(SUSPENDS, 0), 3);
	assert_int_equal(db.commits, 3);
}

/* Relays go by that (worker/relay_gather.c). */
static void a_full_batch_says_that_more_waits(void **state)
{
	struct intake *intake = begin_two(state);
	struct worker *worker = intake->worker;

	feed(intake, 0, 0, "s1");
	intake->full = true;
	pass_on(intake);
	intake->full = false;
	assert_true(atomic_load(&worker->behind));
	let_go_on_well(intake);
	assert_true(atomic_load(&worker->behind));
	feed(intake, 0, 1, "s2");
	pass_on(intake); /* all that was there */
	assert_false(atomic_load(&worker->behind));
	let_go_on_well(intake);
	atomic_store(&worker->behind, true);
	intake_drop_batch(intake); /* what will be read again nobody waits for */
	assert_false(atomic_load(&worker->behind));
}

static void an_end_of_a_partition_moves_with_the_next(void **state)
{
	struct intake *intake = begin_two(state);

	feed(intake, 0, 0, "s1");
	pass_on(intake);
	intake_part(intake, SUSPENDS, 0)->received = 7; /* read on to its end meanwhile */
	intake->moved = true;
	let_go_on_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 1);
	assert_true(intake->moved);
	pass_on(intake);
	let_go_on_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 7);
}

static void without_another_thread_it_is_stored_at_once(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	assert_int_equal(intake_pass_on(intake, &error), FATE_OK);
	assert_false(intake_is_storing(intake));
	assert_int_equal(next_of(SUSPENDS, 0), 1);
}

/* ---- as it goes wrong ---- */

static void what_was_collected_behind_a_failure_is_read_again(void **state)
{
	struct intake *intake = begin_two(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	db.lose = true;
	pass_on(intake);
	feed(intake, 0, 1, "s2");
	assert_int_equal(let_go_on(intake, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_SERVICE);
	assert_int_equal(kafka.reports, 0);
	db.at_commit = NULL;
	intake_restart_in(intake, 0);
	assert_int_equal(intake->items_len, 0);
	restart(intake);
	assert_int_equal(fetched(SUSPENDS, 0)->offset, READER_BEGINNING);
	assert_int_equal(db.commits, 0);
	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "s2");
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
	assert_int_equal(db.world->rows_len, 2);
}

static void a_batch_is_not_begun_behind_one_that_failed(void **state)
{
	struct intake *intake = begin_two(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	db.lose = true;
	pass_on(intake);
	feed(intake, 0, 1, "s2");
	sem_post(&released);
	assert_int_equal(intake_pass_on(intake, &error), FATE_RETRY);
	assert_false(intake_is_storing(intake));
	assert_int_equal(intake->items_len, 1); /* until the restart that the caller owes */
	assert_int_equal(db.commits, 0);
}

static void who_is_stale_finds_out_before_the_next(void **state)
{
	struct intake *intake = begin_two(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	pass_on(intake);
	feed(intake, 0, 1, "s2");
	let_go_on_well(intake);
	set_place(SUSPENDS, 0, 5); /* another worker has gone on */
	assert_int_equal(intake_pass_on(intake, &error), FATE_OK);
	assert_int_equal(intake_settle(intake, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_STALE);
	assert_int_equal(db.world->rows_len, 1);
	assert_int_equal(next_of(SUSPENDS, 0), 5);
}

static void poison_is_found_in_the_other_thread(void **state)
{
	struct intake *intake = begin_two(state);
	struct error error;

	db.at_commit = NULL;
	db.poison = 2;
	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "s2");
	feed(intake, 1, 0, "s3");
	assert_int_equal(intake_pass_on(intake, &error), FATE_OK);
	assert_int_equal(intake_settle(intake, &error), FATE_OK);
	assert_int_equal(kafka.letters_len, 1);
	assert_int_equal(kafka.letters[0], 1);
	assert_int_equal(db.world->rows_len, 2);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
	assert_int_equal(kafka.reports, 2); /* once a batch, whatever it was cut into */
}

/* ---- who must wait for it ---- */

static void *release_later(void *nothing)
{
	(void)nothing;
	sem_post(&released);
	return NULL;
}

static pthread_t release(void)
{
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, release_later, NULL), 0);
	return thread;
}

static void a_revoked_partition_is_given_up_after_it(void **state)
{
	struct intake *intake = begin_two(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	pass_on(intake);
	feed(intake, 0, 1, "s2");
	pthread_t thread = release();
	intake_revoked(intake);
	assert_int_equal(db.commits, 1);
	assert_int_equal(intake->items_len, 0);
	pthread_join(thread, NULL);
	assert_int_equal(intake_assigned(intake, &error), FATE_OK);
	assert_int_equal(intake_settle(intake, &error), FATE_OK);
	assert_int_equal(kafka.reports, 0); /* not ours any more, or not yet */
	kafka.end[0][0] = 1;
	restart(intake);
	assert_int_equal(intake_part(intake, SUSPENDS, 0)->durable, 1);
}

static void a_restart_does_not_hide_its_failure(void **state)
{
	struct intake *intake = begin_two(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	db.lose = true;
	pass_on(intake);
	pthread_t thread = release();
	intake_restart_in(intake, 0); /* for another reason */
	pthread_join(thread, NULL);
	assert_true(intake_has_ended(intake));
	assert_int_equal(intake_settle(intake, &error), FATE_RETRY);
	assert_false(intake_is_storing(intake));
}

static void an_alarm_waits_for_the_connection(void **state)
{
	struct intake *intake = begin_two(state);
	struct part *part = intake_part(intake, SUSPENDS, 0);
	struct error error;

	feed(intake, 0, 0, "s1");
	pass_on(intake);
	pthread_t thread = release();
	assert_int_equal(intake_alarm(intake, part, "a test", &error), FATE_OK);
	pthread_join(thread, NULL);
	assert_int_equal(db.commits, 1);
	assert_int_equal(place_of(SUSPENDS, 0)->waits, WAITS_ALARM);
}

static void closing_waits_for_the_commit(void **state)
{
	struct intake *intake = begin_two(state);

	feed(intake, 0, 0, "s1");
	pass_on(intake);
	pthread_t thread = release();
	intake_stage_close(intake);
	pthread_join(thread, NULL);
	assert_int_equal(db.commits, 1);
	assert_int_equal(next_of(SUSPENDS, 0), 1);
}

#define TEST_TWO(name) cmocka_unit_test_setup_teardown(name, setup_two, teardown_two)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST_TWO(the_next_is_collected_while_one_is_stored),
		TEST_TWO(a_full_batch_says_that_more_waits),
		TEST_TWO(an_end_of_a_partition_moves_with_the_next),
		TEST_TWO(without_another_thread_it_is_stored_at_once),
		TEST_TWO(what_was_collected_behind_a_failure_is_read_again),
		TEST_TWO(a_batch_is_not_begun_behind_one_that_failed),
		TEST_TWO(who_is_stale_finds_out_before_the_next),
		TEST_TWO(poison_is_found_in_the_other_thread),
		TEST_TWO(a_revoked_partition_is_given_up_after_it),
		TEST_TWO(a_restart_does_not_hide_its_failure),
		TEST_TWO(an_alarm_waits_for_the_connection),
		TEST_TWO(closing_waits_for_the_commit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
