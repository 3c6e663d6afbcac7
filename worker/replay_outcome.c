#include "worker/replay_inner.h"

#include <stdio.h>

static bool begins_with(struct view text, const char *prefix)
{
	struct view wanted = view_of(prefix);
	return text.len >= wanted.len && view_equal((struct view){ text.data, wanted.len }, wanted);
}

/* Refusals that hang on when it was judged, which nothing tells any more. */
static bool is_of_its_time(const struct decision *decision)
{
	return decision->outcome == OUTCOME_REFUSED &&
	       (begins_with(decision->outcome_reason, refusal_name(REFUSAL_SUPERSEDED)) ||
	        begins_with(decision->outcome_reason, refusal_name(REFUSAL_NO_SUSPEND)));
}

/* Do those that counted come to a verdict? */
static bool is_decided(const struct checkpoint *row, struct decision *const *decisions, size_t len)
{
	enum verdict verdict;
	int32_t approvals = 0;
	bool decided = false;
	for (size_t i = 0; i < len && !decided; i++) {
		if (decisions[i]->outcome != OUTCOME_COUNTED ||
		    uuid_compare(&decisions[i]->checkpoint_id, &row->id) != 0)
			continue;
		approvals += decisions[i]->kind == DECISION_APPROVE;
		decided = policy_verdict(row, decisions[i]->kind, approvals, &verdict);
	}
	return decided;
}

/* Settled, and not by those who decide: an operator erased or dropped it, and no decision counts from then on. When that
 * was, between two decisions, is not written beside it. */
static bool came_after_operator(const struct checkpoint *row, const struct decision *decision,
                                struct decision *const *decisions, size_t len)
{
	return row->state == GATE_RESUMED && decision->outcome == OUTCOME_REFUSED &&
	       begins_with(decision->outcome_reason, refusal_name(REFUSAL_ALREADY_DECIDED)) &&
	       !is_decided(row, decisions, len);
}

/* The checkpoint as it was when the decision was judged: after those that counted before it. */
static size_t go_back(struct checkpoint *row, const struct decision *decision,
                      struct decision *const *decisions, size_t len, const struct decision **ret_counted)
{
	size_t counted = 0;
	row->state = GATE_PENDING;
	row->has_verdict = false;
	row->held = false;
	row->approvals = 0;
	for (size_t i = 0; i < len; i++) { /* by seq */
		const struct decision *before = decisions[i];
		if (before->outcome != OUTCOME_COUNTED || before->seq >= decision->seq ||
		    uuid_compare(&before->checkpoint_id, &row->id) != 0)
			continue;
		ret_counted[counted++] = before;
		row->approvals += before->kind == DECISION_APPROVE;
		if (before->kind == DECISION_EXPIRE && row->on_expiry == ON_EXPIRY_HOLD)
			row->held = true;
		if (policy_verdict(row, before->kind, row->approvals, &row->verdict)) {
			row->has_verdict = true;
			row->state = GATE_DECIDED;
		}
	}
	return counted;
}

/* Edits are sealed: whether those of two approvals are the same is not looked at again. */
static bool same_edits(const struct decision *decision, const struct decision *const *counted, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (counted[i]->kind == DECISION_APPROVE)
			return counted[i]->has_edits == decision->has_edits &&
			       (!decision->has_edits || decision->outcome == OUTCOME_COUNTED);
	return true;
}

bool replay_outcome(const struct policy *policy, const struct checkpoint *row,
                    const struct decision *decision, struct decision *const *decisions, size_t decisions_len,
                    struct arena *arena, char *ret_text, size_t cap)
{
	struct checkpoint then = *row;
	const struct decision **counted = arena_array(arena, decisions_len, sizeof(*counted));
	if (!row->filled || counted == NULL || is_of_its_time(decision) ||
	    came_after_operator(row, decision, decisions, decisions_len))
		return false;
	if (decision->outcome == OUTCOME_WAITING) {
		snprintf(ret_text, cap, "it waits for its suspend, which is there");
		return true;
	}
	size_t len = go_back(&then, decision, decisions, decisions_len, counted);
	enum refusal refusal =
		policy_judge(policy, &then, decision, counted, len, same_edits(decision, counted, len));
	enum outcome outcome = refusal == REFUSAL_NONE ? OUTCOME_COUNTED : OUTCOME_REFUSED;
	if (outcome == decision->outcome)
		return false;
	snprintf(ret_text, cap, "the database says %s, and it would be %s%s%s today: it stays",
	         outcome_name(decision->outcome), outcome_name(outcome), refusal == REFUSAL_NONE ? "" : ", ",
	         refusal_name(refusal));
	return true;
}
