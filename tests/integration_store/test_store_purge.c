/* Rows that go for good, the horizons that keep them from coming back, and sessions that are erased. */
#include "tests/integration_store/store_fixture.h"

#include <stdio.h>
#include <string.h>

#include "store/store_audit.h"
#include "store/store_erase.h"
#include "store/store_retention.h"

#define DAY_US INT64_C(86400000000)
#define NOW    (T0 + 100 * DAY_US)
#define BEFORE (T0 + 50 * DAY_US) /* what was settled before may go */
#define MANY   ((size_t)1 << 20)
#define ARENA  ((size_t)64 << 20)

static int setup(void **state)
{
	(void)state;
	size_t fresh;
	struct error error = { 0 };

	begin_test(open_store("reaper"), ARENA);
	world_run("INSERT INTO fermata.kafka_offset (cluster_id, topic, partition, next, last_timestamp) VALUES"
	          " ('cluster-1', 'suspends', 0, 1000, 5), ('cluster-1', 'approvals', 3, 2000000, 5);"
	          "INSERT INTO fermata.resumes_topic VALUES ('resumes', 1)");
	assert_ok(
		store_ledger_advance(store, &shard, LEDGER_NONE, 500, NO_DOUBT, routes, NULL, 0, &fresh, &error),
		error);
	return 0;
}

/* A checkpoint whose suspend record is `number` of suspends/0, and which is decided by the record 40 + 1000000 + number
 * of approvals/3; RESUMED at `settled`. */
static struct checkpoint *settled(uint32_t number, int64_t at)
{
	struct checkpoint *row = make_checkpoint(arena, number, 100);
	char sql[160];

	row->record = (struct coordinates){ "suspends", 0, number, row->appended_at };
	insert_checkpoint(store, arena, row);
	decide_checkpoint(store, arena, number);
	snprintf(
		sql, sizeof(sql),
		"UPDATE fermata.checkpoint SET state = 'RESUMED', changed_at = %lld WHERE checkpoint_id::text LIKE"
		" '%%%08x'",
		(long long)at, number);
	world_run(sql);
	world_run("DELETE FROM fermata.outbox");
	return row;
}

static struct purge_swept purge_below(struct store *by, int64_t suspends, int64_t approvals, size_t rows)
{
	struct kafka_low lows[] = { { "suspends", 0, suspends }, { "approvals", 3, approvals } };
	struct purge_page page = {
		.cluster_id = CLUSTER,
		.lows = lows,
		.lows_len = 2,
		.settled_before = BEFORE,
		.from_at = INT64_MIN,
		.until_at = BEFORE,
		.rows = rows,
		.now = NOW,
	};
	struct purge_swept all = { 0 };
	struct error error = { 0 };

	while (!all.end) {
		struct purge_swept swept;
		assert_ok(store_rows_purge(by, &page, arena, &swept, &error), error);
		assert_false(swept.busy);
		all.purged += swept.purged;
		all.end = swept.end;
		page.from_at = swept.next_at;
		page.from_id = swept.next_id;
	}
	return all;
}

static int64_t count(const char *what)
{
	char sql[256];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM fermata.%s", what);
	return world_number(sql);
}

/* ---- purging ---- */

static void a_row_goes_when_kafka_has_let_go_of_its_records(void **state)
{
	(void)state;

	settled(2, T0);
	settled(4, T0);
	settled(6, BEFORE + 1);
	struct checkpoint *waits = make_checkpoint(arena, 8, 100);
	waits->record = (struct coordinates){ "suspends", 0, 1, waits->appended_at };
	insert_checkpoint(store, arena, waits);
	struct checkpoint *old = make_checkpoint(arena, 10, 100); /* of before its coordinates were kept */
	insert_checkpoint(store, arena, old);
	world_run("UPDATE fermata.checkpoint SET state = 'RESUMED', changed_at = 1, common = NULL, "
	          "own_resumes_topic = 'resumes' WHERE"
	          " checkpoint_id::text LIKE '%0a'");
	assert_int_equal(purge_below(store, 2, 2000000, 100).purged, 0);    /* its suspend is still there */
	assert_int_equal(purge_below(store, 1000, 1000042, 100).purged, 0); /* its decision is */
	assert_int_equal(count("horizon"), 0);
	assert_int_equal(purge_below(store, 3, 1000043, 100).purged, 1);
	assert_int_equal(count("checkpoint"), 4);
	assert_int_equal(count("decision"), 2);
	assert_int_equal(count("payload"), 4);
	assert_int_equal(purge_below(store, 1000, 2000000, 1).purged, 1); /* page by page */
	assert_int_equal(count("checkpoint"), 3);
	assert_int_equal(world_number("SELECT below FROM fermata.horizon WHERE topic = 'suspends'"), 1000);
	assert_int_equal(world_number("SELECT below FROM fermata.horizon WHERE topic = 'approvals'"), 2000000);
	assert_int_equal(world_number("SELECT below FROM fermata.horizon WHERE topic = 'resumes'"), 500);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.horizon WHERE until >= "
	                              "1796025600000000"),
	                 3);
}

