// links: worker schemas vault config store consumer producer core
// Relays of one shard through every trouble that can be drawn: L2 whenever anything becomes readable, L3 once
// the trouble is over.
#include "test_relay_base.h"

#define SEEDS 3000

/* Everything that was decided has gone, and people were told the last of it. */
static void check_all_resumed(bool doubts)
{
	for (int i = 0; i < CHECKPOINTS; i++) {
		const struct base_row *row = &play.base.rows[i];
		if (doubts && row->state == GATE_IN_DOUBT)
			continue;
		assert_int_equal(row->state, GATE_RESUMED);
		assert_int_equal(resumes_of(i), 1);
		assert_false(row->outbox);
		assert_int_equal(row->gate, 0);
		assert_true(play.broker.gate_version[i] > 0);
	}
}

/* `in-doubt resume` or `drop`, by somebody who knows what was published. */
static void answer_doubt(int number)
{
	struct base_row *row = &play.base.rows[number];

	if (row->state != GATE_IN_DOUBT)
		return;
	raise_gate(row, clock_real_us());
	row->outbox = resumes_of(number) == 0;
	row->state = row->outbox ? GATE_DECIDED : GATE_RESUMED;
	row->seq = ++play.base.seq;
	if (row->outbox)
		row->doubt_settled = play.base.has_ledger ? play.base.next : 0;
}

static void note_seed(uint64_t seed)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
	setenv("TEST_RELAY_SEED", text, 1); /* to be found in a debugger or a core */
}

static void one_life_publishes_all(void **state)
{
	(void)state;
	play_begin(1);
	run_life(12);
	check_all_resumed(false);
	assert_true(play.rests > 0);
	assert_int_equal(play.base.next, play.broker.len); /* read on while idle, past the last marker */
}

/* What came since the R3 has woken it; without that there is nothing to look for. */
static void it_looks_again_when_it_is_woken(void **state)
{
	(void)state;
	play_begin(1);
	run_life(12);
	assert_true(play.marks > 0);
	assert_int_equal(play.looks, 0);
}

/* Two at a time, of eight: the broker takes no more at once. */
static void it_looks_again_at_once_while_there_is_more(void **state)
{
	(void)state;
	play_begin(1);
	play.broker.request_records = 2;
	run_life(40);
	check_all_resumed(false);
	assert_true(play.looks > 0);
}

/* What is decided goes with its resume. Where nothing is resumed, people are told of it, once. */
static void what_waits_for_another_ledger_is_told(void **state)
{
	(void)state;
	play_begin(1);
	play.unread = true;
	run_life(12);
	assert_int_equal(play.told, 1);
	for (int i = 0; i < CHECKPOINTS; i++) {
		assert_int_equal(play.base.rows[i].state, GATE_DECIDED);
		assert_int_equal(play.broker.gate_version[i], play.base.rows[i].version);
		assert_int_equal(play.base.rows[i].gate, 0);
	}
	play.unread = false;
	run_life(12);
	assert_int_equal(play.told, 1);
	check_all_resumed(false);
}

static void any_trouble(bool intrusion, bool rebuild)
{
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		note_seed(seed);
		play_begin(seed);
		play.trouble = 1 + draw(6);
		play.intrusion = intrusion;
		for (int lives = 1 + draw(8); lives > 0; lives--) {
			run_life(1 + draw(10));
			for (int i = 0; i < CHECKPOINTS; i++)
				if (chance(20))
					answer_doubt(i);
			if (rebuild && chance(10)) {
				play.base = empty_base();
				play.has_kept = false;
				play.rebuilt = true;
			}
		}
		play.trouble = 0;
		run_life(12);
		check_all_resumed(play.rebuilt);
		for (int i = 0; i < CHECKPOINTS; i++)
			answer_doubt(i);
		run_life(12);
		check_all_resumed(false);
	}
}

static void crashes_and_restores(void **state)
{
	(void)state;
	any_trouble(false, false);
}

static void two_relays_for_one_shard(void **state)
{
	(void)state;
	any_trouble(true, false);
}

static void databases_that_are_lost(void **state)
{
	(void)state;
	any_trouble(true, true);
}

