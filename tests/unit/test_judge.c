// links: worker schemas vault store core
// The judge, one scenario a test: rows and records in, what is to be written out.
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

/* ---- suspends ---- */

static void a_new_suspend_waits(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .expires_at = EXPIRES));
	assert_state(1, GATE_PENDING);
	assert_true(row_of(w, 1)->expiry);
	assert_false(row_of(w, 1)->outbox);
	assert_int_equal(row_of(w, 1)->gate_version, T0);
	assert_int_equal(row_of(w, 1)->checkpoint.changed_at, T0);
	assert_int_equal(w->tally.suspends, 1);
	assert_true(w->tally.wakes_relay);
	BATCH(SUSPEND(2, .session = "other"));
	assert_false(row_of(w, 2)->expiry);
}

static void the_same_bytes_again_change_nothing(void **state)
{
	struct world *w = *state;
	struct batch_write write;
	struct item *twice[] = { SUSPEND(1), SUSPEND(1) };

	judge_items(w, twice, 2);
	assert_false(twice[1]->dead);
	assert_int_equal(w->tally.suspend_duplicates, 1);
	assert_int_equal(row_of(w, 1)->writes, 1);
	struct item *again[] = { SUSPEND(1) };
	assert_int_equal(judge_only(w, again, 1, &write), FATE_OK);
	assert_int_equal(write.checkpoints_len + write.inserts_len + write.updates_len, 0);
	assert_false(write.notify);
	assert_false(again[0]->dead);
}

static void other_bytes_of_the_same_id_conflict(void **state)
{
	struct world *w = *state;
	struct item *pair[] = { SUSPEND(1), SUSPEND(1, .bytes = 1) };
	struct item *later[] = { SUSPEND(1, .bytes = 2, .seq = 9) };

	judge_items(w, pair, 2);
	assert_false(pair[0]->dead);
	assert_true(pair[1]->dead && pair[1]->judged_dead);
	assert_int_equal(pair[1]->why.code, ERR_CONFLICT);
	judge_items(w, later, 1);
	assert_int_equal(later[0]->why.code, ERR_CONFLICT);
	assert_int_equal(row_of(w, 1)->writes, 1);
	assert_int_equal(row_of(w, 1)->checkpoint.digest[0], 1); /* the first stands */
	assert_int_equal(row_of(w, 1)->checkpoint.suspend_seq, 1);
}

static void a_later_suspend_supersedes_loaded_rows(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .seq = 1, .expires_at = EXPIRES));
	BATCH(SUSPEND(2, .seq = 2));
	assert_state(1, GATE_SUPERSEDED);
	assert_state(2, GATE_PENDING);
	assert_false(row_of(w, 1)->expiry);
	assert_int_equal(row_of(w, 1)->gate_version, T0 + SECOND); /* us of the record that caused it */
	assert_false(view_is_null(row_of(w, 1)->checkpoint.reason));
	assert_int_equal(w->tally.superseded, 1);
}

static void supersede_goes_by_seq_within_a_batch(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .seq = 1, .expires_at = EXPIRES), SUSPEND(2, .seq = 2));
	assert_state(1, GATE_SUPERSEDED);
	assert_state(2, GATE_PENDING);
	assert_false(row_of(w, 1)->expiry);
	BATCH(SUSPEND(4, .seq = 4), SUSPEND(3, .seq = 3, .expires_at = EXPIRES));
	assert_state(2, GATE_SUPERSEDED);
	assert_state(3, GATE_SUPERSEDED);
	assert_state(4, GATE_PENDING);
	assert_false(row_of(w, 3)->expiry);
}

static void what_is_not_above_the_highest_is_outdated(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .seq = 5));
	BATCH(SUSPEND(2, .seq = 5));
	BATCH(SUSPEND(3, .seq = 4));
	assert_state(1, GATE_PENDING);
	assert_state(2, GATE_SUPERSEDED);
	assert_state(3, GATE_SUPERSEDED);
	/* The highest counts, whatever became of it. */
	BATCH(CANCEL(1, 1));
	BATCH(SUSPEND(4, .seq = 5));
	assert_state(4, GATE_SUPERSEDED);
	assert_true(row_of(w, 4)->gate_version > 0);
}

