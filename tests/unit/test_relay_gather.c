// links: worker core
/* A lone decision never waits; where records come by the dozen the next transaction does, a little. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/relay.h"

#include <sys/eventfd.h>
#include <unistd.h>

static struct worker worker;
static struct relay relay;
static int64_t began_ms;

/* In the place of relay.c. */
bool relay_stopping(const struct relay *asked)
{
	return atomic_load(&asked->ended);
}

static int setup(void **state)
{
	(void)state;
	relay = (struct relay){ .worker = &worker, .rows_max = 500, .wake_fd = eventfd(0, EFD_NONBLOCK) };
	atomic_store(&worker.behind, false);
	began_ms = clock_mono_ms();
	return relay.wake_fd >= 0 ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	return close(relay.wake_fd);
}

static void wake(bool urgent)
{
	uint64_t one = 1;

	if (urgent)
		atomic_store(&relay.urgent, true);
	assert_int_equal(write(relay.wake_fd, &one, sizeof(one)), sizeof(one));
}

/* A transaction with so many resumes, each with its gate event, and so many other gate events was marked. */
static void published(size_t resumes, size_t gates)
{
	struct relay_take rows = { .rows_len = resumes, .gates_len = gates };

	relay.publications_len = 2 * resumes + gates;
	relay_note_load(&relay, began_ms, &rows);
}

static int64_t waited(void)
{
	relay_gather(&relay);
	return clock_mono_ms() - began_ms;
}

/* What was published last, and how long after its beginning the next one then is: also while intake is behind. */
static const struct {
	size_t resumes, gates;
	int64_t wait_ms, behind_ms; /* 0: at once; not longer */
} loads[] = {
	/* a few do not wait */
	{ 1, 0, 0, 0 },
	{ 3, 0, 0, 0 },
	{ 7, 1, 0, 0 },
	{ 0, 15, 0, 0 },
	/* the more gate events, the longer they wait, up to an end */
	{ 0, 32, 200, 0 },
	{ 0, 64, 400, 0 },
	{ 0, 499, 400, 0 },
	{ 8, 300, 40, 400 }, /* there are resumes among them */
	{ 7, 200, 40, 0 },   /* a few among many suspends */
	/* a full one does not wait: it shows that more are there already */
	{ 500, 0, 0, 0 },
	{ 3, 500, 0, 0 },
};

static int64_t after_ms(int64_t wait_ms)
{
	return wait_ms == 0 ? 0 : began_ms + wait_ms;
}

static void what_was_published_says_how_long_the_next_one_waits(void **state)
{
	(void)state;
	for (int behind = 0; behind <= 1; behind++) {
		atomic_store(&worker.behind, behind);
		for (size_t i = 0; i < sizeof(loads) / sizeof(loads[0]); i++) {
			int64_t wanted_ms = after_ms(loads[i].wait_ms), behind_ms = after_ms(loads[i].behind_ms);
			published(loads[i].resumes, loads[i].gates);
			if (relay.gather_ms != wanted_ms || relay.gather_behind_ms != behind_ms)
				print_error("after %zu resumes and %zu gate events:\n", loads[i].resumes, loads[i].gates);
			assert_int_equal(relay.gather_ms, wanted_ms);
			assert_int_equal(relay.gather_behind_ms, behind_ms);
		}
	}
}

static void gate_events_wait(void **state)
{
	(void)state;
	published(0, 16);
	wake(false);
	assert_true(waited() >= 100);
	assert_int_equal(relay.gather_ms, 0);
}

static void a_decision_ends_the_wait_for_gate_events(void **state)
{
	(void)state;
	published(0, 400);
	relay.gather_ms = began_ms + 3600 * 1000;
	wake(true);
	assert_true(waited() < 3600 * 1000);
	assert_false(atomic_load(&relay.urgent));
}

static void decisions_by_the_dozen_wait_for_more(void **state)
{
	(void)state;
	published(8, 0);
	wake(true);
	assert_true(waited() >= 40);
	assert_false(atomic_load(&relay.urgent)); /* the R3 that follows takes it */
}

