/* The ways out of doubt: what the row remembers, which doubt that answers, and a relay that finds the resume after all. */
#include "tests/integration_store/quarantine_support.h"

#include "store/store_audit.h"
#include "store/store_facts.h"
#include "store/store_rebuild.h"

#include <stdio.h>
#include <string.h>

static struct deed_result resume(uint32_t number)
{
	struct operator_deed deed = deed_of(number);
	struct deed_result result;

	assert_ok(store_doubt_resume(store, &deed, arena, &result, &error), error);
	return result;
}

static struct deed_result drop(uint32_t number)
{
	struct operator_deed deed = deed_of(number);
	struct deed_result result;

	assert_ok(store_doubt_drop(store, &deed, arena, &result, &error), error);
	return result;
}

static void assert_audited(uint32_t number, const char *what, const char *details)
{
	struct uuid id = uuid_of(number);
	struct audit_entry *entries;
	size_t len;

	assert_ok(store_audits(store, &id, arena, &entries, &len, &error), error);
	assert_int_equal(len, 1);
	assert_int_equal(entries[0].at, NOW);
	assert_true(view_equal_text(entries[0].who, "ann@desk"));
	assert_true(view_equal_text(entries[0].what, what));
	assert_true(view_equal_text(entries[0].reason, "mended"));
	assert_true(view_equal_text(entries[0].details, details));
}

/* What R3 would put in doubt. */
static size_t doubt(int64_t before, int64_t below)
{
	size_t count;

	assert_ok(store_ledger_doubt(store, &shard, 10, (struct doubt){ before, below }, "gone", NOW, 100, &count,
	                             &error),
	          error);
	return count;
}

/* ---- resume ---- */

static void what_was_not_published_goes_to_the_outbox(void **state)
{
	(void)state;
	make_ledger();
	make_doubted(2);
	make_doubted(4);
	int64_t version = number_of(2, "version");
	struct deed_result result = resume(2);
	assert_true(result.done && result.checkpoint->state == GATE_DECIDED);
	assert_row(2, "state = 'DECIDED' AND verdict = 'APPROVED' AND NOT published AND reason = 'fine'");
	assert_row(2, IN_OUTBOX " AND NOT " IN_EXPIRY);
	assert_row(2, TOLD);
	assert_true(number_of(2, "version") > version && number_of(2, "changed_at") == NOW);
	assert_audited(2, AUDIT_DOUBT_RESUME, "DECIDED, APPROVED; it was in doubt: gone");
	assert_false(resume(2).done);
	assert_false(drop(2).done);
	assert_int_equal(number_of(2, AUDIT_ROWS), 1);
	assert_row(4, "state = 'IN_DOUBT' AND doubt_settled IS NULL AND NOT " IN_OUTBOX);

	struct relay_take rows = take_rows();
	assert_int_equal(rows.rows_len, 1);
	assert_int_equal(rows.rows[0].checkpoint->doubt_settled, 10);
	struct gate_sent sent = { uuid_of(2), number_of(2, "version") + 1, WAITING_GOES };
	assert_ok(store_relay_mark(store, &shard, 10, 11, &sent, 1, NULL, 0, NOW, &error), error);
	assert_row(2, "state = 'RESUMED' AND published AND NOT " IN_OUTBOX);
}

static void an_answer_is_good_for_records_below_where_the_ledger_stood(void **state)
{
	(void)state;
	int64_t later = NOW + 1;

	make_ledger();
	make_doubted(2);
	assert_true(resume(2).done);
	assert_int_equal(number_of(2, "doubt_settled"), 10);
	assert_int_equal(doubt(later, 10), 0); /* the one that was answered, whatever its time */
	assert_row(2, "state = 'DECIDED' AND " IN_OUTBOX);
	assert_int_equal(doubt(later, 11), 1); /* more is gone than was then */
	assert_row(2, "state = 'IN_DOUBT' AND NOT " IN_OUTBOX);

	world_run("UPDATE fermata.ledger_offset SET next = 20");
	assert_true(resume(2).done);
	assert_int_equal(number_of(2, "doubt_settled"), 20);
	world_run("UPDATE fermata.ledger_offset SET next = 10");
	assert_int_equal(doubt(later, 20), 0);
	assert_int_equal(doubt(later, 21), 1);
	assert_int_equal(number_of(2, AUDIT_ROWS), 2);
}

/* Quarantined and retried in between, it is still answered. */
static void an_answer_outlives_quarantine(void **state)
{
	(void)state;
	struct uuid id = uuid_of(2);
	struct operator_deed deed = deed_of(2);
	struct deed_result result;

	make_ledger();
	make_doubted(2);
	assert_true(resume(2).done);
	assert_ok(store_relay_set_aside(store, &shard, 10, &id, GATE_QUARANTINED, BROKEN, NOW, &error), error);
	assert_ok(store_quarantine_retry(store, &deed, settles_never, NULL, arena, &result, &error), error);
	assert_true(result.done);
	assert_int_equal(doubt(NOW + 1, 10), 0);
	assert_row(2, "state = 'DECIDED' AND " IN_OUTBOX);
}

/* No ledger of its shard was read yet: there is nothing that could be answered, and R2 may have its own doubt. */
static void without_a_ledger_nothing_is_answered(void **state)
{
	(void)state;
	make_doubted(2);
	assert_true(resume(2).done);
	assert_row(2, "state = 'DECIDED' AND doubt_settled IS NULL");
	make_ledger();
	assert_int_equal(doubt(NOW + 1, 1), 1);
}