/* `until` is what tells a topic that was made anew from one that is replayed. */
static void a_horizon_never_falls_and_its_time_goes_with_it(void **state)
{
	(void)state;

	settled(2, T0);
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 1);
	world_run("UPDATE fermata.horizon SET until = 7");
	settled(4, T0);
	world_run("UPDATE fermata.kafka_offset SET next = 10 WHERE topic = 'suspends';"
	          "UPDATE fermata.kafka_offset SET next = next + 1 WHERE topic = 'approvals'");
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 1);
	assert_int_equal(world_number("SELECT below FROM fermata.horizon WHERE topic = 'suspends'"), 1000);
	assert_int_equal(world_number("SELECT until FROM fermata.horizon WHERE topic = 'suspends'"), 7);
	assert_int_equal(world_number("SELECT below FROM fermata.horizon WHERE topic = 'approvals'"), 2000001);
	assert_true(world_number("SELECT until FROM fermata.horizon WHERE topic = 'approvals'") > 7);
}

/* Positions that were set back before anything was ever purged: nothing goes until it has been read again. */
static void above_the_horizon_nothing_goes(void **state)
{
	(void)state;

	settled(20, T0);
	world_run("UPDATE fermata.kafka_offset SET next = 10 WHERE topic = 'suspends'");
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 0);
	world_run("UPDATE fermata.kafka_offset SET next = 21 WHERE topic = 'suspends'");
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 1);
}

static void intake_is_told_of_the_horizons(void **state)
{
	(void)state;
	struct uuid id = uuid_of(2);

	settled(2, T0);
	purge_below(store, 1000, 2000000, 100);
	struct batch_loaded loaded = begin_batch(store, arena, NULL, &id, 1, NULL);
	assert_int_equal(loaded.checkpoints_len, 0);
	assert_int_equal(loaded.horizons_len, 3);
	for (size_t i = 0; i < loaded.horizons_len; i++)
		if (view_equal_text(loaded.horizons[i].topic, "suspends")) {
			assert_int_equal(loaded.horizons[i].partition, 0);
			assert_int_equal(loaded.horizons[i].below, 1000);
			assert_true(loaded.horizons[i].until >= NOW);
		}
	store_rollback(store);
}

/* What intake or a relay holds is left for another time, and nobody waits. */
static void what_is_held_is_left_alone(void **state)
{
	(void)state;
	struct store *intake = open_store("intake");
	struct uuid id = uuid_of(2);

	settled(2, T0);
	settled(4, T0);
	begin_batch(intake, arena, NULL, &id, 1, NULL);
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 1);
	store_rollback(intake);
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 1);
	store_close(intake);
}

static struct relay_take take_ten(void)
{
	struct relay_want want = {
		.routes_digest = routes, .rows = 10, .bytes = MANY, .with_action = true, .with_decided = true
	};
	struct relay_take take;
	struct error error = { 0 };

	assert_ok(store_relay_take(store, &shard, &want, arena, &take, &error), error);
	return take;
}

