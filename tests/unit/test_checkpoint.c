// links: core
// Every cell of the state x event table against a table written out a second time, by events.
#include "core/checkpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* What is expected of a cell: a new state, or one of these two. */
#define KEEP (-1)
#define NO   (-2)

/* clang-format off */
/* Columns:                       PENDING           DECIDED           RESUMED SUPERSEDED     QUARANTINED       IN_DOUBT        UNCLAIMED */
static const int without_verdict[EVENT_COUNT][GATE_STATE_COUNT] = {
	[EVENT_FILL]       = { NO,               NO,               KEEP,   NO,            NO,               NO,             GATE_PENDING },
	[EVENT_OUTDATED]   = { NO,               NO,               KEEP,   NO,            NO,               NO,             GATE_SUPERSEDED },
	[EVENT_SUPERSEDE]  = { GATE_SUPERSEDED,  KEEP,             KEEP,   KEEP,          GATE_SUPERSEDED,  KEEP,           NO },
	[EVENT_VERDICT]    = { GATE_DECIDED,     NO,               KEEP,   NO,            KEEP,             NO,             NO },
	[EVENT_SETTLE]     = { NO,               GATE_RESUMED,     KEEP,   NO,            KEEP,             NO,             NO },
	[EVENT_PUBLISHED]  = { GATE_RESUMED,     GATE_RESUMED,     KEEP,   GATE_RESUMED,  GATE_RESUMED,     GATE_RESUMED,   GATE_RESUMED },
	[EVENT_QUARANTINE] = { GATE_QUARANTINED, GATE_QUARANTINED, KEEP,   KEEP,          KEEP,             KEEP,           NO },
	[EVENT_RETRY]      = { KEEP,             KEEP,             KEEP,   KEEP,          GATE_PENDING,     GATE_DECIDED,   KEEP },
	[EVENT_DOUBT]      = { NO,               GATE_IN_DOUBT,    KEEP,   NO,            KEEP,             KEEP,           NO },
	[EVENT_RESOLVE]    = { KEEP,             KEEP,             KEEP,   KEEP,          GATE_RESUMED,     GATE_RESUMED,   KEEP },
	[EVENT_ERASE]      = { GATE_RESUMED,     GATE_RESUMED,     KEEP,   KEEP,          GATE_RESUMED,     GATE_RESUMED,   NO },
};
static const int with_verdict[EVENT_COUNT][GATE_STATE_COUNT] = {
	[EVENT_FILL]       = { NO,               NO,               KEEP,   NO,            NO,               NO,             GATE_PENDING },
	[EVENT_OUTDATED]   = { NO,               NO,               KEEP,   NO,            NO,               NO,             GATE_SUPERSEDED },
	[EVENT_SUPERSEDE]  = { GATE_SUPERSEDED,  KEEP,             KEEP,   KEEP,          KEEP,             KEEP,           NO },
	[EVENT_VERDICT]    = { GATE_DECIDED,     NO,               KEEP,   NO,            KEEP,             NO,             NO },
	[EVENT_SETTLE]     = { NO,               GATE_RESUMED,     KEEP,   NO,            KEEP,             NO,             NO },
	[EVENT_PUBLISHED]  = { GATE_RESUMED,     GATE_RESUMED,     KEEP,   GATE_RESUMED,  GATE_RESUMED,     GATE_RESUMED,   GATE_RESUMED },
	[EVENT_QUARANTINE] = { GATE_QUARANTINED, GATE_QUARANTINED, KEEP,   KEEP,          KEEP,             KEEP,           NO },
	[EVENT_RETRY]      = { KEEP,             KEEP,             KEEP,   KEEP,          GATE_DECIDED,     GATE_DECIDED,   KEEP },
	[EVENT_DOUBT]      = { NO,               GATE_IN_DOUBT,    KEEP,   NO,            KEEP,             KEEP,           NO },
	[EVENT_RESOLVE]    = { KEEP,             KEEP,             KEEP,   KEEP,          GATE_RESUMED,     GATE_RESUMED,   KEEP },
	[EVENT_ERASE]      = { GATE_RESUMED,     GATE_RESUMED,     KEEP,   KEEP,          GATE_RESUMED,     GATE_RESUMED,   NO },
};
/* clang-format on */

static int expected(enum gate_state from, enum checkpoint_event event, bool has_verdict)
{
	return has_verdict ? with_verdict[event][from] : without_verdict[event][from];
}

static void check_cell(enum gate_state from, enum checkpoint_event event, bool has_verdict)
{
	int wanted = expected(from, event, has_verdict);
	enum gate_state untouched = (enum gate_state)77;
	enum gate_state next = untouched;
	enum transition transition = checkpoint_transition(from, event, has_verdict, &next);
	enum transition wanted_transition = wanted == KEEP ? TRANSITION_KEPT
	                                    : wanted == NO ? TRANSITION_IMPOSSIBLE
	                                                   : TRANSITION_CHANGED;

	if (transition != wanted_transition || (wanted >= 0 && (int)next != wanted))
		fail_msg("%s, %s, verdict %d: %d", gate_state_name(from), checkpoint_event_name(event), has_verdict,
		         (int)transition);
	if (wanted < 0)
		assert_int_equal(next, untouched);
}

static void every_cell(void **state)
{
	(void)state;
	for (int from = 0; from < GATE_STATE_COUNT; from++) {
		for (int event = 0; event < EVENT_COUNT; event++) {
			check_cell((enum gate_state)from, (enum checkpoint_event)event, false);
			check_cell((enum gate_state)from, (enum checkpoint_event)event, true);
		}
	}
}

