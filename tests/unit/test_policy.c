// links: core
// Every refusal, the order in which they are judged, the quorum, and the verdict that follows.
#include "core/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#define EXPIRES_AT  INT64_C(1700000000000000)
#define COUNTED_MAX 4

/* A decision and all that it is judged by; each test bends what it is about. */
struct court {
	struct policy policy;
	struct checkpoint checkpoint;
	struct decision decision;
	struct decision earlier[COUNTED_MAX];
	size_t counted_len;
	bool same_edits;
	struct view approvers[2];
	struct uuid ledger[2];
};

static void set_person(struct decision *decision, const char *issuer, const char *subject)
{
	decision->decided_by.issuer = view_of(issuer);
	decision->decided_by.subject = view_of(subject);
	decision->decided_by.display = VIEW_LITERAL("");
}

/* An approval that counts: pending, in time, right digest, by ann. */
static void court_init(struct court *court, enum decision_kind kind)
{
	memset(court, 0, sizeof(*court));
	court->checkpoint.state = GATE_PENDING;
	court->checkpoint.filled = true;
	court->checkpoint.session_id = VIEW_LITERAL("SESSION-808");
	court->checkpoint.requested_by = VIEW_LITERAL("agent");
	court->checkpoint.required_approvals = 1;
	court->checkpoint.expires_at = EXPIRES_AT;
	court->checkpoint.on_expiry = ON_EXPIRY_REJECT;
	memset(court->checkpoint.digest, 0xD1, DIGEST_LEN);
	court->decision.kind = kind;
	court->decision.stated_session = VIEW_LITERAL("SESSION-808");
	court->decision.has_digest = true;
	memset(court->decision.checkpoint_digest, 0xD1, DIGEST_LEN);
	court->decision.at.appended_at = kind == DECISION_EXPIRE ? EXPIRES_AT : EXPIRES_AT - 1;
	court->decision.id.bytes[15] = 1;
	set_person(&court->decision, "jira", "ann");
	court->same_edits = true;
}

static enum refusal judge(const struct court *court)
{
	const struct decision *counted[COUNTED_MAX];

	for (size_t i = 0; i < court->counted_len; i++)
		counted[i] = &court->earlier[i];
	return policy_judge(&court->policy, &court->checkpoint, &court->decision, counted, court->counted_len,
	                    court->same_edits);
}

static void add_counted(struct court *court, enum decision_kind kind, const char *issuer, const char *subject)
{
	struct decision *earlier = &court->earlier[court->counted_len++];

	earlier->kind = kind;
	set_person(earlier, issuer, subject);
}

static const enum decision_kind kinds[] = { DECISION_APPROVE, DECISION_REJECT, DECISION_CANCEL,
	                                        DECISION_EXPIRE };
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* How to bend a court so that it refuses for one reason; in the order in which they are judged. */
static void bend_session(struct court *court)
{
	court->decision.stated_session = VIEW_LITERAL("SESSION-809");
}

static void bend_superseded(struct court *court)
{
	court->checkpoint.state = GATE_SUPERSEDED;
}

static void bend_decided(struct court *court)
{
	court->checkpoint.has_verdict = true;
	if (court->checkpoint.state != GATE_SUPERSEDED)
		court->checkpoint.state = GATE_DECIDED;
}

static void bend_digest(struct court *court)
{
	court->decision.checkpoint_digest[DIGEST_LEN - 1] ^= 1;
}

static void bend_no_digest(struct court *court)
{
	court->policy.require_digest = true;
	court->decision.has_digest = false;
}

static void bend_late(struct court *court)
{
	court->decision.at.appended_at = EXPIRES_AT;
}

static void bend_early(struct court *court)
{
	court->decision.at.appended_at = EXPIRES_AT - 1;
}

static void bend_approvers(struct court *court)
{
	court->approvers[0] = VIEW_LITERAL("bob");
	court->checkpoint.approvers = court->approvers;
	court->checkpoint.approvers_len = 1;
}

