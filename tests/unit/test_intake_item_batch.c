// links: worker schemas vault config store consumer producer core
// Batches of intake: positions that move with what they stand for, poison that is found, letters before the
// commit, memory that is used up.
#include "test_intake_item.h"

/* ---- moves ---- */

static void positions_move_with_the_batch(void **state)
{
	struct intake *intake = begin(state);

	feed(intake, 0, 0, "s1");
	feed(intake, 1, 5, "s2"); /* offsets have gaps */
	feed(intake, 0, 7, "s3");
	run_well(intake);
	assert_int_equal(db.commits, 1);
	assert_int_equal(db.world->rows_len, 3);
	assert_int_equal(next_of(SUSPENDS, 0), 8);
	assert_int_equal(next_of(SUSPENDS, 1), 6);
	assert_int_equal(next_of(APPROVALS, 0), NOWHERE);
	assert_int_equal(place_of(SUSPENDS, 0)->last_offset, 7);
	assert_int_equal(intake_part(intake, SUSPENDS, 0)->durable, 8);
	assert_int_equal(kafka.wakes, 1);
	feed(intake, 0, 8, "s4"); /* from where it stands now */
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 9);
}

static void an_end_moves_the_position_too(void **state)
{
	struct intake *intake = begin(state);
	struct part *part = intake_part(intake, SUSPENDS, 0);

	feed(intake, 0, 0, "s1");
	part->received = 4; /* a transaction's marker, and what was aborted */
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 0), 4);
	assert_int_equal(place_of(SUSPENDS, 0)->last_offset, 0);
	intake_part(intake, SUSPENDS, 1)->received = 0; /* an empty partition: its row is made */
	run_well(intake);
	assert_int_equal(next_of(SUSPENDS, 1), 0);
	assert_false(place_of(SUSPENDS, 1)->has_last);
	assert_int_equal(next_of(SUSPENDS, 0), 4);
}

static void who_is_stale_writes_nothing(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	feed(intake, 0, 0, "s1");
	run_well(intake);
	set_place(SUSPENDS, 0, 9); /* another worker has gone on */
	feed(intake, 0, 1, "x");
	feed(intake, 1, 0, "s2");
	assert_int_equal(run(intake, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_STALE);
	assert_int_equal(db.world->rows_len, 1);
	assert_int_equal(kafka.letters_len, 0); /* nor does it send letters */
	intake_restart_in(intake, 0);
	kafka.end[0][0] = 9;
	restart(intake);
	assert_int_equal(fetched(SUSPENDS, 0)->offset, 9);
	assert_int_equal(fetched(SUSPENDS, 1)->offset, READER_BEGINNING);
}

/* ---- poison ---- */

static void poison_is_found_and_leaves(void **state)
{
	struct intake *intake = begin(state);

	db.poison = 3;
	feed(intake, 0, 0, "s1");
	feed(intake, 1, 0, "s2");
	feed(intake, 0, 1, "s3");
	feed(intake, 1, 1, "s4");
	feed(intake, 0, 2, "s5");
	run_well(intake);
	assert_int_equal(db.world->rows_len, 4);
	assert_int_equal(kafka.letters_len, 1);
	assert_int_equal(kafka.letters[0], 1);
	assert_int_equal(kafka.codes[0], ERR_REJECTED_BY_STORE);
	assert_int_equal(next_of(SUSPENDS, 0), 3);
	assert_int_equal(next_of(SUSPENDS, 1), 2);
}

static void poison_alone_leaves(void **state)
{
	struct intake *intake = begin(state);

	db.poison = 1;
	feed(intake, 0, 6, "s1");
	intake_part(intake, SUSPENDS, 0)->received = 9;
	run_well(intake);
	assert_int_equal(kafka.letters_len, 1);
	assert_int_equal(next_of(SUSPENDS, 0), 9);
	assert_int_equal(place_of(SUSPENDS, 0)->last_offset, 6);
}

static void a_database_that_refuses_everything_is_waited_for(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	db.sick = true;
	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "s2");
	assert_int_equal(run(intake, &error), FATE_RETRY);
	assert_int_equal(next_of(SUSPENDS, 0), NOWHERE);
	intake_drop_batch(intake);
	intake_part(intake, SUSPENDS, 1)->received = 0; /* not even a position alone */
	intake->moved = true;
	assert_int_equal(run(intake, &error), FATE_RETRY);
}

