/* The connection is lost at every step: the call says RETRY, nothing is half done, and the next one works. */
#include "tests/integration_store/store_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int setup(void **state)
{
	(void)state;
	return begin_test(open_store("victim"), (size_t)64 * 1024 * 1024);
}

/* ---- every call, on a connection that has just been ended ---- */

typedef enum fate call(struct error *error);

static enum fate call_connected(struct error *error)
{
	return store_check_version(store, error);
}

static enum fate call_positions(struct error *error)
{
	struct position *positions;
	size_t len;

	return store_positions(store, CLUSTER, arena, &positions, &len, error);
}

static enum fate call_waits(struct error *error)
{
	return store_position_waits(store, CLUSTER, "in", 0, WAITS_ALARM, error);
}

static enum fate call_batch_begin(struct error *error)
{
	struct batch_request request = { .cluster_id = CLUSTER };
	struct batch_loaded loaded;
	enum fate fate = store_batch_begin(store, &request, arena, &loaded, error);

	store_rollback(store);
	return fate;
}

static enum fate call_ledger(struct error *error)
{
	struct ledger ledger;

	return store_ledger(store, &shard, &ledger, error);
}

static enum fate call_take(struct error *error)
{
	struct relay_take take;

	return store_relay_take(
		store, &shard,
		&(struct relay_want){
			.routes_digest = routes, .rows = 10, .bytes = 1000, .with_action = true, .with_decided = true },
		arena, &take, error);
}

static enum fate call_mark(struct error *error)
{
	return store_relay_mark(store, &shard, 5, 5, NULL, 0, NULL, 0, T0, error);
}

static enum fate call_advance(struct error *error)
{
	size_t fresh;

	return store_ledger_advance(store, &shard, 5, 5, NO_DOUBT, routes, NULL, 0, &fresh, error);
}

static enum fate call_expiry(struct error *error)
{
	struct due *due;
	size_t len;
	enum fate fate = store_expiry_claim(store, T0, T0, T0, 10, arena, &due, &len, error);

	store_rollback(store);
	return fate;
}

static enum fate call_sweep(struct error *error)
{
	size_t count;

	return store_unclaimed_sweep(store, T0, 10, &count, error);
}

static enum fate call_backlog(struct error *error)
{
	int64_t counts[3];

	return store_backlog(store, &counts[0], &counts[1], &counts[2], error);
}

static enum fate call_days(struct error *error)
{
	return store_payload_days(store, T0, 1, error);
}

static enum fate call_migrate(struct error *error)
{
	int from;
	int to;

	return store_migrate(store, &from, &to, error);
}

static bool no_more(void *context, const struct checkpoint *checkpoint)
{
	(void)context;
	(void)checkpoint;
	return false;
}

static enum fate call_checkpoints(struct error *error)
{
	struct checkpoint_filter filter = { .open_only = true };

	return store_checkpoints(store, &filter, arena, no_more, NULL, error);
}

static enum fate call_decisions(struct error *error)
{
	struct decision **decisions;
	size_t len;
	struct uuid id = uuid_of(1);

	return store_decisions(store, &id, arena, &decisions, &len, error);
}

static void every_call_survives_the_end_of_its_session(void **state)
{
	(void)state;
	static call *const calls[] = {
		call_connected, call_positions, call_waits,       call_batch_begin, call_ledger,
		call_take,      call_mark,      call_advance,     call_expiry,      call_sweep,
		call_backlog,   call_days,      call_checkpoints, call_decisions,   call_migrate,
	};
	struct error error = { 0 };
	struct move move = move_of(0, POSITION_NEW, 1);
	size_t fresh;

	begin_batch(store, arena, &move, NULL, 0, NULL);
	assert_ok(store_commit(store, &error), error);
	assert_ok(store_ledger_advance(store, &shard, LEDGER_NONE, 5, NO_DOUBT, routes, NULL, 0, &fresh, &error),
	          error);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		assert_ok(calls[i](&error), error);
		uint64_t before = store_reconnects(store);
		world_kill("victim");
		assert_fate(FATE_RETRY, calls[i](&error), error);
		assert_int_equal(error.code, ERR_SERVICE);
		assert_int_equal(store_socket(store), -1);
		assert_ok(calls[i](&error), error);
		assert_int_equal(store_reconnects(store), before + 1);
	}
}

/* ---- between the steps of a batch ---- */

static enum fate write_one(uint32_t number, struct error *error)
{
	struct checkpoint_write row = {
		.checkpoint = make_checkpoint(arena, number, 2000), .insert = true, .fill = true, .outbox = true
	};
	struct batch_write batch = { .checkpoints = &row, .checkpoints_len = 1 };

	return store_batch_write(store, &batch, error);
}