static void while_intake_is_behind_they_wait_longer(void **state)
{
	(void)state;
	atomic_store(&worker.behind, true);
	published(8, 0);
	wake(true);
	assert_true(waited() >= 400);
	assert_int_equal(relay.gather_behind_ms, 0);
}

/* The wake that comes with the last batch ends it. */
static void that_intake_has_caught_up_ends_the_wait(void **state)
{
	(void)state;
	published(100, 0);
	relay.gather_behind_ms = began_ms + 3600 * 1000;
	wake(true);
	assert_true(waited() < 3600 * 1000);
}

static void the_time_that_the_transaction_took_counts(void **state)
{
	(void)state;
	began_ms -= 1000;
	published(100, 0);
	relay_gather(&relay);
	assert_true(clock_mono_ms() - began_ms >= 1000);
	assert_int_equal(relay.gather_ms, 0);
}

static void an_end_ends_the_wait(void **state)
{
	(void)state;
	published(100, 0);
	relay.gather_ms = began_ms + 3600 * 1000;
	atomic_store(&relay.ended, true);
	wake(false);
	assert_true(waited() < 3600 * 1000);
}

/* A few resumes go without gate events, until those have waited long enough. */
static void gate_events_stay_behind_for_a_while(void **state)
{
	const struct relay_take few = { .rows_len = 3, .lone = true }, others = { .rows_len = 3 };

	(void)state;
	assert_int_equal(relay_lone(&relay), 7);
	assert_int_equal(relay_gates_wait(&relay, 1000), 1000);
	relay_note_gates(&relay, &few);
	int64_t due_ms = relay.gates_due_ms;
	assert_true(due_ms >= began_ms + 400 && due_ms <= clock_mono_ms() + 400);
	assert_in_range(relay_gates_wait(&relay, 1000), 0, 400);
	usleep(2000);
	relay_note_gates(&relay, &few); /* more of them do not wait anew */
	assert_int_equal(relay.gates_due_ms, due_ms);
	relay.gates_due_ms = clock_mono_ms() + 3600 * 1000;
	assert_int_equal(relay_lone(&relay), 7);
	assert_int_equal(relay_gates_wait(&relay, 1000), 1000);
	relay.gates_due_ms = clock_mono_ms() - 1;
	assert_int_equal(relay_lone(&relay), 0);
	assert_int_equal(relay_gates_wait(&relay, 1000), 0);
	relay_note_gates(&relay, &others); /* they were looked at */
	assert_int_equal(relay_lone(&relay), 7);
	assert_int_equal(relay_gates_wait(&relay, 1000), 1000);
}

/* A few resumes at each R3 do not keep it from going on with them. */
static void more_gate_events_than_are_taken_at_once_do_not_stay_behind(void **state)
{
	const struct relay_take full = { .rows_len = 3, .gates_len = 497, .more = true };
	const struct relay_take all = { .rows_len = 3, .gates_len = 2 };

	(void)state;
	relay_note_gates(&relay, &full);
	assert_int_equal(relay_lone(&relay), 0);
	assert_int_equal(relay_gates_wait(&relay, 1000), 0);
	relay_note_gates(&relay, &all);
	assert_int_equal(relay_lone(&relay), 7);
	relay.cut = true; /* taken, and no room for all */
	assert_int_equal(relay_lone(&relay), 0);
}

int main(void)
{
#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(what_was_published_says_how_long_the_next_one_waits),
		TEST(gate_events_wait),
		TEST(a_decision_ends_the_wait_for_gate_events),
		TEST(decisions_by_the_dozen_wait_for_more),
		TEST(while_intake_is_behind_they_wait_longer),
		TEST(that_intake_has_caught_up_ends_the_wait),
		TEST(the_time_that_the_transaction_took_counts),
		TEST(an_end_ends_the_wait),
		TEST(gate_events_stay_behind_for_a_while),
		TEST(more_gate_events_than_are_taken_at_once_do_not_stay_behind),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