/* What intake has handed over is published as if it had been read, and in the version that the database has. */
static void what_was_handed_over_is_what_the_database_has(void **state)
{
	int handed = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		note_seed(seed);
		play_begin(seed);
		play.trouble = 1;
		run_life(8);
		handed += play.handed;
		play.trouble = 0;
		run_life(12);
		check_all_resumed(false);
	}
	assert_true(handed > 100);
}

/* Of all but the first three everything is over. */
static void begin_with_three(void)
{
	play_begin(9);
	for (int i = 3; i < CHECKPOINTS; i++) {
		play.base.rows[i].decided = true;
		play.base.rows[i].state = GATE_SUPERSEDED;
	}
}

/* Of so few the resumes go alone; what people are told follows, encoded once. */
static void gate_events_follow_few_resumes(void **state)
{
	(void)state;
	begin_with_three();
	run_life(12);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(play.base.rows[i].state, GATE_RESUMED);
		assert_int_equal(play.broker.gate_version[i], play.base.rows[i].version);
		assert_int_equal(play.base.rows[i].gate, 0);
	}
	assert_int_equal(play.marks, 2);
	assert_int_equal(play.mixed, 0);
	assert_int_equal(play.followed, 3);
}

static void a_relay_that_ends_tells_what_stayed_behind(void **state)
{
	(void)state;
	begin_with_three();
	run_life(1);
	assert_int_equal(play.marks, 2);
	assert_int_equal(play.followed, 3);
	for (int i = 0; i < 3; i++)
		assert_int_equal(play.base.rows[i].gate, 0);
}

static void many_resumes_take_their_gate_events_along(void **state)
{
	(void)state;
	play_begin(9);
	run_life(12);
	assert_int_equal(play.marks, 1);
	assert_int_equal(play.mixed, 1);
	assert_int_equal(play.followed, 0);
}

/* ---- single cases ---- */

static void what_cannot_be_opened_is_quarantined_alone(void **state)
{
	(void)state;
	play_begin(2);
	play.broken = 4;
	run_life(8);
	assert_int_equal(play.base.rows[4].state, GATE_QUARANTINED);
	assert_int_equal(resumes_of(4), 0);
	assert_int_equal(play.base.rows[4].gate, 0); /* told without its action */
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_int_equal(resumes_of(i), i != 4);
}

static void what_must_wait_holds_up_no_other(void **state)
{
	(void)state;
	play_begin(3);
	play.waiting = 0; /* the lowest seq */
	run_life(8);
	assert_int_equal(play.base.rows[0].state, GATE_DECIDED);
	for (int i = 1; i < CHECKPOINTS; i++)
		assert_int_equal(resumes_of(i), 1);
	play.waiting = -1;
	play.now_ms += 60000;
	run_life(8);
	check_all_resumed(false);
}

static void too_large_is_quarantined_and_the_others_go(void **state)
{
	(void)state;
	play_begin(4);
	play.broker.too_large = 2;
	run_life(30);
	assert_int_equal(play.base.rows[2].state, GATE_QUARANTINED);
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_int_equal(resumes_of(i), i != 2);
}

static void too_large_only_together_is_nobodys_fault(void **state)
{
	(void)state;
	play_begin(5);
	play.broker.request_records = 2;
	run_life(60);
	check_all_resumed(false);
	play_begin(6);
	play.broker.request_records = 3;
	play.broker.too_large = 5;
	run_life(60);
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_int_equal(resumes_of(i), i != 5);
	assert_int_equal(play.base.rows[5].state, GATE_QUARANTINED);
}

/* Nobody said that the old one was lost: the call that found it out has made another. */
static void a_new_connection_ends_the_term(void **state)
{
	(void)state;
	play_begin(7);
	run_life(4);
	assert_int_equal(play.broker.epoch, 1);
	play.reconnect_at = 3;
	run_life(4);
	assert_int_equal(play.broker.epoch, 3);
}

static void decide_each_second(void)
{
	for (int i = 0; i < CHECKPOINTS; i++)
		play.decided_at[i] = (i + 1) * SECOND;
}

