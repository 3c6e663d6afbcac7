#include "core/checkpoint.h"

#include <string.h>

#include <assert.h>

/* What a cell says. Where it depends on whether there is a verdict, it has a name of its own. */
enum cell {
	IMPOSSIBLE = 0, /* what is not written below would be this, but every cell is written */
	KEPT,
	TO_PENDING,
	TO_DECIDED,
	TO_RESUMED,
	TO_SUPERSEDED,
	TO_QUARANTINED,
	TO_IN_DOUBT,
	TO_SUPERSEDED_IF_OPEN, /* with a verdict: kept */
	TO_WHAT_IT_WAS,        /* with a verdict: DECIDED, else PENDING */
};

/*
 * The table. Read it by rows: a row is what can happen to a checkpoint in that state.
 *
 * - FILL and OUTDATED are asked for where the suspend event was not known: UNCLAIMED, and RESUMED when a
 *   relay read the resume from the ledger first. A suspend that is there already is a duplicate or a
 *   conflict and never comes here.
 * - PUBLISHED is a fact in every state: after a restore the ledger may know more than the row.
 * - VERDICT is refused by the policy where it is IMPOSSIBLE here. On RESUMED it is a decision that the
 *   ledger names and that is judged again; on QUARANTINED the verdict is kept until a retry.
 */
