/* The ways out of quarantine, one after the other, and with a relay. */
#include "tests/integration_store/quarantine_support.h"

#include "store/store_audit.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>

/* ---- deeds ---- */

static bool for_migrators(void *context, struct view tenant, struct view agent)
{
	(void)context;
	return view_equal_text(tenant, "default") && view_equal_text(agent, "migrator");
}

static struct deed_result retry(uint32_t number, settles_without_resume *settles)
{
	struct operator_deed deed = deed_of(number);
	struct deed_result result;

	assert_ok(store_quarantine_retry(store, &deed, settles, NULL, arena, &result, &error), error);
	return result;
}

static struct deed_result drop(uint32_t number)
{
	struct operator_deed deed = deed_of(number);
	struct deed_result result;

	assert_ok(store_quarantine_drop(store, &deed, arena, &result, &error), error);
	return result;
}

/* ---- one after the other ---- */

static void what_is_decided_goes_to_the_outbox_again(void **state)
{
	(void)state;
	struct store *listener = open_store("relay");

	make_decided(2);
	int64_t version = number_of(2, "version");
	assert_ok(store_listen(listener, &error), error);
	struct deed_result result = retry(2, for_migrators);
	assert_true(result.done && result.checkpoint->state == GATE_DECIDED);
	assert_row(2, "state = 'DECIDED' AND verdict = 'APPROVED' AND NOT published AND decided_at IS NOT NULL");
	assert_row(2, "reason = 'fine'"); /* what who approved it gave */
	assert_row(2, IN_OUTBOX " AND NOT " IN_EXPIRY);
	assert_row(2, TOLD);
	assert_true(number_of(2, "version") > version && number_of(2, "version") >= NOW);
	assert_int_equal(number_of(2, "changed_at"), NOW);
	struct pollfd pollfd = { store_socket(listener), POLLIN, 0 };
	while (!store_notified(listener))
		assert_int_equal(poll(&pollfd, 1, 10000), 1);
	store_close(listener);

	struct audit_entry *entries;
	size_t len;
	assert_ok(store_audits(store, &result.checkpoint->id, arena, &entries, &len, &error), error);
	assert_int_equal(len, 1);
	assert_int_equal(entries[0].at, NOW);
	assert_true(view_equal_text(entries[0].who, "ann@desk"));
	assert_true(view_equal_text(entries[0].what, AUDIT_QUARANTINE_RETRY));
	assert_true(view_equal_text(entries[0].reason, "mended"));
	assert_true(view_equal_text(entries[0].details, "DECIDED, APPROVED; it was quarantined: " BROKEN));
}

static void what_is_open_waits_again_and_expires_as_before(void **state)
{
	(void)state;
	make_open(1);
	world_run("DELETE FROM fermata.expiry");
	struct deed_result result = retry(1, for_migrators);
	assert_true(result.done && result.checkpoint->state == GATE_PENDING);
	assert_row(1, "state = 'PENDING' AND verdict IS NULL AND reason IS NULL AND NOT " IN_OUTBOX);
	assert_row(1, TOLD);
	assert_row(1, "expires_at = (SELECT expires_at FROM fermata.expiry e WHERE e.checkpoint_id ="
	              " c.checkpoint_id AND sent_at IS NULL)");
	/* Held: it has expired already, and waits without an end. */
	make_open(2);
	world_run("UPDATE fermata.checkpoint SET held = true WHERE session_id = 'session-2';"
	          "DELETE FROM fermata.expiry");
	assert_true(retry(2, settles_never).done);
	assert_row(2, "state = 'PENDING' AND reason LIKE 'expired, and held%' AND NOT " IN_EXPIRY);
}

static void a_rejection_may_be_settled_without_a_resume(void **state)
{
	(void)state;
	make_decided(2);
	quarantine(2, "'REJECTED'");
	struct deed_result result = retry(2, for_migrators);
	assert_true(result.done && result.checkpoint->state == GATE_RESUMED);
	assert_row(2, "state = 'RESUMED' AND published AND verdict = 'REJECTED' AND NOT " IN_OUTBOX);
	assert_row(2, TOLD);
	make_decided(4);
	quarantine(4, "'EXPIRED'");
	assert_true(retry(4, settles_never).done);
	assert_row(4, "state = 'DECIDED' AND verdict = 'EXPIRED' AND " IN_OUTBOX);
}

