#include "worker/judge.h"

#include "core/failpoint.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* A checkpoint that the batch touches, and what is to be written of it. */
struct touched {
	struct uuid id;
	struct checkpoint *row; /* NULL: there is none (yet) */
	bool existed;
	bool changed;
	struct decision **decisions; /* counted and waiting ones, in the order of judging */
	size_t decisions_len;
	size_t decisions_cap;
	struct checkpoint_write write;
};

/* One run of judge_batch. */
struct bench {
	const struct judge_settings *settings;
	const struct batch_request *request;
	const struct batch_loaded *loaded;
	struct arena *arena;
	struct touched *touched; /* sorted by id */
	size_t touched_len;
	int64_t *highest;
	int64_t unclaimed;
	const struct decision **inserts;
	size_t inserts_len;
	const struct decision **updates;
	size_t updates_len;
	struct judge_tally *tally;
	struct error *error;
};

static enum fate out_of_memory(struct bench *bench)
{
	return error_set(bench->error, FATE_REJECT, ERR_MEMORY, "no memory to judge a batch of this size");
}

/* ---- what is loaded, as a table sorted by id ---- */

static int by_id(const void *a, const void *b)
{
	return uuid_compare(&((const struct touched *)a)->id, &((const struct touched *)b)->id);
}

static struct touched *find(struct bench *bench, const struct uuid *id)
{
	struct touched key = { .id = *id };
	return bsearch(&key, bench->touched, bench->touched_len, sizeof(key), by_id);
}

static enum fate remember_decision(struct bench *bench, struct touched *touched, struct decision *decision)
{
	if (touched->decisions_len == touched->decisions_cap) {
		size_t cap = touched->decisions_cap == 0 ? 4 : touched->decisions_cap * 2;
		struct decision **grown = arena_array(bench->arena, cap, sizeof(struct decision *));
		if (grown == NULL)
			return out_of_memory(bench);
		if (touched->decisions_len > 0)
			memcpy(grown, touched->decisions, touched->decisions_len * sizeof(struct decision *));
		touched->decisions = grown;
		touched->decisions_cap = cap;
	}
	touched->decisions[touched->decisions_len++] = decision;
	return FATE_OK;
}

/* Ids asked for and rows that came: both sorted, so one merge makes the table. */
static void merge_touched(struct bench *bench)
{
	const struct batch_request *request = bench->request;
	const struct batch_loaded *loaded = bench->loaded;
	size_t i = 0, j = 0;
	while (i < request->checkpoints_len || j < loaded->checkpoints_len) {
		struct touched *next = &bench->touched[bench->touched_len++];
		int order = i == request->checkpoints_len ? 1
		            : j == loaded->checkpoints_len
		                ? -1
		                : uuid_compare(&request->checkpoints[i], &loaded->checkpoints[j]->id);
		next->id = order <= 0 ? request->checkpoints[i] : loaded->checkpoints[j]->id;
		if (order <= 0)
			i++;
		if (order >= 0) {
			next->row = loaded->checkpoints[j++];
			next->existed = true;
		}
	}
}

