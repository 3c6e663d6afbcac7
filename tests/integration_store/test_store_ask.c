/* What people ask, and what the reaper does. */
#include "tests/integration_store/store_fixture.h"

#include <stdio.h>
#include <string.h>

static struct arena *pages;

static int setup(void **state)
{
	(void)state;
	pages = arena_new((size_t)2 * 1024 * 1024); /* enough for a page, not for the table */
	assert_non_null(pages);
	return begin_test(open_asking("ask"), (size_t)64 * 1024 * 1024);
}

static int teardown(void **state)
{
	arena_free(pages);
	return end_test(state);
}

/* ---- listing ---- */

struct seen {
	uint32_t count;
	uint32_t stop_at; /* 0: never */
	int64_t last_time;
	struct uuid last_id;
	bool ordered;
	bool unfilled_before_filled;
};

static bool see(void *context, const struct checkpoint *checkpoint)
{
	struct seen *seen = context;

	if (seen->count > 0) {
		bool later =
			checkpoint->appended_at > seen->last_time ||
			(checkpoint->appended_at == seen->last_time && uuid_compare(&checkpoint->id, &seen->last_id) > 0);
		seen->ordered = seen->ordered && (later || !checkpoint->filled);
	} else {
		seen->ordered = true;
	}
	seen->last_time = checkpoint->appended_at;
	seen->last_id = checkpoint->id;
	seen->count++;
	return seen->count != seen->stop_at;
}

static struct seen list_until(const struct checkpoint_filter *filter, uint32_t stop_at)
{
	struct seen seen = { .stop_at = stop_at };
	struct error error = { 0 };

	assert_ok(store_checkpoints(store, filter, pages, see, &seen, &error), error);
	return seen;
}

static uint32_t count(const struct checkpoint_filter *filter)
{
	struct seen seen = list_until(filter, 0);

	assert_true(seen.count == 0 || seen.ordered);
	return seen.count;
}

/* 3,000 filled rows whose times are doubled and fall while the ids rise, and 700 unclaimed ones. */
static void make_many(void)
{
	world_run("INSERT INTO fermata.checkpoint (checkpoint_id, state, filled, changed_at, tenant, session_id, "
	          "gate_id,"
	          " suspend_seq, agent, suspended_at, appended_at, digest, payload_day, own_resumes_topic,"
	          " resumes_partition, verdict, on_expiry)"
	          " SELECT ('00000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid,"
	          " (CASE n % 4 WHEN 0 THEN 'PENDING' WHEN 1 THEN 'RESUMED' WHEN 2 THEN 'QUARANTINED' ELSE "
	          "'DECIDED' END)"
	          "::fermata.gate_state, true, 1, 'tenant-' || n % 3, 'session-' || n % 10, 'gate', n, 'agent-' "
	          "|| n % 2,"
	          " n, (3000 - n) / 2, '\\x00', '2026-11-30', 'resumes', 0,"
	          " (CASE WHEN n % 8 IN (1, 2, 3) THEN 'APPROVED' END)::fermata.verdict, 'HOLD'"
	          " FROM generate_series(0, 2999) n");
	world_run("INSERT INTO fermata.checkpoint (checkpoint_id, state, filled, changed_at)"
	          " SELECT ('10000000-0000-0000-0000-' || lpad(to_hex(n), 12, '0'))::uuid, 'UNCLAIMED', false, 1"
	          " FROM generate_series(0, 699) n");
}

