/* A few resumes that go without their gate events, which R5 then leaves in gate_outbox. */
#include "tests/integration_store/relay_support.h"

#include <stdio.h>

static size_t asked; /* for gate events that were handed over */

static const void *ask(void *context, const struct uuid *id, int64_t version, size_t *ret_bytes)
{
	(void)context;
	(void)id;
	(void)version;
	*ret_bytes = 0;
	asked++;
	return NULL;
}

/* R3 of the even shard, where so many at most go alone; told of what was decided just now. */
static struct relay_take take_lone(size_t lone, size_t rows, const struct fresh *fresh, size_t fresh_len)
{
	struct handed handed = { ask, NULL, fresh, fresh_len };
	struct relay_want want = { .routes_digest = today,
		                       .rows = rows,
		                       .bytes = BYTES_MANY,
		                       .lone = lone,
		                       .with_action = true,
		                       .handed = &handed };
	struct relay_take take;
	struct error error = { 0 };

	asked = 0;
	assert_ok(store_relay_take(store, &even, &want, arena, &take, &error), error);
	assert_true(take.ready);
	for (size_t i = 0; i < take.rows_len; i++)
		assert_int_equal(take.rows[i].checkpoint->sealed.body.len, 1000);
	return take;
}

static void assert_alone(const struct relay_take *take, size_t rows)
{
	assert_true(take->lone);
	assert_false(take->more);
	assert_int_equal(take->rows_len, rows);
	assert_int_equal(take->gates_len, 0);
	assert_int_equal(asked, 0); /* what was handed over is there for the next time */
}

static void assert_together(const struct relay_take *take, size_t rows, size_t gates)
{
	assert_false(take->lone);
	assert_int_equal(take->rows_len, rows);
	assert_int_equal(take->gates_len, gates);
	assert_int_equal(asked, gates);
}

static void few_resumes_are_taken_alone(void **state)
{
	(void)state;
	both_ledgers_are_read();
	insert_checkpoint(store, arena, make_checkpoint(arena, 8, 1000)); /* a gate event that waits */
	struct relay_take take = take_lone(2, 10, NULL, 0);
	assert_together(&take, 0, 1); /* nothing else is there to be done */
	decided(2, 2);                /* 2, 4 */
	struct fresh fresh[] = { { uuid_of(2), load(2)->appended_at }, { uuid_of(4), load(4)->appended_at } };
	for (size_t noted = 0; noted <= 2; noted++) {
		uint64_t waits = store_round_trips(store);
		take = take_lone(2, 10, fresh, noted);
		assert_alone(&take, 2);
		assert_int_equal(store_round_trips(store) - waits, noted == 0 ? 2 : noted == 1 ? 3 : 1);
		take = take_lone(1, 10, fresh, noted);
		assert_together(&take, 2, 1);
		take = take_lone(0, 10, fresh, noted);
		assert_together(&take, 2, 1);
		take = take_lone(2, 2, fresh, noted); /* there may be more than were asked for */
		assert_int_equal(take.rows_len, 2);
		assert_false(take.lone);
	}
}

/* Another ledger was not read: nothing is resumed, and what people are told does not wait for it. */
static void nothing_stays_behind_where_nothing_is_resumed(void **state)
{
	(void)state;
	advance(&even, LEDGER_NONE, 10, NULL, 0);
	decided(2, 1);
	struct fresh fresh = { uuid_of(2), load(2)->appended_at };
	struct handed handed = { ask, NULL, &fresh, 1 };
	struct relay_want want = { .routes_digest = today,
		                       .rows = 10,
		                       .bytes = BYTES_MANY,
		                       .lone = 7,
		                       .with_decided = true,
		                       .handed = &handed };
	struct relay_take take;
	struct error error = { 0 };

	assert_ok(store_relay_take(store, &even, &want, arena, &take, &error), error);
	assert_false(take.ready);
	assert_false(take.lone);
	assert_int_equal(take.rows_len, 0);
	assert_int_equal(take.gates_len, 1);
}

/* What of gate_outbox the number has: its version, or -1. */
static int64_t waiting_version(uint32_t number)
{
	char sql[200];

	snprintf(sql, sizeof(sql),
	         "SELECT coalesce(max(version), -1) FROM fermata.gate_outbox"
	         " WHERE topic = '%s' AND partition = %d AND checkpoint_id::text LIKE '%%%02x'",
	         even.topic, (int)even.partition, (unsigned)number);
	return world_number(sql);
}

static void what_is_told_later_waits(void **state)
{
	(void)state;
	struct error error = { 0 };
	both_ledgers_are_read();
	decided(2, 4); /* 2, 4, 6, 8 */
	struct gate_sent sent[] = { { uuid_of(8), T0 * 3 + 8, WAITING_COMES },
		                        { uuid_of(2), T0 * 3 + 2, WAITING_COMES },
		                        { uuid_of(4), T0 * 3 + 4, WAITING_COMES },
		                        { uuid_of(6), T0 * 3 + 6, WAITING_GOES } };

	world_run("DELETE FROM fermata.gate_outbox WHERE checkpoint_id::text LIKE '%02'");
	world_run("UPDATE fermata.gate_outbox SET version = 9000000000000000000"
	          " WHERE checkpoint_id::text LIKE '%04'"); /* the tombstone of what was erased meanwhile */
	assert_ok(store_relay_mark(store, &even, 10, 14, sent, 4, NULL, 0, T0 * 4, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 0);
	assert_int_equal(load(2)->state, GATE_RESUMED);
	assert_int_equal(load(2)->version, T0 * 3 + 2);
	assert_int_equal(waiting_version(2), T0 * 3 + 2);
	assert_int_equal(waiting_version(4), INT64_C(9000000000000000000));
	assert_int_equal(waiting_version(6), -1);
	assert_int_equal(waiting_version(8), T0 * 3 + 8); /* there was one of its suspend */
	struct relay_take take = take_lone(7, 10, NULL, 0);
	assert_together(&take, 0, 3);
	for (size_t i = 0; i < take.gates_len; i++)
		assert_int_equal(take.gates[i].checkpoint->state, GATE_RESUMED);
}

/* The database went back: neither the mark nor what is to be told is there. */
static void nothing_is_told_of_a_mark_that_is_stale(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct gate_sent sent = { uuid_of(2), T0 * 3, WAITING_COMES };
	both_ledgers_are_read();
	decided(2, 1);
	world_run("DELETE FROM fermata.gate_outbox");
	assert_fate(FATE_RETRY, store_relay_mark(store, &even, 9, 11, &sent, 1, NULL, 0, T0 * 4, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 0);
	assert_int_equal(load(2)->state, GATE_DECIDED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_relay, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(few_resumes_are_taken_alone),
		TEST(nothing_stays_behind_where_nothing_is_resumed),
		TEST(what_is_told_later_waits),
		TEST(nothing_is_told_of_a_mark_that_is_stale),
	};

	return run_in_world(tests);
}
