// links: worker schemas vault store core
// The judge where rows were purged or erased: what is read again brings nothing back.
#include "test_judge.h"

#define UNTIL (T0 + 100 * SECOND)

static struct horizon horizons[] = {
	{ VIEW_LITERAL("approvals"), 0, 200, UNTIL },
	{ VIEW_LITERAL("suspends"), 1, 1000, UNTIL }, /* another partition */
	{ VIEW_LITERAL("suspends"), 0, 10, UNTIL },
};

static int setup(void **state)
{
	struct world *w = world_new();

	w->horizons = horizons;
	w->horizons_len = sizeof(horizons) / sizeof(horizons[0]);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	world_free(*state);
	return 0;
}

static void records_below_the_horizon_make_no_row(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(9, .seq = 5), APPROVE(199, 9), REJECT(198, 77));
	assert_int_equal(w->rows_len, 0);
	assert_int_equal(w->decisions_len, 0);
	assert_int_equal(w->tally.suspend_duplicates, 1);
	assert_int_equal(w->tally.decision_duplicates, 2);
	assert_false(w->tally.wakes_relay);
}

static void records_from_the_horizon_on_do(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(10), APPROVE(200, 10), APPROVE(201, 77));
	assert_decided(10, VERDICT_APPROVED);
	assert_state(77, GATE_UNCLAIMED);
}

/* It withdraws nothing: what it superseded then was superseded then. */
static void what_was_purged_supersedes_nothing(void **state)
{
	struct world *w = *state;

	BATCH(SUSPEND(10, .seq = 2));
	BATCH(SUSPEND(3, .seq = 7));
	assert_state(10, GATE_PENDING);
	BATCH(SUSPEND(11, .seq = 3));
	assert_state(10, GATE_SUPERSEDED);
	assert_state(11, GATE_PENDING);
}

/* A topic that was made anew begins with offset 0 again, and later. */
static void a_new_topic_is_not_an_old_one(void **state)
{
	struct world *w = *state;

	w->clock = UNTIL;
	BATCH(SUSPEND(1, .session = "1"));
	assert_int_equal(w->rows_len, 0);
	w->clock = UNTIL + 1;
	BATCH(SUSPEND(1, .session = "1"), APPROVE(1, 1));
	assert_decided(1, VERDICT_APPROVED);
}

/* Somebody decides about it long after: that waits in vain, and its suspend does not come. */
static void a_late_decision_is_not_claimed_by_a_replay(void **state)
{
	struct world *w = *state;

	BATCH(APPROVE(200, 9));
	assert_state(9, GATE_UNCLAIMED);
	BATCH(SUSPEND(9), APPROVE(5, 9));
	assert_state(9, GATE_UNCLAIMED);
	assert_waiting(200);
	assert_int_equal(w->decisions_len, 1);
	assert_int_equal(row_of(w, 9)->unclaimed, 1);
}

static void what_has_a_row_is_judged_as_ever(void **state)
{
	struct world *w = *state;
	struct item *again;

	w->horizons_len = 0;
	BATCH(SUSPEND(5, .quorum = 2), APPROVE_BY(6, 5, "ann"));
	w->horizons_len = 3;
	BATCH(again = SUSPEND(5, .bytes = 1), SUSPEND(5), APPROVE_BY(7, 5, "bob"));
	assert_true(again->dead);
	assert_int_equal(again->why.code, ERR_CONFLICT);
	assert_int_equal(w->tally.suspend_duplicates, 1);
	assert_decided(5, VERDICT_APPROVED);
}

/* ---- erased ---- */

static void nothing_of_what_was_erased_is_kept_any_more(void **state)
{
	struct world *w = *state;
	struct item *late = APPROVE(300, 20);

	BATCH(SUSPEND(20));
	struct checkpoint *row = &row_of(w, 20)->checkpoint;
	assert_int_equal(checkpoint_apply(row, EVENT_ERASE), TRANSITION_CHANGED);
	row->sealed.has_key = false;
	late->decision->has_edits = true;
	BATCH(SUSPEND(20), late);
	assert_int_equal(w->tally.suspend_duplicates, 1);
	assert_refused(300, "already_decided");
	assert_false(decision_of(w, 300)->has_edits);
	assert_state(20, GATE_RESUMED);
	assert_false(row_of(w, 20)->checkpoint.sealed.has_key);
	assert_false(row_of(w, 20)->outbox);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(records_below_the_horizon_make_no_row),       TEST(records_from_the_horizon_on_do),
		TEST(what_was_purged_supersedes_nothing),          TEST(a_new_topic_is_not_an_old_one),
		TEST(a_late_decision_is_not_claimed_by_a_replay),  TEST(what_has_a_row_is_judged_as_ever),
		TEST(nothing_of_what_was_erased_is_kept_any_more),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