static void what_is_dropped_is_settled_for_good(void **state)
{
	(void)state;
	const struct policy policy = { 0 };

	make_decided(2);
	make_open(4);
	for (uint32_t number = 2; number <= 4; number += 2) {
		struct deed_result result = drop(number);
		assert_true(result.done && result.checkpoint->state == GATE_RESUMED);
		assert_row(number, "state = 'RESUMED' AND published AND NOT " IN_OUTBOX " AND NOT " IN_EXPIRY);
		assert_row(number, "reason = 'dropped out of quarantine by ann@desk: mended'");
		assert_row(number, TOLD);
		assert_int_equal(number_of(number, AUDIT_ROWS), 1);
		struct decision *late = make_decision(arena, 7, number);
		late->has_digest = false;
		assert_int_equal(policy_judge(&policy, result.checkpoint, late, NULL, 0, true),
		                 REFUSAL_ALREADY_DECIDED);
		/* No way leads back. */
		assert_false(retry(number, settles_never).done);
		assert_false(drop(number).done);
		assert_int_equal(number_of(number, AUDIT_ROWS), 1);
	}
	assert_row(2, "verdict = 'APPROVED'");
	assert_row(4, "verdict IS NULL");
	assert_int_equal(world_number("SELECT count(*) FROM fermata.decision WHERE outcome = 'counted'"), 1);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.audit WHERE what = 'quarantine.drop'"), 2);
}

static void what_is_not_quarantined_is_not_touched(void **state)
{
	(void)state;
	static const char *const states[] = { "PENDING", "DECIDED", "RESUMED", "SUPERSEDED", "IN_DOUBT" };
	char sql[160];

	make_open(1);
	for (size_t i = 0; i < sizeof(states) / sizeof(states[0]); i++) {
		snprintf(sql, sizeof(sql), "UPDATE fermata.checkpoint SET state = '%s'", states[i]);
		world_run(sql);
		int64_t row = number_of(1, "hashtext(c::text)");
		struct deed_result result = retry(1, settles_never);
		assert_true(!result.done && result.checkpoint != NULL);
		assert_string_equal(gate_state_name(result.checkpoint->state), states[i]);
		assert_false(drop(1).done);
		assert_int_equal(number_of(1, "hashtext(c::text)"), row);
	}
	struct deed_result result = retry(99, settles_never);
	assert_true(!result.done && result.checkpoint == NULL);
	result = drop(99);
	assert_true(!result.done && result.checkpoint == NULL);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.audit"), 0);
	assert_int_equal(world_number("SELECT count(*) FROM fermata.outbox"), 0);
}

static void audit_rows_stay_as_they_are(void **state)
{
	(void)state;
	make_open(1);
	assert_true(drop(1).done);
	world_run("DO $$ BEGIN UPDATE fermata.audit SET who = 'nobody'; RAISE 'changed';"
	          " EXCEPTION WHEN restrict_violation THEN NULL; END $$");
	world_run("DO $$ BEGIN DELETE FROM fermata.audit; RAISE 'deleted';"
	          " EXCEPTION WHEN restrict_violation THEN NULL; END $$");
	world_run("DO $$ BEGIN TRUNCATE fermata.audit; RAISE 'truncated';"
	          " EXCEPTION WHEN restrict_violation THEN NULL; END $$");
	assert_int_equal(world_number("SELECT count(*) FROM fermata.audit WHERE who = 'ann@desk'"), 1);
}

/* ---- with a relay ---- */

static void what_is_still_broken_comes_back_and_is_retried_again(void **state)
{
	(void)state;
	struct uuid id = uuid_of(2);

	make_ledger();
	make_decided(2);
	for (int round = 1; round <= 3; round++) {
		assert_int_equal(take_rows().rows_len, 0);
		assert_true(retry(2, settles_never).done);
		struct relay_take rows = take_rows();
		assert_int_equal(rows.rows_len, 1);
		assert_int_equal(rows.rows[0].decisions_len, 1);
		assert_ok(store_relay_set_aside(store, &shard, 10, &id, GATE_QUARANTINED, "still broken", NOW + round,
		                                &error),
		          error);
		assert_row(2, "state = 'QUARANTINED' AND reason = 'still broken' AND NOT " IN_OUTBOX);
		assert_int_equal(number_of(2, AUDIT_ROWS), round);
	}
	/* At last it is mended, and published once. */
	assert_true(retry(2, settles_never).done);
	struct gate_sent sent = { id, number_of(2, "version") + 1, WAITING_GOES };
	assert_ok(store_relay_mark(store, &shard, 10, 11, &sent, 1, NULL, 0, NOW, &error), error);
	assert_row(2, "state = 'RESUMED' AND published AND NOT " IN_OUTBOX);
	assert_false(retry(2, settles_never).done);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin_quarantine, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_decided_goes_to_the_outbox_again),
		TEST(what_is_open_waits_again_and_expires_as_before),
		TEST(a_rejection_may_be_settled_without_a_resume),
		TEST(what_is_dropped_is_settled_for_good),
		TEST(what_is_not_quarantined_is_not_touched),
		TEST(audit_rows_stay_as_they_are),
		TEST(what_is_still_broken_comes_back_and_is_retried_again),
	};

	return run_in_world(tests);
}