static const uint8_t table[GATE_STATE_COUNT][EVENT_COUNT] = {
	[GATE_PENDING] = {
		[EVENT_FILL] = IMPOSSIBLE,
		[EVENT_OUTDATED] = IMPOSSIBLE,
		[EVENT_SUPERSEDE] = TO_SUPERSEDED,
		[EVENT_VERDICT] = TO_DECIDED,
		[EVENT_SETTLE] = IMPOSSIBLE, /* there is no verdict to settle */
		[EVENT_PUBLISHED] = TO_RESUMED,
		[EVENT_QUARANTINE] = TO_QUARANTINED,
		[EVENT_RETRY] = KEPT,
		[EVENT_DOUBT] = IMPOSSIBLE, /* nothing was decided that could have been published */
		[EVENT_RESOLVE] = KEPT,
		[EVENT_ERASE] = TO_RESUMED,
	},
	[GATE_DECIDED] = {
		[EVENT_FILL] = IMPOSSIBLE,
		[EVENT_OUTDATED] = IMPOSSIBLE,
		[EVENT_SUPERSEDE] = KEPT, /* what is decided is not superseded any more */
		[EVENT_VERDICT] = IMPOSSIBLE,
		[EVENT_SETTLE] = TO_RESUMED,
		[EVENT_PUBLISHED] = TO_RESUMED,
		[EVENT_QUARANTINE] = TO_QUARANTINED,
		[EVENT_RETRY] = KEPT,
		[EVENT_DOUBT] = TO_IN_DOUBT,
		[EVENT_RESOLVE] = KEPT, /* it leaves by itself; there is nothing to drop */
		[EVENT_ERASE] = TO_RESUMED,
	},
	[GATE_RESUMED] = {
		[EVENT_FILL] = KEPT,
		[EVENT_OUTDATED] = KEPT,
		[EVENT_SUPERSEDE] = KEPT,
		[EVENT_VERDICT] = KEPT,
		[EVENT_SETTLE] = KEPT,
		[EVENT_PUBLISHED] = KEPT,
		[EVENT_QUARANTINE] = KEPT,
		[EVENT_RETRY] = KEPT,
		[EVENT_DOUBT] = KEPT,
		[EVENT_RESOLVE] = KEPT,
		[EVENT_ERASE] = KEPT,
	},
	[GATE_SUPERSEDED] = {
		[EVENT_FILL] = IMPOSSIBLE,
		[EVENT_OUTDATED] = IMPOSSIBLE,
		[EVENT_SUPERSEDE] = KEPT,
		[EVENT_VERDICT] = IMPOSSIBLE,
		[EVENT_SETTLE] = IMPOSSIBLE,
		[EVENT_PUBLISHED] = TO_RESUMED,
		[EVENT_QUARANTINE] = KEPT,
		[EVENT_RETRY] = KEPT,
		[EVENT_DOUBT] = IMPOSSIBLE,
		[EVENT_RESOLVE] = KEPT,
		[EVENT_ERASE] = KEPT,
	},
	[GATE_QUARANTINED] = {
		[EVENT_FILL] = IMPOSSIBLE,
		[EVENT_OUTDATED] = IMPOSSIBLE,
		[EVENT_SUPERSEDE] = TO_SUPERSEDED_IF_OPEN,
		[EVENT_VERDICT] = KEPT, /* the caller keeps the verdict; only an operator leads out */
		[EVENT_SETTLE] = KEPT,
		[EVENT_PUBLISHED] = TO_RESUMED,
		[EVENT_QUARANTINE] = KEPT,
		[EVENT_RETRY] = TO_WHAT_IT_WAS,
		[EVENT_DOUBT] = KEPT, /* asked again when a retry has made it DECIDED */
		[EVENT_RESOLVE] = TO_RESUMED,
		[EVENT_ERASE] = TO_RESUMED,
	},
	[GATE_IN_DOUBT] = {
		[EVENT_FILL] = IMPOSSIBLE,
		[EVENT_OUTDATED] = IMPOSSIBLE,
		[EVENT_SUPERSEDE] = KEPT,
		[EVENT_VERDICT] = IMPOSSIBLE,
		[EVENT_SETTLE] = IMPOSSIBLE, /* what is never published is never in doubt */
		[EVENT_PUBLISHED] = TO_RESUMED,
		[EVENT_QUARANTINE] = KEPT, /* the operator's answer comes first */
		[EVENT_RETRY] = TO_DECIDED,
		[EVENT_DOUBT] = KEPT,
		[EVENT_RESOLVE] = TO_RESUMED,
		[EVENT_ERASE] = TO_RESUMED,
	},
	[GATE_UNCLAIMED] = {
		[EVENT_FILL] = TO_PENDING,
		[EVENT_OUTDATED] = TO_SUPERSEDED,
		[EVENT_SUPERSEDE] = IMPOSSIBLE, /* its line is not known */
		[EVENT_VERDICT] = IMPOSSIBLE,   /* decisions wait until it is filled */
		[EVENT_SETTLE] = IMPOSSIBLE,
		[EVENT_PUBLISHED] = TO_RESUMED,
		[EVENT_QUARANTINE] = IMPOSSIBLE, /* there is nothing to open */
		[EVENT_RETRY] = KEPT,
		[EVENT_DOUBT] = IMPOSSIBLE,
		[EVENT_RESOLVE] = KEPT,
		[EVENT_ERASE] = IMPOSSIBLE, /* its session is not known */
	},
};

static const struct outcome_of_cell {
	enum transition transition;
	enum gate_state next; /* where the transition is TRANSITION_CHANGED */
} outcomes[] = {
	[IMPOSSIBLE] = { TRANSITION_IMPOSSIBLE, GATE_PENDING },
	[KEPT] = { TRANSITION_KEPT, GATE_PENDING },
	[TO_PENDING] = { TRANSITION_CHANGED, GATE_PENDING },
	[TO_DECIDED] = { TRANSITION_CHANGED, GATE_DECIDED },
	[TO_RESUMED] = { TRANSITION_CHANGED, GATE_RESUMED },
	[TO_SUPERSEDED] = { TRANSITION_CHANGED, GATE_SUPERSEDED },
	[TO_QUARANTINED] = { TRANSITION_CHANGED, GATE_QUARANTINED },
	[TO_IN_DOUBT] = { TRANSITION_CHANGED, GATE_IN_DOUBT },
};