static void only_its_own_line_is_superseded(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1), SUSPEND(2, .tenant = "u"), SUSPEND(3, .session = "r"), SUSPEND(4, .gate = "h"));
	BATCH(SUSPEND(5, .seq = 2));
	assert_state(1, GATE_SUPERSEDED);
	assert_state(2, GATE_PENDING);
	assert_state(3, GATE_PENDING);
	assert_state(4, GATE_PENDING);
	assert_int_equal(row_of(w, 2)->writes, 1); /* untouched rows are not written */
	assert_int_equal(row_of(w, 4)->writes, 1);
}

static void what_is_decided_is_not_superseded(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .seq = 1));
	BATCH(APPROVE(1, 1));
	BATCH(SUSPEND(2, .seq = 2));
	assert_decided(1, VERDICT_APPROVED);
	assert_state(2, GATE_PENDING);
	assert_int_equal(row_of(w, 1)->writes, 2);
}

static void suspends_of_a_batch_go_before_its_decisions(void **state)
{
	struct world *w = *state;

	BATCH(APPROVE(1, 1), SUSPEND(1, .seq = 1), SUSPEND(2, .seq = 2));
	assert_state(1, GATE_SUPERSEDED);
	assert_refused(1, "superseded");
}

/* ---- early decisions ---- */

static void an_early_decision_waits_and_counts(void **state)
{
	struct world *w = *state;

	BATCH(APPROVE(1, 1));
	assert_state(1, GATE_UNCLAIMED);
	assert_waiting(1);
	assert_int_equal(row_of(w, 1)->unclaimed, 1);
	assert_int_equal(row_of(w, 1)->gate_version, 0); /* nobody is told before the suspend is known */
	assert_false(w->tally.wakes_relay);
	BATCH(SUSPEND(1));
	assert_decided(1, VERDICT_APPROVED);
	assert_counted(1);
	assert_int_equal(row_of(w, 1)->unclaimed, 0);
	assert_int_equal(row_of(w, 1)->checkpoint.decided_at, T0);
	assert_int_equal(row_of(w, 1)->checkpoint.approvals, 1);
}

static void early_and_suspend_in_one_batch(void **state)
{
	struct world *w = *state;

	BATCH(REJECT(1, 1), SUSPEND(1));
	assert_decided(1, VERDICT_REJECTED);
	assert_int_equal(row_of(w, 1)->unclaimed, 0);
	assert_int_equal(row_of(w, 1)->writes, 1);
}

static void waiting_decisions_are_judged_in_order(void **state)
{
	struct world *w = *state;

	BATCH(APPROVE_BY(1, 1, "mallory"), REJECT(2, 1));
	BATCH(APPROVE(3, 1));
	assert_int_equal(row_of(w, 1)->unclaimed, 3);
	BATCH(APPROVE(4, 1), SUSPEND(1, .approver = "ann"));
	assert_refused(1, "not_approver");
	assert_counted(2);
	assert_refused(3, "already_decided");
	assert_refused(4, "already_decided");
	assert_decided(1, VERDICT_REJECTED);
	assert_int_equal(row_of(w, 1)->unclaimed, 0);
}

static void early_decisions_of_an_outdated_one_are_refused(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(2, .seq = 2), APPROVE(1, 1));
	BATCH(SUSPEND(1, .seq = 1));
	assert_state(1, GATE_SUPERSEDED);
	assert_refused(1, "superseded");
	assert_int_equal(row_of(w, 1)->unclaimed, 0);
}

static void too_many_early_ones_are_dead_letters(void **state)
{
	struct world *w = *state;
	struct item *many[] = { APPROVE(1, 1), APPROVE(2, 2), APPROVE(3, 3), APPROVE(2, 2) };

	w->settings.unclaimed_max = 2;
	judge_items(w, many, 4);
	assert_waiting(1);
	assert_waiting(2);
	assert_true(many[2]->dead);
	assert_int_equal(many[2]->why.code, ERR_UNCLAIMED_FULL);
	assert_false(many[3]->dead); /* a duplicate takes no room */
	assert_int_equal(w->rows_len, 2);
	struct item *more[] = { APPROVE(4, 1) };
	judge_items(w, more, 1);
	assert_int_equal(more[0]->why.code, ERR_UNCLAIMED_FULL);
	/* What the suspends of a batch claim makes room in the same batch. */
	struct item *claim[] = { APPROVE(5, 5), SUSPEND(1) };
	judge_items(w, claim, 2);
	assert_false(claim[0]->dead);
	assert_decided(1, VERDICT_APPROVED);
}

