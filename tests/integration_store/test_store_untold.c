/* R5 after an R3 that saw that nothing waits in gate_outbox of what it took. */
#include "tests/integration_store/relay_support.h"

/* Of what is known to have nothing in gate_outbox nothing is looked for there; what R3 could not see whole is not known. */
static void what_was_not_told_is_not_looked_for(void **state)
{
	struct error error = { 0 };

	(void)state;
	both_ledgers_are_read();
	decided(2, 3); /* 2, 4, 6 */
	world_run("DELETE FROM fermata.gate_outbox WHERE checkpoint_id::text NOT LIKE '%04'");
	assert_int_equal(world_number("SELECT count(*) FROM fermata.gate_outbox"), 1);
	struct relay_take take = take_even(1, BYTES_MANY, true);
	assert_int_equal(take.rows_len, 1);
	assert_false(take.rows[0].untold); /* the list of what waits was full */
	take = take_even(10, BYTES_MANY, true);
	assert_int_equal(take.rows_len, 3);
	struct gate_sent sent[3];
	for (size_t i = 0; i < 3; i++) {
		const struct checkpoint *row = take.rows[i].checkpoint;
		assert_int_equal(take.rows[i].untold, row->id.bytes[15] != 4);
		sent[i] = (struct gate_sent){ row->id, row->version + 1,
			                          take.rows[i].untold ? WAITING_NONE : WAITING_GOES };
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
		cmocka_unit_test_setup_teardown(what_was_not_told_is_not_looked_for, begin_relay, end_test),
	};

	return run_in_world(tests);
}
