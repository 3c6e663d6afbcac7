/* Sealed states that are due: deleted one by one, or dropped with their day, while others read and write. */
#include "tests/integration_store/store_fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/clock.h"
#include "store/store_retention.h"

#define DAY_US   INT64_C(86400000000)
#define DAY      (T0 - T0 % DAY_US) /* 2026-11-30, when they were appended */
#define NOW      (DAY + 40 * DAY_US + 5)
#define BEFORE   (DAY + 10 * DAY_US) /* what was settled before is due */
#define MANY     ((size_t)1 << 20)
#define ARENA    ((size_t)64 << 20)
#define MOVED_TO "2027-01-09" /* the day of NOW */

static int setup(void **state)
{
	(void)state;
	struct error error = { 0 };

	begin_test(open_store("reaper"), ARENA);
	assert_ok(store_payload_days(store, DAY, 2, &error), error);
	assert_ok(store_payload_days(store, NOW, 1, &error), error);
	return 0;
}

static int teardown(void **state)
{
	world_run(
		"DROP TABLE IF EXISTS fermata.payload_20261130, fermata.payload_20261201, fermata.payload_20270109");
	return end_test(state);
}

/* Checkpoints first, first + 2, ...: appended on DAY, in that state since then. */
static void stored(uint32_t first, uint32_t count, const char *state, int64_t since)
{
	char sql[256];

	for (uint32_t i = 0; i < count; i++)
		insert_checkpoint(store, arena, make_checkpoint(arena, first + 2 * i, 100));
	snprintf(sql, sizeof(sql),
	         "UPDATE fermata.checkpoint SET state = '%s', changed_at = %lld WHERE"
	         " right(checkpoint_id::text, 8) >= '%08x' AND right(checkpoint_id::text, 8) < '%08x'",
	         state, (long long)since, first, first + 2 * count);
	world_run(sql);
}

static struct payload_swept sweep_page(struct store *by, int64_t day, bool move, struct uuid from,
                                       size_t rows, size_t bytes)
{
	struct payload_page page = {
		.day_us = day,
		.from = from,
		.settled_before = BEFORE,
		.move = move,
		.now = NOW,
		.rows = rows,
		.bytes = bytes,
	};
	struct arena *own = arena_new(1 << 20);
	struct payload_swept swept;
	struct error error = { 0 };

	assert_ok(store_payload_sweep(by, &page, own, &swept, &error), error);
	arena_free(own);
	return swept;
}

static struct payload_swept sweep(struct store *by, int64_t day, bool move)
{
	struct uuid from = { { 0 } };
	struct payload_swept all = { 0 };

	while (!all.end) {
		struct payload_swept page = sweep_page(by, day, move, from, 3, MANY);
		all.deleted += page.deleted;
		all.moved += page.moved;
		all.end = page.end;
		from = page.next;
	}
	return all;
}

static int64_t drop(struct store *by, int64_t day)
{
	int64_t payloads;
	struct error error = { 0 };

	assert_ok(store_payload_day_drop(by, day, BEFORE, &payloads, &error), error);
	return payloads;
}

static int64_t payloads_in(const char *where)
{
	char sql[128];

	snprintf(sql, sizeof(sql), "SELECT count(*) FROM fermata.%s", where);
	return world_number(sql);
}

/* ---- one by one ---- */

