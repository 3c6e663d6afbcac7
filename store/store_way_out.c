#include "store/store_way_out.h"

#include "store/store_audit.h"
#include "store/store_connection.h"
#include "store/store_record.h"

/* Read with what it is about, not locked: a relay that moves it meanwhile knows more than the operator did, and may have
 * a doubt of its own. */
static const struct statement settle_doubt = {
	"settling a doubt",
	"UPDATE fermata.checkpoint c SET doubt_settled = l.next FROM fermata.ledger_offset l, "
	"fermata.installation i"
	" WHERE c.checkpoint_id = $1::uuid AND l.cluster_id = i.cluster_id AND l.topic = " SQL_COMMON(
		"resumes_topic") ""
						 " AND l.partition = c.resumes_partition",
};

/* ---- what becomes of the row ---- */

/* The reason that a row has where nothing is wrong with it: what who decided it gave. */
static struct view reason_of_decision(const struct batch_loaded *loaded)
{
	for (size_t i = loaded->decisions_len; i > 0; i--)
		if (loaded->decisions[i - 1]->outcome == OUTCOME_COUNTED)
			return loaded->decisions[i - 1]->stated_reason;
	return VIEW_NULL;
}

static enum fate impossible(const struct checkpoint *row, struct error *error)
{
	char id[UUID_TEXT_LEN + 1];

	uuid_format(&row->id, id);
	return error_set(error, FATE_FATAL, ERR_BUG,
	                 "checkpoint %s is %s, where that cannot happen: its row was changed by hand", id,
	                 gate_state_name(row->state));
}

/* Nothing was mended: there is no relay that would find that out. */
static enum fate set_aside_again(struct checkpoint *row, struct error *error)
{
	row->reason = view_of(CHECKPOINT_NO_SHARD_REASON);
	return checkpoint_apply(row, EVENT_QUARANTINE) == TRANSITION_CHANGED ? FATE_OK : impossible(row, error);
}

static enum fate retry(struct checkpoint_write *write, struct checkpoint *row,
                       const struct batch_loaded *loaded, bool settles, struct error *error)
{
	if (checkpoint_apply(row, EVENT_RETRY) != TRANSITION_CHANGED)
		return impossible(row, error);
	if (row->has_verdict) {
		row->reason = reason_of_decision(loaded);
		write->expiry_clear = true;
		if (settles && checkpoint_apply(row, EVENT_SETTLE) != TRANSITION_CHANGED)
			return impossible(row, error);
		write->outbox = !settles && checkpoint_has_shard(row);
		if (!settles && !checkpoint_has_shard(row))
			return set_aside_again(row, error);
	} else {
		row->reason = row->held ? view_of(CHECKPOINT_HELD_REASON) : VIEW_NULL;
		write->expiry_set = !row->held;
	}
	return FATE_OK;
}

/* One way out of a state, and what only some of them want to know. */
struct way_out {
	const char *what; /* AUDIT_... */
	enum gate_state from;
	const char *place;               /* dropped out of what; NULL: it is not dropped */
	const char *was;                 /* for the record: "it was quarantined" */
	settles_without_resume *settles; /* or NULL: nothing is */
	void *context;
	bool settles_doubt;
};

static bool settles_row(const struct way_out *way, const struct checkpoint *row)
{
	return way->settles != NULL && row->has_verdict && row->verdict != VERDICT_APPROVED &&
	       way->settles(way->context, row->tenant, row->agent);
}

static enum fate drop(struct checkpoint_write *write, struct checkpoint *row, const struct way_out *way,
                      const struct operator_deed *deed, struct arena *arena, struct error *error)
{
	bool why = deed->reason.len > 0;
	char *reason = arena_printf(arena, "dropped out of %s by %.*s%s%.*s", way->place, (int)deed->who.len,
	                            (const char *)deed->who.data, why ? ": " : "",
	                            why ? (int)deed->reason.len : 0, why ? (const char *)deed->reason.data : "");

	if (reason == NULL)
		return list_no_memory(error);
	if (checkpoint_apply(row, EVENT_RESOLVE) != TRANSITION_CHANGED)
		return impossible(row, error);
	row->reason = view_of(reason);
	write->expiry_clear = true;
	return FATE_OK;
}

/* ---- the transaction around it ---- */

static enum fate lock(struct store *store, const struct operator_deed *deed, struct arena *arena,
                      struct batch_loaded *ret_loaded, struct error *error)
{
	struct batch_request request = {
		.cluster_id = "", /* no position is moved */
		.checkpoints = &deed->checkpoint_id,
		.checkpoints_len = 1,
	};

	return store_batch_begin(store, &request, arena, ret_loaded, error);
}

