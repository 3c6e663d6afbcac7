/* GateEvent. */
#include "schemas/codec_inner.h"
#include "schemas/validate.h"

#include <assert.h>

static_assert(GATE_PENDING == 0 && GATE_UNCLAIMED == 6, "GateState");
static_assert(RISK_LOW == 0 && RISK_CRITICAL == 3, "Risk");

static void read_risk(struct cursor *at, struct gate_event *event)
{
	avro_value_t branch;
	int risk = 0;

	event->has_risk = next_branch(at, &branch);
	if (!event->has_risk)
		return;
	int code = avro_value_get_enum(&branch, &risk);
	assert(code == 0);
	event->risk = (enum risk)risk;
}

static void read_gate_event(struct cursor *at, struct gate_event *event)
{
	event->session_id = next_text(at);
	event->gate_id = next_text(at);
	event->tenant = next_text(at);
	event->agent = next_text(at);
	event->state = (enum gate_state)next_enum(at);
	event->title = next_text(at);
	read_risk(at, event);
	next_action(at, &event->action);
	event->requested_by = next_text(at);
	event->required_approvals = next_int(at);
	event->approvals = next_int(at);
	next_fixed(at, event->digest, DIGEST_LEN);
	event->at = next_long(at);
	event->expires_at = next_time_or_none(at);
	event->reason = next_text_or_null(at);
	event->version = next_long(at);
}

enum fate codec_take_gate(struct codec *codec, struct view value, struct arena *arena,
                          struct gate_event *ret_event, struct error *error)
{
	struct view body;
	avro_value_t generic;
	enum fate fate = body_take(codec, PART_GATE, value, &body, error);

	if (fate == FATE_OK)
		fate = value_read(codec, PART_GATE, body, &generic, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { .arena = arena };
	struct cursor at = cursor_of(&walk, &generic);
	struct view id = next_text(&at);
	ret_event->checkpoint_id_text = id;
	read_gate_event(&at, ret_event);
	value_done(codec, PART_GATE);
	fate = walk_fate(&walk, error);
	if (fate == FATE_OK)
		fate = validate_uuid(id, "checkpoint_id", &ret_event->checkpoint_id, error);
	return fate == FATE_OK ? validate_gate_event(ret_event, error) : fate;
}

static void put_gate_event(struct buffer *out, const struct gate_event *event)
{
	bytes_put_uuid(out, event->checkpoint_id_text, &event->checkpoint_id);
	bytes_put_sized(out, event->session_id);
	bytes_put_sized(out, event->gate_id);
	bytes_put_sized(out, event->tenant);
	bytes_put_sized(out, event->agent);
	bytes_put_long(out, (int64_t)event->state);
	bytes_put_sized(out, event->title);
	bytes_put_long(out, event->has_risk);
	if (event->has_risk)
		bytes_put_long(out, (int64_t)event->risk);
	bytes_put_action(out, &event->action);
	bytes_put_sized(out, event->requested_by);
	bytes_put_long(out, event->required_approvals);
	bytes_put_long(out, event->approvals);
	buffer_append(out, event->digest, DIGEST_LEN);
	bytes_put_long(out, event->at);
	bytes_put_time_or_none(out, event->expires_at);
	bytes_put_sized_or_null(out, event->reason);
	bytes_put_long(out, event->version);
}

enum fate codec_put_gate(struct codec *codec, const struct gate_event *event, struct buffer *out,
                         struct error *error)
{
	size_t start = put_begin(codec, PART_GATE, out);
	size_t body = out->len;
	enum fate fate = validate_gate_event(event, error);

	if (fate == FATE_OK) {
		put_gate_event(out, event);
		fate = bytes_end(out, PART_GATE, body, error);
	}
	return put_end(codec, PART_GATE, out, start, fate, error);
}
