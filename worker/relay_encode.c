#include "worker/relay.h"

#include "schemas/catalog.h"
#include "worker/learn.h"

#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- notes about single checkpoints ---- */

struct relay_note *relay_note_find(struct relay *relay, const struct uuid *id, enum relay_note_kind kind)
{
	for (size_t i = 0; i < relay->notes_len; i++)
		if (relay->notes[i].kind == kind && uuid_compare(&relay->notes[i].id, id) == 0)
			return &relay->notes[i];
	return NULL;
}

void relay_note_add(struct relay *relay, const struct uuid *id, enum relay_note_kind kind)
{
	struct relay_note *note = relay_note_find(relay, id, kind);
	if (note == NULL) {
		if (relay->notes_len == RELAY_NOTES_MAX) { /* the oldest is the one most likely to be over */
			memmove(relay->notes, relay->notes + 1, (RELAY_NOTES_MAX - 1) * sizeof(*relay->notes));
			relay->notes_len--;
		}
		note = &relay->notes[relay->notes_len++];
		*note = (struct relay_note){ .id = *id, .kind = kind };
		backoff_init(&note->backoff, 500, 30000);
	}
	if (note->kind == NOTE_WAIT) {
		note->until_ms = clock_mono_ms() + backoff_next(&note->backoff);
		note->news = learn_count(relay->worker);
	}
}

static void relay_note_drop(struct relay *relay, const struct uuid *id)
{
	size_t kept = 0;
	for (size_t i = 0; i < relay->notes_len; i++)
		if (uuid_compare(&relay->notes[i].id, id) != 0)
			relay->notes[kept++] = relay->notes[i];
	relay->notes_len = kept;
}

/* ---- what leaves without being published ---- */

/* One row leaves the outbox by itself, never the batch. */
static enum fate set_aside(struct relay *relay, const struct checkpoint *row, enum gate_state state,
                           const char *reason, struct error *error)
{
	struct shard shard = relay_shard(relay);
	char id[UUID_TEXT_LEN + 1];
	uuid_format(&row->id, id);
	log_warn("relay", "checkpoint %s is %s: %s", id, gate_state_name(state), reason);
	metrics_add(state == GATE_IN_DOUBT ? METRIC_IN_DOUBT : METRIC_QUARANTINED, 1);
	enum fate fate = store_relay_set_aside(relay->store, &shard, relay->mine, &row->id, state, reason,
	                                       clock_real_us(), error);
	if (fate == FATE_OK)
		relay_note_drop(relay, &row->id); /* when an operator has mended it, it is tried again */
	return fate;
}

/* ---- opening ---- */

static enum fate unseal(struct relay *relay, const struct checkpoint *row, struct view *ret_body,
                        struct error *error)
{
	struct seal_context context = {
		.tenant = row->tenant,
		.session_id = row->session_id,
		.checkpoint_id = row->id,
		.suspend_seq = row->suspend_seq,
	};
	memcpy(context.schema_sha256, row->sealed.schema_sha256, sizeof(context.schema_sha256));
	if (view_is_null(row->sealed.body))
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "its sealed state is not in the database");
	enum fate fate =
		vault_unseal(relay->worker->vault, &context, &row->sealed, relay->plain, ret_body, error);
	if (fate != FATE_OK)
		return fate;
	uint8_t digest[DIGEST_LEN];
	vault_checkpoint_digest(*ret_body, digest);
	if (memcmp(digest, row->digest, DIGEST_LEN) != 0)
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "its digest is not that of its sealed state");
	return FATE_OK;
}

static const struct decision *first_approval(const struct outbox_row *row)
{
	for (size_t i = 0; i < row->decisions_len; i++)
		if (row->decisions[i]->kind == DECISION_APPROVE)
			return row->decisions[i];
	return NULL;
}

/* The edits that the first approval fixed, when the verdict is an approval. */
static enum fate open_edits(struct relay *relay, const struct outbox_row *row, struct edits *ret_edits,
                            struct error *error)
{
	const struct decision *first = first_approval(row);
	*ret_edits = (struct edits){ 0 };
	if (row->checkpoint->verdict != VERDICT_APPROVED || first == NULL || !first->has_edits)
		return FATE_OK;
	struct view plain;
	enum fate fate = vault_unseal_edits(relay->worker->vault, VIEW_LITERAL(""), &row->checkpoint->id,
	                                    &first->id, &first->edits, relay->plain, &plain, error);
	return fate == FATE_OK ? codec_take_edits(relay->codec, plain, relay->plain, ret_edits, error) : fate;
}