static void bend_self(struct court *court)
{
	court->policy.forbid_self = true;
	court->checkpoint.requested_by = VIEW_LITERAL("jira:ann");
}

static void bend_same(struct court *court)
{
	add_counted(court, DECISION_APPROVE, "jira", "ann");
}

static void bend_edits(struct court *court)
{
	court->decision.has_edits = true;
}

static const struct bend {
	void (*bend)(struct court *court);
	enum refusal refusal;
	bool binds[KINDS]; /* APPROVE, REJECT, CANCEL, EXPIRE */
} bends[] = {
	{ bend_session, REFUSAL_WRONG_SESSION, { true, true, true, true } },
	{ bend_superseded, REFUSAL_SUPERSEDED, { true, true, true, true } },
	{ bend_decided, REFUSAL_ALREADY_DECIDED, { true, true, true, true } },
	{ bend_digest, REFUSAL_WRONG_DIGEST, { true, true, true, true } },
	{ bend_no_digest, REFUSAL_NO_DIGEST, { true, false, false, false } },
	{ bend_early, REFUSAL_TOO_EARLY, { false, false, false, true } },
	{ bend_late, REFUSAL_LATE, { true, true, true, false } },
	{ bend_approvers, REFUSAL_NOT_APPROVER, { true, true, false, false } },
	{ bend_self, REFUSAL_SELF, { true, true, false, false } },
	{ bend_same, REFUSAL_SAME_APPROVER, { true, false, false, false } },
	{ bend_edits, REFUSAL_EDITS, { true, true, true, true } },
};
#define BENDS (sizeof(bends) / sizeof(bends[0]))

static void straight_ones_count(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct court court;
		court_init(&court, kinds[k]);
		assert_int_equal(judge(&court), REFUSAL_NONE);
	}
}

static void every_refusal_binds_whom_it_should(void **state)
{
	(void)state;
	for (size_t i = 0; i < BENDS; i++) {
		for (size_t k = 0; k < KINDS; k++) {
			struct court court;
			court_init(&court, kinds[k]);
			bends[i].bend(&court);
			assert_int_equal(judge(&court), bends[i].binds[k] ? bends[i].refusal : REFUSAL_NONE);
		}
	}
}

/* Is the second bend undone by the first, or the other way round? */
static bool clash(size_t a, size_t b)
{
	enum refusal first = bends[a].refusal;
	enum refusal second = bends[b].refusal;

	return (first == REFUSAL_WRONG_DIGEST && second == REFUSAL_NO_DIGEST) ||
	       (first == REFUSAL_TOO_EARLY && second == REFUSAL_LATE);
}

static void the_first_refusal_wins(void **state)
{
	(void)state;
	for (size_t a = 0; a < BENDS; a++) {
		for (size_t b = a + 1; b < BENDS; b++) {
			for (size_t k = 0; k < KINDS; k++) {
				struct court court;
				if (clash(a, b) || !bends[a].binds[k] || !bends[b].binds[k])
					continue;
				court_init(&court, kinds[k]);
				bends[a].bend(&court);
				bends[b].bend(&court);
				assert_int_equal(judge(&court), bends[a].refusal);
			}
		}
	}
}

static void a_session_may_be_left_out(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	court.decision.stated_session = VIEW_LITERAL("");
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.decision.stated_session = VIEW_NULL;
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.decision.stated_session = VIEW_LITERAL("session-808");
	assert_int_equal(judge(&court), REFUSAL_WRONG_SESSION);
}

