/* The ways out of quarantine while a relay, intake, the reaper and other operators are at work. */
#include "tests/integration_store/quarantine_support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static enum fate retry(struct store *from, const struct operator_deed *deed, struct arena *into,
                       struct deed_result *ret_result, struct error *ret_error)
{
	return store_quarantine_retry(from, deed, settles_never, NULL, into, ret_result, ret_error);
}

static void start(struct acting *acting, uint32_t number, bool drops)
{
	start_acting(acting, number, drops ? store_quarantine_drop : retry);
}

/* A relay finds the resume in its ledger while the operator's deed waits for it, and the other way round. */
static void what_the_ledger_holds_is_never_published_again(void **state)
{
	(void)state;
	make_ledger();
	for (int drops = 0; drops <= 1; drops++) {
		uint32_t first = drops ? 6 : 2, second = drops ? 8 : 4;
		make_decided(first);
		make_decided(second);
		race_with_the_ledger(first, second, drops ? store_quarantine_drop : retry);
	}
}

/* Intake counts the deciding approval of what is quarantined: the retry that waited sees the verdict. */
static void a_verdict_that_comes_meanwhile_counts(void **state)
{
	(void)state;
	struct acting acting;
	struct uuid id = uuid_of(2);

	make_open(2);
	struct store *intake = open_store("intake");
	struct batch_loaded loaded = begin_batch(intake, arena, NULL, &id, 1, NULL);
	start(&acting, 2, false);
	wait_for_lock("actor");
	struct checkpoint *row = loaded.checkpoints[0];
	const struct decision *decision = make_decision(arena, 77, 2);
	row->has_verdict = true;
	row->verdict = VERDICT_APPROVED;
	row->decided_at = NOW;
	assert_int_equal(checkpoint_apply(row, EVENT_VERDICT), TRANSITION_KEPT);
	struct checkpoint_write write = { .checkpoint = row, .gate_event = true, .expiry_clear = true };
	struct batch_write batch = {
		.checkpoints = &write, .checkpoints_len = 1, .inserts = &decision, .inserts_len = 1
	};
	assert_ok(store_batch_write(intake, &batch, &error), error);
	assert_ok(store_commit(intake, &error), error);
	finish_acting(&acting, true);
	assert_row(2, "state = 'DECIDED' AND verdict = 'APPROVED' AND reason = 'fine' AND " IN_OUTBOX);
	assert_row(2, "NOT " IN_EXPIRY);
	store_close(intake);
}

/* A later suspend of the line withdraws what is open in quarantine; a retry before it makes no difference. */
static void a_later_suspend_supersedes_before_and_after(void **state)
{
	(void)state;
	struct acting acting;
	struct uuid id = uuid_of(9);
	struct store *intake = open_store("intake");

	make_open(2);
	make_open(4);
	struct checkpoint *line = make_checkpoint(arena, 2, 1);
	struct batch_loaded loaded = begin_batch(intake, arena, NULL, &id, 1, line);
	assert_int_equal(loaded.checkpoints_len, 1);
	start(&acting, 2, false);
	wait_for_lock("actor");
	assert_int_equal(checkpoint_apply(loaded.checkpoints[0], EVENT_SUPERSEDE), TRANSITION_CHANGED);
	struct checkpoint_write write = { .checkpoint = loaded.checkpoints[0], .gate_event = true };
	struct batch_write batch = { .checkpoints = &write, .checkpoints_len = 1 };
	assert_ok(store_batch_write(intake, &batch, &error), error);
	assert_ok(store_commit(intake, &error), error);
	finish_acting(&acting, false);
	assert_row(2, "state = 'SUPERSEDED' AND NOT " IN_OUTBOX);

	/* The operator is first: intake finds it PENDING, and open. */
	world_run("BEGIN; SELECT 1 FROM fermata.gate_outbox FOR UPDATE");
	start(&acting, 4, false);
	wait_for_lock("actor");
	world_run("COMMIT");
	line = make_checkpoint(arena, 4, 1);
	loaded = begin_batch(intake, arena, NULL, &id, 1, line);
	assert_int_equal(loaded.checkpoints_len, 1);
	assert_int_equal(loaded.checkpoints[0]->state, GATE_PENDING);
	assert_true(checkpoint_is_open(loaded.checkpoints[0]));
	store_rollback(intake);
	finish_acting(&acting, true);
	store_close(intake);
}