static void lists_are_filtered_and_paged(void **state)
{
	(void)state;
	struct uuid one = { { 0 } };
	make_many();
	one.bytes[15] = 17;
	assert_int_equal(count(&(struct checkpoint_filter){ 0 }), 3700);
	assert_int_equal(count(&(struct checkpoint_filter){ .limit = 501 }), 501);
	assert_int_equal(count(&(struct checkpoint_filter){ .limit = 1 }), 1);
	assert_int_equal(count(&(struct checkpoint_filter){ .limit = 3001 }), 3001);
	assert_int_equal(count(&(struct checkpoint_filter){ .checkpoint_id = &one }), 1);
	assert_int_equal(count(&(struct checkpoint_filter){ .has_state = true, .state = GATE_UNCLAIMED }), 700);
	assert_int_equal(count(&(struct checkpoint_filter){ .has_state = true, .state = GATE_RESUMED }), 750);
	assert_int_equal(count(&(struct checkpoint_filter){ .open_only = true }), 750 + 375);
	world_run(
		"UPDATE fermata.checkpoint SET state = 'IN_DOUBT' WHERE state = 'DECIDED' AND tenant = 'tenant-0'");
	assert_int_equal(count(&(struct checkpoint_filter){ .waiting = true }), 3 * 750);
	assert_int_equal(count(&(struct checkpoint_filter){ .waiting = true, .limit = SIZE_MAX }), 3 * 750);
	assert_int_equal(count(&(struct checkpoint_filter){ .tenant = VIEW_LITERAL("tenant-1") }), 1000);
	assert_int_equal(count(&(struct checkpoint_filter){ .agent = VIEW_LITERAL("agent-0") }), 1500);
	assert_int_equal(count(&(struct checkpoint_filter){ .session_id = VIEW_LITERAL("session-4") }), 300);
	assert_int_equal(
		count(&(struct checkpoint_filter){ .session_id = VIEW_LITERAL("session-4"), .open_only = true }),
		150 + 75);
	assert_int_equal(count(&(struct checkpoint_filter){ .session_id = VIEW_LITERAL("nobody") }), 0);
	assert_int_equal(list_until(&(struct checkpoint_filter){ 0 }, 777).count, 777);
	assert_int_equal(list_until(&(struct checkpoint_filter){ 0 }, 3333).count, 3333);
}

static bool ask_again(void *context, const struct checkpoint *checkpoint)
{
	struct error error = { 0 };
	struct decision **decisions;
	size_t len;
	uint32_t *asked = context;

	assert_ok(store_decisions(store, &checkpoint->id, arena, &decisions, &len, &error), error);
	arena_reset(arena);
	return ++*asked < 600;
}

static void the_store_may_be_asked_while_it_lists(void **state)
{
	struct error error = { 0 };
	uint32_t asked = 0;

	(void)state;
	make_many();
	assert_ok(store_checkpoints(store, &(struct checkpoint_filter){ .waiting = true }, pages, ask_again,
	                            &asked, &error),
	          error);
	assert_int_equal(asked, 600);
}

/* What it has read so far is told when it ends, and what the connection of the test's own has, at its next statement. */
static void reopen(void)
{
	world_run("SELECT pg_stat_force_next_flush()");
	store_close(store);
	world_wait("SELECT (count(*) = 0)::int FROM pg_stat_activity WHERE application_name = 'ask'");
	store = open_asking("ask");
	world_run("SELECT pg_stat_clear_snapshot()");
}

static void a_list_goes_by_the_index(void **state)
{
	(void)state;
	make_many();
	world_run("UPDATE fermata.checkpoint SET session_id = 'SESSION-808' WHERE suspend_seq < 20");
	world_run("ANALYZE fermata.checkpoint");
	reopen();
	int64_t before = world_number(
		"SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_user_tables WHERE relname = 'checkpoint'");
	for (int i = 0; i < 10; i++)
		count(&(struct checkpoint_filter){ .session_id = VIEW_LITERAL("SESSION-808") });
	reopen();
	assert_int_equal(
		world_number(
			"SELECT coalesce(sum(seq_scan), 0) FROM pg_stat_user_tables WHERE relname = 'checkpoint'"),
		before);
}

/* ---- expiry ---- */

static size_t claim(struct store *who, int64_t before, int64_t resend_before, int64_t now,
                    struct due **ret_due)
{
	struct error error = { 0 };
	size_t len;

	assert_ok(store_expiry_claim(who, before, resend_before, now, 100, arena, ret_due, &len, &error), error);
	return len;
}