/* ---- verdicts ---- */

static void approve_decides(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .expires_at = EXPIRES));
	BATCH(DECIDE(1, 1, .kind = DECISION_APPROVE, .reason = "fine", .digest = 1, .session = "s"));
	assert_decided(1, VERDICT_APPROVED);
	assert_counted(1);
	assert_true(view_is_null(decision_of(w, 1)->outcome_reason));
	assert_true(view_equal_text(row_of(w, 1)->checkpoint.reason, "fine"));
	assert_int_equal(row_of(w, 1)->checkpoint.decided_at, T0 + SECOND);
	assert_int_equal(row_of(w, 1)->gate_version, T0 + SECOND);
	assert_int_equal(w->tally.counted, 1);
}

static void reject_and_cancel_decide(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1), SUSPEND(2, .session = "r", .approver = "bob"));
	BATCH(REJECT(1, 1), CANCEL(2, 2));
	assert_decided(1, VERDICT_REJECTED);
	assert_decided(2, VERDICT_CANCELLED);
}

static void expiry_ends_as_the_gate_says(void **state)
{
	struct world *w = *state;
	const struct decision_args late = { .kind = DECISION_EXPIRE, .at = EXPIRES };

	BATCH(SUSPEND(1, .session = "1", .expires_at = EXPIRES, .on_expiry = ON_EXPIRY_REJECT),
	      SUSPEND(2, .session = "2", .expires_at = EXPIRES, .on_expiry = ON_EXPIRY_APPROVE),
	      SUSPEND(3, .session = "3", .expires_at = EXPIRES, .on_expiry = ON_EXPIRY_HOLD));
	BATCH(DECIDE(9, 1, .kind = DECISION_EXPIRE, .at = EXPIRES - 1));
	assert_refused(9, "too_early");
	assert_true(row_of(w, 1)->expiry); /* the reaper comes again */
	BATCH(decision_item(w, 1, 1, late), decision_item(w, 2, 2, late), decision_item(w, 3, 3, late));
	assert_decided(1, VERDICT_EXPIRED);
	assert_decided(2, VERDICT_APPROVED);
	assert_int_equal(row_of(w, 2)->checkpoint.approvals, 0);
}

static void held_says_so_once_and_later_decisions_count(void **state)
{
	struct world *w = *state;
	const struct decision_args late = { .kind = DECISION_EXPIRE, .at = EXPIRES };

	BATCH(SUSPEND(1, .expires_at = EXPIRES, .on_expiry = ON_EXPIRY_HOLD));
	BATCH(decision_item(w, 1, 1, late));
	assert_state(1, GATE_PENDING);
	assert_counted(1);
	assert_true(row_of(w, 1)->checkpoint.held);
	assert_false(row_of(w, 1)->expiry);
	assert_false(row_of(w, 1)->checkpoint.has_verdict);
	assert_int_equal(row_of(w, 1)->gate_version, EXPIRES);
	assert_false(view_is_null(row_of(w, 1)->checkpoint.reason));
	BATCH(decision_item(w, 2, 1, late));
	assert_refused(2, "already_decided");
	assert_int_equal(row_of(w, 1)->gate_version, EXPIRES);
	BATCH(DECIDE(3, 1, .kind = DECISION_APPROVE, .at = EXPIRES + SECOND));
	assert_decided(1, VERDICT_APPROVED);
	assert_true(view_is_null(row_of(w, 1)->checkpoint.reason));
}

static void a_late_approval_is_refused(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .expires_at = EXPIRES));
	BATCH(DECIDE(1, 1, .kind = DECISION_APPROVE, .at = EXPIRES),
	      DECIDE(2, 1, .kind = DECISION_APPROVE, .at = EXPIRES - 1));
	assert_refused(1, "late");
	assert_counted(2);
}