static void what_is_not_open_is_decided(void **state)
{
	(void)state;
	static const struct {
		enum gate_state state;
		bool has_verdict;
		enum refusal refusal;
	} cases[] = {
		{ GATE_PENDING, false, REFUSAL_NONE },
		{ GATE_PENDING, true, REFUSAL_ALREADY_DECIDED },
		{ GATE_DECIDED, true, REFUSAL_ALREADY_DECIDED },
		{ GATE_RESUMED, true, REFUSAL_ALREADY_DECIDED },
		{ GATE_RESUMED, false, REFUSAL_ALREADY_DECIDED }, /* dropped from quarantine before a verdict */
		{ GATE_IN_DOUBT, true, REFUSAL_ALREADY_DECIDED },
		{ GATE_QUARANTINED, false, REFUSAL_NONE },
		{ GATE_QUARANTINED, true, REFUSAL_ALREADY_DECIDED }, /* a CANCEL too: `quarantine drop` settles it */
		{ GATE_SUPERSEDED, false, REFUSAL_SUPERSEDED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		for (size_t k = 0; k < KINDS; k++) {
			struct court court;
			court_init(&court, kinds[k]);
			court.checkpoint.state = cases[i].state;
			court.checkpoint.has_verdict = cases[i].has_verdict;
			assert_int_equal(judge(&court), cases[i].refusal);
		}
	}
}

static void a_digest_may_be_left_out_unless_required(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	bend_digest(&court);
	court.decision.has_digest = false;
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.policy.require_digest = true;
	assert_int_equal(judge(&court), REFUSAL_NO_DIGEST);
	court_init(&court, DECISION_APPROVE);
	court.policy.require_digest = true;
	assert_int_equal(judge(&court), REFUSAL_NONE);
}

static void late_is_from_the_very_microsecond(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	court.decision.at.appended_at = EXPIRES_AT - 1;
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.decision.at.appended_at = EXPIRES_AT;
	assert_int_equal(judge(&court), REFUSAL_LATE);
	court.checkpoint.on_expiry = ON_EXPIRY_APPROVE;
	assert_int_equal(judge(&court), REFUSAL_LATE);
	court.checkpoint.expires_at = TIME_NONE;
	assert_int_equal(judge(&court), REFUSAL_NONE);
}

static void with_hold_later_decisions_count(void **state)
{
	(void)state;
	for (size_t k = 0; k < KINDS; k++) {
		struct court court;
		court_init(&court, kinds[k]);
		court.checkpoint.on_expiry = ON_EXPIRY_HOLD;
		court.decision.at.appended_at = EXPIRES_AT + 1000000;
		assert_int_equal(judge(&court), REFUSAL_NONE);
		court.checkpoint.held = true;
		assert_int_equal(judge(&court), kinds[k] == DECISION_EXPIRE ? REFUSAL_ALREADY_DECIDED : REFUSAL_NONE);
	}
}

static void an_expire_counts_only_when_it_is_late(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_EXPIRE);
	set_person(&court.decision, "mallory", "anyone"); /* whoever sent it */
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.decision.at.appended_at = EXPIRES_AT - 1;
	assert_int_equal(judge(&court), REFUSAL_TOO_EARLY);
	court.checkpoint.on_expiry = ON_EXPIRY_HOLD;
	assert_int_equal(judge(&court), REFUSAL_TOO_EARLY);
	court.decision.at.appended_at = EXPIRES_AT + 1;
	court.checkpoint.expires_at = TIME_NONE;
	assert_int_equal(judge(&court), REFUSAL_TOO_EARLY);
}

static void one_of_the_approvers_is_enough(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_REJECT);
	bend_approvers(&court);
	assert_int_equal(judge(&court), REFUSAL_NOT_APPROVER);
	court.approvers[1] = VIEW_LITERAL("jira:ann");
	court.checkpoint.approvers_len = 2;
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.approvers[1] = VIEW_LITERAL("slack:ann");
	assert_int_equal(judge(&court), REFUSAL_NOT_APPROVER);
}

static void without_forbid_self_anyone_decides(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	bend_self(&court);
	court.policy.forbid_self = false;
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.policy.forbid_self = true;
	court.checkpoint.requested_by = VIEW_LITERAL("ann");
	assert_int_equal(judge(&court), REFUSAL_SELF);
	court.checkpoint.requested_by = VIEW_LITERAL("Ann");
	assert_int_equal(judge(&court), REFUSAL_NONE);
}