static void a_tombstone_is_left_to_be_sent(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct checkpoint *row = settled(2, T0);

	world_run("TRUNCATE fermata.gate_outbox");
	purge_below(store, 1000, 2000000, 100);
	struct relay_take take = take_ten();
	assert_int_equal(take.gates_len, 1);
	assert_true(take.gates[0].gone);
	assert_false(take.gates[0].checkpoint->filled);
	assert_int_equal(uuid_compare(&take.gates[0].checkpoint->id, &row->id), 0);
	struct gate_sent sent = { row->id, take.gates[0].version, WAITING_GOES };
	assert_ok(store_relay_mark(store, &shard, 500, 500, NULL, 0, &sent, 1, NOW, &error), error);
	assert_int_equal(count("gate_outbox"), 0);
}

static void live_gates_do_not_wait_behind_tombstones(void **state)
{
	(void)state;
	struct kafka_low lows[] = { { "suspends", 0, 1000 }, { "approvals", 3, 2000000 } };
	struct purge_page page = { .cluster_id = CLUSTER,
		                       .lows = lows,
		                       .lows_len = 2,
		                       .settled_before = BEFORE,
		                       .from_at = INT64_MIN,
		                       .until_at = BEFORE,
		                       .rows = 10,
		                       .now = NOW };
	struct purge_swept swept;
	struct error error = { 0 };

	settled(2, T0);
	world_run("INSERT INTO fermata.gate_outbox SELECT gen_random_uuid(), 'resumes', 0, 1 FROM "
	          "generate_series(1, 5000)");
	assert_ok(store_rows_purge(store, &page, arena, &swept, &error), error);
	assert_true(swept.busy && swept.purged == 0 && !swept.end);
	assert_int_equal(count("checkpoint"), 1);
}

static struct purge_swept purge_orphans_below(int64_t approvals, size_t rows)
{
	struct kafka_low lows[] = { { "suspends", 0, 1000 }, { "approvals", 3, approvals } };
	struct purge_page page = {
		.cluster_id = CLUSTER, .lows = lows, .lows_len = 2, .settled_before = BEFORE, .rows = rows, .now = NOW
	};
	struct purge_swept all = { 0 };
	struct error error = { 0 };

	while (!all.end) {
		struct purge_swept swept;
		assert_ok(store_orphans_purge(store, &page, arena, &swept, &error), error);
		all.looked += swept.looked;
		all.purged += swept.purged;
		all.end = swept.end;
		page.from_id = swept.next_id;
	}
	return all;
}

/* The decisions of `number`, refused for want of a suspend, without a checkpoint. */
static void orphaned(uint32_t number)
{
	char sql[512];

	settled(number, T0);
	snprintf(sql, sizeof(sql),
	         "DELETE FROM fermata.checkpoint WHERE checkpoint_id::text LIKE '%%%08x';"
	         "UPDATE fermata.decision SET outcome = 'refused', reason = 'no_suspend: no suspend event came',"
	         " appended_at = %lld WHERE checkpoint_id::text LIKE '%%%08x'",
	         number, (long long)T0, number);
	world_run(sql);
}

static void decisions_without_a_checkpoint_go_with_their_records(void **state)
{
	(void)state;

	orphaned(2);
	orphaned(4);
	orphaned(6);
	settled(8, T0);
	world_run("UPDATE fermata.decision SET outcome = 'refused', reason = 'no_suspend: it came later' WHERE"
	          " checkpoint_id::text LIKE '%08'");
	orphaned(10);
	world_run("UPDATE fermata.decision SET appended_at = 1796025600000000 + 51 * 86400000000 WHERE"
	          " checkpoint_id::text LIKE '%0a'");
	assert_int_equal(count("decision"), 5);
	assert_int_equal(purge_orphans_below(1000000, 100).purged, 0); /* Kafka has them */
	assert_int_equal(count("horizon"), 0);
	assert_int_equal(purge_orphans_below(1000043, 100).purged, 1);
	assert_int_equal(world_number("SELECT below FROM fermata.horizon WHERE topic = 'approvals'"), 2000000);
	assert_int_equal(purge_orphans_below(2000000, 1).purged, 2); /* page by page */
	assert_int_equal(purge_orphans_below(2000000, 100).looked, 2);
	assert_int_equal(count("decision"), 2); /* of one that has its checkpoint, and one that is young */
	assert_int_equal(count("checkpoint"), 1);
}

