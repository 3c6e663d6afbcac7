/*
 * checkpoint.h - a checkpoint as the database row knows it, and the one door through which its state
 * changes: a table of state x event. Nobody else assigns checkpoint->state.
 */
#ifndef FERMATA_CORE_CHECKPOINT_H
#define FERMATA_CORE_CHECKPOINT_H

#include "core/records.h"

#define KEK_ID_MAX      63 /* bytes of a key's id */
#define WRAPPED_KEY_LEN 72 /* nonce 24, key 32, tag 16 */
#define COMMIT_LEN      32

/* checkpoint->reason of what was decided and is in no shard (checkpoint_has_shard) */
#define CHECKPOINT_NO_SHARD_REASON                                                                           \
	"the row of fermata.common that it stands on is gone, and nobody knows to which topic its resume goes: " \
	"put it back out of a backup"
/* checkpoint->reason of what is PENDING and held */
#define CHECKPOINT_HELD_REASON "expired, and held: it waits for a decision without an end"

/* A sealed thing but for its body: what is needed besides the key to open it (security.md, format 1). */
struct sealed {
	uint8_t format;      /* 1 */
	uint8_t compression; /* 0 none, 1 zstd */
	uint32_t plain_len;  /* bytes before compression; authenticated */
	char kek_id[KEK_ID_MAX + 1];
	bool has_key; /* false once erased */
	uint8_t wrapped_key[WRAPPED_KEY_LEN];
	uint8_t commit[COMMIT_LEN];
	uint8_t schema_sha256[32]; /* of the writer schema's canonical form */
	struct view body;          /* nonce | ciphertext | tag; null when it was not loaded */
};

/* A row of fermata.checkpoint in memory. Views borrow from the arena it was loaded into. */
struct checkpoint {
	struct uuid id;
	enum gate_state state;
	bool filled;    /* the suspend event is known: everything down to `sealed` means something */
	bool published; /* the resumes topic has its resume, or it was settled without one (on_reject = drop) */
	bool held;      /* on_expiry = HOLD, and it has expired */

	struct view id_text; /* the id as it was sent, or null when that was in lower case */
	struct view tenant;
	struct view session_id;
	struct view gate_id;
	struct view agent;
	struct view agent_version;
	struct view requested_by;
	struct view title;
	int64_t suspend_seq;
	int64_t suspended_at;
	int64_t appended_at; /* LogAppendTime of the suspend record */
	bool has_risk;
	enum risk risk;
	int32_t required_approvals;
	struct view *approvers;
	size_t approvers_len;
	struct label *labels;
	size_t labels_len;
	int64_t expires_at; /* or TIME_NONE */
	enum on_expiry on_expiry;
	uint8_t digest[DIGEST_LEN];
	struct coordinates record; /* of the suspend record; written with the row, not read with it */
	struct view traceparent; /* W3C trace context of the suspend record, or null; carried through the wait */
	struct view tracestate;  /* or null */
	struct sealed sealed;

	bool has_verdict;
	enum verdict verdict;
	int64_t decided_at; /* LogAppendTime of the deciding record, or TIME_NONE */
	int32_t approvals;  /* distinct approvals that counted */
	struct view reason; /* why it is quarantined, superseded, in doubt or held; or null */
	int64_t version;    /* of its gate events; 0 before the first */
	int64_t changed_at; /* when the state last changed, us */

	/* An operator said that it is in no ledger below that offset of its shard; 0: nobody was asked. */
	int64_t doubt_settled;

	/* What the ledger said, where a relay found the resume before the row was whole: */
	struct uuid *ledger_decisions;
	size_t ledger_decisions_len;
	bool from_ledger;

	/* Its shard, fixed when the row is filled: */
	struct view resumes_topic;
	int32_t resumes_partition;
};

/* What can happen to a checkpoint. */
enum checkpoint_event {
	EVENT_FILL,       /* its suspend event came */
	EVENT_OUTDATED,   /* its suspend event came, and a later one of its line was there already */
	EVENT_SUPERSEDE,  /* a later suspend event of its line came */
	EVENT_VERDICT,    /* a decision (or the last one of a quorum) decided it */
	EVENT_SETTLE,     /* decided, and nothing is to be published (on_reject = drop) */
	EVENT_PUBLISHED,  /* its resume is on the resumes topic */
	EVENT_QUARANTINE, /* it cannot be opened or validated */
	EVENT_RETRY,      /* an operator says: try it again */
	EVENT_DOUBT,      /* whether it was published cannot be known */
	EVENT_RESOLVE,    /* an operator settles it: in-doubt or quarantine drop */
	EVENT_ERASE,      /* an operator erases its session: it can never be opened, so never be published */
	EVENT_COUNT,
};

/* Does the event change anything in this state, and is it allowed to happen? */
enum transition {
	TRANSITION_CHANGED,    /* the state is new */
	TRANSITION_KEPT,       /* legal, nothing changes (a duplicate, a late comer) */
	TRANSITION_IMPOSSIBLE, /* our own bug, or a row that somebody else wrote */
};

/*
 * The one door. Sets checkpoint->state (and ->published for EVENT_PUBLISHED, EVENT_SETTLE, EVENT_RESOLVE
 * and EVENT_ERASE, once the state is RESUMED); everything else of the row is the caller's.
 * EVENT_RETRY leads to DECIDED when there is a verdict, else to PENDING; EVENT_FILL of a row that the
 * ledger made keeps RESUMED. EVENT_VERDICT keeps QUARANTINED (the caller keeps the verdict, a retry
 * leads on) and RESUMED (a decision that the ledger names, judged again).
 */
enum transition checkpoint_apply(struct checkpoint *checkpoint, enum checkpoint_event event);

/* What the table says, without doing it. *ret_next is set for TRANSITION_CHANGED. has_verdict matters
 * for EVENT_RETRY and for EVENT_SUPERSEDE of what is quarantined only. */
enum transition checkpoint_transition(enum gate_state state, enum checkpoint_event event, bool has_verdict,
                                      enum gate_state *ret_next);

const char *checkpoint_event_name(enum checkpoint_event event);

/* Waits for decisions: PENDING, or QUARANTINED without a verdict. */
bool checkpoint_is_open(const struct checkpoint *checkpoint);

/* Is it known where what tells of it goes? Not of a filled row whose row of fermata.common was taken away. */
bool checkpoint_has_shard(const struct checkpoint *checkpoint);

/* The version of the next gate event: max(previous + 1, us of the record that caused it). */
int64_t checkpoint_next_version(const struct checkpoint *checkpoint, int64_t cause_us);

/* The gate event that tells of a filled row, under that state, version and time. action: NULL, or what the suspend
 * proposes. Borrows what it shows from both. */
void checkpoint_gate_event(const struct checkpoint *checkpoint, enum gate_state state, int64_t version,
                           int64_t at, const struct action *action, struct gate_event *ret_event);

#endif