static void what_is_due_is_deleted_and_nothing_else(void **state)
{
	(void)state;
	struct payload_day *days;
	size_t len;
	struct error error = { 0 };

	stored(0, 4, "RESUMED", BEFORE - 1);
	stored(10, 4, "SUPERSEDED", BEFORE - 1);
	stored(20, 1, "RESUMED", BEFORE);
	stored(30, 1, "PENDING", 1);
	stored(40, 1, "DECIDED", 1);
	stored(50, 1, "QUARANTINED", 1);
	stored(60, 1, "IN_DOUBT", 1);
	stored(70, 1, "PENDING", 1); /* erased */
	world_run("UPDATE fermata.checkpoint SET wrapped_key = NULL WHERE checkpoint_id::text LIKE '%46'");
	stored(80, 1, "RESUMED", 1); /* published long after it was last changed: a rebuild */
	world_run(
		"UPDATE fermata.checkpoint SET decided_at = 1800000000000000 WHERE checkpoint_id::text LIKE '%50'");
	assert_ok(store_payload_days_held(store, DAY + 1, arena, &days, &len, &error), error);
	assert_int_equal(len, 1);
	assert_true(days[0].own && days[0].day_us == DAY);
	assert_int_equal(sweep(store, DAY, false).deleted, 9);
	assert_int_equal(payloads_in("payload_20261130"), 6);
	assert_int_equal(sweep(store, DAY, false).deleted, 0);
	assert_int_equal(sweep(store, DAY + DAY_US, false).deleted, 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint"), 15);
}

/* A session that suspends 20 times, growing by one message each time, costs no more than its last suspend. */
static void superseded_ones_cost_nothing_in_the_end(void **state)
{
	(void)state;

	for (uint32_t i = 1; i <= 20; i++)
		insert_checkpoint(store, arena, make_checkpoint(arena, 2 * i, 1000 * i));
	world_run("UPDATE fermata.checkpoint SET state = 'SUPERSEDED', changed_at = 1 WHERE checkpoint_id::text "
	          "NOT LIKE"
	          " '%28'");
	int64_t before =
		world_number("SELECT sum(octet_length(body) + coalesce(octet_length(tail), 0)) FROM fermata.payload");
	sweep(store, DAY, false);
	int64_t after =
		world_number("SELECT sum(octet_length(body) + coalesce(octet_length(tail), 0)) FROM fermata.payload");
	print_message("%d bytes became %d\n", (int)before, (int)after);
	assert_int_equal(after, 20000);
	assert_true(before > 10 * after);
}

static void the_default_partition_is_swept_too(void **state)
{
	(void)state;
	struct checkpoint *early = make_checkpoint(arena, 2, 10);
	struct checkpoint *waits = make_checkpoint(arena, 4, 10);
	struct payload_day *days;
	size_t len;
	struct error error = { 0 };

	early->appended_at = waits->appended_at = DAY - 3 * DAY_US;
	insert_checkpoint(store, arena, early);
	insert_checkpoint(store, arena, waits);
	world_run("UPDATE fermata.checkpoint SET state = 'RESUMED' WHERE checkpoint_id::text LIKE '%02'");
	assert_ok(store_payload_days_held(store, DAY, arena, &days, &len, &error), error);
	assert_int_equal(len, 2);
	assert_false(days[0].own);
	assert_true(days[0].day_us == DAY - 3 * DAY_US);
	assert_int_equal(sweep(store, days[0].day_us, false).deleted, 1);
	assert_int_equal(payloads_in("payload_default"), 1);
	assert_int_equal(drop(store, days[0].day_us), -1);
}

/* ---- whole days ---- */

static void a_day_goes_whole_once_nothing_in_it_is_needed(void **state)
{
	(void)state;
	struct error error = { 0 };

	stored(0, 10, "RESUMED", BEFORE - 1);
	stored(30, 2, "PENDING", 1);
	stored(40, 1, "RESUMED",
	       DAY + 12 * DAY_US); /* not due yet: no day for it is there, so it waits by itself */
	assert_int_equal(drop(store, DAY), -1);
	assert_int_equal(sweep(store, DAY, true).moved, 3);
	assert_int_equal(payloads_in("payload_20270109"), 2);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.payload_default WHERE day = '2026-12-12'"),
	                 1);
	assert_int_equal(payloads_in("payload_20261130"), 10);
	assert_int_equal(
		world_number("SELECT count(*) FROM fermata.checkpoint WHERE payload_day = '" MOVED_TO "'"), 2);
	assert_int_equal(drop(store, DAY), 10);
	assert_int_equal(drop(store, DAY), -1);
	assert_int_equal(world_number("SELECT (to_regclass('fermata.payload_20261130') IS NULL)::int"), 1);
	struct checkpoint *waits = make_checkpoint(arena, 32, 100);
	assert_ok(store_payload(store, waits, arena, &error), error);
	assert_int_equal(waits->sealed.body.len, 100);
	struct checkpoint *gone = make_checkpoint(arena, 2, 100);
	assert_fate(FATE_REJECT, store_payload(store, gone, arena, &error), error);
}

