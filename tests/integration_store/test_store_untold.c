/* R5 after an R3 that saw that nothing waits in gate_outbox of what it took. */
#include "tests/integration_store/store_support.h"

#include <string.h>

#define BYTES_MANY ((size_t)64 * 1024 * 1024)

static struct store *store;
static struct arena *arena;
static const struct shard even = { CLUSTER, "resumes", 0 };
static const uint8_t today[32] = { 1, 2, 3 };

static int setup(void **state)
{
	(void)state;
	store = open_store("relay");
	arena = arena_new((size_t)128 * 1024 * 1024);
	assert_non_null(arena);
	world_run("INSERT INTO fermata.resumes_topic VALUES ('resumes', 2)");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	store_close(store);
	arena_free(arena);
	world_run("TRUNCATE fermata.checkpoint, fermata.payload, fermata.decision, fermata.outbox,"
	          " fermata.gate_outbox, fermata.ledger_offset, fermata.resumes_topic");
	return 0;
}

static void both_ledgers_are_read(void)
{
	const struct shard odd = { CLUSTER, "resumes", 1 };
	struct error error = { 0 };
	size_t fresh;

	assert_ok(store_ledger_advance(store, &even, LEDGER_NONE, 10, NO_DOUBT, today, NULL, 0, &fresh, &error),
	          error);
	assert_ok(store_ledger_advance(store, &odd, LEDGER_NONE, 20, NO_DOUBT, today, NULL, 0, &fresh, &error),
	          error);
}

/* 2, 4 and 6, in the even shard. */
static void three_are_decided(void)
{
	for (uint32_t number = 2; number <= 6; number += 2) {
		insert_checkpoint(store, arena, make_checkpoint(arena, number, 1000));
		decide_checkpoint(store, arena, number);
	}
}

static struct relay_take take_rows(size_t rows)
{
	struct relay_take take;
	struct error error = { 0 };

	assert_ok(store_relay_take(store, &even, today, NULL, 0, rows, BYTES_MANY, true, true, NULL, arena, &take,
	                           &error),
	          error);
	return take;
}

/* Of what is known to have nothing in gate_outbox nothing is looked for there; what R3 could not see whole is not known. */
static void what_was_not_told_is_not_looked_for(void **state)
{
	struct error error = { 0 };

	(void)state;
	both_ledgers_are_read();
	three_are_decided();
	world_run("DELETE FROM fermata.gate_outbox WHERE checkpoint_id::text NOT LIKE '%04'");
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 1);
	struct relay_take take = take_rows(1);
	assert_int_equal(take.rows_len, 1);
	assert_false(take.rows[0].untold); /* the list of what waits was full */
	take = take_rows(10);
	assert_int_equal(take.rows_len, 3);
	struct gate_sent sent[3];
	for (size_t i = 0; i < 3; i++) {
		const struct checkpoint *row = take.rows[i].checkpoint;
		assert_int_equal(take.rows[i].untold, row->id.bytes[15] != 4);
		sent[i] = (struct gate_sent){ row->id, row->version + 1, take.rows[i].untold };
	}
	/* Not even what came since goes, should it be there after all: it is told once more. */
	world_run("INSERT INTO fermata.gate_outbox SELECT checkpoint_id, topic, partition, 1 FROM fermata.outbox"
	          " WHERE checkpoint_id::text LIKE '%06'");
	assert_ok(store_relay_mark(store, &even, 10, 13, sent, 3, NULL, 0, T0 * 4, &error), error);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 1);
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.gate_outbox WHERE checkpoint_id::text LIKE '%06'"), 1);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_was_not_told_is_not_looked_for, setup, teardown),
	};

	if (!world_begin(false))
		return SKIPPED;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	world_end();
	return failed;
}
