// links: worker schemas vault store core
// The judge before rows that are not simply pending: those that a relay made from the ledger, the quarantined,
// the doubtful, and verdicts that are dropped.
#include "test_judge.h"

#define EXPIRES (T0 + 3600 * SECOND)

static int setup(void **state)
{
	*state = world_new();
	return 0;
}

static int teardown(void **state)
{
	world_free(*state);
	return 0;
}

/* ---- rows that a relay made from the ledger ---- */

static void from_ledger(struct world *w, int number, struct uuid *ids, size_t len)
{
	struct world_row *row = &w->rows[w->rows_len++];

	memset(row, 0, sizeof(*row));
	row->checkpoint = (struct checkpoint){
		.id = id_of('c', number),
		.state = GATE_RESUMED,
		.published = true,
		.from_ledger = true,
		.has_verdict = true,
		.verdict = VERDICT_APPROVED,
		.decided_at = T0,
		.expires_at = TIME_NONE,
		.ledger_decisions = ids,
		.ledger_decisions_len = len,
	};
}

static void a_ledger_row_is_filled_and_stays_resumed(void **state)
{
	struct world *w = *state;
	struct uuid ids[] = { id_of('d', 1), id_of('d', 2) };

	from_ledger(w, 1, ids, 2);
	w->clock += SECOND;
	BATCH(SUSPEND(1, .quorum = 2, .seq = 3, .expires_at = EXPIRES));
	assert_state(1, GATE_RESUMED);
	assert_false(row_of(w, 1)->outbox);
	assert_false(row_of(w, 1)->expiry);
	int64_t told = row_of(w, 1)->gate_version;
	assert_true(told > 0);
	BATCH(APPROVE_BY(1, 1, "ann"), APPROVE_BY(2, 1, "ann"), APPROVE_BY(3, 1, "bob"), REJECT(4, 1));
	assert_counted(1);
	assert_counted(2); /* it is in the resume: it counted, whatever the policy says today */
	assert_refused(3, "already_decided");
	assert_refused(4, "already_decided");
	assert_state(1, GATE_RESUMED);
	assert_false(row_of(w, 1)->outbox);
	assert_int_equal(row_of(w, 1)->checkpoint.approvals, 2);
	assert_int_equal(row_of(w, 1)->checkpoint.verdict, VERDICT_APPROVED);
	assert_int_equal(row_of(w, 1)->checkpoint.decided_at, T0 + 3 * SECOND); /* its last one's */
	assert_int_equal(row_of(w, 1)->gate_version, told); /* people were told when it was filled */
	BATCH(SUSPEND(2, .seq = 2));                        /* its seq counts for its line */
	assert_state(2, GATE_SUPERSEDED);
}

static void decisions_before_the_suspend_of_a_ledger_row(void **state)
{
	struct world *w = *state;
	struct uuid ids[] = { id_of('d', 1) };

	from_ledger(w, 1, ids, 1);
	BATCH(APPROVE(1, 1), REJECT(2, 1));
	assert_counted(1);
	assert_int_equal(decision_of(w, 2)->outcome, OUTCOME_REFUSED);
	assert_state(1, GATE_RESUMED);
	assert_int_equal(row_of(w, 1)->gate_version, 0);
	BATCH(SUSPEND(1));
	assert_state(1, GATE_RESUMED);
	assert_int_equal(row_of(w, 1)->checkpoint.approvals, 1);
	assert_true(row_of(w, 1)->checkpoint.from_ledger && row_of(w, 1)->checkpoint.published);
}

static void an_outdated_ledger_row_stays_resumed(void **state)
{
	struct world *w = *state;

	from_ledger(w, 1, NULL, 0);
	BATCH(SUSPEND(2, .seq = 2));
	BATCH(SUSPEND(1, .seq = 1));
	assert_state(1, GATE_RESUMED);
	assert_state(2, GATE_PENDING);
}

/* ---- what is set aside ---- */