/* A payload that lies in two days by some accident does not stop anything. */
static void a_second_copy_is_no_trouble(void **state)
{
	(void)state;

	stored(0, 1, "PENDING", 1);
	world_run("INSERT INTO fermata.payload SELECT checkpoint_id, '" MOVED_TO
	          "', '\\x00' FROM fermata.payload");
	assert_int_equal(sweep(store, DAY, true).moved, 1);
	assert_int_equal(
		world_number("SELECT sum(octet_length(body) + coalesce(octet_length(tail), 0)) FROM fermata.payload"),
		100);
	assert_int_equal(drop(store, DAY), 0);
}

/* No more is moved at a time than asked for, but one at least. */
static void what_is_large_is_moved_in_small_steps(void **state)
{
	(void)state;

	stored(0, 5, "PENDING", 1);
	struct payload_swept page = sweep_page(store, DAY, true, (struct uuid){ { 0 } }, 10, 250);
	assert_int_equal(page.moved, 2);
	assert_false(page.end);
	page = sweep_page(store, DAY, true, page.next, 10, 1);
	assert_int_equal(page.moved, 1);
	page = sweep_page(store, DAY, true, page.next, 10, 200);
	assert_int_equal(page.moved, 2);
	assert_true(page.end);
}

static void who_reads_is_not_disturbed(void **state)
{
	(void)state;
	int64_t payloads;
	struct error error = { 0 };

	stored(0, 3, "RESUMED", 1);
	/* As a relay begins its snapshot, before it reads any payload. */
	world_run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; LOCK TABLE ONLY fermata.payload IN ACCESS "
	          "SHARE MODE");
	int64_t began_ms = clock_mono_ms();
	assert_fate(FATE_RETRY, store_payload_day_drop(store, DAY, BEFORE, &payloads, &error), error);
	assert_string_equal(error.native, "55P03");
	assert_true(clock_mono_ms() - began_ms < 5000);
	assert_int_equal(payloads_in("payload_20261130"), 3);
	world_run("COMMIT");
	assert_int_equal(drop(store, DAY), 3);
}

/* A worker that is days behind writes into a day that is about to go. */
static void what_comes_late_is_not_lost(void **state)
{
	(void)state;
	struct store *intake = open_store("intake");
	struct checkpoint *late = make_checkpoint(arena, 90, 100);
	struct checkpoint_write row = { .checkpoint = late, .insert = true, .fill = true };
	struct batch_write batch = { .checkpoints = &row, .checkpoints_len = 1 };
	int64_t payloads;
	struct error error = { 0 };

	stored(0, 3, "RESUMED", 1);
	begin_batch(intake, arena, NULL, &late->id, 1, late);
	assert_ok(store_batch_write(intake, &batch, &error), error);
	assert_fate(FATE_RETRY, store_payload_day_drop(store, DAY, BEFORE, &payloads, &error), error);
	assert_ok(store_commit(intake, &error), error);
	assert_int_equal(drop(store, DAY), -1);
	assert_int_equal(sweep(store, DAY, true).moved, 1);
	assert_int_equal(drop(store, DAY), 3);
	assert_ok(store_payload(store, late, arena, &error), error);
	store_close(intake);
}

/* ---- several at once ---- */

