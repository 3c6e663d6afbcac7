/* What is new and many goes by COPY: the same rows as one by one, and nothing of them after a failure. */
#include "tests/integration_store/store_fixture.h"

#include <stdio.h>
#include <string.h>

#define MANY 20 /* enough for a COPY (store_batch_new.c) */

#define ALL_TABLES                                                                                           \
	"fermata.checkpoint, fermata.payload, fermata.decision, fermata.outbox, fermata.expiry, "                \
	"fermata.gate_outbox,"                                                                                   \
	" fermata.kafka_offset"

static struct checkpoint_write writes[MANY];
static struct uuid ids[MANY];

static int setup(void **state)
{
	(void)state;
	return begin_test(open_store("copy"), (size_t)256 * 1024 * 1024);
}

static int teardown(void **state)
{
	world_run("DROP TABLE IF EXISTS singly_c, singly_p, singly_d, singly_o, singly_e, singly_g");
	return end_test(state);
}

static void make_many(size_t body_len)
{
	memset(writes, 0, sizeof(writes));
	for (uint32_t i = 0; i < MANY; i++) {
		struct checkpoint *made = make_checkpoint(arena, i + 1, body_len);
		made->has_risk = i % 2 == 0;
		made->approvers_len = i % 3 == 0 ? 0 : made->approvers_len;
		made->expires_at = i % 5 == 0 ? TIME_NONE : made->expires_at;
		ids[i] = made->id;
		writes[i] = (struct checkpoint_write){
			.checkpoint = made, .insert = true, .fill = true, .gate_event = true, .expiry_set = true
		};
	}
}

/* Begins a batch on all of them and writes it; the caller commits or rolls back. */
static enum fate write_many(bool singly, struct error *error)
{
	struct batch_write write = { .checkpoints = writes, .checkpoints_len = MANY, .singly = singly };

	begin_batch(store, arena, NULL, ids, MANY, NULL);
	return store_batch_write(store, &write, error);
}

static void commit_many(bool singly)
{
	struct error error = { 0 };

	assert_ok(write_many(singly, &error), error);
	assert_ok(store_commit(store, &error), error);
}

static int64_t rows_in(const char *table)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM fermata.%s", table);
	return world_number(sql);
}

static void assert_nothing_is_there(void)
{
	assert_int_equal(rows_in("checkpoint"), 0);
	assert_int_equal(rows_in("expiry"), 0);
	assert_int_equal(rows_in("gate_outbox"), 0);
}

static void assert_same_rows(const char *table, const char *others)
{
	char sql[512];

	snprintf(sql, sizeof(sql),
	         "SELECT count(*) FROM ((TABLE fermata.%s EXCEPT TABLE %s) UNION ALL (TABLE %s EXCEPT TABLE "
	         "fermata.%s)) d",
	         table, others, others, table);
	assert_int_equal(world_number(sql), 0);
}

static void many_leave_the_rows_that_one_by_one_leave(void **state)
{
	(void)state;
	make_many(3000);
	writes[3].fill = false; /* a decision came first: nothing of the event is known */
	((struct checkpoint *)(uintptr_t)writes[3].checkpoint)->filled = false;
	commit_many(true);
	world_run(
		"CREATE TABLE singly_c AS TABLE fermata.checkpoint; CREATE TABLE singly_p AS TABLE fermata.payload;"
		"CREATE TABLE singly_e AS TABLE fermata.expiry; CREATE TABLE singly_g AS TABLE fermata.gate_outbox;"
		"TRUNCATE " ALL_TABLES);
	commit_many(false);
	assert_int_equal(rows_in("checkpoint"), MANY);
	assert_int_equal(rows_in("payload"), MANY - 1);
	assert_int_equal(rows_in("expiry"), MANY - MANY / 5);
	assert_int_equal(rows_in("gate_outbox"), MANY - 1);
	assert_same_rows("checkpoint", "singly_c");
	assert_same_rows("payload", "singly_p");
	assert_same_rows("expiry", "singly_e");
	assert_same_rows("gate_outbox", "singly_g");
}

/* ---- decisions ---- */

/* All of them are decided, every third one with edits. */
static void decide_many(const struct decision **ret_decisions)
{
	make_many(10);
	for (uint32_t i = 0; i < MANY; i++) {
		struct decision *made = make_decision(arena, 500 + i, i + 1);
		made->has_edits = i % 3 == 0;
		made->edits = writes[i].checkpoint->sealed;
		made->stated_reason = i % 4 == 0 ? VIEW_NULL : made->stated_reason;
		made->has_digest = i % 5 != 0;
		ret_decisions[i] = made;
		writes[i].insert = writes[i].fill = writes[i].expiry_set = false;
		writes[i].gate_event = false;
		writes[i].outbox = true;
	}
}