static void a_batch_is_lost_as_a_whole(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct move move = move_of(3, POSITION_NEW, 7);

	begin_batch(store, arena, &move, NULL, 0, NULL);
	world_kill("victim");
	assert_fate(FATE_RETRY, write_one(1, &error), error);
	/* A caller that goes on all the same must not write outside of the transaction that was lost. */
	assert_fate(FATE_RETRY, write_one(1, &error), error);
	assert_fate(FATE_RETRY, store_commit(store, &error), error);
	assert_int_equal(store_reconnects(store), 1);
	store_rollback(store);

	begin_batch(store, arena, &move, NULL, 0, NULL);
	assert_ok(write_one(1, &error), error);
	world_kill("victim");
	assert_fate(FATE_RETRY, store_commit(store, &error), error);
	store_rollback(store);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.kafka_offset"), 0);

	begin_batch(store, arena, &move, NULL, 0, NULL);
	assert_ok(write_one(1, &error), error);
	assert_ok(store_commit(store, &error), error);
	assert_int_equal(world_number("SELECT next FROM fermata.kafka_offset"), 7);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 1);
}

static void a_rollback_on_a_lost_connection_is_harmless(void **state)
{
	(void)state;
	struct error error = { 0 };

	begin_batch(store, arena, NULL, NULL, 0, NULL);
	world_kill("victim");
	store_rollback(store);
	store_rollback(store);
	assert_ok(store_check_version(store, &error), error);
	assert_int_equal(store_reconnects(store), 2);
}

/* ---- at a random moment of a large batch ---- */

static void *kill_later(void *argument)
{
	usleep(*(useconds_t *)argument);
	world_kill("victim");
	return NULL;
}

static enum fate large_batch(uint32_t round, struct error *error)
{
	struct checkpoint_write rows[20];
	struct move move = move_of(5, round == 0 ? POSITION_NEW : (int64_t)round, (int64_t)round + 1);
	struct batch_request request = { .cluster_id = CLUSTER, .moves = &move, .moves_len = 1 };
	struct batch_loaded loaded;

	memset(rows, 0, sizeof(rows));
	for (uint32_t i = 0; i < 20; i++) {
		rows[i].checkpoint = make_checkpoint(arena, 5000 + round * 20 + i, 300 * 1024);
		rows[i].insert = true;
		rows[i].fill = true;
	}
	struct batch_write batch = { .checkpoints = rows, .checkpoints_len = 20 };
	enum fate fate = store_batch_begin(store, &request, arena, &loaded, error);
	if (fate == FATE_OK && loaded.stale)
		return FATE_OK; /* the COMMIT whose answer was lost had worked */
	if (fate == FATE_OK)
		fate = store_batch_write(store, &batch, error);
	return fate == FATE_OK ? store_commit(store, error) : fate;
}

static void a_large_batch_is_killed_anywhere(void **state)
{
	(void)state;
	enum { ROUNDS = 20 };
	uint32_t retries = 0;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		useconds_t delay = round * 4000;
		pthread_t thread;
		struct error error = { 0 };
		assert_int_equal(pthread_create(&thread, NULL, kill_later, &delay), 0);
		enum fate fate = large_batch(round, &error);
		while (fate == FATE_RETRY) {
			retries++;
			store_rollback(store);
			arena_reset(arena);
			fate = large_batch(round, &error);
		}
		assert_fate(FATE_OK, fate, error);
		store_rollback(store);
		pthread_join(thread, NULL);
		arena_reset(arena);
	}
	print_message("%d batches of 6 MB, %u of them had to be done again\n", ROUNDS, retries);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint"), ROUNDS * 20);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload"), ROUNDS * 20);
	assert_int_equal(world_number("SELECT next FROM fermata.kafka_offset"), ROUNDS);
}

/* ---- what the server says by itself ---- */

/* Raises the SQLSTATE of the moment whenever a position is made. */
static void raise_on_insert(const char *sqlstate)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
	         "CREATE OR REPLACE FUNCTION fermata.test_raise() RETURNS trigger LANGUAGE plpgsql AS $$"
	         "BEGIN RAISE EXCEPTION 'holds the word secret' USING ERRCODE = '%s', DETAIL = 'secret'; END $$",
	         sqlstate);
	world_run(sql);
}

