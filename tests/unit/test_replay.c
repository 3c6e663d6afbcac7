// links: worker core
// What rebuild and replay keep in mind (ids, places of dead letters), and how a decision would end today.
#include "worker/letters_known.h"
#include "worker/replay_inner.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* ---- ids ---- */

static struct uuid id_of(uint32_t number)
{
	struct uuid id = { { 0 } };

	memcpy(id.bytes + 4, &number, sizeof(number)); /* all in the middle: a bad spread */
	return id;
}

static void ids_are_a_set(void **state)
{
	struct ids ids = { 0 };
	struct error error;
	bool fresh;

	(void)state;
	assert_false(ids_has(&ids, &(struct uuid){ { 0 } }));
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 0; i < 5000; i++) { /* 0 is the id of zeros */
			struct uuid id = id_of(i);
			assert_int_equal(ids_add(&ids, &id, &fresh, &error), FATE_OK);
			assert_int_equal(fresh, round == 0);
		}
	assert_int_equal(ids_count(&ids), 5000);
	for (uint32_t i = 0; i < 10000; i++) {
		struct uuid id = id_of(i);
		assert_int_equal(ids_has(&ids, &id), i < 5000);
	}
	ids_done(&ids);
	assert_int_equal(ids_count(&ids), 0);
}

/* ---- letters ---- */

static void letters_are_known_by_their_place(void **state)
{
	struct letters_known letters = { 0 };
	struct error error;
	struct item items[3] = { 0 };
	struct item *list[] = { &items[0], &items[1], &items[2] };

	(void)state;
	for (int64_t offset = 3000; offset > 0; offset--)
		assert_int_equal(letters_known_add(&letters, offset % 2 == 0, (int32_t)(offset % 7), offset, &error),
		                 FATE_OK);
	letters_known_sort(&letters);
	for (int64_t offset = 1; offset <= 3000; offset++) {
		int32_t partition = (int32_t)(offset % 7);
		assert_true(letters_known_has(&letters, offset % 2 == 0, partition, offset));
		assert_false(letters_known_has(&letters, offset % 2 != 0, partition, offset));
		assert_false(letters_known_has(&letters, offset % 2 == 0, partition + 7, offset));
	}
	for (int i = 0; i < 3; i++) {
		items[i].suspend = true;
		items[i].dead = i != 1;
		items[i].record.at = (struct coordinates){ .partition = 2, .offset = i == 2 ? 9000 : 2 };
	}
	letters_known_mark(&letters, list, 3);
	assert_true(items[0].lettered);
	assert_false(items[1].lettered); /* it is a good one */
	assert_false(items[2].lettered); /* it has none */
	letters_known_note(&letters, &items[0]);
	letters_known_note(&letters, &items[2]);
	assert_int_equal(atomic_load(&letters.found), 1);
	assert_int_equal(atomic_load(&letters.sent), 1);
	letters_known_mark(NULL, list, 3); /* a worker knows of none */
	letters_known_note(NULL, &items[0]);
	letters_known_done(&letters);
}

/* ---- outcomes ---- */

#define DECISIONS_MAX 4

struct court {
	struct policy policy;
	struct checkpoint row;
	struct decision decisions[DECISIONS_MAX];
	struct decision *list[DECISIONS_MAX];
	size_t len;
	struct arena *arena;
	char text[160];
};

static void court_init(struct court *court, int32_t quorum)
{
	*court = (struct court){ .arena = arena_new(1 << 20) };
	assert_non_null(court->arena);
	court->row = (struct checkpoint){ .id = id_of(1),
		                              .filled = true,
		                              .state = GATE_RESUMED,
		                              .has_verdict = true,
		                              .required_approvals = quorum };
	court->row.session_id = VIEW_LITERAL("s");
	court->row.requested_by = VIEW_LITERAL("ann");
	court->row.expires_at = court->row.decided_at = TIME_NONE;
}

static struct decision *add(struct court *court, enum decision_kind kind, const char *who,
                            enum outcome outcome, const char *reason)
{
	struct decision *decision = &court->decisions[court->len];

	*decision = (struct decision){
		.id = id_of(100 + (uint32_t)court->len),
		.checkpoint_id = court->row.id,
		.kind = kind,
		.outcome = outcome,
		.outcome_reason = view_of(reason),
		.decided_by = { VIEW_LITERAL("desk"), view_of(who), VIEW_LITERAL("") },
		.seq = (int64_t)court->len + 1,
		.stated_session = VIEW_LITERAL(""),
	};
	court->list[court->len] = decision;
	court->len++;
	return decision;
}

static bool differs(struct court *court, const struct decision *decision)
{
	return replay_outcome(&court->policy, &court->row, decision, court->list, court->len, court->arena,
	                      court->text, sizeof(court->text));
}