static const char *const event_names[EVENT_COUNT] = {
	[EVENT_FILL] = "fill",
	[EVENT_OUTDATED] = "outdated",
	[EVENT_SUPERSEDE] = "supersede",
	[EVENT_VERDICT] = "verdict",
	[EVENT_SETTLE] = "settle",
	[EVENT_PUBLISHED] = "published",
	[EVENT_QUARANTINE] = "quarantine",
	[EVENT_RETRY] = "retry",
	[EVENT_DOUBT] = "doubt",
	[EVENT_RESOLVE] = "resolve",
	[EVENT_ERASE] = "erase",
};

const char *checkpoint_event_name(enum checkpoint_event event)
{
	return (unsigned)event < EVENT_COUNT ? event_names[event] : "?";
}

static enum cell plain_cell(enum cell cell, bool has_verdict)
{
	if (cell == TO_SUPERSEDED_IF_OPEN)
		return has_verdict ? KEPT : TO_SUPERSEDED;
	if (cell == TO_WHAT_IT_WAS)
		return has_verdict ? TO_DECIDED : TO_PENDING;
	return cell;
}

enum transition checkpoint_transition(enum gate_state state, enum checkpoint_event event, bool has_verdict,
                                      enum gate_state *ret_next)
{
	assert((unsigned)event < EVENT_COUNT);
	if ((unsigned)state >= GATE_STATE_COUNT)
		return TRANSITION_IMPOSSIBLE; /* it came out of a row */
	enum cell cell = plain_cell((enum cell)table[state][event], has_verdict);
	if (outcomes[cell].transition == TRANSITION_CHANGED)
		*ret_next = outcomes[cell].next;
	return outcomes[cell].transition;
}

/* Do these events say that nothing is to be published any more, once the state is RESUMED? */
static bool event_publishes(enum checkpoint_event event)
{
	return event == EVENT_PUBLISHED || event == EVENT_SETTLE || event == EVENT_RESOLVE ||
	       event == EVENT_ERASE;
}

enum transition checkpoint_apply(struct checkpoint *checkpoint, enum checkpoint_event event)
{
	enum gate_state next = checkpoint->state;
	enum transition transition =
		checkpoint_transition(checkpoint->state, event, checkpoint->has_verdict, &next);

	if (transition == TRANSITION_IMPOSSIBLE)
		return transition;
	checkpoint->state = next;
	if (next == GATE_RESUMED && event_publishes(event))
		checkpoint->published = true;
	return transition;
}

bool checkpoint_is_open(const struct checkpoint *checkpoint)
{
	return checkpoint->state == GATE_PENDING ||
	       (checkpoint->state == GATE_QUARANTINED && !checkpoint->has_verdict);
}

bool checkpoint_has_shard(const struct checkpoint *checkpoint)
{
	return checkpoint->resumes_topic.len > 0;
}

int64_t checkpoint_next_version(const struct checkpoint *checkpoint, int64_t cause_us)
{
	int64_t next = checkpoint->version + 1;

	return cause_us > next ? cause_us : next;
}

void checkpoint_gate_event(const struct checkpoint *row, enum gate_state state, int64_t version, int64_t at,
                           const struct action *action, struct gate_event *ret_event)
{
	*ret_event = (struct gate_event){
		.checkpoint_id_text = row->id_text,
		.checkpoint_id = row->id,
		.session_id = row->session_id,
		.gate_id = row->gate_id,
		.tenant = row->tenant,
		.agent = row->agent,
		.state = state,
		.title = row->title,
		.has_risk = row->has_risk,
		.risk = row->risk,
		.requested_by = row->requested_by,
		.required_approvals = row->required_approvals,
		.approvals = row->approvals,
		.at = at,
		.expires_at = row->expires_at,
		.reason = row->reason,
		.version = version,
	};
	if (action != NULL)
		ret_event->action = *action;
	memcpy(ret_event->digest, row->digest, DIGEST_LEN);
}