static void each_class_of_errors_has_its_fate(void **state)
{
	(void)state;
	static const struct {
		const char *sqlstate;
		enum fate fate;
		enum error_code code;
	} cases[] = {
		{ "08006", FATE_RETRY, ERR_SERVICE }, { "25006", FATE_RETRY, ERR_SERVICE },
		{ "40001", FATE_RETRY, ERR_BUSY },    { "40P01", FATE_RETRY, ERR_BUSY },
		{ "53100", FATE_RETRY, ERR_SERVICE }, { "55P03", FATE_RETRY, ERR_BUSY },
		{ "57014", FATE_RETRY, ERR_BUSY },    { "58030", FATE_RETRY, ERR_SERVICE },
		{ "XX001", FATE_RETRY, ERR_SERVICE }, { "22003", FATE_REJECT, ERR_POISON },
		{ "23514", FATE_REJECT, ERR_POISON }, { "54000", FATE_REJECT, ERR_POISON },
		{ "P0001", FATE_REJECT, ERR_POISON }, { "42501", FATE_FATAL, ERR_USAGE },
	};
	struct move move = move_of(7, POSITION_NEW, 1);
	struct batch_request request = { .cluster_id = CLUSTER, .moves = &move, .moves_len = 1 };
	struct batch_loaded loaded;
	struct error error = { 0 };

	raise_on_insert("XX000");
	world_run("CREATE TRIGGER test_raise BEFORE INSERT ON fermata.kafka_offset"
	          " FOR EACH ROW EXECUTE FUNCTION fermata.test_raise()");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t before;
		raise_on_insert(cases[i].sqlstate);
		assert_ok(store_connect(store, &error), error);
		before = store_reconnects(store);
		assert_fate(cases[i].fate, store_batch_begin(store, &request, arena, &loaded, &error), error);
		assert_int_equal(error.code, cases[i].code);
		assert_string_equal(error.native, cases[i].sqlstate);
		assert_true(cases[i].fate != FATE_REJECT || strstr(error.message, "secret") == NULL);
		store_rollback(store);
		/* The batch again, on a new connection where it is one that may work then. */
		assert_ok(store_check_version(store, &error), error);
		assert_int_equal(store_reconnects(store), before + (cases[i].fate == FATE_RETRY ? 1 : 0));
	}
	world_run("DROP TRIGGER test_raise ON fermata.kafka_offset; DROP FUNCTION fermata.test_raise()");
}

static void *cancel_who_waits(void *argument)
{
	(void)argument;
	world_wait("SELECT count(pg_cancel_backend(pid)) FROM pg_stat_activity"
	           " WHERE application_name = 'victim' AND wait_event_type = 'Lock'");
	return NULL;
}

static void a_wait_for_a_lock_can_be_ended(void **state)
{
	(void)state;
	struct store *other = open_store("other");
	struct uuid id = uuid_of(1);
	struct batch_request request = { .cluster_id = CLUSTER, .checkpoints = &id, .checkpoints_len = 1 };
	struct batch_loaded loaded;
	struct error error = { 0 };
	pthread_t thread;

	insert_checkpoint(store, arena, make_checkpoint(arena, 1, 10));
	begin_batch(other, arena, NULL, &id, 1, NULL);
	assert_int_equal(pthread_create(&thread, NULL, cancel_who_waits, NULL), 0);
	assert_fate(FATE_RETRY, store_batch_begin(store, &request, arena, &loaded, &error), error);
	assert_string_equal(error.native, "57014");
	pthread_join(thread, NULL);
	store_rollback(store);
	store_rollback(other);
	assert_ok(store_batch_begin(store, &request, arena, &loaded, &error), error);
	assert_int_equal(loaded.checkpoints_len, 1);
	store_rollback(store);
	store_close(other);
}

/* A column of another type: this program must not guess. */
static void a_foreign_schema_stops_the_process(void **state)
{
	(void)state;
	struct position *positions;
	size_t len;
	struct error error = { 0 };
	struct move move = move_of(0, POSITION_NEW, 1);

	begin_batch(store, arena, &move, NULL, 0, NULL);
	assert_ok(store_commit(store, &error), error);
	world_run("ALTER TABLE fermata.kafka_offset ALTER COLUMN next TYPE numeric");
	/* The statement was prepared before: once it is refused for that, then on a new connection. */
	assert_fate(FATE_RETRY, store_positions(store, CLUSTER, arena, &positions, &len, &error), error);
	assert_fate(FATE_FATAL, store_positions(store, CLUSTER, arena, &positions, &len, &error), error);
	assert_non_null(strstr(error.message, "column next"));
	world_run("ALTER TABLE fermata.kafka_offset ALTER COLUMN next TYPE bigint");
	struct store *fresh = open_store("fresh");
	assert_ok(store_positions(fresh, CLUSTER, arena, &positions, &len, &error), error);
	store_close(fresh);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_call_survives_the_end_of_its_session),  TEST(a_batch_is_lost_as_a_whole),
		TEST(a_rollback_on_a_lost_connection_is_harmless), TEST(a_large_batch_is_killed_anywhere),
		TEST(each_class_of_errors_has_its_fate),           TEST(a_wait_for_a_lock_can_be_ended),
		TEST(a_foreign_schema_stops_the_process),
	};

	return run_in_world(tests);
}