/* Ids are anybody's choice: behind the highest there is no next page, and not the first one again. */
static void the_highest_id_is_the_end(void **state)
{
	(void)state;
	struct purge_page page = {
		.cluster_id = CLUSTER, .settled_before = BEFORE, .from_at = INT64_MIN, .rows = 1, .now = NOW
	};
	struct purge_swept swept;
	struct error error = { 0 };

	orphaned(2);
	world_run("UPDATE fermata.decision SET decision_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff'");
	assert_ok(store_orphans_purge(store, &page, arena, &swept, &error), error);
	assert_int_equal(swept.looked, 1);
	assert_true(swept.end);
	settled(4, T0);
	world_run("UPDATE fermata.checkpoint SET checkpoint_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff',"
	          " appended_at = 9223372036854775807 WHERE checkpoint_id::text LIKE '%04'");
	page.until_at = INT64_MAX;
	assert_ok(store_rows_purge(store, &page, arena, &swept, &error), error);
	assert_int_equal(swept.looked, 1);
	assert_true(swept.end);
}

/* R2 from the beginning: routes that changed. What was purged gets no row; what is there is marked as ever. */
static void the_ledger_brings_nothing_back(void **state)
{
	(void)state;
	size_t fresh;
	struct error error = { 0 };
	struct ledger_found found[] = {
		{ uuid_of(2), VERDICT_APPROVED, NULL, 0, T0, 100 },            /* purged */
		{ uuid_of(4), VERDICT_APPROVED, NULL, 0, T0, 101 },            /* still waiting here */
		{ uuid_of(12), VERDICT_APPROVED, NULL, 0, T0, 500 },           /* came later */
		{ uuid_of(14), VERDICT_APPROVED, NULL, 0, NOW + DAY_US, 102 }, /* of a topic that was made anew */
	};

	settled(2, T0);
	insert_checkpoint(store, arena, make_checkpoint(arena, 4, 100));
	assert_int_equal(purge_below(store, 1000, 2000000, 100).purged, 1);
	assert_ok(store_ledger_advance(store, &shard, 500, 501, NO_DOUBT, routes, found, 4, &fresh, &error),
	          error);
	assert_int_equal(fresh, 3);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint WHERE state = 'RESUMED'"), 3);
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.checkpoint WHERE checkpoint_id::text LIKE '%02'"), 0);
}

/* ---- erasing ---- */

static struct erase_result erase(const char *tenant, bool dry_run, size_t rows)
{
	struct erase_page page = {
		.tenant = view_of(tenant),
		.session_id = VIEW_LITERAL("session-2"),
		.rows = rows,
		.dry_run = dry_run,
		.who = VIEW_LITERAL("ann@desk"),
		.reason = VIEW_LITERAL("asked for"),
		.now = NOW,
	};
	struct erase_result result;
	struct error error = { 0 };

	assert_ok(store_erase(store, &page, arena, &result, &error), error);
	return result;
}

/* Checkpoint `number` of session-2, in that state. */
static void of_session_2(uint32_t number, const char *state)
{
	char sql[256];
	struct checkpoint *row = make_checkpoint(arena, number, 100);

	row->session_id = VIEW_LITERAL("session-2");
	row->suspend_seq = number;
	insert_checkpoint(store, arena, row);
	if (strcmp(state, "PENDING") != 0)
		decide_checkpoint(store, arena, number);
	if (strcmp(state, "PENDING") != 0 && strcmp(state, "DECIDED") != 0) {
		snprintf(
			sql, sizeof(sql),
			"UPDATE fermata.checkpoint SET state = '%s', reason = 'as it was' WHERE checkpoint_id::text LIKE"
			" '%%%08x'; DELETE FROM fermata.outbox WHERE checkpoint_id::text LIKE '%%%08x'",
			state, number, number);
		world_run(sql);
	}
}

static void edits_on(uint32_t number)
{
	char sql[256];

	snprintf(sql, sizeof(sql),
	         "UPDATE fermata.decision SET edits_format = 1, edits_compression = 0, edits_plain_len = 3, "
	         "edits_kek_id ="
	         " 'k', edits_wrapped_key = '\\x01', edits_commit = '\\x01', edits_body = '\\x010203'"
	         " WHERE checkpoint_id::text LIKE '%%%08x'",
	         number);
	world_run(sql);
}