static void a_quarantined_row_takes_a_verdict_and_keeps_its_reason(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .expires_at = EXPIRES));
	row_of(w, 1)->checkpoint.state = GATE_QUARANTINED;
	row_of(w, 1)->checkpoint.reason = VIEW_LITERAL("cannot be opened");
	BATCH(DECIDE(1, 1, .kind = DECISION_REJECT, .reason = "no"));
	assert_counted(1);
	assert_state(1, GATE_QUARANTINED);
	assert_true(row_of(w, 1)->checkpoint.has_verdict);
	assert_int_equal(row_of(w, 1)->checkpoint.verdict, VERDICT_REJECTED);
	assert_true(view_equal_text(row_of(w, 1)->checkpoint.reason, "cannot be opened"));
	assert_false(row_of(w, 1)->outbox);
	assert_false(row_of(w, 1)->expiry);
	BATCH(CANCEL(2, 1)); /* it does not settle what is decided and quarantined */
	assert_refused(2, "already_decided");
	BATCH(SUSPEND(2, .seq = 2));
	assert_state(1, GATE_QUARANTINED);
}

static void an_open_quarantined_row_is_superseded(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1));
	row_of(w, 1)->checkpoint.state = GATE_QUARANTINED;
	BATCH(SUSPEND(2, .seq = 2));
	assert_state(1, GATE_SUPERSEDED);
}

static void decisions_on_what_is_in_doubt_are_late(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1), APPROVE(1, 1));
	row_of(w, 1)->checkpoint.state = GATE_IN_DOUBT;
	BATCH(CANCEL(2, 1));
	assert_refused(2, "already_decided");
	assert_state(1, GATE_IN_DOUBT);
}

static void dropped_verdicts_settle_without_a_resume(void **state)
{
	struct world *w = *state;

	w->dropping = true;
	BATCH(SUSPEND(1, .session = "1"), SUSPEND(2, .session = "2"), REJECT(1, 1), APPROVE(2, 2));
	assert_state(1, GATE_RESUMED);
	assert_true(row_of(w, 1)->checkpoint.published);
	assert_int_equal(row_of(w, 1)->checkpoint.verdict, VERDICT_REJECTED);
	assert_false(row_of(w, 1)->outbox);
	assert_true(row_of(w, 1)->gate_version > 0);
	assert_decided(2, VERDICT_APPROVED);
}

/* Somebody took away what the row stands on: no relay would ever look for what is in no shard. */
static void what_is_in_no_shard_is_set_aside_when_it_is_decided(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .expires_at = EXPIRES), SUSPEND(2, .session = "2"));
	row_of(w, 1)->checkpoint.resumes_topic = VIEW_NULL;
	BATCH(APPROVE(1, 1), APPROVE(2, 2));
	assert_counted(1);
	assert_state(1, GATE_QUARANTINED);
	assert_int_equal(row_of(w, 1)->checkpoint.verdict, VERDICT_APPROVED);
	assert_true(view_equal_text(row_of(w, 1)->checkpoint.reason, CHECKPOINT_NO_SHARD_REASON));
	assert_false(row_of(w, 1)->outbox);
	assert_false(row_of(w, 1)->expiry);
	assert_int_equal(w->tally.quarantined, 1);
	assert_decided(2, VERDICT_APPROVED);
	w->dropping = true; /* nothing is to be published of that, so nothing is missing */
	BATCH(SUSPEND(3, .session = "3"));
	row_of(w, 3)->checkpoint.resumes_topic = VIEW_NULL;
	BATCH(REJECT(3, 3));
	assert_state(3, GATE_RESUMED);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ledger_row_is_filled_and_stays_resumed),
		TEST(decisions_before_the_suspend_of_a_ledger_row),
		TEST(an_outdated_ledger_row_stays_resumed),
		TEST(a_quarantined_row_takes_a_verdict_and_keeps_its_reason),
		TEST(an_open_quarantined_row_is_superseded),
		TEST(decisions_on_what_is_in_doubt_are_late),
		TEST(what_is_in_no_shard_is_set_aside_when_it_is_decided),
		TEST(dropped_verdicts_settle_without_a_resume),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
