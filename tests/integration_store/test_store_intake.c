/* What operators say to intake: records of a stopped partition are let through up to an offset. */
#include "tests/integration_store/store_fixture.h"

#include "store/store_intake.h"

static struct error error;

static int begin(void **state)
{
	(void)state;
	world_run("INSERT INTO fermata.installation VALUES (true, 'fermata', '" CLUSTER "', 1);"
	          "INSERT INTO fermata.kafka_offset (cluster_id, topic, partition, next) VALUES"
	          " ('" CLUSTER "', 'in', 0, 100), ('" CLUSTER "', 'in', 1, 200), ('another', 'in', 0, 7)");
	return begin_test(open_store("operator"), (size_t)1 << 20);
}

static void stop(int32_t partition)
{
	assert_ok(store_position_waits(store, CLUSTER, "in", partition, WAITS_BREAKER, &error), error);
}

static struct let_through_result let_through(int32_t partition, int64_t count, int64_t until)
{
	struct let_through what = { .topic = "in",
		                        .partition = partition,
		                        .count = count,
		                        .until = until,
		                        .who = VIEW_LITERAL("ann@desk"),
		                        .reason = VIEW_LITERAL("an old agent"),
		                        .now = T0 };
	struct let_through_result result;

	assert_ok(store_let_through(store, &what, &result, &error), error);
	return result;
}

static const struct position *position(int32_t partition)
{
	struct position *rows;
	size_t len;

	assert_ok(store_positions(store, CLUSTER, arena, &rows, &len, &error), error);
	assert_int_equal(len, 2);
	return &rows[partition];
}

static void up_to_an_offset_or_so_many(void **state)
{
	(void)state;
	stop(0);
	stop(1);
	assert_true(position(0)->waits == WAITS_BREAKER && position(0)->let_through == 0);
	struct let_through_result result = let_through(0, 0, 150);
	assert_true(result.known && result.done && result.next == 100 && result.until == 150);
	result = let_through(1, 25, 0);
	assert_true(result.done && result.next == 200 && result.until == 225);
	assert_int_equal(position(0)->let_through, 150);
	assert_int_equal(position(1)->let_through, 225);
	assert_int_equal(position(0)->waits, WAITS_BREAKER); /* the worker that has it goes on, and says so */
	assert_int_equal(world_number("SELECT count(*) FROM fermata.kafka_offset WHERE cluster_id = 'another' AND"
	                              " let_through IS NULL"),
	                 1);
	assert_int_equal(
		world_number(
			"SELECT count(*) FROM fermata.audit WHERE what = 'intake.let_through' AND who = 'ann@desk'"
			" AND reason = 'an old agent' AND checkpoint_id IS NULL"
			" AND details IN ('in:0 from offset 100 to below 150', 'in:1 from offset 200 to below 225')"),
		2);
	result = let_through(0, INT64_MAX, 0);
	assert_true(result.done && result.until == INT64_MAX);
}

static void what_is_not_stopped_is_not_touched(void **state)
{
	(void)state;
	struct let_through_result result = let_through(0, 10, 0);
	assert_true(result.known && !result.done && result.next == 100);
	assert_ok(store_position_waits(store, CLUSTER, "in", 1, WAITS_ALARM, &error), error);
	assert_false(let_through(1, 10, 0).done);
	stop(0);
	assert_false(let_through(0, 0, 100).done);
	assert_false(let_through(7, 10, 0).known);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.kafka_offset WHERE let_through IS NOT NULL"),
	                 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.audit"), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(up_to_an_offset_or_so_many),
		TEST(what_is_not_stopped_is_not_touched),
	};

	return run_in_world(tests);
}
