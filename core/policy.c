#include "core/policy.h"

#include <string.h>

static const struct {
	const char *name;
	const char *text;
} refusals[] = {
	[REFUSAL_NONE] = { "", "" },
	[REFUSAL_WRONG_DIGEST] = { "wrong_digest",
	                           "it was made for another proposal than the one that is stored" },
	[REFUSAL_NO_DIGEST] = { "no_digest", "the policy wants the digest of the proposal that was shown" },
	[REFUSAL_WRONG_SESSION] = { "wrong_session",
	                            "the session_id that it states is not that of the checkpoint" },
	[REFUSAL_LATE] = { "late", "the gate had expired before it reached the topic" },
	[REFUSAL_TOO_EARLY] = { "too_early", "the gate has not expired" },
	[REFUSAL_NOT_APPROVER] = { "not_approver", "who decided is not among the approvers of the gate" },
	[REFUSAL_SELF] = { "self", "who asked for it may not decide it" },
	[REFUSAL_ALREADY_DECIDED] = { "already_decided", "the checkpoint was decided before" },
	[REFUSAL_SAME_APPROVER] = { "same_approver", "an approval by the same person counts already" },
	[REFUSAL_SUPERSEDED] = { "superseded",
	                         "a later suspend of the same session and gate replaced the checkpoint" },
	[REFUSAL_EDITS] = { "edits", "its edits are not allowed or differ from those of the first approval" },
	[REFUSAL_NO_SUSPEND] = { "no_suspend", "no suspend event came for it in time" },
};

const char *refusal_name(enum refusal refusal)
{
	return (size_t)refusal < sizeof(refusals) / sizeof(refusals[0]) ? refusals[refusal].name : "?";
}

const char *refusal_text(enum refusal refusal)
{
	return (size_t)refusal < sizeof(refusals) / sizeof(refusals[0]) ? refusals[refusal].text : "?";
}

const char *outcome_name(enum outcome outcome)
{
	static const char *const names[] = {
		[OUTCOME_COUNTED] = "counted",
		[OUTCOME_WAITING] = "waiting",
		[OUTCOME_REFUSED] = "refused",
	};

	return (size_t)outcome < sizeof(names) / sizeof(names[0]) ? names[outcome] : "?";
}

/* Everything that a rule looks at. */
struct judgement {
	const struct policy *policy;
	const struct checkpoint *checkpoint;
	const struct decision *decision;
	const struct decision *const *counted;
	size_t counted_len;
	bool same_edits;
};

static bool is_kind(const struct judgement *judgement, enum decision_kind kind)
{
	return judgement->decision->kind == kind;
}

/* approvers and forbid_self bind these two; CANCEL counts from anyone, EXPIRE is the clock's. */
static bool is_personal(const struct judgement *judgement)
{
	return is_kind(judgement, DECISION_APPROVE) || is_kind(judgement, DECISION_REJECT);
}

static bool refuse_wrong_session(const struct judgement *judgement)
{
	struct view stated = judgement->decision->stated_session;

	return stated.len > 0 && !view_equal(stated, judgement->checkpoint->session_id);
}

static bool refuse_superseded(const struct judgement *judgement)
{
	return judgement->checkpoint->state == GATE_SUPERSEDED;
}

static bool refuse_already_decided(const struct judgement *judgement)
{
	const struct checkpoint *checkpoint = judgement->checkpoint;

	if (!checkpoint_is_open(checkpoint) || checkpoint->has_verdict)
		return true;
	return is_kind(judgement, DECISION_EXPIRE) && checkpoint->on_expiry == ON_EXPIRY_HOLD && checkpoint->held;
}

static bool refuse_wrong_digest(const struct judgement *judgement)
{
	const struct decision *decision = judgement->decision;

	return decision->has_digest &&
	       memcmp(decision->checkpoint_digest, judgement->checkpoint->digest, DIGEST_LEN) != 0;
}

static bool refuse_no_digest(const struct judgement *judgement)
{
	return judgement->policy->require_digest && is_kind(judgement, DECISION_APPROVE) &&
	       !judgement->decision->has_digest;
}

/* By the time that the record was appended, so that a replay judges alike. */
static bool has_expired(const struct judgement *judgement)
{
	int64_t expires_at = judgement->checkpoint->expires_at;

	return expires_at != TIME_NONE && judgement->decision->at.appended_at >= expires_at;
}

static bool refuse_too_early(const struct judgement *judgement)
{
	return is_kind(judgement, DECISION_EXPIRE) && !has_expired(judgement);
}

static bool refuse_late(const struct judgement *judgement)
{
	return !is_kind(judgement, DECISION_EXPIRE) && judgement->checkpoint->on_expiry != ON_EXPIRY_HOLD &&
	       has_expired(judgement);
}

static bool refuse_not_approver(const struct judgement *judgement)
{
	const struct checkpoint *checkpoint = judgement->checkpoint;

	if (!is_personal(judgement) || checkpoint->approvers_len == 0)
		return false;
	for (size_t i = 0; i < checkpoint->approvers_len; i++)
		if (policy_matches(checkpoint->approvers[i], &judgement->decision->decided_by))
			return false;
	return true;
}

static bool refuse_self(const struct judgement *judgement)
{
	return judgement->policy->forbid_self && is_personal(judgement) &&
	       policy_matches(judgement->checkpoint->requested_by, &judgement->decision->decided_by);
}

static bool same_person(const struct approver *a, const struct approver *b)
{
	return view_equal(a->issuer, b->issuer) && view_equal(a->subject, b->subject);
}