/* A ledger whose beginning is gone: what was decided before what is left cannot be known. */
static void a_ledger_cut_short_is_doubted(void **state)
{
	(void)state;
	play_begin(8);
	for (int i = 0; i < 20; i++)
		append(MARK_CONTROL, NULL);
	decide_each_second();
	play.broker.low = 10;
	play.now_ms = 5 * 1000; /* the first record that is left: checkpoints 0 to 3 were decided before */
	struct uuid id = id_of(7);
	append(MARK_COMMITTED, &id);
	play.now_ms = 100000;
	run_life(8);
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_int_equal(play.base.rows[i].state, i < 4 ? GATE_IN_DOUBT : GATE_RESUMED);
	assert_int_equal(resumes_of(7), 1);
}

/* The database knows nothing of a ledger that goes on more than a minute past some decisions. */
static void a_rebuild_doubts_what_its_ledger_outlived(void **state)
{
	struct uuid id = id_of(7);

	(void)state;
	play_begin(9);
	decide_each_second();
	play.now_ms = 63 * 1000; /* checkpoints 0 and 1 were decided after 1 and 2 s, 2 after exactly 3 */
	append(MARK_COMMITTED, &id);
	run_life(8);
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_int_equal(play.base.rows[i].state, i < 2 ? GATE_IN_DOUBT : GATE_RESUMED);
}

/* An operator says that it was not published. Whatever relay comes then does not ask the same again, and asks once more
 * when more of the ledger has gone than was gone then: the database may be one of before it was published. */
static void an_answer_is_good_for_the_doubt_that_it_was_given_for(void **state)
{
	(void)state;
	play_begin(10);
	for (int i = 0; i < 20; i++)
		append(MARK_CONTROL, NULL);
	play.broker.low = 20;
	for (int i = 0; i < CHECKPOINTS; i++)
		play.decided_at[i] = play.now_ms * 1000 - SECOND;
	run_life(8); /* nothing is left: all of them are in doubt */
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_int_equal(play.base.rows[i].state, GATE_IN_DOUBT);
	answer_doubt(0);
	struct base answered = play.base;
	run_life(8);
	run_life(8);
	assert_int_equal(play.base.rows[0].state, GATE_RESUMED);
	assert_int_equal(play.base.rows[1].state, GATE_IN_DOUBT);
	assert_int_equal(resumes_of(0), 1);

	play.base = answered;
	assert_int_equal(play.base.rows[0].state, GATE_DECIDED);
	play.broker.low = play.broker.len;
	run_life(8);
	assert_int_equal(play.base.rows[0].state, GATE_IN_DOUBT);
	answer_doubt(0); /* it was published: dropped */
	run_life(8);
	assert_int_equal(play.base.rows[0].state, GATE_RESUMED);
	assert_int_equal(resumes_of(0), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_life_publishes_all),
		cmocka_unit_test(it_looks_again_when_it_is_woken),
		cmocka_unit_test(it_looks_again_at_once_while_there_is_more),
		cmocka_unit_test(what_waits_for_another_ledger_is_told),
		cmocka_unit_test(crashes_and_restores),
		cmocka_unit_test(two_relays_for_one_shard),
		cmocka_unit_test(databases_that_are_lost),
		cmocka_unit_test(what_was_handed_over_is_what_the_database_has),
		cmocka_unit_test(gate_events_follow_few_resumes),
		cmocka_unit_test(a_relay_that_ends_tells_what_stayed_behind),
		cmocka_unit_test(many_resumes_take_their_gate_events_along),
		cmocka_unit_test(what_cannot_be_opened_is_quarantined_alone),
		cmocka_unit_test(what_must_wait_holds_up_no_other),
		cmocka_unit_test(too_large_is_quarantined_and_the_others_go),
		cmocka_unit_test(too_large_only_together_is_nobodys_fault),
		cmocka_unit_test(a_new_connection_ends_the_term),
		cmocka_unit_test(a_ledger_cut_short_is_doubted),
		cmocka_unit_test(a_rebuild_doubts_what_its_ledger_outlived),
		cmocka_unit_test(an_answer_is_good_for_the_doubt_that_it_was_given_for),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