/* ---- redo, letters, commits ---- */

static void a_row_that_another_made_is_looked_at_again(void **state)
{
	struct intake *intake = begin(state);

	db.overtaken = 3;
	feed(intake, 0, 0, "s1");
	run_well(intake);
	assert_int_equal(db.world->rows_len, 1);
	assert_int_equal(db.commits, 1);
}

static void letters_go_before_the_commit(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	kafka.letters_away = true;
	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "x");
	assert_int_equal(run(intake, &error), FATE_RETRY);
	assert_int_equal(db.commits, 0);
	assert_int_equal(kafka.closed, 1);
	assert_null(intake->letters);
	intake_restart_in(intake, 0);
	restart(intake);
	kafka.letters_away = false;
	intake->letters = (struct producer *)intake;
	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "x");
	run_well(intake);
	assert_int_equal(kafka.letters_len, 1);
	assert_int_equal(kafka.codes[0], ERR_MALFORMED);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
}

static void a_lost_commit_is_read_again(void **state)
{
	struct intake *intake = begin(state);
	struct error error;

	for (int round = 0; round < 2; round++) {
		db.lose = round == 0;
		db.lose_word = round == 1;
		feed(intake, 0, round, "s1");
		assert_int_equal(run(intake, &error), FATE_RETRY);
		intake_restart_in(intake, 0);
		kafka.end[0][0] = round + 1;
		restart(intake);
		assert_int_equal(intake_part(intake, SUSPENDS, 0)->durable, round == 0 ? NOWHERE : 2);
	}
	assert_int_equal(db.world->rows_len, 1);
	feed(intake, 0, 2, "s1");
	run_well(intake);
	assert_int_equal(row_of(db.world, 1)->writes, 1);
}

/* ---- memory ---- */

static void what_does_not_fit_beside_others_comes_after_them(void **state)
{
	struct intake *intake = begin(state);

	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "m2");
	assert_int_equal(db.commits, 1);
	assert_int_equal(next_of(SUSPENDS, 0), 1);
	assert_int_equal(intake->items_len, 1);
	run_well(intake);
	assert_int_equal(db.world->rows_len, 2);
	assert_int_equal(next_of(SUSPENDS, 0), 2);
}

static void what_does_not_fit_at_all_is_dead(void **state)
{
	struct intake *intake = begin(state);

	feed(intake, 0, 0, "s1");
	feed(intake, 0, 1, "M2");
	feed(intake, 0, 2, "s3");
	run_well(intake);
	assert_int_equal(kafka.letters_len, 1);
	assert_int_equal(kafka.codes[0], ERR_TOO_LARGE);
	assert_int_equal(kafka.letters[0], 1);
	assert_int_equal(next_of(SUSPENDS, 0), 3);
	assert_int_equal(db.world->rows_len, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(positions_move_with_the_batch),
		TEST(an_end_moves_the_position_too),
		TEST(who_is_stale_writes_nothing),
		TEST(poison_is_found_and_leaves),
		TEST(poison_alone_leaves),
		TEST(a_database_that_refuses_everything_is_waited_for),
		TEST(a_row_that_another_made_is_looked_at_again),
		TEST(letters_go_before_the_commit),
		TEST(a_lost_commit_is_read_again),
		TEST(what_does_not_fit_beside_others_comes_after_them),
		TEST(what_does_not_fit_at_all_is_dead),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
