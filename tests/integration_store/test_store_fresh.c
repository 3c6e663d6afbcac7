/* What was decided just now: a relay asks for it together with its state, and is right whatever it was told. */
#include "tests/integration_store/relay_support.h"

#include <string.h>

static const void *has_none(void *context, const struct uuid *id, int64_t version, size_t *ret_bytes)
{
	(void)context;
	(void)id;
	(void)version;
	*ret_bytes = 0;
	return NULL;
}

/* R3 of the even shard, told that these were decided just now; how often it has waited for the server. */
static uint64_t take_fresh(const struct fresh *fresh, size_t len, struct relay_take *ret_take)
{
	struct handed handed = { has_none, NULL, fresh, len };
	struct error error = { 0 };
	uint64_t waits = store_round_trips(store);

	assert_ok(store_relay_take(store, &even,
	                           &(struct relay_want){ .routes_digest = today,
	                                                 .rows = 10,
	                                                 .bytes = BYTES_MANY,
	                                                 .lone = 7,
	                                                 .with_action = true,
	                                                 .handed = &handed },
	                           arena, ret_take, &error),
	          error);
	assert_true(ret_take->ready);
	assert_int_equal(ret_take->ledger.next, 10);
	return store_round_trips(store) - waits;
}

static struct fresh fresh_of(uint32_t number)
{
	return (struct fresh){ uuid_of(number), load(number)->appended_at };
}

static void assert_whole(const struct relay_take *take, size_t rows)
{
	assert_int_equal(take->rows_len, rows);
	for (size_t i = 0; i < rows; i++) {
		struct uuid id = uuid_of((uint32_t)(2 * i + 2));
		assert_memory_equal(&take->rows[i].checkpoint->id, &id, sizeof(id));
		assert_int_equal(take->rows[i].checkpoint->sealed.body.len, 1000);
		assert_int_equal(take->rows[i].decisions_len, 1);
	}
}

/* A lone decision is not made to wait for the server twice; whatever was noted, what is taken is what is there. */
static void what_was_decided_just_now_is_taken_in_one_go(void **state)
{
	(void)state;
	struct relay_take take;
	both_ledgers_are_read();
	decided(2, 2); /* 2, 4 */
	decided(3, 1); /* the other shard's */
	struct fresh fresh[3] = { fresh_of(2), fresh_of(4), fresh_of(3) };

	assert_int_equal(take_fresh(fresh, 2, &take), 1);
	assert_whole(&take, 2);
	assert_true(take.lone);
	assert_false(take.more);
	assert_int_equal(take_fresh(fresh, 3, &take), 1); /* what is not in the outbox is not taken */
	assert_whole(&take, 2);
	assert_int_equal(take_fresh(fresh, 1, &take), 3); /* there is more than was noted */
	assert_whole(&take, 2);
	fresh[1].appended_at += INT64_C(86400000000); /* it is not where it should be */
	assert_int_equal(take_fresh(fresh, 2, &take), 3);
	assert_whole(&take, 2);
	world_run("DELETE FROM fermata.outbox; DELETE FROM fermata.gate_outbox");
	assert_int_equal(take_fresh(fresh, 2, &take), 3);
	assert_whole(&take, 0);
}

/* Where it should be lies another one of that id: the row says where its own is. */
static void what_has_outlived_its_row_is_not_taken_for_it(void **state)
{
	(void)state;
	struct relay_take take;
	both_ledgers_are_read();
	decided(2, 1);
	struct fresh fresh = fresh_of(2);

	world_run("UPDATE fermata.checkpoint SET payload_day = payload_day + 1");
	world_run("INSERT INTO fermata.payload (checkpoint_id, day, body, tail)"
	          " SELECT checkpoint_id, day + 1, body, tail FROM fermata.payload");
	world_run("UPDATE fermata.payload p SET body = 'another', tail = NULL FROM fermata.checkpoint c"
	          " WHERE c.checkpoint_id = p.checkpoint_id AND c.payload_day <> p.day");
	assert_int_equal(take_fresh(&fresh, 1, &take), 3);
	assert_whole(&take, 1);
}

/* The states alone are guessed; gate events stay behind. */
static void edits_are_read(void **state)
{
	(void)state;
	struct relay_take take;
	both_ledgers_are_read();
	decided(2, 1);
	insert_checkpoint(store, arena, make_checkpoint(arena, 8, 1000));
	struct fresh fresh = fresh_of(2);

	assert_int_equal(take_fresh(&fresh, 1, &take), 1);
	assert_whole(&take, 1);
	assert_int_equal(take.gates_len, 0);
	world_run("UPDATE fermata.decision SET edits_format = 1, edits_compression = 0, edits_plain_len = 3,"
	          " edits_kek_id = 'k', edits_wrapped_key = '\\x00', edits_commit = '\\x00', edits_body = 'abc'");
	assert_int_equal(take_fresh(&fresh, 1, &take), 3);
	assert_whole(&take, 1);
	assert_true(take.rows[0].decisions[0]->has_edits);
	assert_int_equal(take.rows[0].decisions[0]->edits.body.len, 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_relay, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_decided_just_now_is_taken_in_one_go),
		TEST(what_has_outlived_its_row_is_not_taken_for_it),
		TEST(edits_are_read),
	};

	return run_in_world(tests);
}