struct sweeper {
	pthread_t thread;
	size_t moved;
	int64_t dropped; /* payloads; -1: another one did it */
};

static void *sweep_and_drop(void *argument)
{
	struct sweeper *sweeper = argument;
	struct store *own = open_store("sweeper");
	struct error error = { 0 };

	sweeper->moved = sweep(own, DAY, true).moved;
	sweeper->dropped = -1;
	for (int i = 0; i < 20 && sweeper->dropped < 0; i++)
		if (store_payload_day_drop(own, DAY, BEFORE, &sweeper->dropped, &error) != FATE_OK)
			assert_string_equal(error.native, "55P03");
	store_close(own);
	return NULL;
}

static void of_several_each_thing_is_done_by_one(void **state)
{
	(void)state;
	struct sweeper sweepers[4];
	size_t moved = 0;
	int drops = 0;

	stored(0, 40, "RESUMED", 1);
	stored(100, 40, "PENDING", 1);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&sweepers[i].thread, NULL, sweep_and_drop, &sweepers[i]), 0);
	for (int i = 0; i < 4; i++) {
		pthread_join(sweepers[i].thread, NULL);
		moved += sweepers[i].moved;
		drops += sweepers[i].dropped >= 0;
		if (sweepers[i].dropped >= 0)
			assert_int_equal(sweepers[i].dropped, 40);
	}
	assert_int_equal(moved, 40);
	assert_int_equal(drops, 1);
	assert_int_equal(payloads_in("payload"), 40);
}

static _Atomic bool relay_stops;

struct taker {
	int takes;
	int failed;  /* takes that did not work */
	int missing; /* rows without their sealed state */
};

/* R3 again and again. */
static void *take_without_end(void *argument)
{
	struct taker *taker = argument;
	struct store *relay = open_store("relay");
	struct arena *own = arena_new(ARENA);
	struct error error = { 0 };

	for (; !relay_stops; taker->takes++) {
		struct relay_take take;
		arena_reset(own);
		if (store_relay_take(relay, &shard,
		                     &(struct relay_want){ .routes_digest = routes,
		                                           .rows = 100,
		                                           .bytes = MANY,
		                                           .with_action = true,
		                                           .with_decided = true },
		                     own, &take, &error) != FATE_OK)
			taker->failed++;
		for (size_t i = 0; i < take.rows_len; i++)
			taker->missing += take.rows[i].checkpoint->sealed.body.len != 100;
		taker->failed += take.rows_len != 20;
	}
	arena_free(own);
	store_close(relay);
	return NULL;
}

static void back_to_the_first_day(void)
{
	char sql[1024];
	struct error error = { 0 };

	assert_ok(store_payload_days(store, DAY, 1, &error), error);
	snprintf(sql, sizeof(sql),
	         "BEGIN; WITH m AS (DELETE FROM fermata.payload WHERE day = '" MOVED_TO
	         "' RETURNING checkpoint_id, body)"
	         " INSERT INTO fermata.payload SELECT checkpoint_id, '2026-11-30', body FROM m;"
	         " UPDATE fermata.checkpoint SET payload_day = '2026-11-30'; COMMIT");
	world_run(sql);
}