static void what_expires_is_claimed_by_one(void **state)
{
	(void)state;
	struct store *other = open_asking("other");
	struct error error = { 0 };
	struct due *due;
	int64_t next;

	assert_ok(store_expiry_next(store, &next, &error), error);
	assert_int_equal(next, TIME_NONE);
	for (uint32_t i = 0; i < 5; i++) {
		struct checkpoint *made = make_checkpoint(arena, i, 10);
		made->expires_at = T0 + 100 - i;
		insert_checkpoint(store, arena, made);
	}
	world_run(
		"INSERT INTO fermata.decision (decision_id, checkpoint_id, outcome, decision, issuer, subject, "
		"display,"
		" decided_at, stated_session, source_system, source_ref, source_delivery, record_digest, id_text, "
		"topic,"
		" partition, \"offset\", appended_at) SELECT gen_random_uuid(), checkpoint_id, o::fermata.outcome,"
		" k::fermata.decision_kind, '', '', '', 0, '', '', '', '', '', '', '', 0, 0, 0 FROM "
		"fermata.checkpoint,"
		" (VALUES ('refused', 'EXPIRE'), ('refused', 'EXPIRE'), ('refused', 'APPROVE'), ('counted', "
		"'EXPIRE')) x (o, k)"
		" WHERE checkpoint_id::text LIKE '%4'");
	assert_ok(store_expiry_next(store, &next, &error), error);
	assert_int_equal(next, T0 + 96);
	assert_int_equal(claim(store, T0 + 98, 0, 1000, &due), 2);
	assert_int_equal(due[0].expires_at, T0 + 96);
	assert_int_equal(due[0].refused, 2);
	assert_int_equal(due[0].digest[0], 4);
	assert_true(view_equal_text(due[0].session_id, "session-4"));
	assert_int_equal(due[1].refused, 0);
	/* Another worker at the same moment gets the others, and does not wait. */
	assert_int_equal(claim(other, T0 + 200, 0, 1001, &due), 3);
	store_rollback(other);
	assert_ok(store_commit(store, &error), error);
	assert_int_equal(claim(other, T0 + 200, 0, 1002, &due), 3);
	assert_ok(store_commit(other, &error), error);
	/* A minute later, what is still there is sent again. */
	assert_int_equal(claim(store, T0 + 200, 1000, 2000, &due), 0);
	store_rollback(store);
	assert_int_equal(claim(store, T0 + 200, 1001, 2000, &due), 2);
	store_rollback(store);
	store_close(other);
}

/* ---- unclaimed ---- */

static void early(uint32_t number, int64_t since)
{
	struct checkpoint made = {
		.id = uuid_of(number), .state = GATE_UNCLAIMED, .decided_at = TIME_NONE, .changed_at = since
	};
	struct decision *decision = make_decision(arena, 1000 + number, number);
	const struct decision *inserts[] = { decision };
	struct checkpoint_write row = { .checkpoint = &made, .insert = true, .unclaimed_add = 1 };
	struct batch_write batch = {
		.checkpoints = &row, .checkpoints_len = 1, .inserts = inserts, .inserts_len = 1
	};
	struct error error = { 0 };

	decision->outcome = OUTCOME_WAITING;
	begin_batch(store, arena, NULL, &made.id, 1, NULL);
	assert_ok(store_batch_write(store, &batch, &error), error);
	assert_ok(store_commit(store, &error), error);
}

static void what_is_never_claimed_goes(void **state)
{
	(void)state;
	struct store *other = open_asking("other");
	struct error error = { 0 };
	struct uuid locked = uuid_of(3);
	size_t swept;
	int64_t outbox;
	int64_t gates;
	int64_t unclaimed;

	for (uint32_t i = 1; i <= 4; i++)
		early(i, T0 + i);
	assert_ok(store_backlog(store, &outbox, &gates, &unclaimed, &error), error);
	assert_int_equal(unclaimed, 4);
	begin_batch(other, arena, NULL, &locked, 1, NULL); /* intake is about to fill it */
	assert_ok(store_unclaimed_sweep(store, T0 + 4, 100, &swept, &error), error);
	assert_int_equal(swept, 2);
	store_rollback(other);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.checkpoint"), 2);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.unclaimed"), 2);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE outcome = 'refused'"
	                              " AND reason LIKE 'no_suspend%'"),
	                 2);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE outcome = 'waiting'"), 2);
	assert_ok(store_unclaimed_sweep(store, T0 + 5, 1, &swept, &error), error);
	assert_int_equal(swept, 1);
	assert_ok(store_unclaimed_sweep(store, T0 + 5, 100, &swept, &error), error);
	assert_int_equal(swept, 1);
	assert_ok(store_unclaimed_sweep(store, T0 + 5, 100, &swept, &error), error);
	assert_int_equal(swept, 0);
	store_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(lists_are_filtered_and_paged), TEST(the_store_may_be_asked_while_it_lists),
		TEST(a_list_goes_by_the_index),     TEST(what_expires_is_claimed_by_one),
		TEST(what_is_never_claimed_goes),
	};

	return run_in_world(tests);
}