static void all_that_is_sealed_of_a_session_goes(void **state)
{
	(void)state;
	struct audit_entry *entries;
	size_t len;
	struct error error = { 0 };

	world_run("TRUNCATE fermata.gate_outbox");
	of_session_2(2, "PENDING");
	of_session_2(4, "DECIDED");
	of_session_2(6, "RESUMED");
	of_session_2(8, "SUPERSEDED");
	of_session_2(10, "QUARANTINED");
	of_session_2(12, "IN_DOUBT");
	edits_on(4);
	insert_checkpoint(store, arena, make_checkpoint(arena, 14, 100)); /* another session */
	struct erase_result dry = erase("default", true, 100);
	assert_int_equal(dry.len, 6);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint WHERE wrapped_key IS NULL"), 0);

	struct erase_result result = erase("default", false, 100);
	assert_int_equal(result.len, 6);
	assert_true(result.end);
	assert_int_equal(result.items[0].was, GATE_PENDING);
	assert_int_equal(result.items[0].checkpoint->state, GATE_RESUMED);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint WHERE wrapped_key IS NULL"), 6);
	assert_int_equal(count("payload"), 1);
	assert_int_equal(count("outbox"), 0);
	assert_int_equal(count("expiry"), 1);
	assert_int_equal(count("decision WHERE edits_wrapped_key IS NOT NULL OR edits_body IS NOT NULL"), 0);
	assert_int_equal(
		count("checkpoint WHERE state = 'RESUMED' AND published AND reason LIKE 'erased by ann@desk: asked"
	          " for'"),
		4);
	assert_int_equal(count("checkpoint WHERE verdict = 'CANCELLED' AND state = 'RESUMED'"),
	                 1); /* nobody had decided */
	assert_int_equal(count("checkpoint WHERE reason = 'as it was'"), 2);
	assert_int_equal(count("gate_outbox WHERE version = 1804665600000000"), 6);
	struct uuid id = uuid_of(2);
	assert_ok(store_audits(store, &id, arena, &entries, &len, &error), error);
	assert_int_equal(len, 1);
	assert_true(view_equal_text(entries[0].what, AUDIT_ERASE));
	assert_true(view_equal_text(entries[0].details, "it was PENDING and is RESUMED, CANCELLED"));

	/* Once more: nothing is told twice, but what came since is erased. */
	edits_on(4);
	result = erase("default", false, 100);
	assert_int_equal(result.len, 6);
	assert_true(result.items[0].was_erased);
	assert_int_equal(count("audit WHERE what = 'erase'"), 6);
	assert_int_equal(count("decision WHERE edits_wrapped_key IS NOT NULL"), 0);
}

static void an_erased_gate_is_taken_back(void **state)
{
	(void)state;

	of_session_2(2, "PENDING");
	erase("default", false, 100);
	struct relay_take take = take_ten();
	assert_int_equal(take.rows_len, 0);
	assert_int_equal(take.gates_len, 1);
	assert_true(take.gates[0].gone);
	assert_true(take.gates[0].checkpoint->filled);
}

/* The relay holds it opened, and publishes it, with its gate event or without: its mark stands, and the tombstone comes after
 * that. */
static void erased_while_published(enum waiting waiting)
{
	struct error error = { 0 };

	of_session_2(2, "DECIDED");
	insert_checkpoint(store, arena, make_checkpoint(arena, 4, 100));
	decide_checkpoint(store, arena, 4);
	world_run(
		"UPDATE fermata.checkpoint SET version = 1804665600000000"); /* as large as the clock: the worst case */
	struct relay_take take = take_ten();
	assert_int_equal(take.rows_len, 2);
	erase("default", false, 100);
	struct gate_sent sent[] = { { uuid_of(2), take.rows[0].checkpoint->version + 1, waiting },
		                        { uuid_of(4), take.rows[1].checkpoint->version + 1, WAITING_GOES } };
	assert_ok(store_relay_mark(store, &shard, 500, 502, sent, 2, NULL, 0, NOW, &error), error);
	assert_int_equal(count("checkpoint WHERE state = 'RESUMED'"), 2);
	assert_int_equal(count("gate_outbox"), 1); /* the tombstone */
	assert_int_equal(count("payload"), 1);
	take = take_ten();
	assert_true(take.gates_len == 1 && take.gates[0].gone);
	assert_true(take.gates[0].version > sent[0].version);
}