/* The reaper holds the row of expiry while it sends: the deed waits for it, and what it sent is refused later. */
static void an_expiry_under_way_is_waited_for(void **state)
{
	(void)state;
	struct acting acting;
	struct store *reaper = open_store("reaper");
	struct due *due;
	size_t len;

	make_open(2);
	assert_ok(store_expiry_claim(reaper, NOW, T0, NOW, 10, arena, &due, &len, &error), error);
	assert_int_equal(len, 1);
	start(&acting, 2, true);
	wait_for_lock("actor");
	assert_ok(store_commit(reaper, &error), error);
	finish_acting(&acting, true);
	assert_row(2, "state = 'RESUMED' AND NOT " IN_EXPIRY);
	store_close(reaper);
}

/* A connection that breaks leaves nothing, and the deed can be done again. */
static void a_deed_that_breaks_off_is_not_done(void **state)
{
	(void)state;
	struct acting acting;

	make_decided(2);
	for (int drops = 0; drops <= 1; drops++) {
		world_run("BEGIN; SELECT 1 FROM fermata.gate_outbox FOR UPDATE");
		start(&acting, 2, drops);
		wait_for_lock("actor");
		world_run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'actor' "
		          "AND datname = current_database();"
		          "COMMIT");
		join_acting(&acting);
		assert_fate(FATE_RETRY, acting.fate, acting.error);
		assert_false(acting.result.done);
		assert_row(2, "state = 'QUARANTINED' AND reason = '" BROKEN "' AND NOT " IN_OUTBOX);
		assert_int_equal(number_of(2, AUDIT_ROWS), 0);
		if (drops) {
			begin_acting(&acting);
			finish_acting(&acting, true);
		} else {
			store_close(acting.store);
			arena_free(acting.arena);
		}
	}
	assert_row(2, "state = 'RESUMED'");
}

#define ROWS   60
#define ACTORS 4

struct crowd {
	pthread_t thread;
	pthread_barrier_t *barrier;
	unsigned seed;
	int done;
	bool failed;
};

static void *act_in_the_crowd(void *argument)
{
	struct crowd *crowd = argument;
	struct acting acting = { .store = open_store("crowd"), .arena = arena_new((size_t)1 << 24) };

	for (uint32_t i = 1; i <= ROWS; i++) {
		acting.deed = deed_of(2 * i);
		acting.way = rand_r(&crowd->seed) % 2 == 0 ? store_quarantine_drop : retry;
		pthread_barrier_wait(crowd->barrier);
		act(&acting);
		crowd->failed |= acting.fate != FATE_OK;
		crowd->done += acting.result.done ? 1 : 0;
		arena_reset(acting.arena);
	}
	store_close(acting.store);
	arena_free(acting.arena);
	return NULL;
}

static void of_many_operators_one_is_first(void **state)
{
	(void)state;
	struct crowd crowd[ACTORS];
	pthread_barrier_t barrier;
	int done = 0;

	for (uint32_t i = 1; i <= ROWS; i++)
		make_decided(2 * i);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, ACTORS), 0);
	for (unsigned i = 0; i < ACTORS; i++) {
		crowd[i] = (struct crowd){ .barrier = &barrier, .seed = i + 1 };
		assert_int_equal(pthread_create(&crowd[i].thread, NULL, act_in_the_crowd, &crowd[i]), 0);
	}
	for (int i = 0; i < ACTORS; i++) {
		assert_int_equal(pthread_join(crowd[i].thread, NULL), 0);
		assert_false(crowd[i].failed);
		done += crowd[i].done;
	}
	pthread_barrier_destroy(&barrier);
	assert_int_equal(done, ROWS);
	assert_int_equal(world_number("SELECT count(DISTINCT checkpoint_id) FROM fermata.audit"), ROWS);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.audit"), ROWS);
	/* Each is what its one deed made of it. */
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.checkpoint c JOIN fermata.audit a USING (checkpoint_id)"
	                 " LEFT JOIN fermata.outbox o USING (checkpoint_id) WHERE CASE a.what"
	                 " WHEN 'quarantine.retry' THEN c.state = 'DECIDED' AND o.seq IS NOT NULL"
	                 " ELSE c.state = 'RESUMED' AND o.seq IS NULL END"),
		ROWS);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_quarantine, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_the_ledger_holds_is_never_published_again),
		TEST(a_verdict_that_comes_meanwhile_counts),
		TEST(a_later_suspend_supersedes_before_and_after),
		TEST(an_expiry_under_way_is_waited_for),
		TEST(a_deed_that_breaks_off_is_not_done),
		TEST(of_many_operators_one_is_first),
	};

	return run_in_world(tests);
}
