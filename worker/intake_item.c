#include "worker/intake.h"

#include "schemas/catalog.h"
#include "worker/learn.h"

#include <string.h>

#define TRACEPARENT_MAX 512
#define TRACESTATE_MAX  4096 /* bytes; W3C Trace Context asks to carry 512 at least */

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a record");
}

/* A copy that outlives the scratch arena; null stays null. */
static bool keep(struct arena *arena, struct view from, struct view *ret_view)
{
	*ret_view = view_is_null(from) ? VIEW_NULL : arena_copy(arena, from);
	return view_is_null(from) || !view_is_null(*ret_view);
}

/* ---- suspend ---- */

static bool is_hex(struct view text, size_t from, size_t len)
{
	for (size_t i = from; i < from + len; i++) {
		uint8_t c = text.data[i];
		if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f')))
			return false;
	}
	return true;
}

static bool is_all(struct view text, size_t from, size_t len, uint8_t c)
{
	for (size_t i = from; i < from + len; i++)
		if (text.data[i] != c)
			return false;
	return true;
}

/* Text without control characters; tabs may stand around the commas of a list. */
static bool is_printable(struct view text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((text.data[i] < 0x20 && text.data[i] != '\t') || text.data[i] == 0x7f)
			return false;
	return view_is_utf8(text);
}

/* version-traceid-parentid-flags of W3C Trace Context, level 1; versions to come may say more behind that.
 * Anything else is not carried. Version ff and ids of zeros are what it calls invalid. */
static bool is_traceparent(struct view text)
{
	bool longer = text.len > 55 && text.len <= TRACEPARENT_MAX && text.data[55] == '-' &&
	              !is_all(text, 0, 2, '0') && is_printable(text);
	return (text.len == 55 || longer) && text.data[2] == '-' && text.data[35] == '-' &&
	       text.data[52] == '-' && is_hex(text, 0, 2) && is_hex(text, 3, 32) && is_hex(text, 36, 16) &&
	       is_hex(text, 53, 2) && !is_all(text, 0, 2, 'f') && !is_all(text, 3, 32, '0') &&
	       !is_all(text, 36, 16, '0');
}

static bool keep_trace(struct arena *arena, const struct record *record, struct checkpoint *row)
{
	struct view parent = record_header(record, "traceparent");
	if (view_is_null(parent) || !is_traceparent(parent))
		return true;
	struct view state = record_header(record, "tracestate");
	if (view_is_null(state) || state.len > TRACESTATE_MAX || !is_printable(state))
		state = VIEW_NULL;
	return keep(arena, parent, &row->traceparent) && keep(arena, state, &row->tracestate);
}

static bool keep_gate(struct arena *arena, const struct gate *gate, struct checkpoint *row)
{
	row->approvers = arena_array(arena, gate->approvers_len, sizeof(*row->approvers));
	row->labels = arena_array(arena, gate->labels_len, sizeof(*row->labels));
	if (row->approvers == NULL || row->labels == NULL)
		return false;
	row->approvers_len = gate->approvers_len;
	row->labels_len = gate->labels_len;
	for (size_t i = 0; i < gate->approvers_len; i++)
		if (!keep(arena, gate->approvers[i], &row->approvers[i]))
			return false;
	for (size_t i = 0; i < gate->labels_len; i++)
		if (!keep(arena, gate->labels[i].key, &row->labels[i].key) ||
		    !keep(arena, gate->labels[i].value, &row->labels[i].value))
			return false;
	row->has_risk = gate->action.present;
	row->risk = gate->action.risk;
	row->required_approvals = gate->required_approvals;
	row->expires_at = gate->expires_at;
	row->on_expiry = gate->on_expiry;
	return keep(arena, gate->gate_id, &row->gate_id) && keep(arena, gate->title, &row->title) &&
	       keep(arena, gate->requested_by, &row->requested_by);
}

/* The id as it was sent, when that is not how it is written otherwise: it is given back so. */
static bool keep_spelling(struct arena *arena, const struct suspend_event *event, struct checkpoint *row)
{
	char lower[UUID_TEXT_LEN + 1];
	uuid_format(&event->checkpoint_id, lower);
	if (view_equal_text(event->checkpoint_id_text, lower))
		return true;
	return keep(arena, event->checkpoint_id_text, &row->id_text);
}