static void a_relay_finds_its_payloads_wherever_they_go(void **state)
{
	(void)state;
	pthread_t thread;
	struct taker taker = { 0 };
	int drops = 0;
	size_t fresh;
	struct error error = { 0 };

	for (uint32_t i = 0; i < 20; i++) {
		insert_checkpoint(store, arena, make_checkpoint(arena, 2 * i, 100));
		decide_checkpoint(store, arena, 2 * i);
	}
	world_run("INSERT INTO fermata.resumes_topic VALUES ('resumes', 1)");
	assert_ok(store_ledger_advance(store, &shard, LEDGER_NONE, 0, NO_DOUBT, routes, NULL, 0, &fresh, &error),
	          error);
	relay_stops = false;
	assert_int_equal(pthread_create(&thread, NULL, take_without_end, &taker), 0);
	for (int64_t until = clock_mono_ms() + 3000; clock_mono_ms() < until; drops++) {
		int64_t payloads = -1;
		assert_int_equal(sweep(store, DAY, true).moved, 20);
		while (payloads < 0)
			if (store_payload_day_drop(store, DAY, BEFORE, &payloads, &error) != FATE_OK)
				assert_string_equal(error.native, "55P03");
		back_to_the_first_day();
	}
	relay_stops = true;
	pthread_join(thread, NULL);
	print_message("%d takes beside %d days dropped\n", taker.takes, drops);
	assert_true(taker.takes > 20 && drops > 5);
	assert_int_equal(taker.failed, 0);
	assert_int_equal(taker.missing, 0);
}

static void of_all_workers_one_sweeps(void **state)
{
	(void)state;
	struct store *other = open_store("other");
	struct error error = { 0 };
	bool ours;

	world_run(
		"INSERT INTO fermata.installation VALUES (true, 'fermata', 'cluster', 1) ON CONFLICT DO NOTHING");
	assert_ok(store_sweep_claim(store, 60000000, false, &ours, &error), error);
	assert_true(ours);
	assert_ok(store_sweep_claim(other, 60000000, false, &ours, &error), error);
	assert_false(ours);
	assert_ok(store_sweep_claim(store, 0, true, &ours, &error), error); /* it has ended */
	assert_true(ours);
	assert_ok(store_sweep_claim(other, 60000000, false, &ours, &error), error);
	assert_true(ours);
	store_close(other);
}

/* ---- the role of a worker ---- */

static void who_does_not_own_the_tables_can_do_it(void **state)
{
	(void)state;
	char role[64];
	char sql[512];
	struct store *worker;
	struct error error = { 0 };
	int64_t payloads;

	stored(0, 3, "RESUMED", 1);
	stored(30, 1, "PENDING", 1);
	snprintf(role, sizeof(role), "sweeper_%d", (int)getpid());
	snprintf(sql, sizeof(sql),
	         "CREATE ROLE %s LOGIN PASSWORD 'test'; GRANT USAGE ON SCHEMA fermata TO %s;"
	         "GRANT SELECT, INSERT, UPDATE, DELETE ON fermata.checkpoint, fermata.payload TO %s",
	         role, role, role);
	world_run(sql);
	char *dsn = world_dsn_as(role, "test");
	struct store_settings settings = { .dsn = dsn, .name = role, .prepared = true };
	assert_ok(store_open(&worker, &settings, &error), error);
	assert_int_equal(sweep(worker, DAY, true).moved, 1);
	assert_fate(FATE_FATAL, store_payload_day_drop(worker, DAY, BEFORE, &payloads, &error), error);
	assert_string_equal(error.native, "42501");
	snprintf(sql, sizeof(sql), "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fermata TO %s", role);
	world_run(sql);
	assert_int_equal(drop(worker, DAY), 3);
	store_close(worker);
	snprintf(sql, sizeof(sql), "DROP OWNED BY %s; DROP ROLE %s", role, role);
	world_run(sql);
	free(dsn);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_due_is_deleted_and_nothing_else),
		TEST(superseded_ones_cost_nothing_in_the_end),
		TEST(the_default_partition_is_swept_too),
		TEST(a_day_goes_whole_once_nothing_in_it_is_needed),
		TEST(a_second_copy_is_no_trouble),
		TEST(what_is_large_is_moved_in_small_steps),
		TEST(who_reads_is_not_disturbed),
		TEST(what_comes_late_is_not_lost),
		TEST(of_several_each_thing_is_done_by_one),
		TEST(a_relay_finds_its_payloads_wherever_they_go),
		TEST(of_all_workers_one_sweeps),
		TEST(who_does_not_own_the_tables_can_do_it),
	};

	return run_in_world(tests);
}