static bool publishes(enum checkpoint_event event)
{
	return event == EVENT_PUBLISHED || event == EVENT_SETTLE || event == EVENT_RESOLVE ||
	       event == EVENT_ERASE;
}

static void the_door_does_what_the_table_says(void **state)
{
	(void)state;
	for (int from = 0; from < GATE_STATE_COUNT; from++) {
		for (int event = 0; event < EVENT_COUNT; event++) {
			for (int verdict = 0; verdict < 2; verdict++) {
				struct checkpoint checkpoint = { .state = (enum gate_state)from,
					                             .has_verdict = verdict == 1 };
				int wanted = expected((enum gate_state)from, (enum checkpoint_event)event, verdict == 1);
				checkpoint_apply(&checkpoint, (enum checkpoint_event)event);
				assert_int_equal(checkpoint.state, wanted >= 0 ? wanted : from);
				bool resumed = checkpoint.state == GATE_RESUMED;
				assert_int_equal(checkpoint.published, resumed && publishes((enum checkpoint_event)event));
				assert_int_equal(checkpoint.has_verdict, verdict);
				assert_false(checkpoint.filled);
			}
		}
	}
}

/* L8: what is RESUMED stays RESUMED, whatever is replayed. */
static void nothing_leads_out_of_resumed(void **state)
{
	(void)state;
	for (int event = 0; event < EVENT_COUNT; event++) {
		struct checkpoint checkpoint = { .state = GATE_RESUMED, .published = true, .has_verdict = true };
		assert_int_equal(checkpoint_apply(&checkpoint, (enum checkpoint_event)event), TRANSITION_KEPT);
		assert_int_equal(checkpoint.state, GATE_RESUMED);
		assert_true(checkpoint.published);
	}
}

/* L8 again: an event that comes twice does nothing the second time. A RETRY may lead to what it was. */
static void an_event_twice_is_an_event_once(void **state)
{
	(void)state;
	for (int from = 0; from < GATE_STATE_COUNT; from++) {
		for (int event = 0; event < EVENT_COUNT; event++) {
			struct checkpoint checkpoint = { .state = (enum gate_state)from };
			if (checkpoint_apply(&checkpoint, (enum checkpoint_event)event) != TRANSITION_CHANGED)
				continue;
			enum gate_state once = checkpoint.state;
			checkpoint_apply(&checkpoint, (enum checkpoint_event)event);
			assert_int_equal(checkpoint.state, once);
		}
	}
}

static void a_state_that_is_none_is_impossible(void **state)
{
	(void)state;
	enum gate_state next = GATE_PENDING;
	struct checkpoint checkpoint = { .state = (enum gate_state)GATE_STATE_COUNT };

	assert_int_equal(checkpoint_transition((enum gate_state) - 1, EVENT_FILL, false, &next),
	                 TRANSITION_IMPOSSIBLE);
	assert_int_equal(checkpoint_apply(&checkpoint, EVENT_PUBLISHED), TRANSITION_IMPOSSIBLE);
	assert_false(checkpoint.published);
}

static void events_have_names(void **state)
{
	(void)state;
	for (int i = 0; i < EVENT_COUNT; i++) {
		assert_true(strlen(checkpoint_event_name((enum checkpoint_event)i)) > 3);
		for (int k = 0; k < i; k++)
			assert_string_not_equal(checkpoint_event_name((enum checkpoint_event)i),
			                        checkpoint_event_name((enum checkpoint_event)k));
	}
	assert_string_equal(checkpoint_event_name(EVENT_COUNT), "?");
}

static void what_is_open(void **state)
{
	(void)state;
	for (int at = 0; at < GATE_STATE_COUNT; at++) {
		struct checkpoint checkpoint = { .state = (enum gate_state)at };
		assert_int_equal(checkpoint_is_open(&checkpoint), at == GATE_PENDING || at == GATE_QUARANTINED);
		checkpoint.has_verdict = true;
		assert_int_equal(checkpoint_is_open(&checkpoint), at == GATE_PENDING);
	}
}

static void versions_always_grow(void **state)
{
	(void)state;
	struct checkpoint checkpoint = { .version = 0 };

	assert_int_equal(checkpoint_next_version(&checkpoint, 1700000000000000), 1700000000000000);
	checkpoint.version = 1700000000000000;
	assert_int_equal(checkpoint_next_version(&checkpoint, 1700000000000000), 1700000000000001);
	assert_int_equal(checkpoint_next_version(&checkpoint, 1600000000000000), 1700000000000001);
	assert_int_equal(checkpoint_next_version(&checkpoint, 1700000000000001), 1700000000000001);
	assert_int_equal(checkpoint_next_version(&checkpoint, TIME_NONE), 1700000000000001);
	assert_int_equal(checkpoint_next_version(&checkpoint, 1800000000000000), 1800000000000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cell),
		cmocka_unit_test(the_door_does_what_the_table_says),
		cmocka_unit_test(nothing_leads_out_of_resumed),
		cmocka_unit_test(an_event_twice_is_an_event_once),
		cmocka_unit_test(a_state_that_is_none_is_impossible),
		cmocka_unit_test(events_have_names),
		cmocka_unit_test(what_is_open),
		cmocka_unit_test(versions_always_grow),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