static bool refuse_same_approver(const struct judgement *judgement)
{
	if (!is_kind(judgement, DECISION_APPROVE))
		return false;
	for (size_t i = 0; i < judgement->counted_len; i++) {
		const struct decision *counted = judgement->counted[i];
		if (counted->kind == DECISION_APPROVE &&
		    same_person(&counted->decided_by, &judgement->decision->decided_by))
			return true;
	}
	return false;
}

static bool has_counted_approval(const struct judgement *judgement)
{
	for (size_t i = 0; i < judgement->counted_len; i++)
		if (judgement->counted[i]->kind == DECISION_APPROVE)
			return true;
	return false;
}

/* The first approval that counts fixes the edits, or that there are none. */
static bool refuse_edits(const struct judgement *judgement)
{
	if (judgement->decision->has_edits && !judgement->policy->allow_edits)
		return true;
	return is_kind(judgement, DECISION_APPROVE) && has_counted_approval(judgement) && !judgement->same_edits;
}

/* In the order of judging: the first one that applies is the one recorded. */
static const struct rule {
	bool (*refuses)(const struct judgement *judgement);
	enum refusal refusal;
} rules[] = {
	{ refuse_wrong_session, REFUSAL_WRONG_SESSION },
	{ refuse_superseded, REFUSAL_SUPERSEDED },
	{ refuse_already_decided, REFUSAL_ALREADY_DECIDED },
	{ refuse_wrong_digest, REFUSAL_WRONG_DIGEST },
	{ refuse_no_digest, REFUSAL_NO_DIGEST },
	{ refuse_too_early, REFUSAL_TOO_EARLY },
	{ refuse_late, REFUSAL_LATE },
	{ refuse_not_approver, REFUSAL_NOT_APPROVER },
	{ refuse_self, REFUSAL_SELF },
	{ refuse_same_approver, REFUSAL_SAME_APPROVER },
	{ refuse_edits, REFUSAL_EDITS },
};

static bool is_in_ledger(const struct checkpoint *checkpoint, const struct uuid *id)
{
	for (size_t i = 0; i < checkpoint->ledger_decisions_len; i++)
		if (uuid_compare(&checkpoint->ledger_decisions[i], id) == 0)
			return true;
	return false;
}

/* Why it would not have counted while the checkpoint was open: the rules but for those of its state. */
static enum refusal judge_while_open(const struct judgement *judgement)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].refusal != REFUSAL_SUPERSEDED && rules[i].refusal != REFUSAL_ALREADY_DECIDED &&
		    rules[i].refuses(judgement))
			return rules[i].refusal;
	return REFUSAL_ALREADY_DECIDED;
}

/* The resume was read before the decisions: those that it names counted once, so they count again. Any other
 * is refused, with the reason of that time as far as it can be known: while some that the resume names have
 * still to come, the checkpoint was open. */
static enum refusal judge_by_ledger(const struct judgement *judgement)
{
	const struct checkpoint *checkpoint = judgement->checkpoint;

	if (is_in_ledger(checkpoint, &judgement->decision->id))
		return REFUSAL_NONE;
	if (!checkpoint->filled)
		return REFUSAL_ALREADY_DECIDED;
	if (refuse_wrong_session(judgement))
		return REFUSAL_WRONG_SESSION;
	return judgement->counted_len < checkpoint->ledger_decisions_len ? judge_while_open(judgement)
	                                                                 : REFUSAL_ALREADY_DECIDED;
}

enum refusal policy_judge(const struct policy *policy, const struct checkpoint *checkpoint,
                          const struct decision *decision, const struct decision *const *counted,
                          size_t counted_len, bool same_edits)
{
	const struct judgement judgement = { policy, checkpoint, decision, counted, counted_len, same_edits };

	if (checkpoint->from_ledger)
		return judge_by_ledger(&judgement);
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (rules[i].refuses(&judgement))
			return rules[i].refusal;
	return REFUSAL_NONE;
}

static bool verdict_of_expiry(enum on_expiry on_expiry, enum verdict *ret_verdict)
{
	if (on_expiry == ON_EXPIRY_HOLD)
		return false;
	*ret_verdict = on_expiry == ON_EXPIRY_APPROVE ? VERDICT_APPROVED : VERDICT_EXPIRED;
	return true;
}

bool policy_verdict(const struct checkpoint *checkpoint, enum decision_kind kind, int32_t approvals,
                    enum verdict *ret_verdict)
{
	switch (kind) {
	case DECISION_APPROVE:
		if (approvals < checkpoint->required_approvals)
			return false;
		*ret_verdict = VERDICT_APPROVED;
		return true;
	case DECISION_REJECT:
		*ret_verdict = VERDICT_REJECTED;
		return true;
	case DECISION_CANCEL:
		*ret_verdict = VERDICT_CANCELLED;
		return true;
	case DECISION_EXPIRE:
		return verdict_of_expiry(checkpoint->on_expiry, ret_verdict);
	}
	return false;
}

bool policy_matches(struct view entry, const struct approver *person)
{
	if (view_is_null(entry))
		return false;
	if (view_equal(entry, person->subject))
		return true;
	struct view issuer = person->issuer;
	struct view subject = person->subject;
	if (entry.len != issuer.len + 1 + subject.len || entry.data[issuer.len] != ':')
		return false;
	return view_equal((struct view){ entry.data, issuer.len }, issuer) &&
	       view_equal((struct view){ entry.data + issuer.len + 1, subject.len }, subject);
}