static enum fate write_decisions(const struct decision *const *decisions, bool singly, struct error *error)
{
	struct batch_write write = { .checkpoints = writes,
		                         .checkpoints_len = MANY,
		                         .inserts = decisions,
		                         .inserts_len = MANY,
		                         .singly = singly };

	begin_batch(store, arena, NULL, ids, MANY, NULL);
	enum fate fate = store_batch_write(store, &write, error);
	return fate == FATE_OK ? store_commit(store, error) : fate;
}

static void commit_decisions(const struct decision *const *decisions, bool singly)
{
	struct error error = { 0 };

	world_run("TRUNCATE fermata.decision, fermata.outbox RESTART IDENTITY");
	assert_ok(write_decisions(decisions, singly, &error), error);
}

static void decisions_that_are_many_leave_the_rows_that_one_by_one_leave(void **state)
{
	(void)state;
	const struct decision *decisions[MANY];
	make_many(10);
	commit_many(false);
	decide_many(decisions);
	commit_decisions(decisions, true);
	world_run(
		"CREATE TABLE singly_d AS TABLE fermata.decision; CREATE TABLE singly_o AS TABLE fermata.outbox");
	commit_decisions(decisions, false);
	assert_int_equal(rows_in("decision"), MANY);
	assert_int_equal(rows_in("outbox"), MANY);
	assert_same_rows("decision", "singly_d"); /* seq too: they are in the order of judging */
	assert_same_rows("outbox", "singly_o");
	assert_int_equal(
		world_number("SELECT count(edits_body) FROM fermata.decision WHERE edits_format IS NOT NULL"),
		(MANY + 2) / 3);
}

/* Another worker has made the decision; a row of the outbox was left behind, and is no obstacle singly. */
static void what_is_there_of_decisions_makes_the_batch_stale(void **state)
{
	(void)state;
	static const char *const there[] = {
		"DELETE FROM fermata.outbox; DELETE FROM fermata.decision WHERE subject <> 'subject-505'",
		"DELETE FROM fermata.decision; DELETE FROM fermata.outbox WHERE seq <> 3",
	};
	const struct decision *decisions[MANY];
	make_many(10);
	commit_many(false);
	decide_many(decisions);
	for (size_t i = 0; i < 2; i++) {
		struct error error = { 0 };
		commit_decisions(decisions, false);
		world_run(there[i]);
		assert_int_equal(rows_in("decision") + rows_in("outbox"), 1);
		assert_fate(FATE_RETRY, write_decisions(decisions, false, &error), error);
		assert_int_equal(error.code, ERR_STALE);
		store_rollback(store);
		assert_int_equal(rows_in("decision") + rows_in("outbox"), 1);
	}
	struct error error = { 0 };
	assert_ok(write_decisions(decisions, true, &error), error);
	assert_int_equal(rows_in("outbox"), MANY);
}

static void large_payloads_pass(void **state)
{
	(void)state;
	make_many((size_t)1024 * 1024 + 7);
	commit_many(false);
	assert_int_equal(world_number("SELECT sum(octet_length(body) + octet_length(tail)) FROM fermata.payload"),
	                 MANY * (1024 * 1024 + 7));
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.payload WHERE octet_length(body) % 1996 <> 0"), 0);
}

