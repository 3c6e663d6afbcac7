/* The ways out of quarantine while a relay, intake, the reaper and other operators are at work. */
#include "tests/integration_store/quarantine_support.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static const struct shard shard = { CLUSTER, "resumes", 0 };
static const uint8_t routes[32] = { 1 };

/* A deed on a thread and a connection of its own. */
struct acting {
	pthread_t thread;
	struct store *store;
	struct arena *arena;
	struct operator_deed deed;
	bool drops;
	struct deed_result result;
	enum fate fate;
	struct error error;
};

static void *act(void *argument)
{
	struct acting *acting = argument;

	acting->fate = acting->drops ? store_quarantine_drop(acting->store, &acting->deed, acting->arena,
	                                                     &acting->result, &acting->error)
	                             : store_quarantine_retry(acting->store, &acting->deed, settles_never, NULL,
	                                                      acting->arena, &acting->result, &acting->error);
	return NULL;
}

/* Waits until the session of that name waits for a lock of another one. (Inside of a transaction the view of the
 * sessions stays as it was first seen.) */
static void wait_for_lock(const char *name)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "SELECT pg_stat_clear_snapshot(); SELECT count(*) FROM pg_stat_activity WHERE datname = "
	         "current_database()"
	         " AND application_name = '%s' AND wait_event_type = 'Lock'",
	         name);
	world_wait(sql);
}

static void start(struct acting *acting, uint32_t number, bool drops)
{
	*acting = (struct acting){ .store = open_store("actor"),
		                       .arena = arena_new((size_t)1 << 24),
		                       .deed = deed_of(number),
		                       .drops = drops };
	assert_int_equal(pthread_create(&acting->thread, NULL, act, acting), 0);
}

static void finish(struct acting *acting, bool done)
{
	assert_int_equal(pthread_join(acting->thread, NULL), 0);
	assert_fate(FATE_OK, acting->fate, acting->error);
	assert_int_equal(acting->result.done, done);
	store_close(acting->store);
	arena_free(acting->arena);
}

/* R2 as a relay makes it, on a thread of its own. */
struct marking {
	pthread_t thread;
	struct store *store;
	struct ledger_found found;
	enum fate fate;
	struct error error;
};

static void *mark(void *argument)
{
	struct marking *marking = argument;
	size_t made;

	marking->fate = store_ledger_advance(marking->store, &shard, 10, 12, TIME_NONE, routes, &marking->found,
	                                     1, &made, &marking->error);
	return NULL;
}

static void start_marking(struct marking *marking, uint32_t number)
{
	*marking = (struct marking){
		.store = open_store("relay"),
		.found = { .checkpoint_id = uuid_of(number), .verdict = VERDICT_APPROVED, .appended_at = NOW },
	};
	assert_int_equal(pthread_create(&marking->thread, NULL, mark, marking), 0);
}

static void finish_marking(struct marking *marking)
{
	assert_int_equal(pthread_join(marking->thread, NULL), 0);
	assert_fate(FATE_OK, marking->fate, marking->error);
	store_close(marking->store);
}

/* A relay finds the resume in its ledger while the operator's deed waits for it, and the other way round. */
static void what_the_ledger_holds_is_never_published_again(void **state)
{
	(void)state;
	struct acting acting;
	struct marking marking;

	make_ledger();
	for (int drops = 0; drops <= 1; drops++) {
		uint32_t first = drops ? 6 : 2, second = drops ? 8 : 4;
		make_decided(first);
		make_decided(second);

		/* R2 is first: it has marked the row, and is held up at its last statement. */
		world_run("UPDATE fermata.ledger_offset SET next = 10");
		world_run("BEGIN; SELECT 1 FROM fermata.ledger_offset FOR UPDATE");
		start_marking(&marking, first);
		wait_for_lock("relay");
		start(&acting, first, drops);
		wait_for_lock("actor");
		world_run("COMMIT");
		finish_marking(&marking);
		finish(&acting, false);
		assert_row(first, "state = 'RESUMED' AND from_ledger AND NOT " IN_OUTBOX);
		assert_int_equal(number_of(first, AUDIT_ROWS), 0);

		/* The operator is first: it has changed the row, and is held up at the gate event. */
		world_run("UPDATE fermata.ledger_offset SET next = 10");
		world_run("BEGIN; SELECT 1 FROM fermata.gate_outbox FOR UPDATE");
		start(&acting, second, drops);
		wait_for_lock("actor");
		start_marking(&marking, second);
		wait_for_lock("relay");
		world_run("COMMIT");
		finish(&acting, true);
		finish_marking(&marking);
		assert_row(second, "state = 'RESUMED' AND published AND NOT " IN_OUTBOX);
	}
	assert_int_equal(take_rows().rows_len, 0);
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
	finish(&acting, true);
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
	finish(&acting, false);
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
	finish(&acting, true);
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
	finish(&acting, true);
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
		assert_int_equal(pthread_join(acting.thread, NULL), 0);
		assert_fate(FATE_RETRY, acting.fate, acting.error);
		assert_false(acting.result.done);
		assert_row(2, "state = 'QUARANTINED' AND reason = '" BROKEN "' AND NOT " IN_OUTBOX);
		assert_int_equal(number_of(2, AUDIT_ROWS), 0);
		if (drops) {
			assert_int_equal(pthread_create(&acting.thread, NULL, act, &acting), 0);
			finish(&acting, true);
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
		acting.drops = rand_r(&crowd->seed) % 2 == 0;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_the_ledger_holds_is_never_published_again, begin_quarantine,
		                                end_quarantine),
		cmocka_unit_test_setup_teardown(a_verdict_that_comes_meanwhile_counts, begin_quarantine,
		                                end_quarantine),
		cmocka_unit_test_setup_teardown(a_later_suspend_supersedes_before_and_after, begin_quarantine,
		                                end_quarantine),
		cmocka_unit_test_setup_teardown(an_expiry_under_way_is_waited_for, begin_quarantine, end_quarantine),
		cmocka_unit_test_setup_teardown(a_deed_that_breaks_off_is_not_done, begin_quarantine, end_quarantine),
		cmocka_unit_test_setup_teardown(of_many_operators_one_is_first, begin_quarantine, end_quarantine),
	};

	if (!world_begin(false))
		return SKIPPED;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_end();
	return failed;
}