static void a_person_is_issuer_and_subject(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	add_counted(&court, DECISION_APPROVE, "slack", "ann");
	add_counted(&court, DECISION_APPROVE, "jira", "bob");
	assert_int_equal(judge(&court), REFUSAL_NONE);
	add_counted(&court, DECISION_APPROVE, "jira", "ann");
	assert_int_equal(judge(&court), REFUSAL_SAME_APPROVER);
	court.earlier[2].kind = DECISION_REJECT; /* only approvals are counted against it */
	assert_int_equal(judge(&court), REFUSAL_NONE);
	/* "a" + ":" + "b:c" and "a:b" + ":" + "c" look alike put together, and are two people. */
	court_init(&court, DECISION_APPROVE);
	set_person(&court.decision, "a", "b:c");
	add_counted(&court, DECISION_APPROVE, "a:b", "c");
	assert_int_equal(judge(&court), REFUSAL_NONE);
}

static void the_first_approval_fixes_the_edits(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	court.policy.allow_edits = true;
	court.decision.has_edits = true;
	court.same_edits = false; /* there is none before it to be the same as */
	assert_int_equal(judge(&court), REFUSAL_NONE);
	add_counted(&court, DECISION_APPROVE, "jira", "bob");
	assert_int_equal(judge(&court), REFUSAL_EDITS);
	court.decision.has_edits = false;
	assert_int_equal(judge(&court), REFUSAL_EDITS);
	court.same_edits = true;
	assert_int_equal(judge(&court), REFUSAL_NONE);
	court.same_edits = false;
	court.decision.kind = DECISION_REJECT;
	assert_int_equal(judge(&court), REFUSAL_NONE);
}

static void the_ledger_settles_it(void **state)
{
	(void)state;
	for (size_t i = 0; i < BENDS; i++) {
		for (size_t k = 0; k < KINDS; k++) {
			struct court court;
			court_init(&court, kinds[k]);
			court.checkpoint.state = GATE_RESUMED;
			court.checkpoint.from_ledger = true;
			court.checkpoint.ledger_decisions = court.ledger;
			court.checkpoint.ledger_decisions_len = 2;
			court.ledger[0].bytes[15] = 9;
			court.ledger[1] = court.decision.id;
			bends[i].bend(&court);
			assert_int_equal(judge(&court), REFUSAL_NONE); /* it counted, full stop */
			court.ledger[1].bytes[0] = 1;
			/* while one that the ledger names has still to come, the reason is that of the open gate */
			bool of_the_state = bends[i].refusal == REFUSAL_SUPERSEDED;
			assert_int_equal(judge(&court),
			                 of_the_state || !bends[i].binds[k] ? REFUSAL_ALREADY_DECIDED : bends[i].refusal);
		}
	}
}

static void a_ledger_without_ids_refuses(void **state)
{
	(void)state;
	struct court court;

	court_init(&court, DECISION_APPROVE);
	court.checkpoint.from_ledger = true;
	assert_int_equal(judge(&court), REFUSAL_ALREADY_DECIDED);
}