static enum fate bench_init(struct bench *bench, size_t items_len)
{
	const struct batch_request *request = bench->request;
	const struct batch_loaded *loaded = bench->loaded;
	size_t cap = request->checkpoints_len + loaded->checkpoints_len;
	bench->touched = arena_array(bench->arena, cap, sizeof(*bench->touched));
	bench->highest = arena_array(bench->arena, request->lines_len, sizeof(*bench->highest));
	bench->inserts = arena_array(bench->arena, items_len, sizeof(*bench->inserts));
	bench->updates = arena_array(bench->arena, loaded->decisions_len, sizeof(*bench->updates));
	if (bench->touched == NULL || bench->highest == NULL || bench->inserts == NULL || bench->updates == NULL)
		return out_of_memory(bench);
	if (request->lines_len > 0)
		memcpy(bench->highest, loaded->highest, request->lines_len * sizeof(*bench->highest));
	bench->unclaimed = loaded->unclaimed;
	merge_touched(bench);
	for (size_t i = 0; i < loaded->decisions_len; i++) {
		struct decision *decision = loaded->decisions[i];
		struct touched *touched = find(bench, &decision->checkpoint_id);
		if (touched == NULL || decision->outcome == OUTCOME_REFUSED)
			continue; /* it is here because its id was asked for */
		enum fate fate = remember_decision(bench, touched, decision);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* ---- changes of a row ---- */

static enum fate apply(struct bench *bench, struct touched *touched, enum checkpoint_event event)
{
	struct checkpoint *row = touched->row;
	enum gate_state before = row->state;
	if (checkpoint_apply(row, event) == TRANSITION_IMPOSSIBLE) {
		char id[UUID_TEXT_LEN + 1];
		uuid_format(&row->id, id);
		return error_set(
			bench->error, FATE_FATAL, ERR_BUG,
			"checkpoint %s is %s, where %s cannot happen: its row was changed by hand, or this is "
			"our mistake",
			id, gate_state_name(before), checkpoint_event_name(event));
	}
	return FATE_OK;
}

/* The row changed because of a record appended at cause: it is written, and people are told. */
static void note_change(struct bench *bench, struct touched *touched, int64_t cause)
{
	struct checkpoint *row = touched->row;
	touched->changed = true;
	row->changed_at = cause;
	if (row->filled) {
		row->version = checkpoint_next_version(row, cause);
		touched->write.gate_event = true;
		bench->tally->wakes_relay = true;
	}
}

static const char *refusal_message(struct bench *bench, enum refusal refusal)
{
	return arena_printf(bench->arena, "%s: %s", refusal_name(refusal), refusal_text(refusal));
}

static enum fate refuse(struct bench *bench, struct decision *decision, enum refusal refusal)
{
	const char *reason = refusal_message(bench, refusal);
	if (reason == NULL)
		return out_of_memory(bench);
	decision->outcome = OUTCOME_REFUSED;
	decision->refusal = refusal;
	decision->outcome_reason = view_of(reason);
	bench->tally->refused++;
	return FATE_OK;
}

/* ---- decisions ---- */

static const struct decision *first_approval(const struct touched *touched)
{
	for (size_t i = 0; i < touched->decisions_len; i++)
		if (touched->decisions[i]->outcome == OUTCOME_COUNTED &&
		    touched->decisions[i]->kind == DECISION_APPROVE)
			return touched->decisions[i];
	return NULL;
}

/* Decided, and nobody knows where its resume goes: no relay would ever find it, so it is set aside here. */
static enum fate set_aside(struct bench *bench, struct touched *touched)
{
	touched->row->reason = view_of(CHECKPOINT_NO_SHARD_REASON);
	bench->tally->quarantined++;
	return apply(bench, touched, EVENT_QUARANTINE);
}

static enum fate decide(struct bench *bench, struct touched *touched, const struct decision *decision,
                        enum verdict verdict)
{
	struct checkpoint *row = touched->row;
	row->has_verdict = true;
	row->verdict = verdict;
	row->decided_at = decision->at.appended_at;
	touched->write.expiry_set = false;
	touched->write.expiry_clear = true;
	enum fate fate = apply(bench, touched, EVENT_VERDICT);
	if (fate != FATE_OK || row->state != GATE_DECIDED)
		return fate; /* what is quarantined keeps the reason for that beside its verdict */
	row->reason = decision->stated_reason;
	const struct judge_settings *settings = bench->settings;
	if (verdict != VERDICT_APPROVED && settings->drops(settings->context, row->tenant, row->agent))
		return apply(bench, touched, EVENT_SETTLE);
	const char *doubt = settings->doubts == NULL ? NULL : settings->doubts(settings->doubts_context, row);
	if (doubt != NULL) {
		row->reason = view_of(doubt);
		return apply(bench, touched, EVENT_DOUBT);
	}
	if (!checkpoint_has_shard(row))
		return set_aside(bench, touched);
	touched->write.outbox = true;
	bench->tally->wakes_relay = true;
	return FATE_OK;
}

/* A resume names those who decided, in the order of judging; when, and with what words, their records know. */
static void note_as_decided(struct checkpoint *row, const struct decision *decision)
{
	if (decision->kind == DECISION_EXPIRE && row->on_expiry == ON_EXPIRY_HOLD)
		row->held = true;
	size_t len = row->ledger_decisions_len;
	if (len == 0 || uuid_compare(&decision->id, &row->ledger_decisions[len - 1]) != 0)
		return;
	row->decided_at = decision->at.appended_at;
	row->reason = decision->stated_reason;
}

/* The decision counts: what follows from it for the checkpoint. */
static enum fate count(struct bench *bench, struct touched *touched, struct decision *decision)
{
	struct checkpoint *row = touched->row;
	decision->outcome = OUTCOME_COUNTED;
	decision->refusal = REFUSAL_NONE;
	decision->outcome_reason = VIEW_NULL;
	bench->tally->counted++;
	if (decision->kind == DECISION_APPROVE)
		row->approvals++;
	if (row->from_ledger) { /* its verdict stands in the ledger already, and people were told */
		note_as_decided(row, decision);
		touched->changed = true;
		return FATE_OK;
	}
	enum verdict verdict;
	enum fate fate = FATE_OK;
	if (policy_verdict(row, decision->kind, row->approvals, &verdict)) {
		fate = decide(bench, touched, decision, verdict);
	} else if (decision->kind == DECISION_EXPIRE) {
		row->held = true;
		if (row->state == GATE_PENDING)
			row->reason = view_of(CHECKPOINT_HELD_REASON);
		touched->write.expiry_set = false;
		touched->write.expiry_clear = true;
	}
	note_change(bench, touched, decision->at.appended_at);
	return fate;
}

/* Judges a decision against a row whose suspend is known (or that the ledger made). */
static enum fate judge_decision(struct bench *bench, struct touched *touched, struct decision *decision)
{
	const struct decision *first = first_approval(touched);
	bool same_edits = true;
	if (decision->kind == DECISION_APPROVE && first != NULL) {
		enum fate fate = judge_compare_edits(bench->settings, decision, first, &same_edits, bench->error);
		if (fate != FATE_OK)
			return fate;
	}
	const struct decision **counted = arena_array(bench->arena, touched->decisions_len, sizeof(*counted));
	if (counted == NULL)
		return out_of_memory(bench);
	size_t counted_len = 0;
	for (size_t i = 0; i < touched->decisions_len; i++)
		if (touched->decisions[i]->outcome == OUTCOME_COUNTED && touched->decisions[i] != decision)
			counted[counted_len++] = touched->decisions[i];
	enum refusal refusal =
		policy_judge(&bench->settings->policy, touched->row, decision, counted, counted_len, same_edits);
	if (refusal != REFUSAL_NONE)
		return refuse(bench, decision, refusal);
	return count(bench, touched, decision);
}

/* The suspend has come: its early decisions are judged, in the order in which they came. */
static enum fate judge_waiting(struct bench *bench, struct touched *touched)
{
	for (size_t i = 0; i < touched->decisions_len; i++) {
		struct decision *decision = touched->decisions[i];
		if (decision->outcome != OUTCOME_WAITING)
			continue;
		enum fate fate = judge_decision(bench, touched, decision);
		if (fate != FATE_OK)
			return fate;
		bench->updates[bench->updates_len++] = decision;
		bench->unclaimed--;
	}
	return FATE_OK;
}

static const struct decision *known_decision(const struct bench *bench, const struct uuid *id)
{
	for (size_t i = 0; i < bench->loaded->decisions_len; i++)
		if (uuid_compare(&bench->loaded->decisions[i]->id, id) == 0)
			return bench->loaded->decisions[i];
	for (size_t i = 0; i < bench->inserts_len; i++)
		if (uuid_compare(&bench->inserts[i]->id, id) == 0)
			return bench->inserts[i];
	return NULL;
}

static void bury(struct item *item, enum error_code code, const char *reason)
{
	item->dead = true;
	item->judged_dead = true;
	(void)error_set(&item->why, FATE_REJECT, code, "%s", reason);
}

/* A decision whose suspend has not come. */
static enum fate keep_early(struct bench *bench, struct touched *touched, struct item *item)
{
	if (bench->unclaimed >= bench->settings->unclaimed_max) {
		bury(item, ERR_UNCLAIMED_FULL,
		     "its suspend event has not come, and worker.unclaimed_max decisions wait already");
		return FATE_OK;
	}
	struct decision *decision = item->decision;
	if (touched->row == NULL) {
		touched->row = arena_alloc(bench->arena, sizeof(*touched->row));
		if (touched->row == NULL)
			return out_of_memory(bench);
		*touched->row = (struct checkpoint){
			.id = touched->id, .state = GATE_UNCLAIMED, .decided_at = TIME_NONE, .expires_at = TIME_NONE
		};
	}
	decision->outcome = OUTCOME_WAITING;
	decision->refusal = REFUSAL_NONE; /* of an attempt before, when another worker's row was still there */
	decision->outcome_reason = VIEW_NULL;
	bench->unclaimed++;
	touched->write.unclaimed_add++;
	touched->changed = true;
	touched->row->changed_at = decision->at.appended_at;
	bench->tally->waiting++;
	bench->inserts[bench->inserts_len++] = decision;
	return remember_decision(bench, touched, decision);
}

static enum fate take_decision(struct bench *bench, struct item *item)
{
	struct decision *decision = item->decision;
	const struct decision *known = known_decision(bench, &decision->id);
	if (known != NULL) {
		if (memcmp(known->record_digest, decision->record_digest, DIGEST_LEN) == 0)
			bench->tally->decision_duplicates++;
		else
			bury(item, ERR_CONFLICT, "decision_id is that of another decision that is there already");
		return FATE_OK;
	}
	struct touched *touched = find(bench, &decision->checkpoint_id);
	assert(touched != NULL);
	if (touched->row == NULL || touched->row->state == GATE_UNCLAIMED) {
		if (!judge_is_purged(bench->loaded, &item->record.at))
			return keep_early(bench, touched, item);
		bench->tally->decision_duplicates++;
		return FATE_OK;
	}
	if (touched->row->filled && !touched->row->sealed.has_key)
		decision->has_edits = false; /* it was erased: nothing of it is kept any more */
	enum fate fate = judge_decision(bench, touched, decision);
	if (fate != FATE_OK)
		return fate;
	bench->inserts[bench->inserts_len++] = decision;
	return decision->outcome == OUTCOME_COUNTED ? remember_decision(bench, touched, decision) : FATE_OK;
}

/* ---- suspends ---- */

static bool same_line(const struct checkpoint *row, const struct line *line)
{
	return row->filled && view_equal(row->session_id, line->session_id) &&
	       view_equal(row->gate_id, line->gate_id) && view_equal(row->tenant, line->tenant);
}

static size_t line_of(const struct bench *bench, const struct checkpoint *row)
{
	const struct batch_request *request = bench->request;
	const struct line line = { row->tenant, row->session_id, row->gate_id };
	const struct line *found =
		bsearch(&line, request->lines, request->lines_len, sizeof(line), judge_compare_lines);
	assert(found != NULL); /* the line of every suspend was asked for */
	return (size_t)(found - request->lines);
}

/* A later suspend of the line has come: what is open there is withdrawn. */
static enum fate supersede_older(struct bench *bench, const struct line *line, const struct checkpoint *later)
{
	for (size_t i = 0; i < bench->touched_len; i++) {
		struct touched *touched = &bench->touched[i];
		struct checkpoint *row = touched->row;
		if (row == NULL || row == later || !checkpoint_is_open(row) || !same_line(row, line) ||
		    row->suspend_seq >= later->suspend_seq)
			continue;
		enum fate fate = apply(bench, touched, EVENT_SUPERSEDE);
		if (fate != FATE_OK)
			return fate;
		char id[UUID_TEXT_LEN + 1];
		uuid_format(&later->id, id);
		char *reason = arena_printf(bench->arena, "superseded by checkpoint %s", id);
		if (reason == NULL)
			return out_of_memory(bench);
		row->reason = view_of(reason);
		touched->write.expiry_set = false;
		touched->write.expiry_clear = true;
		note_change(bench, touched, later->appended_at);
		bench->tally->superseded++;
	}
	return FATE_OK;
}

/* Puts what the suspend event says into the row, and keeps what decisions and the ledger said before. */
static void fill_row(struct touched *touched, const struct checkpoint *fresh)
{
	struct checkpoint *row = touched->row;
	struct checkpoint known = *row;
	*row = *fresh;
	row->state = known.state;
	row->published = known.published;
	row->has_verdict = known.has_verdict;
	row->verdict = known.verdict;
	row->decided_at = known.decided_at;
	row->approvals = known.approvals;
	row->from_ledger = known.from_ledger;
	row->ledger_decisions = known.ledger_decisions;
	row->ledger_decisions_len = known.ledger_decisions_len;
	row->version = known.version;
	row->reason = known.reason;
	if (known.from_ledger && known.changed_at > fresh->appended_at) /* when it was published */
		row->changed_at = known.changed_at;
}

static enum fate take_row(struct bench *bench, struct touched *touched, const struct checkpoint *fresh)
{
	if (touched->row == NULL) {
		touched->row = arena_alloc(bench->arena, sizeof(*touched->row));
		if (touched->row == NULL)
			return out_of_memory(bench);
		*touched->row = *fresh;
		touched->row->state = GATE_UNCLAIMED;
	} else {
		fill_row(touched, fresh);
	}
	touched->write.fill = true;
	touched->write.unclaimed_add = 0;
	touched->write.unclaimed_clear = touched->existed;
	return FATE_OK;
}

static enum fate take_suspend(struct bench *bench, struct item *item)
{
	const struct checkpoint *fresh = item->fresh;
	struct touched *touched = find(bench, &fresh->id);
	assert(touched != NULL);
	if (touched->row != NULL && touched->row->filled) {
		if (memcmp(touched->row->digest, fresh->digest, DIGEST_LEN) == 0)
			bench->tally->suspend_duplicates++;
		else
			bury(item, ERR_CONFLICT, "checkpoint_id is that of another suspend event that is there already");
		return FATE_OK;
	}
	if (judge_is_purged(bench->loaded, &item->record.at)) {
		bench->tally->suspend_duplicates++;
		return FATE_OK;
	}
	enum fate fate = take_row(bench, touched, fresh);
	if (fate != FATE_OK)
		return fate;
	struct checkpoint *row = touched->row;
	size_t line = line_of(bench, row);
	bool outdated = row->suspend_seq <= bench->highest[line];
	fate = apply(bench, touched, outdated ? EVENT_OUTDATED : EVENT_FILL);
	if (fate != FATE_OK)
		return fate;
	if (row->state == GATE_SUPERSEDED) {
		row->reason = view_of("superseded on arrival: a later suspend of this session and gate was there");
		bench->tally->superseded++;
	}
	if (row->state == GATE_PENDING && row->expires_at != TIME_NONE)
		touched->write.expiry_set = true;
	note_change(bench, touched, row->changed_at);
	bench->tally->suspends++;
	if (!outdated) {
		bool first = bench->highest[line] == 0; /* of its line: there is nothing to look for */
		bench->highest[line] = row->suspend_seq;
		if (!first)
			fate = supersede_older(bench, &bench->request->lines[line], row);
	}
	return fate == FATE_OK ? judge_waiting(bench, touched) : fate;
}

/* ---- the whole ---- */

static enum fate collect_writes(struct bench *bench, struct batch_write *ret_write)
{
	struct checkpoint_write *writes = arena_array(bench->arena, bench->touched_len, sizeof(*writes));
	if (writes == NULL)
		return out_of_memory(bench);
	size_t len = 0;
	for (size_t i = 0; i < bench->touched_len; i++) {
		struct touched *touched = &bench->touched[i];
		if (!touched->changed)
			continue;
		writes[len] = touched->write;
		writes[len].checkpoint = touched->row;
		writes[len].insert = !touched->existed;
		len++;
	}
	*ret_write = (struct batch_write){
		.checkpoints = writes,
		.checkpoints_len = len,
		.inserts = bench->inserts,
		.inserts_len = bench->inserts_len,
		.updates = bench->updates,
		.updates_len = bench->updates_len,
		.notify = bench->tally->wakes_relay ? STORE_ALL_SHARDS : 0,
	};
	return FATE_OK;
}

static enum fate take_all(struct bench *bench, struct item **items, size_t len, bool suspends)
{
	for (size_t i = 0; i < len; i++) {
		if (items[i]->dead || items[i]->suspend != suspends)
			continue;
		enum fate fate = suspends ? take_suspend(bench, items[i]) : take_decision(bench, items[i]);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate judge_batch(const struct judge_settings *settings, struct item **items, size_t len,
                      const struct batch_request *request, const struct batch_loaded *loaded,
                      struct arena *arena, struct batch_write *ret_write, struct judge_tally *ret_tally,
                      struct error *error)
{
	*ret_tally = (struct judge_tally){ 0 };
	struct bench bench = {
		.settings = settings,
		.request = request,
		.loaded = loaded,
		.arena = arena,
		.tally = ret_tally,
		.error = error,
	};
	enum fate fate = bench_init(&bench, len);
	if (fate == FATE_OK)
		fate = take_all(&bench, items, len, true);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_JUDGE_SUSPENDS, error);
	if (fate == FATE_OK)
		fate = take_all(&bench, items, len, false);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_JUDGE_DECISIONS, error);
	return fate == FATE_OK ? collect_writes(&bench, ret_write) : fate;
}
