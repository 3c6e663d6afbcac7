/*
 * policy.h - is this decision acceptable? A reason, or none. Pure: rows and settings in, answer out.
 * The rules are judged in the order of the table in policy.c (session, state, digest, time, person,
 * edits), and the first refusal is the one recorded.
 */
#ifndef FERMATA_CORE_POLICY_H
#define FERMATA_CORE_POLICY_H

#include "core/checkpoint.h"

/* Why a decision does not count. The names are the contract's. */
enum refusal {
	REFUSAL_NONE,
	REFUSAL_WRONG_DIGEST,
	REFUSAL_NO_DIGEST,
	REFUSAL_WRONG_SESSION,
	REFUSAL_LATE,
	REFUSAL_TOO_EARLY,
	REFUSAL_NOT_APPROVER,
	REFUSAL_SELF,
	REFUSAL_ALREADY_DECIDED,
	REFUSAL_SAME_APPROVER,
	REFUSAL_SUPERSEDED,
	REFUSAL_EDITS,
	REFUSAL_NO_SUSPEND,
};

/* "wrong_digest", ...; "" for REFUSAL_NONE. */
const char *refusal_name(enum refusal refusal);
/* A short sentence for people that follows the name in decision.reason. */
const char *refusal_text(enum refusal refusal);

enum outcome { OUTCOME_COUNTED, OUTCOME_WAITING, OUTCOME_REFUSED };
const char *outcome_name(enum outcome outcome); /* "counted", "waiting", "refused" */

/* The keys decisions.* of the configuration. */
struct policy {
	bool forbid_self;
	bool require_digest;
	bool allow_edits;
};

/* A decision as the row of fermata.decision knows it. */
struct decision {
	struct uuid id;
	struct uuid checkpoint_id;
	enum outcome outcome;
	enum refusal refusal;
	struct view outcome_reason; /* what stands in the column `reason`; null unless refused */
	enum decision_kind kind;
	struct approver decided_by;
	int64_t decided_at;
	struct view stated_reason;  /* the person's; or null */
	struct view stated_session; /* empty: not stated */
	struct source source;
	bool has_digest;
	uint8_t checkpoint_digest[DIGEST_LEN];
	uint8_t record_digest[DIGEST_LEN]; /* of the record's own bytes: a duplicate or a conflict? */
	struct view id_text;               /* as it was sent */
	struct coordinates at;
	int64_t seq; /* order of judging: grows with each decision stored; 0 before it is */
	bool has_edits;
	struct sealed edits; /* the sealed edits; body null when there are none */
};

/*
 * Judges one decision against a filled checkpoint.
 * counted: the decisions of it that counted before this one, any order.
 * same_edits: only looked at for an APPROVE after a first one that counted: do both have no edits, or
 * equal ones? (The caller opens them.)
 * A decision that acts on what is decided already is refused by the checkpoint's state.
 * Where the ledger marked the row before (checkpoint->from_ledger), the ids of the resume settle it: a
 * decision that they name counts, any other is refused as wrong_session or already_decided.
 */
enum refusal policy_judge(const struct policy *policy, const struct checkpoint *checkpoint,
                          const struct decision *decision, const struct decision *const *counted,
                          size_t counted_len, bool same_edits);

/*
 * What follows once the decision counts. approvals: those that count, this one included.
 * Returns true and the verdict when the checkpoint is decided by it. An APPROVE below the quorum and
 * an EXPIRE with on_expiry HOLD decide nothing.
 */
bool policy_verdict(const struct checkpoint *checkpoint, enum decision_kind kind, int32_t approvals,
                    enum verdict *ret_verdict);

/* Does an entry of `approvers` or `requested_by` mean this person? It equals the subject, or issuer,
 * a colon and the subject put together. */
bool policy_matches(struct view entry, const struct approver *person);

#endif