/* ---- drop ---- */

static void what_is_dropped_is_settled_for_good(void **state)
{
	(void)state;
	make_ledger();
	make_doubted(2);
	struct deed_result result = drop(2);
	assert_true(result.done && result.checkpoint->state == GATE_RESUMED);
	assert_row(2, "state = 'RESUMED' AND published AND verdict = 'APPROVED' AND NOT " IN_OUTBOX);
	assert_row(2, "reason = 'dropped out of doubt by ann@desk: mended'");
	assert_row(2, TOLD);
	assert_audited(2, AUDIT_DOUBT_DROP, "RESUMED, APPROVED; it was in doubt: gone");
	assert_false(resume(2).done);
	assert_int_equal(take_rows().rows_len, 0);
}

static void what_is_not_in_doubt_is_not_touched(void **state)
{
	(void)state;
	static const char *const states[] = { "PENDING", "DECIDED", "RESUMED", "SUPERSEDED", "QUARANTINED" };
	char sql[160];

	make_ledger();
	make_open(1);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE fermata.checkpoint SET state = '%s'", states[i]);
		world_run(sql);
		int64_t row = number_of(1, "hashtext(c::text)");
		struct deed_result result = resume(1);
		assert_true(!result.done && result.checkpoint != NULL);
		assert_string_equal(gate_state_name(result.checkpoint->state), states[i]);
		assert_false(drop(1).done);
		assert_int_equal(number_of(1, "hashtext(c::text)"), row);
	}
	assert_null(resume(99).checkpoint);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.audit"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 0);
}

/* ---- with others ---- */

static void what_the_ledger_holds_is_never_published_again(void **state)
{
	(void)state;
	make_ledger();
	for (uint32_t number = 2; number <= 8; number += 2)
		make_doubted(number);
	race_with_the_ledger(2, 4, store_doubt_resume);
	race_with_the_ledger(6, 8, store_doubt_drop);
}

static void of_two_operators_one_is_first(void **state)
{
	(void)state;
	struct acting first, second;

	make_ledger();
	make_doubted(2);
	world_run("BEGIN; SELECT 1 FROM fermata.gate_outbox FOR UPDATE");
	start_acting(&first, 2, store_doubt_resume);
	wait_for_lock("actor");
	start_acting(&second, 2, store_doubt_drop);
	world_wait(
		"SELECT pg_stat_clear_snapshot(); SELECT (count(*) = 2)::int FROM pg_stat_activity WHERE datname ="
		" current_database() AND application_name = 'actor' AND wait_event_type = 'Lock'");
	world_run("COMMIT");
	finish_acting(&first, true);
	finish_acting(&second, false);
	assert_row(2, "state = 'DECIDED' AND " IN_OUTBOX);
	assert_int_equal(number_of(2, AUDIT_ROWS), 1);
}

/* ---- the doubt of a ledger ---- */

static void a_ledger_says_what_its_doubt_is_about(void **state)
{
	(void)state;
	struct doubt doubt = { T0, 7 };
	struct ledger_row *rows;
	struct ledger ledger;
	size_t len, fresh;

	assert_ok(store_ledger_advance(store, &shard, LEDGER_NONE, 8, doubt, routes, NULL, 0, &fresh, &error),
	          error);
	assert_ok(store_ledger(store, &shard, &ledger, &error), error);
	assert_true(ledger.next == 8 && ledger.doubt.before == T0 && ledger.doubt.below == 7);
	doubt.below = 9;
	assert_ok(store_ledger_advance(store, &shard, 8, 9, doubt, routes, NULL, 0, &fresh, &error), error);
	assert_ok(store_ledgers(store, CLUSTER, arena, &rows, &len, &error), error);
	assert_true(len == 1 && rows[0].ledger.doubt.before == T0 && rows[0].ledger.doubt.below == 9);
	assert_ok(store_ledger_advance(store, &shard, 9, 10, NO_DOUBT, routes, NULL, 0, &fresh, &error), error);
	assert_int_equal(world_number("SELECT (doubt_before IS NULL AND doubt_below IS NULL)::int FROM"
	                              " fermata.ledger_offset"),
	                 1);
	/* A worker of before does not say it: it is about everything. */
	world_run("UPDATE fermata.ledger_offset SET doubt_before = 5, doubt_below = NULL");
	assert_ok(store_ledger(store, &shard, &ledger, &error), error);
	assert_true(ledger.doubt.before == 5 && ledger.doubt.below == INT64_MAX);
}

static void what_waits_for_an_operator_is_counted(void **state)
{
	(void)state;
	int64_t quarantined, in_doubt;

	make_doubted(2);
	make_doubted(4);
	make_open(1);
	insert_checkpoint(store, arena, make_checkpoint(arena, 6, 10));
	assert_ok(store_set_aside(store, &quarantined, &in_doubt, &error), error);
	assert_true(quarantined == 1 && in_doubt == 2);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_quarantine, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_was_not_published_goes_to_the_outbox),
		TEST(an_answer_is_good_for_records_below_where_the_ledger_stood),
		TEST(an_answer_outlives_quarantine),
		TEST(without_a_ledger_nothing_is_answered),
		TEST(what_is_dropped_is_settled_for_good),
		TEST(what_is_not_in_doubt_is_not_touched),
		TEST(what_the_ledger_holds_is_never_published_again),
		TEST(of_two_operators_one_is_first),
		TEST(a_ledger_says_what_its_doubt_is_about),
		TEST(what_waits_for_an_operator_is_counted),
	};

	return run_in_world(tests);
}