static void a_quorum_counts_distinct_people(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .quorum = 2, .expires_at = EXPIRES));
	BATCH(APPROVE_BY(1, 1, "ann"), APPROVE_BY(2, 1, "ann"));
	assert_state(1, GATE_PENDING);
	assert_counted(1);
	assert_refused(2, "same_approver");
	assert_int_equal(row_of(w, 1)->checkpoint.approvals, 1);
	assert_int_equal(row_of(w, 1)->gate_version, T0 + SECOND); /* people see one of two */
	assert_true(row_of(w, 1)->expiry);
	BATCH(APPROVE_BY(3, 1, "ann"));
	assert_refused(3, "same_approver");
	assert_int_equal(row_of(w, 1)->writes, 2); /* a refusal changes no row */
	BATCH(APPROVE_BY(4, 1, "bob"), APPROVE_BY(5, 1, "cyd"));
	assert_decided(1, VERDICT_APPROVED);
	assert_int_equal(row_of(w, 1)->checkpoint.approvals, 2);
	assert_refused(5, "already_decided");
}

static void both_of_a_quorum_in_one_batch(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .quorum = 2), APPROVE_BY(1, 1, "ann"), APPROVE_BY(2, 1, "bob"));
	assert_decided(1, VERDICT_APPROVED);
	assert_int_equal(row_of(w, 1)->writes, 1);
}

static void a_rejection_after_an_approval_counts(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .quorum = 2));
	BATCH(APPROVE_BY(1, 1, "ann"));
	BATCH(DECIDE(2, 1, .kind = DECISION_REJECT, .who = "ann"));
	assert_counted(2);
	assert_decided(1, VERDICT_REJECTED);
}

/* ---- refusals, duplicates, conflicts ---- */

static void a_decision_that_may_not_count_changes_no_row(void **state)
{
	struct world *w = *state;

	w->settings.policy = (struct policy){ .forbid_self = true, .require_digest = true };
	BATCH(SUSPEND(1));
	BATCH(DECIDE(1, 1, .digest = 2), DECIDE(2, 1, .session = "other", .digest = 1), DECIDE(3, 1, .who = "x"),
	      DECIDE(4, 1, .who = "requester", .digest = 1));
	assert_refused(1, "wrong_digest");
	assert_refused(2, "wrong_session");
	assert_refused(3, "no_digest");
	assert_refused(4, "self");
	assert_int_equal(w->tally.refused, 4);
	assert_int_equal(row_of(w, 1)->writes, 1);
	assert_false(w->tally.wakes_relay);
}

static void the_first_decisive_one_stands(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1));
	BATCH(APPROVE(1, 1), REJECT(2, 1), CANCEL(3, 1));
	BATCH(REJECT(4, 1));
	assert_decided(1, VERDICT_APPROVED);
	assert_refused(2, "already_decided");
	assert_refused(3, "already_decided");
	assert_refused(4, "already_decided");
	assert_int_equal(row_of(w, 1)->writes, 2);
}

static void doubled_decisions(void **state)
{
	struct world *w = *state;
	struct item *items[] = { APPROVE_BY(1, 1, "ann"), APPROVE_BY(1, 1, "ann"),
		                     DECIDE(1, 1, .who = "bob", .bytes = 1) };
	struct item *again[] = { APPROVE_BY(1, 1, "ann"), DECIDE(1, 2, .bytes = 2) };

	BATCH(SUSPEND(1, .quorum = 3));
	judge_items(w, items, 3);
	assert_counted(1);
	assert_false(items[1]->dead);
	assert_true(items[2]->dead);
	assert_int_equal(items[2]->why.code, ERR_CONFLICT);
	assert_int_equal(w->tally.decision_duplicates, 1);
	judge_items(w, again, 2);
	assert_false(again[0]->dead);
	assert_int_equal(again[1]->why.code, ERR_CONFLICT); /* also for another checkpoint */
	assert_int_equal(w->rows_len, 1);
	assert_int_equal(row_of(w, 1)->checkpoint.approvals, 1);
	assert_int_equal(w->decisions_len, 1);
}

static void what_the_judge_buried_is_asked_anew(void **state)
{
	struct world *w = *state;
	struct batch_write write;
	struct item *items[] = { APPROVE(1, 1) };

	w->settings.unclaimed_max = 0;
	assert_int_equal(judge_only(w, items, 1, &write), FATE_OK);
	assert_true(items[0]->dead && items[0]->judged_dead);
	BATCH(SUSPEND(1)); /* another worker's, between the two attempts */
	judge_items(w, items, 1);
	assert_false(items[0]->dead);
	assert_decided(1, VERDICT_APPROVED);
}

static void what_the_store_refused_stays_dead(void **state)
{
	struct world *w = *state;
	struct item *items[] = { SUSPEND(1), SUSPEND(2, .seq = 2) };

	items[0]->dead = true;
	judge_items(w, items, 2);
	assert_true(items[0]->dead);
	assert_int_equal(w->rows_len, 1);
	assert_state(2, GATE_PENDING);
}