/* For the gate event, which is told to a relay of this process without being read again (handover.h). */
static bool keep_action(struct intake *intake, const struct action *action, struct action *ret_action)
{
	*ret_action = (struct action){ 0 };
	if (!action->present || intake->worker->shards == NULL ||
	    !config_flag(intake->worker->config, PARAM_GATES_INCLUDE_ACTION))
		return true;
	*ret_action = *action;
	return keep(intake->arena, action->tool, &ret_action->tool) &&
	       keep(intake->arena, action->arguments, &ret_action->arguments) &&
	       keep(intake->arena, action->summary, &ret_action->summary);
}

static bool keep_event(struct arena *arena, const struct suspend_event *event, struct checkpoint *row)
{
	row->id = event->checkpoint_id;
	row->suspend_seq = event->suspend_seq;
	row->suspended_at = event->suspended_at;
	return keep_spelling(arena, event, row) && keep(arena, event->tenant, &row->tenant) &&
	       keep(arena, event->session_id, &row->session_id) && keep(arena, event->agent, &row->agent) &&
	       keep(arena, event->agent_version, &row->agent_version) && keep_gate(arena, &event->gate, row);
}

/* The shard of its resume: a partition of the topic that the routes give its agent. */
static enum fate choose_shard(struct intake *intake, struct checkpoint *row, struct error *error)
{
	const struct route *route = config_route_for(intake->worker->config, row->tenant, row->agent);
	int32_t partitions = worker_partitions(intake->worker, route->topic);
	if (partitions == 0)
		return error_set(error, FATE_FATAL, ERR_BUG, "topic %s of a route is not known to the installation",
		                 route->topic);
	row->resumes_topic = view_of(route->topic);
	row->resumes_partition = kafka_partition(row->session_id, partitions);
	return FATE_OK;
}

/* sha256: of the schema that body is written in. */
static enum fate seal(struct intake *intake, struct checkpoint *row, struct view body,
                      const uint8_t sha256[32], struct error *error)
{
	struct seal_context context = {
		.tenant = row->tenant,
		.session_id = row->session_id,
		.checkpoint_id = row->id,
		.suspend_seq = row->suspend_seq,
	};
	memcpy(context.schema_sha256, sha256, sizeof(context.schema_sha256));
	vault_checkpoint_digest(body, row->digest);
	return vault_seal(intake->worker->vault, &context, body, intake->arena, &row->sealed, error);
}

/* Schemas are looked for over the connection, which is another's while a batch is being stored. */
static bool learn(struct intake *intake, unsigned *tries, enum fate *fate, struct error *error)
{
	if (*fate != FATE_RETRY || error->code != ERR_UNKNOWN_SCHEMA)
		return false;
	struct error settling;
	enum fate settled = intake_settle(intake, &settling);
	if (settled == FATE_OK)
		return learn_more(intake->worker, intake->store, codec_want(intake->codec), tries, fate, error);
	*error = settling;
	*fate = settled;
	return false;
}

static enum fate keep_schema(struct intake *intake, const uint8_t sha256[32], struct error *error)
{
	if (learn_is_kept(intake->worker, sha256))
		return FATE_OK;
	enum fate fate = intake_settle(intake, error);
	return fate == FATE_OK ? learn_keep_sealed(intake->worker, intake->store, sha256, error) : fate;
}

/* In the schema of whichever version the agent has, which is kept for as long as anything is sealed with it. */
static enum fate take_suspend(struct intake *intake, const struct record *record,
                              struct suspend_event *ret_event, struct view *ret_body, uint8_t ret_sha256[32],
                              struct error *error)
{
	unsigned tries = 0;
	enum fate fate;
	do {
		codec_schema_header(intake->codec, record_header(record, SCHEMA_ID_HEADER));
		fate = codec_take_suspend_written(intake->codec, record->value, intake->scratch, ret_event, ret_body,
		                                  ret_sha256, error);
	} while (learn(intake, &tries, &fate, error));
	if (fate == FATE_OK)
		fate = keep_schema(intake, ret_sha256, error);
	if (fate == FATE_OK)
		learn_ahead(intake->worker, &ret_event->state);
	return fate;
}