static enum fate record(struct store *store, const struct operator_deed *deed, const struct way_out *way,
                        const struct checkpoint *row, struct view was, struct arena *arena,
                        struct error *error)
{
	char *details =
		arena_printf(arena, "%s%s%s; %s: %.*s", gate_state_name(row->state), row->has_verdict ? ", " : "",
	                 row->has_verdict ? verdict_name(row->verdict) : "", way->was, (int)was.len,
	                 was.len > 0 ? (const char *)was.data : "");

	if (details == NULL)
		return list_no_memory(error);
	store_audit_add(store, &(struct audit_entry){ .at = deed->now,
	                                              .who = deed->who,
	                                              .what = view_of(way->what),
	                                              .has_checkpoint = true,
	                                              .checkpoint_id = deed->checkpoint_id,
	                                              .reason = deed->reason,
	                                              .details = view_of(details) });
	return FATE_OK;
}

static void send_settled(struct store *store, const struct uuid *checkpoint_id)
{
	struct params *params = store_params(store);

	param_uuid(params, checkpoint_id);
	store_send(store, &settle_doubt, params, NULL);
}

static enum fate write_and_commit(struct store *store, const struct operator_deed *deed,
                                  struct checkpoint_write *write, struct checkpoint *row, struct error *error)
{
	row->version = checkpoint_next_version(row, deed->now);
	row->changed_at = deed->now;
	write->checkpoint = row;
	write->gate_event = true;
	struct batch_write batch = { .checkpoints = write, .checkpoints_len = 1, .notify = STORE_ALL_SHARDS };
	enum fate fate = store_batch_write(store, &batch, error);

	return fate == FATE_OK ? store_commit(store, error) : fate;
}

static enum fate lead_out(struct store *store, const struct operator_deed *deed, const struct way_out *way,
                          struct arena *arena, struct deed_result *ret_result, struct error *error)
{
	struct batch_loaded loaded;
	struct checkpoint_write write = { 0 };
	enum fate fate = lock(store, deed, arena, &loaded, error);

	if (fate != FATE_OK)
		return fate;
	struct checkpoint *row = loaded.checkpoints_len > 0 ? loaded.checkpoints[0] : NULL;
	ret_result->checkpoint = row;
	if (row == NULL || row->state != way->from) {
		store_rollback(store);
		return FATE_OK;
	}
	struct view was = row->reason;
	if (way->place != NULL)
		fate = drop(&write, row, way, deed, arena, error);
	else
		fate = retry(&write, row, &loaded, settles_row(way, row), error);
	if (fate == FATE_OK && way->settles_doubt)
		send_settled(store, &deed->checkpoint_id);
	if (fate == FATE_OK)
		fate = record(store, deed, way, row, was, arena, error);
	if (fate == FATE_OK)
		fate = write_and_commit(store, deed, &write, row, error);
	ret_result->done = fate == FATE_OK;
	return fate;
}

static enum fate lead_out_or_roll_back(struct store *store, const struct operator_deed *deed,
                                       const struct way_out *way, struct arena *arena,
                                       struct deed_result *ret_result, struct error *error)
{
	*ret_result = (struct deed_result){ 0 };
	enum fate fate = lead_out(store, deed, way, arena, ret_result, error);

	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}

enum fate store_quarantine_retry(struct store *store, const struct operator_deed *deed,
                                 settles_without_resume *settles, void *context, struct arena *arena,
                                 struct deed_result *ret_result, struct error *error)
{
	struct way_out way = { .what = AUDIT_QUARANTINE_RETRY,
		                   .from = GATE_QUARANTINED,
		                   .was = "it was quarantined",
		                   .settles = settles,
		                   .context = context };

	return lead_out_or_roll_back(store, deed, &way, arena, ret_result, error);
}

enum fate store_quarantine_drop(struct store *store, const struct operator_deed *deed, struct arena *arena,
                                struct deed_result *ret_result, struct error *error)
{
	static const struct way_out way = { .what = AUDIT_QUARANTINE_DROP,
		                                .from = GATE_QUARANTINED,
		                                .place = "quarantine",
		                                .was = "it was quarantined" };

	return lead_out_or_roll_back(store, deed, &way, arena, ret_result, error);
}

enum fate store_doubt_resume(struct store *store, const struct operator_deed *deed, struct arena *arena,
                             struct deed_result *ret_result, struct error *error)
{
	static const struct way_out way = {
		.what = AUDIT_DOUBT_RESUME, .from = GATE_IN_DOUBT, .was = "it was in doubt", .settles_doubt = true
	};

	return lead_out_or_roll_back(store, deed, &way, arena, ret_result, error);
}

enum fate store_doubt_drop(struct store *store, const struct operator_deed *deed, struct arena *arena,
                           struct deed_result *ret_result, struct error *error)
{
	static const struct way_out way = {
		.what = AUDIT_DOUBT_DROP, .from = GATE_IN_DOUBT, .place = "doubt", .was = "it was in doubt"
	};

	return lead_out_or_roll_back(store, deed, &way, arena, ret_result, error);
}