/* What the judge did not see was made by another worker meanwhile. */
static void a_row_that_is_there_makes_the_batch_stale(void **state)
{
	(void)state;
	struct error error = { 0 };
	make_many(100);
	begin_batch(store, arena, NULL, ids, MANY, NULL);
	struct store *other = open_store("other");
	insert_checkpoint(other, arena, writes[7].checkpoint);
	store_close(other);
	struct batch_write write = { .checkpoints = writes, .checkpoints_len = MANY };
	uint64_t connections = store_reconnects(store);
	assert_fate(FATE_RETRY, store_batch_write(store, &write, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	store_rollback(store);
	assert_int_equal(store_reconnects(store), connections);
	assert_int_equal(rows_in("checkpoint"), 1);
	assert_int_equal(rows_in("payload"), 1);
}

/* A purge may leave what COPY cannot go over; singly it is written over. */
static void a_payload_without_a_checkpoint_is_written_over(void **state)
{
	(void)state;
	struct error error = { 0 };
	make_many(100);
	insert_checkpoint(store, arena, writes[4].checkpoint);
	world_run("UPDATE fermata.payload SET body = 'old'; DELETE FROM fermata.checkpoint");
	assert_fate(FATE_RETRY, write_many(false, &error), error);
	assert_int_equal(error.code, ERR_STALE);
	store_rollback(store);
	commit_many(true);
	assert_int_equal(rows_in("checkpoint"), MANY);
	assert_int_equal(rows_in("payload"), MANY);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload WHERE body = 'old'"), 0);
}

static void poison_is_refused_and_the_connection_stays(void **state)
{
	(void)state;
	static const struct view poisons[] = { { (const uint8_t *)"a\0b", 3 },
		                                   { (const uint8_t *)"\xff\xfe", 2 } };
	for (size_t i = 0; i < 2; i++) {
		struct error error = { 0 };
		make_many((size_t)64 * 1024); /* so that rows have been sent before */
		((struct checkpoint *)(uintptr_t)writes[15].checkpoint)->title = poisons[i];
		assert_ok(store_connect(store, &error), error);
		uint64_t connections = store_reconnects(store);
		assert_fate(FATE_REJECT, write_many(false, &error), error);
		assert_int_equal(error.code, ERR_POISON);
		assert_null(strstr(error.message, "\xff"));
		store_rollback(store);
		assert_nothing_is_there();
		make_many(100);
		commit_many(false);
		assert_int_equal(store_reconnects(store), connections);
		assert_int_equal(rows_in("checkpoint"), MANY);
		world_run("TRUNCATE " ALL_TABLES);
	}
}

static void a_session_that_ends_is_an_outage(void **state)
{
	(void)state;
	struct error error = { 0 };
	make_many(100);
	begin_batch(store, arena, NULL, ids, MANY, NULL);
	world_kill("copy");
	struct batch_write write = { .checkpoints = writes, .checkpoints_len = MANY };
	assert_fate(FATE_RETRY, store_batch_write(store, &write, &error), error);
	assert_int_equal(error.code, ERR_SERVICE);
	store_rollback(store);
	assert_nothing_is_there();
	commit_many(false);
	assert_int_equal(rows_in("checkpoint"), MANY);
}

/* The server ends the session while rows are on their way. */
static void an_end_in_the_middle_leaves_nothing(void **state)
{
	(void)state;
	struct error error = { 0 };
	make_many((size_t)1024 * 1024);
	world_run(
		"CREATE FUNCTION pg_temp_end() RETURNS trigger LANGUAGE plpgsql AS"
		" 'BEGIN IF NEW.body <> '''' THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF;"
		" RETURN NEW; END';"
		"CREATE TRIGGER ends BEFORE INSERT ON fermata.payload FOR EACH ROW EXECUTE FUNCTION pg_temp_end()");
	assert_fate(FATE_RETRY, write_many(false, &error), error);
	assert_int_equal(error.code, ERR_SERVICE);
	store_rollback(store);
	world_run("DROP TRIGGER ends ON fermata.payload; DROP FUNCTION pg_temp_end()");
	assert_nothing_is_there();
	commit_many(false);
	assert_int_equal(rows_in("payload"), MANY);
}

/* Rows that somebody's trigger swallows are not taken for written. */
static void rows_that_vanish_are_noticed(void **state)
{
	(void)state;
	struct error error = { 0 };
	make_many(100);
	world_run("CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';"
	          "CREATE TRIGGER swallows BEFORE INSERT ON fermata.gate_outbox FOR EACH ROW EXECUTE FUNCTION "
	          "swallow()");
	assert_fate(FATE_FATAL, write_many(false, &error), error);
	store_rollback(store);
	world_run("DROP TRIGGER swallows ON fermata.gate_outbox; DROP FUNCTION swallow()");
	assert_nothing_is_there();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(many_leave_the_rows_that_one_by_one_leave),
		TEST(decisions_that_are_many_leave_the_rows_that_one_by_one_leave),
		TEST(what_is_there_of_decisions_makes_the_batch_stale),
		TEST(large_payloads_pass),
		TEST(a_row_that_is_there_makes_the_batch_stale),
		TEST(a_payload_without_a_checkpoint_is_written_over),
		TEST(poison_is_refused_and_the_connection_stays),
		TEST(a_session_that_ends_is_an_outage),
		TEST(an_end_in_the_middle_leaves_nothing),
		TEST(rows_that_vanish_are_noticed),
	};

	return run_in_world(tests);
}