static enum fate understand_suspend(struct intake *intake, struct item *item, struct error *error)
{
	struct suspend_event event;
	struct view body;
	uint8_t sha256[32];
	enum fate fate = take_suspend(intake, &item->record, &event, &body, sha256, error);
	if (fate != FATE_OK)
		return fate;
	struct checkpoint *row = arena_alloc(intake->arena, sizeof(*row));
	if (row == NULL || !keep_event(intake->arena, &event, row) ||
	    !keep_trace(intake->arena, &item->record, row) ||
	    !keep_action(intake, &event.gate.action, &item->action))
		return no_memory(error);
	row->state = GATE_PENDING;
	row->filled = true;
	row->record = item->record.at;
	row->appended_at = item->record.at.appended_at;
	row->changed_at = row->appended_at;
	row->decided_at = TIME_NONE;
	fate = choose_shard(intake, row, error);
	if (fate == FATE_OK)
		fate = seal(intake, row, body, sha256, error);
	item->fresh = row;
	return fate;
}

/* ---- approval ---- */

static bool keep_approval(struct arena *arena, const struct approval_event *event, struct decision *decision)
{
	decision->id = event->decision_id;
	decision->checkpoint_id = event->checkpoint_id;
	decision->kind = event->decision;
	decision->decided_at = event->decided_at;
	decision->has_digest = event->has_digest;
	memcpy(decision->checkpoint_digest, event->checkpoint_digest, DIGEST_LEN);
	return keep(arena, event->decision_id_text, &decision->id_text) &&
	       keep(arena, event->session_id, &decision->stated_session) &&
	       keep(arena, event->reason, &decision->stated_reason) &&
	       keep(arena, event->decided_by.issuer, &decision->decided_by.issuer) &&
	       keep(arena, event->decided_by.subject, &decision->decided_by.subject) &&
	       keep(arena, event->decided_by.display, &decision->decided_by.display) &&
	       keep(arena, event->source.system, &decision->source.system) &&
	       keep(arena, event->source.ref, &decision->source.ref) &&
	       keep(arena, event->source.delivery_id, &decision->source.delivery_id);
}

/* Edits are state: they are sealed, under a key of their own. The tenant is not known yet, for the suspend
 * may not have come: the wrap is bound to the two ids alone. */
static enum fate seal_edits(struct intake *intake, const struct edits *edits, struct decision *decision,
                            struct error *error)
{
	if (!edits->present)
		return FATE_OK;
	size_t ceiling = (size_t)config_number(intake->worker->config, PARAM_LIMITS_RECORD_BYTES) + 1024;
	struct buffer plain;
	buffer_init(&plain, ceiling);
	enum fate fate = codec_put_edits(intake->codec, edits, &plain, error);
	if (fate == FATE_OK)
		fate = vault_seal_edits(intake->worker->vault, VIEW_LITERAL(""), &decision->checkpoint_id,
		                        &decision->id, buffer_view(&plain), intake->arena, &decision->edits, error);
	decision->has_edits = true;
	buffer_done(&plain);
	return fate;
}

static enum fate take_approval(struct intake *intake, const struct record *record,
                               struct approval_event *ret_event, struct view *ret_body, struct error *error)
{
	unsigned tries = 0;
	enum fate fate;
	do {
		codec_schema_header(intake->codec, record_header(record, SCHEMA_ID_HEADER));
		fate = codec_take_approval(intake->codec, record->value, intake->scratch, ret_event, ret_body, error);
	} while (learn(intake, &tries, &fate, error));
	return fate;
}

static enum fate understand_approval(struct intake *intake, struct item *item, struct error *error)
{
	struct approval_event event;
	struct view body;
	enum fate fate = take_approval(intake, &item->record, &event, &body, error);
	if (fate != FATE_OK)
		return fate;
	struct decision *decision = arena_alloc(intake->arena, sizeof(*decision));
	if (decision == NULL || !keep_approval(intake->arena, &event, decision))
		return no_memory(error);
	decision->at = item->record.at;
	vault_digest(body, decision->record_digest);
	item->decision = decision;
	return seal_edits(intake, &event.edits, decision, error);
}

enum fate intake_understand(struct intake *intake, struct item *item, struct error *error)
{
	enum fate fate =
		item->suspend ? understand_suspend(intake, item, error) : understand_approval(intake, item, error);
	arena_reset(intake->scratch); /* no state stays until the next record comes */
	codec_forget(intake->codec);
	if (fate != FATE_REJECT)
		return fate;
	item->dead = true;
	item->why = *error;
	return FATE_OK;
}