static void a_second_attempt_keeps_nothing_of_the_first(void **state)
{
	struct world *w = *state;
	struct batch_write write;
	struct item *items[] = { APPROVE(1, 1) };

	BATCH(SUSPEND(1), REJECT(2, 1));
	assert_int_equal(judge_only(w, items, 1, &write), FATE_OK);
	assert_int_equal(items[0]->decision->outcome, OUTCOME_REFUSED);
	w->rows_len = 0; /* rolled back, and the row is gone: a restore */
	w->decisions_len = 0;
	judge_items(w, items, 1);
	assert_waiting(1);
	assert_true(view_is_null(decision_of(w, 1)->outcome_reason));
	assert_int_equal(decision_of(w, 1)->refusal, REFUSAL_NONE);
}

/* ---- versions ---- */

static void versions_grow_and_never_go_back(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(1, .quorum = 3));
	assert_int_equal(row_of(w, 1)->checkpoint.version, T0);
	w->clock = T0 - 3600 * SECOND; /* a broker whose clock is behind */
	BATCH(APPROVE_BY(1, 1, "ann"));
	assert_int_equal(row_of(w, 1)->checkpoint.version, T0 + 1);
	w->clock = T0 + 7 * SECOND;
	BATCH(APPROVE_BY(2, 1, "bob"));
	assert_int_equal(row_of(w, 1)->checkpoint.version, T0 + 7 * SECOND);
	BATCH(SUSPEND(2, .session = "2", .quorum = 2), APPROVE_BY(3, 2, "ann"), APPROVE_BY(4, 2, "bob"));
	assert_int_equal(row_of(w, 2)->writes, 1);
	assert_decided(2, VERDICT_APPROVED);
}

static void a_full_arena_refuses_the_batch(void **state)
{
	struct world *w = *state;
	struct batch_request request = { 0 };
	struct batch_loaded loaded = { 0 };
	struct batch_write write;
	struct judge_tally tally;
	struct error error;
	struct item *items[] = { SUSPEND(1), APPROVE(1, 1) };
	struct arena *small = arena_new(600);
	assert_non_null(small);

	assert_int_equal(judge_request(items, 2, small, &request, &error), FATE_OK);
	int64_t highest[1] = { 0 };
	loaded.highest = highest;
	enum fate fate = judge_batch(&w->settings, items, 2, &request, &loaded, small, &write, &tally, &error);
	assert_int_equal(fate, FATE_REJECT); /* so that it is tried in halves */
	assert_int_equal(error.code, ERR_MEMORY);
	arena_free(small);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_suspend_waits),
		TEST(the_same_bytes_again_change_nothing),
		TEST(other_bytes_of_the_same_id_conflict),
		TEST(a_later_suspend_supersedes_loaded_rows),
		TEST(supersede_goes_by_seq_within_a_batch),
		TEST(what_is_not_above_the_highest_is_outdated),
		TEST(only_its_own_line_is_superseded),
		TEST(what_is_decided_is_not_superseded),
		TEST(suspends_of_a_batch_go_before_its_decisions),
		TEST(an_early_decision_waits_and_counts),
		TEST(early_and_suspend_in_one_batch),
		TEST(waiting_decisions_are_judged_in_order),
		TEST(early_decisions_of_an_outdated_one_are_refused),
		TEST(too_many_early_ones_are_dead_letters),
		TEST(approve_decides),
		TEST(reject_and_cancel_decide),
		TEST(expiry_ends_as_the_gate_says),
		TEST(held_says_so_once_and_later_decisions_count),
		TEST(a_late_approval_is_refused),
		TEST(a_quorum_counts_distinct_people),
		TEST(both_of_a_quorum_in_one_batch),
		TEST(a_rejection_after_an_approval_counts),
		TEST(a_decision_that_may_not_count_changes_no_row),
		TEST(the_first_decisive_one_stands),
		TEST(doubled_decisions),
		TEST(what_the_judge_buried_is_asked_anew),
		TEST(what_the_store_refused_stays_dead),
		TEST(a_second_attempt_keeps_nothing_of_the_first),
		TEST(versions_grow_and_never_go_back),
		TEST(a_full_arena_refuses_the_batch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