/* ---- headers: CloudEvents in binary mode, and the trace that waited with the session ---- */

struct envelope {
	const char *id;
	const char *type;
	int64_t time;
	const char *checkpoint_id; /* or NULL */
	const struct checkpoint *row;
};

#define HEADERS_MAX   9
#define TIME_TEXT_MAX 40

static enum fate make_headers(struct relay *relay, const struct envelope *envelope,
                              struct publication *publication, struct error *error)
{
	struct header *headers = arena_array(relay->taken, HEADERS_MAX, sizeof(*headers));
	char *when = arena_alloc(relay->taken, TIME_TEXT_MAX);
	if (headers == NULL || when == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for headers");
	clock_format(envelope->time, when, TIME_TEXT_MAX);
	size_t n = 0;
	headers[n++] = (struct header){ "ce_specversion", view_of("1.0") };
	headers[n++] = (struct header){ "ce_id", view_of(envelope->id) };
	headers[n++] = (struct header){ "ce_source", view_of(relay->source) };
	headers[n++] = (struct header){ "ce_type", view_of(envelope->type) };
	headers[n++] = (struct header){ "ce_time", view_of(when) };
	headers[n++] = (struct header){ "content-type", view_of("application/avro") };
	if (envelope->checkpoint_id != NULL)
		headers[n++] = (struct header){ "fermata-checkpoint-id", view_of(envelope->checkpoint_id) };
	if (!view_is_null(envelope->row->traceparent))
		headers[n++] = (struct header){ "traceparent", envelope->row->traceparent };
	if (!view_is_null(envelope->row->tracestate))
		headers[n++] = (struct header){ "tracestate", envelope->row->tracestate };
	publication->headers = headers;
	publication->headers_len = n;
	return FATE_OK;
}

static char *id_text(struct arena *arena, const struct uuid *id)
{
	char *text = arena_alloc(arena, UUID_TEXT_LEN + 1);
	if (text != NULL)
		uuid_format(id, text);
	return text;
}

static struct publication *next_publication(struct relay *relay, const struct uuid *id)
{
	if (relay->publications_len == relay->publications_cap)
		return NULL;
	struct publication *publication = &relay->publications[relay->publications_len];
	*publication = (struct publication){ .id = *id, .value_at = relay->out.len };
	return publication;
}

static enum fate finish_publication(struct relay *relay, struct publication *publication, struct error *error)
{
	if (buffer_failed(&relay->out))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no room for what is to be published");
	publication->value_len = relay->out.len - publication->value_at;
	relay->publications_len++;
	return FATE_OK;
}

/* ---- gate events ---- */

static enum fate put_gate(struct relay *relay, const struct checkpoint *row, enum gate_state state,
                          int64_t version, int64_t at, const struct action *action, struct error *error)
{
	struct gate_event event;
	checkpoint_gate_event(row, state, version, at, action, &event);
	return codec_put_gate(relay->codec, &event, &relay->out, error);
}

/* All of its publication but the value, which is encoded next. */
static enum fate begin_gate(struct relay *relay, const struct checkpoint *row, int64_t version, int64_t at,
                            struct publication **ret_publication, struct error *error)
{
	struct publication *publication = next_publication(relay, &row->id);
	char *id = id_text(relay->taken, &row->id);
	char *event_id = arena_printf(relay->taken, "%s/%" PRId64, id == NULL ? "" : id, version);
	if (publication == NULL || id == NULL || event_id == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a gate event");
	publication->version = version;
	publication->key = view_of(id);
	*ret_publication = publication;
	struct envelope envelope = { event_id, "fermata.v1.GateEvent", at, NULL, row };
	return make_headers(relay, &envelope, publication, error);
}

static enum fate publish_gate(struct relay *relay, const struct checkpoint *row, enum gate_state state,
                              int64_t version, int64_t at, const struct action *action, struct error *error)
{
	struct publication *publication;
	enum fate fate = begin_gate(relay, row, version, at, &publication, error);
	if (fate == FATE_OK)
		fate = put_gate(relay, row, state, version, at, action, error);
	return fate == FATE_OK ? finish_publication(relay, publication, error) : fate;
}

/* The action of a gate event out of the sealed state; without it when it cannot be had. */
static void read_action(struct relay *relay, const struct checkpoint *row, const struct guarded_body *body,
                        struct action *ret_action)
{
	*ret_action = (struct action){ 0 };
	if (!config_flag(relay->worker->config, PARAM_GATES_INCLUDE_ACTION) ||
	    relay_note_find(relay, &row->id, NOTE_GATE_TOO_LARGE) != NULL)
		return;
	codec_read_action(body, ret_action);
}

/* ---- resumes ---- */

static enum fate copy_decisions(struct relay *relay, const struct outbox_row *row, struct resume_event *event,
                                struct error *error)
{
	event->decisions = arena_array(relay->plain, row->decisions_len, sizeof(*event->decisions));
	if (event->decisions == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for decisions");
	event->decisions_len = row->decisions_len;
	for (size_t i = 0; i < row->decisions_len; i++) {
		const struct decision *decision = row->decisions[i];
		event->decisions[i] = (struct resume_decision){
			.decision_id_text = decision->id_text,
			.decision_id = decision->id,
			.decided_by = decision->decided_by,
			.decided_at = decision->decided_at,
			.decision = decision->kind,
			.reason = decision->stated_reason,
			.source = decision->source,
		};
	}
	return FATE_OK;
}

static enum fate put_resume(struct relay *relay, const struct outbox_row *row, struct view body,
                            struct view migrated_from, struct publication *publication, struct error *error)
{
	const struct checkpoint *checkpoint = row->checkpoint;
	const struct route *route =
		config_route_for(relay->worker->config, checkpoint->tenant, checkpoint->agent);
	int64_t now = clock_real_us();
	struct resume_event event = {
		.resume_id_text = checkpoint->id_text,
		.resume_id = checkpoint->id,
		.verdict = checkpoint->verdict,
		.migrated_from = migrated_from,
		.resumed_at = now,
		.expires_at = route->resume_ttl_ms > 0 ? now + route->resume_ttl_ms * 1000 : TIME_NONE,
	};
	enum fate fate = copy_decisions(relay, row, &event, error);
	if (fate == FATE_OK)
		fate = open_edits(relay, row, &event.edits, error);
	char *key = id_text(relay->taken, &checkpoint->id);
	char *id = view_is_null(event.resume_id_text) ? key : arena_text(relay->taken, event.resume_id_text);
	if (fate == FATE_OK && (id == NULL || key == NULL))
		fate = error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a resume");
	struct envelope envelope = { id, "fermata.v1.ResumeEvent", now, key, checkpoint };
	if (fate == FATE_OK)
		fate = make_headers(relay, &envelope, publication, error);
	return fate == FATE_OK ? codec_put_resume(relay->codec, &event, body, &relay->out, error) : fate;
}

/* ---- schemas ---- */

/* Unsealed, and under today's schema of the record, guarded. The body is the codec's, or in relay->plain. */
static enum fate open_body(struct relay *relay, const struct checkpoint *row, struct guarded_body *ret_body,
                           struct error *error)
{
	struct view sealed, today;
	unsigned tries = 0;
	enum fate fate = unseal(relay, row, &sealed, error);
	if (fate != FATE_OK)
		return fate;
	do
		fate = codec_today(relay->codec, row->sealed.schema_sha256, sealed, &today, error);
	while (learn_more(relay->worker, relay->store, codec_want(relay->codec), &tries, &fate, error));
	return fate == FATE_OK ? codec_guard_suspend_body(today, ret_body, error) : fate;
}

static enum fate migrate_once(struct relay *relay, const struct app_state *state, struct app_state *ret_state,
                              struct view *ret_from, struct error *error)
{
	struct schema_want want;
	unsigned tries = 0;
	enum fate fate;
	do
		fate = state_migrate(relay->worker->catalog, state, relay->plain, ret_state, ret_from, &want, error);
	while (learn_more(relay->worker, relay->store, &want, &tries, &fate, error));
	return fate;
}

/* The application's state in it under the schema that is read today. *ret_from: the schema it was written with,
 * null when it is as it was. What a schema that was only just added mends is not refused. */
static enum fate migrate_state(struct relay *relay, const struct guarded_body *body, struct view *ret_body,
                               struct view *ret_from, struct error *error)
{
	struct app_state state, today;
	*ret_body = body->body;
	codec_read_state(body, &state);
	enum fate fate = migrate_once(relay, &state, &today, ret_from, error);
	if (fate == FATE_REJECT && learn_folder_changed(relay->worker))
		fate = migrate_once(relay, &state, &today, ret_from, error);
	if (fate != FATE_OK || view_is_null(*ret_from))
		return fate;
	buffer_reset(&relay->body);
	fate = codec_replace_state(body, &today, &relay->body, error);
	*ret_body = buffer_view(&relay->body);
	return fate;
}

/* The gate event of a resume that goes alone: R5 puts it into gate_outbox, and it is ready when that is looked at. Should there
 * be no R5, the term ends, and what lies in the tray with it. */
static enum fate keep_gate(struct relay *relay, const struct checkpoint *row, int64_t version, int64_t at,
                           const struct action *action, struct error *error)
{
	size_t out_len = relay->out.len;
	enum fate fate = put_gate(relay, row, GATE_RESUMED, version, at, action, error);
	if (fate != FATE_OK)
		return fate;
	if (buffer_failed(&relay->out))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no room for a gate event");
	struct tray_event event = {
		.id = row->id,
		.version = version,
		.at = at,
		.kept = true,
		.value = { relay->out.data + out_len, relay->out.len - out_len },
		.traceparent = row->traceparent,
		.tracestate = row->tracestate,
	};
	tray_put(&relay->tray, &event);
	relay->out.len = out_len;
	return FATE_OK;
}

/* What tells people of it leaves with the resume, or later. */
static enum fate encode_resumed(struct relay *relay, const struct checkpoint *row,
                                const struct guarded_body *body, bool later, struct error *error)
{
	struct action action;
	int64_t version = row->version + 1, now = clock_real_us();
	read_action(relay, row, body, &action);
	if (later)
		return keep_gate(relay, row, version, now, &action, error);
	enum fate fate = publish_gate(relay, row, GATE_RESUMED, version, now, &action, error);
	if (fate == FATE_OK)
		relay->publications[relay->publications_len - 1].with_resume = true;
	return fate;
}

/* Opens one decided checkpoint and encodes its resume and its gate event. */
static enum fate encode_row(struct relay *relay, const struct outbox_row *row, bool lone, struct error *error)
{
	const struct checkpoint *checkpoint = row->checkpoint;
	struct guarded_body body;
	struct view today, migrated_from;
	enum fate fate = open_body(relay, checkpoint, &body, error);
	if (fate == FATE_OK)
		fate = migrate_state(relay, &body, &today, &migrated_from, error);
	if (fate != FATE_OK)
		return fate;
	struct publication *publication = next_publication(relay, &checkpoint->id);
	if (publication == NULL)
		return error_set(error, FATE_RETRY, ERR_BUG, "more rows than were asked for");
	publication->resume = true;
	publication->waiting = lone ? WAITING_COMES : row->untold ? WAITING_NONE : WAITING_GOES;
	publication->version = checkpoint->version + 1;
	publication->key = checkpoint->session_id;
	publication->decided_at = checkpoint->decided_at;
	fate = put_resume(relay, row, today, migrated_from, publication, error);
	if (fate == FATE_OK)
		fate = finish_publication(relay, publication, error);
	if (fate != FATE_OK)
		return fate;
	return encode_resumed(relay, checkpoint, &body, lone, error);
}

/* When everything was there that decides it: an early decision waits for its suspend event. */
static int64_t decided_by(const struct checkpoint *row)
{
	return row->decided_at > row->appended_at ? row->decided_at : row->appended_at;
}

/* Of a doubt about records below an offset up to which an operator has settled it, the row is free; of a later one it is
 * not. */
static bool in_doubt(const struct relay *relay, const struct checkpoint *row)
{
	const struct doubt *doubt = &relay->doubt;
	return doubt->before != TIME_NONE && decided_by(row) < doubt->before && row->doubt_settled < doubt->below;
}

/* What must not be published at all, or not by us: says why, or NULL. */
static const char *obstacle(struct relay *relay, const struct checkpoint *row, enum gate_state *ret_state)
{
	*ret_state = GATE_QUARANTINED;
	if (relay_note_find(relay, &row->id, NOTE_RESUME_TOO_LARGE) != NULL)
		return "its resume is larger than the resumes topic takes: raise max.message.bytes of the topic, "
			   "then "
			   "retry it";
	if (in_doubt(relay, row)) {
		*ret_state = GATE_IN_DOUBT;
		return RELAY_DOUBT;
	}
	return NULL;
}

/* What was encoded since is as if it had not been; the buffer's failure was that record's alone. */
static void forget_since(struct relay *relay, size_t out_len, size_t publications_len)
{
	relay->out.len = out_len;
	relay->out.failed = relay->out.starved = false;
	relay->publications_len = publications_len;
}

static enum fate encode_or_set_aside(struct relay *relay, const struct outbox_row *row, bool lone,
                                     struct error *error)
{
	enum gate_state state;
	const char *reason = obstacle(relay, row->checkpoint, &state);
	if (reason != NULL)
		return set_aside(relay, row->checkpoint, state, reason, error);
	size_t out_len = relay->out.len, publications_len = relay->publications_len;
	enum fate fate = encode_row(relay, row, lone, error);
	if (fate == FATE_OK || fate == FATE_FATAL)
		return fate;
	forget_since(relay, out_len, publications_len);
	if (fate == FATE_RETRY) {
		relay_note_add(relay, &row->checkpoint->id, NOTE_WAIT);
		log_error(LOG_LEVEL_WARN, "relay", error);
		return FATE_OK;
	}
	char why[sizeof(error->message)];
	snprintf(why, sizeof(why), "%s", error->message);
	return set_aside(relay, row->checkpoint, GATE_QUARANTINED, why, error);
}

/* ---- gate events of their own ---- */

static bool in_outbox(const struct relay_take *take, const struct checkpoint *row)
{
	for (size_t i = 0; i < take->rows_len && row->state == GATE_DECIDED; i++)
		if (uuid_compare(&take->rows[i].checkpoint->id, &row->id) == 0)
			return true;
	return false;
}

static enum fate encode_tombstone(struct relay *relay, const struct gate_row *row, struct error *error)
{
	struct publication *publication = next_publication(relay, &row->checkpoint->id);
	char *id = id_text(relay->taken, &row->checkpoint->id);
	if (publication == NULL || id == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a tombstone");
	publication->version = row->version;
	publication->key = view_of(id);
	publication->tombstone = true;
	publication->erased = row->checkpoint->filled;
	return finish_publication(relay, publication, error);
}

/* It is encoded: by intake (worker/handover.c), or by keep_gate. */
static enum fate publish_handed(struct relay *relay, const struct tray_event *event, struct error *error)
{
	struct publication *publication;
	struct checkpoint *row = arena_alloc(relay->taken, sizeof(*row));
	if (row == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a gate event");
	row->id = event->id;
	row->traceparent = event->traceparent;
	row->tracestate = event->tracestate;
	enum fate fate = begin_gate(relay, row, event->version, event->at, &publication, error);
	if (fate != FATE_OK)
		return fate;
	publication->handed = !event->kept;
	publication->kept = event->kept;
	buffer_append_view(&relay->out, event->value);
	return finish_publication(relay, publication, error);
}

static enum fate encode_gate(struct relay *relay, const struct gate_row *row, struct error *error)
{
	const struct checkpoint *checkpoint = row->checkpoint;
	if (row->handed != NULL)
		return publish_handed(relay, row->handed, error);
	if (row->gone)
		return encode_tombstone(relay, row, error);
	struct action action = { 0 };
	struct guarded_body body;
	if (!view_is_null(checkpoint->sealed.body)) {
		enum fate fate = open_body(relay, checkpoint, &body, error);
		if (fate == FATE_RETRY)
			return FATE_OK; /* it stays in gate_outbox */
		if (fate == FATE_OK)
			read_action(relay, checkpoint, &body, &action);
	}
	size_t out_len = relay->out.len, publications_len = relay->publications_len;
	enum fate fate = publish_gate(relay, checkpoint, checkpoint->state, row->version, checkpoint->changed_at,
	                              &action, error);
	if (fate != FATE_REJECT)
		return fate;
	forget_since(relay, out_len, publications_len); /* it stays where it is, and holds up nothing */
	log_error(LOG_LEVEL_WARN, "relay", error);
	return FATE_OK;
}

void relay_forget(struct relay *relay)
{
	buffer_done(&relay->out);
	buffer_done(&relay->body);
	vault_rest();
	relay->publications_len = 0;
}

enum fate relay_encode(struct relay *relay, const struct relay_take *take, struct error *error)
{
	size_t ceiling = (size_t)config_number(relay->worker->config, PARAM_WORKER_RELAY_BYTES);
	if (take->rows_len + take->gates_len == 0)
		relay_forget(relay);
	buffer_reset(&relay->out);
	relay->publications_len = 0;
	enum fate fate = FATE_OK;
	size_t rows = 0, gates = 0;
	for (; rows < take->rows_len && fate == FATE_OK && relay->out.len < ceiling; rows++) {
		arena_reset(relay->plain);
		fate = encode_or_set_aside(relay, &take->rows[rows], take->lone, error);
	}
	for (; gates < take->gates_len && fate == FATE_OK && relay->out.len < ceiling; gates++) {
		arena_reset(relay->plain);
		if (!in_outbox(take, take->gates[gates].checkpoint))
			fate = encode_gate(relay, &take->gates[gates], error);
	}
	arena_reset(relay->plain);
	buffer_reset(&relay->body);
	codec_forget(relay->codec);
	relay->cut = rows < take->rows_len || gates < take->gates_len;
	return fate;
}