/* Each is judged by what counted before it, not by the checkpoint as it is now. */
static void what_was_judged_well_does_not_differ(void **state)
{
	struct court court;

	(void)state;
	court_init(&court, 2);
	struct decision *first = add(&court, DECISION_APPROVE, "bob", OUTCOME_COUNTED, NULL);
	struct decision *again = add(&court, DECISION_APPROVE, "bob", OUTCOME_REFUSED, "same_approver: x");
	struct decision *second = add(&court, DECISION_APPROVE, "cyd", OUTCOME_COUNTED, NULL);
	struct decision *late = add(&court, DECISION_REJECT, "dan", OUTCOME_REFUSED, "already_decided: x");
	assert_false(differs(&court, first));
	assert_false(differs(&court, again));
	assert_false(differs(&court, second));
	assert_false(differs(&court, late));
	late->outcome = OUTCOME_COUNTED; /* by hand */
	assert_true(differs(&court, late));
	assert_non_null(strstr(court.text, "counted, and it would be refused, already_decided today"));
	second->outcome = OUTCOME_REFUSED;
	assert_true(differs(&court, second));
	assert_non_null(strstr(court.text, "refused, and it would be counted today"));
	arena_free(court.arena);
}

static void another_policy_differs(void **state)
{
	struct court court;

	(void)state;
	court_init(&court, 1);
	struct decision *self = add(&court, DECISION_APPROVE, "ann", OUTCOME_COUNTED, NULL);
	assert_false(differs(&court, self));
	court.policy.forbid_self = true;
	assert_true(differs(&court, self));
	assert_non_null(strstr(court.text, "refused, self"));
	court.row.from_ledger = true; /* a resume that names it stands above any policy */
	court.row.ledger_decisions = &self->id;
	court.row.ledger_decisions_len = 1;
	assert_false(differs(&court, self));
	arena_free(court.arena);
}

static void what_hangs_on_its_time_is_left(void **state)
{
	struct court court;

	(void)state;
	court_init(&court, 1);
	struct decision *decision = add(&court, DECISION_APPROVE, "bob", OUTCOME_REFUSED, "superseded: x");
	assert_false(differs(&court, decision));
	decision->outcome_reason = VIEW_LITERAL("no_suspend: x");
	assert_false(differs(&court, decision));
	decision->outcome_reason = VIEW_LITERAL("no");
	assert_true(differs(&court, decision));
	decision->outcome = OUTCOME_WAITING;
	assert_true(differs(&court, decision));
	assert_non_null(strstr(court.text, "waits for its suspend"));
	court.row.filled = false;
	assert_false(differs(&court, decision));
	arena_free(court.arena);
}

static void what_is_held_expires_once(void **state)
{
	struct court court;

	(void)state;
	court_init(&court, 1);
	court.row.on_expiry = ON_EXPIRY_HOLD;
	court.row.expires_at = 5;
	struct decision *expire = add(&court, DECISION_EXPIRE, "clock", OUTCOME_COUNTED, NULL);
	struct decision *again = add(&court, DECISION_EXPIRE, "clock", OUTCOME_REFUSED, "already_decided: x");
	struct decision *approve = add(&court, DECISION_APPROVE, "bob", OUTCOME_COUNTED, NULL);
	expire->at.appended_at = again->at.appended_at = approve->at.appended_at = 9;
	assert_false(differs(&court, expire));
	assert_false(differs(&court, again));
	assert_false(differs(&court, approve));
	arena_free(court.arena);
}

/* ---- doubt ---- */

static void a_decision_is_in_doubt_by_its_shard(void **state)
{
	struct certainty shards[] = { { "resumes", 0, TIME_NONE }, { "resumes", 1, 100 } };
	struct replay replay = { .shards = shards, .shards_len = 2 };
	struct checkpoint row = { .resumes_topic = VIEW_LITERAL("resumes"), .decided_at = 90, .appended_at = 50 };

	(void)state;
	assert_null(replay_doubts(&replay, &row));
	row.resumes_partition = 1;
	assert_non_null(replay_doubts(&replay, &row));
	row.appended_at = 100; /* an early decision decides when its suspend comes */
	assert_null(replay_doubts(&replay, &row));
	row.resumes_partition = 2; /* a ledger that nobody has read */
	assert_non_null(replay_doubts(&replay, &row));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_a_set),
		cmocka_unit_test(letters_are_known_by_their_place),
		cmocka_unit_test(what_was_judged_well_does_not_differ),
		cmocka_unit_test(another_policy_differs),
		cmocka_unit_test(what_hangs_on_its_time_is_left),
		cmocka_unit_test(what_is_held_expires_once),
		cmocka_unit_test(a_decision_is_in_doubt_by_its_shard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