static void whom_an_entry_means(void **state)
{
	(void)state;
	static const struct {
		const char *entry;
		const char *issuer;
		const char *subject;
		bool means;
	} cases[] = {
		{ "ann", "jira", "ann", true },
		{ "jira:ann", "jira", "ann", true },
		{ "jira", "jira", "ann", false },
		{ "jira:", "jira", "ann", false },
		{ "jiraann", "jira", "ann", false },
		{ "jira:anna", "jira", "ann", false },
		{ "ANN", "jira", "ann", false },
		{ "jira-ann", "jira", "ann", false },
		{ "jira:an", "jira", "ann", false },
		{ "xira:ann", "jira", "ann", false },
		{ "a:b:c", "a", "b:c", true },
		{ "a:b:c", "a:b", "c", true }, /* nothing is parsed */
		{ "b:c", "a", "b:c", true },
		{ "c", "a", "b:c", false },
		{ ":ann", "", "ann", true },
		{ "jira:", "jira", "", true },
		{ ":", "", "", true },
		{ "", "", "ann", false },
		{ NULL, "jira", "ann", false },
		{ "", "jira", "ann", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct approver person = { .issuer = view_of(cases[i].issuer), .subject = view_of(cases[i].subject) };
		if (policy_matches(view_of(cases[i].entry), &person) != cases[i].means)
			fail_msg("case %zu", i);
	}
}

static void verdicts_follow(void **state)
{
	(void)state;
	static const struct {
		enum decision_kind kind;
		enum on_expiry on_expiry;
		int32_t approvals;
		int32_t required;
		bool decides;
		enum verdict verdict;
	} cases[] = {
		{ DECISION_APPROVE, ON_EXPIRY_REJECT, 1, 1, true, VERDICT_APPROVED },
		{ DECISION_APPROVE, ON_EXPIRY_REJECT, 1, 2, false, VERDICT_APPROVED },
		{ DECISION_APPROVE, ON_EXPIRY_HOLD, 2, 2, true, VERDICT_APPROVED },
		{ DECISION_APPROVE, ON_EXPIRY_APPROVE, 2, 3, false, VERDICT_APPROVED },
		{ DECISION_REJECT, ON_EXPIRY_APPROVE, 0, 3, true, VERDICT_REJECTED },
		{ DECISION_CANCEL, ON_EXPIRY_HOLD, 1, 3, true, VERDICT_CANCELLED },
		{ DECISION_EXPIRE, ON_EXPIRY_REJECT, 1, 3, true, VERDICT_EXPIRED },
		{ DECISION_EXPIRE, ON_EXPIRY_APPROVE, 1, 3, true, VERDICT_APPROVED },
		{ DECISION_EXPIRE, ON_EXPIRY_HOLD, 1, 3, false, VERDICT_APPROVED },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct checkpoint checkpoint = { .on_expiry = cases[i].on_expiry,
			                             .required_approvals = cases[i].required };
		enum verdict untouched = (enum verdict)77;
		enum verdict verdict = untouched;
		assert_int_equal(policy_verdict(&checkpoint, cases[i].kind, cases[i].approvals, &verdict),
		                 cases[i].decides);
		assert_int_equal(verdict, cases[i].decides ? cases[i].verdict : untouched);
	}
}

static void names_are_the_contracts(void **state)
{
	(void)state;
	static const char *const names[] = {
		"",     "wrong_digest",    "no_digest",     "wrong_session", "late",  "too_early",  "not_approver",
		"self", "already_decided", "same_approver", "superseded",    "edits", "no_suspend",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		assert_string_equal(refusal_name((enum refusal)i), names[i]);
		assert_int_equal(strlen(refusal_text((enum refusal)i)) > 0, i > 0);
	}
	assert_string_equal(refusal_name((enum refusal)13), "?");
	assert_string_equal(outcome_name(OUTCOME_COUNTED), "counted");
	assert_string_equal(outcome_name(OUTCOME_WAITING), "waiting");
	assert_string_equal(outcome_name(OUTCOME_REFUSED), "refused");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(straight_ones_count),
		cmocka_unit_test(every_refusal_binds_whom_it_should),
		cmocka_unit_test(the_first_refusal_wins),
		cmocka_unit_test(a_session_may_be_left_out),
		cmocka_unit_test(what_is_not_open_is_decided),
		cmocka_unit_test(a_digest_may_be_left_out_unless_required),
		cmocka_unit_test(late_is_from_the_very_microsecond),
		cmocka_unit_test(with_hold_later_decisions_count),
		cmocka_unit_test(an_expire_counts_only_when_it_is_late),
		cmocka_unit_test(one_of_the_approvers_is_enough),
		cmocka_unit_test(without_forbid_self_anyone_decides),
		cmocka_unit_test(a_person_is_issuer_and_subject),
		cmocka_unit_test(the_first_approval_fixes_the_edits),
		cmocka_unit_test(the_ledger_settles_it),
		cmocka_unit_test(a_ledger_without_ids_refuses),
		cmocka_unit_test(whom_an_entry_means),
		cmocka_unit_test(verdicts_follow),
		cmocka_unit_test(names_are_the_contracts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