static void what_is_being_published_meanwhile_is_marked(void **state)
{
	(void)state;
	erased_while_published(WAITING_GOES);
}

static void what_is_told_later_does_not_come_after_its_tombstone(void **state)
{
	(void)state;
	erased_while_published(WAITING_COMES);
}

/* A row that is neither DECIDED nor erased: the database went back. */
static void a_row_that_is_not_erased_is_not_marked(void **state)
{
	(void)state;
	struct error error = { 0 };
	struct gate_sent sent = { uuid_of(2), T0, WAITING_GOES };

	settled(2, T0);
	assert_fate(FATE_RETRY, store_relay_mark(store, &shard, 500, 501, &sent, 1, NULL, 0, NOW, &error), error);
	assert_int_equal(error.code, ERR_STALE);
}

/* What is moved out of a day at this moment is not brought back either. */
static void an_erased_payload_is_not_moved(void **state)
{
	(void)state;
	struct payload_page page = {
		.day_us = T0, .settled_before = BEFORE, .move = true, .now = NOW, .rows = 10, .bytes = MANY
	};
	struct payload_swept swept;
	struct error error = { 0 };

	of_session_2(2, "PENDING");
	world_run("CREATE TABLE copy AS SELECT * FROM fermata.payload");
	erase("default", false, 100);
	world_run("INSERT INTO fermata.payload SELECT * FROM copy; DROP TABLE copy");
	assert_ok(store_payload_sweep(store, &page, arena, &swept, &error), error);
	assert_int_equal(swept.moved, 0);
	page.move = false;
	assert_ok(store_payload_sweep(store, &page, arena, &swept, &error), error);
	assert_int_equal(swept.deleted, 1);
}

static void pages_and_tenants(void **state)
{
	(void)state;
	struct view *tenants;
	size_t len;
	struct error error = { 0 };

	of_session_2(2, "PENDING");
	of_session_2(4, "PENDING");
	of_session_2(6, "PENDING");
	world_run("UPDATE fermata.checkpoint SET tenant = 'acme' WHERE checkpoint_id::text LIKE '%04'");
	assert_ok(store_session_tenants(store, VIEW_LITERAL("session-2"), arena, &tenants, &len, &error), error);
	assert_int_equal(len, 2);
	assert_true(view_equal_text(tenants[0], "acme") && view_equal_text(tenants[1], "default"));
	struct erase_result result = erase("default", false, 1);
	assert_int_equal(result.len, 1);
	assert_false(result.end);
	struct uuid next = uuid_of(2);
	next.bytes[15]++;
	assert_int_equal(uuid_compare(&result.next, &next), 0);
	assert_int_equal(erase("acme", false, 100).len, 1);
	assert_int_equal(erase("nobody", false, 100).len, 0);
	assert_int_equal(count("checkpoint WHERE wrapped_key IS NULL"), 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_row_goes_when_kafka_has_let_go_of_its_records),
		TEST(a_horizon_never_falls_and_its_time_goes_with_it),
		TEST(above_the_horizon_nothing_goes),
		TEST(intake_is_told_of_the_horizons),
		TEST(what_is_held_is_left_alone),
		TEST(a_tombstone_is_left_to_be_sent),
		TEST(live_gates_do_not_wait_behind_tombstones),
		TEST(decisions_without_a_checkpoint_go_with_their_records),
		TEST(the_highest_id_is_the_end),
		TEST(the_ledger_brings_nothing_back),
		TEST(all_that_is_sealed_of_a_session_goes),
		TEST(an_erased_gate_is_taken_back),
		TEST(what_is_being_published_meanwhile_is_marked),
		TEST(what_is_told_later_does_not_come_after_its_tombstone),
		TEST(a_row_that_is_not_erased_is_not_marked),
		TEST(an_erased_payload_is_not_moved),
		TEST(pages_and_tenants),
	};

	return run_in_world(tests);
}
