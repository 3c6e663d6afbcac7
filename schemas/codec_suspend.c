/* SuspendEvent, and its fields inside of ResumeEvent. */
#include "schemas/codec_inner.h"
#include "schemas/framing.h"
#include "schemas/guard.h"
#include "schemas/validate.h"

#include <assert.h>

#define FIELDS_MAX 32 /* of a record of ours */

/* The numbers of the enums are the wire's; the names are held against the schema by a test. */
static_assert(ROLE_SYSTEM == 0 && ROLE_TOOL == 3, "Role");
static_assert(PERMISSION_ALLOW == 0 && PERMISSION_ASK == 2, "Permission");
static_assert(CONFIG_NULL == 0 && CONFIG_STRINGS == 5, "branches of config");
static_assert(RISK_LOW == 0 && RISK_CRITICAL == 3, "Risk");
static_assert(ON_EXPIRY_REJECT == 0 && ON_EXPIRY_HOLD == 2, "OnExpiry");

static void read_step(struct cursor *at, struct step *step)
{
	struct cursor inner = next_record(at);

	step->graph = next_text(&inner);
	step->node = next_text(&inner);
	step->resume_at = next_text(&inner);
	step->path = next_texts(&inner, &step->path_len);
	step->attempt = next_int(&inner);
}

static void read_tool_calls(struct cursor *at, struct history_entry *entry)
{
	avro_value_t array;

	entry->tool_calls = next_array(at, sizeof(*entry->tool_calls), &array, &entry->tool_calls_len);
	for (size_t i = 0; i < entry->tool_calls_len; i++) {
		struct cursor call = item_record(at->walk, &array, i);
		entry->tool_calls[i].id = next_text(&call);
		entry->tool_calls[i].name = next_text(&call);
		entry->tool_calls[i].arguments = next_text(&call);
	}
}

static void read_history(struct cursor *at, struct suspend_event *event)
{
	avro_value_t array;

	event->history = next_array(at, sizeof(*event->history), &array, &event->history_len);
	for (size_t i = 0; i < event->history_len; i++) {
		struct history_entry *entry = &event->history[i];
		struct cursor inner = item_record(at->walk, &array, i);
		entry->role = (enum role)next_enum(&inner);
		entry->content = next_text(&inner);
		entry->name = next_text_or_null(&inner);
		entry->tool_call_id = next_text_or_null(&inner);
		read_tool_calls(&inner, entry);
		entry->at = next_time_or_none(&inner);
	}
}

static void read_permissions(struct cursor *at, struct suspend_event *event)
{
	avro_value_t map;

	event->tool_permissions =
		next_array(at, sizeof(*event->tool_permissions), &map, &event->tool_permissions_len);
	for (size_t i = 0; i < event->tool_permissions_len; i++) {
		struct cursor pair = item_record(at->walk, &map, i);
		event->tool_permissions[i].tool = next_text(&pair);
		event->tool_permissions[i].permission = (enum permission)next_enum(&pair);
	}
}

static void read_state(struct cursor *at, struct app_state *state)
{
	avro_value_t branch;

	*state = (struct app_state){ .present = next_branch(at, &branch) };
	if (!state->present)
		return;
	struct cursor inner = cursor_of(at->walk, &branch);
	state->schema = next_text(&inner);
	state->encoding = (enum encoding)next_enum(&inner);
	state->fingerprint = next_bytes_or_null(&inner);
	state->body = next_bytes(&inner);
}

static void read_labels(struct cursor *at, struct gate *gate)
{
	avro_value_t map;

	gate->labels = next_array(at, sizeof(*gate->labels), &map, &gate->labels_len);
	for (size_t i = 0; i < gate->labels_len; i++) {
		struct cursor pair = item_record(at->walk, &map, i);
		gate->labels[i].key = next_text(&pair);
		gate->labels[i].value = next_text(&pair);
	}
}

static void read_gate(struct cursor *at, struct gate *gate)
{
	struct cursor inner = next_record(at);

	gate->gate_id = next_text(&inner);
	gate->title = next_text(&inner);
	next_action(&inner, &gate->action);
	gate->requested_by = next_text(&inner);
	gate->required_approvals = next_int(&inner);
	gate->approvers = next_texts(&inner, &gate->approvers_len);
	gate->expires_at = next_time_or_none(&inner);
	gate->on_expiry = (enum on_expiry)next_enum(&inner);
	read_labels(&inner, gate);
}

void read_suspend(struct cursor *at, struct suspend_event *ret_event)
{
	ret_event->checkpoint_id_text = next_text(at);
	ret_event->session_id = next_text(at);
	ret_event->suspend_seq = next_long(at);
	ret_event->tenant = next_text(at);
	ret_event->agent = next_text(at);
	ret_event->agent_version = next_text(at);
	ret_event->suspended_at = next_long(at);
	read_step(at, &ret_event->step);
	read_history(at, ret_event);
	ret_event->config = next_config(at, &ret_event->config_len);
	read_permissions(at, ret_event);
	read_state(at, &ret_event->state);
	read_gate(at, &ret_event->gate);
	next_fixed(at, ret_event->salt, SALT_LEN);
}

static enum fate check(struct codec *codec, struct suspend_event *event, struct arena *arena,
                       struct error *error)
{
	enum fate fate = validate_uuid(event->checkpoint_id_text, "checkpoint_id", &event->checkpoint_id, error);

	return fate == FATE_OK ? validate_suspend(event, codec->settings.strict_boundary, arena, error) : fate;
}

/* The guard has passed body. */
static enum fate decode(struct codec *codec, struct view body, struct arena *arena,
                        struct suspend_event *ret_event, struct error *error)
{
	avro_value_t value;
	enum fate fate = value_read(codec, PART_SUSPEND, body, &value, error);
	if (fate != FATE_OK)
		return fate;
	struct walk walk = { .arena = arena };
	struct cursor at = cursor_of(&walk, &value);
	read_suspend(&at, ret_event);
	value_done(codec, PART_SUSPEND);
	fate = walk_fate(&walk, error);
	return fate == FATE_OK ? check(codec, ret_event, arena, error) : fate;
}

enum fate codec_take_suspend(struct codec *codec, struct view value, struct arena *arena,
                             struct suspend_event *ret_event, struct view *ret_body, struct error *error)
{
	uint8_t sha256[32];

	return codec_take_suspend_written(codec, value, arena, ret_event, ret_body, sha256, error);
}

enum fate codec_take_suspend_written(struct codec *codec, struct view value, struct arena *arena,
                                     struct suspend_event *ret_event, struct view *ret_body,
                                     uint8_t ret_sha256[32], struct error *error)
{
	struct view today;
	enum fate fate = body_take_sent(codec, PART_SUSPEND, value, &today, ret_body, ret_sha256, error);

	if (fate == FATE_OK)
		fate = decode(codec, today, arena, ret_event, error);
	buffer_reset(&codec->migrated);
	return fate;
}

enum fate codec_read_suspend_body(struct codec *codec, struct view body, struct arena *arena,
                                  struct suspend_event *ret_event, struct error *error)
{
	enum fate fate = body_guard(PART_SUSPEND, body, error);

	return fate == FATE_OK ? decode(codec, body, arena, ret_event, error) : fate;
}

/* The field of that name among those of a record whose places are known. */
static struct view field_of(const struct schema_type *record, const char *name, const struct view *fields)
{
	long at = schema_find(record, name);

	assert(at >= 0);
	return fields[at];
}

static enum fate find_action(const struct schema_type *suspend, struct view gate, struct view *ret_action,
                             struct error *error)
{
	const struct schema_type *type = suspend->fields[schema_find(suspend, "gate")].type;
	struct view fields[FIELDS_MAX];

	assert(type->len <= FIELDS_MAX);
	enum fate fate = guard_fields(type, "gate", gate, SIZE_MAX, fields, error);
	if (fate == FATE_OK)
		*ret_action = field_of(type, "action", fields);
	return fate;
}

enum fate codec_guard_suspend_body(struct view body, struct guarded_body *ret_guarded, struct error *error)
{
	const struct part_class *class = class_of(PART_SUSPEND);
	struct view fields[FIELDS_MAX];

	assert(class->type->len <= FIELDS_MAX);
	enum fate fate = guard_fields(class->type, class->name, body, values_in(body.len), fields, error);
	if (fate != FATE_OK)
		return fate;
	ret_guarded->body = body;
	ret_guarded->state = field_of(class->type, "state", fields);
	return find_action(class->type, field_of(class->type, "gate", fields), &ret_guarded->action, error);
}

void codec_read_action(const struct guarded_body *guarded, struct action *ret_action)
{
	const uint8_t *at = guarded->action.data;

	*ret_action = (struct action){ .present = bytes_take_long(&at) != 0 };
	if (!ret_action->present)
		return;
	ret_action->tool = bytes_take_sized(&at);
	ret_action->arguments = bytes_take_sized(&at);
	ret_action->risk = (enum risk)bytes_take_long(&at);
	ret_action->summary = bytes_take_sized(&at);
}

static void put_step(struct cursor *at, const struct step *step)
{
	struct cursor inner = next_record(at);

	put_text(&inner, step->graph);
	put_text(&inner, step->node);
	put_text(&inner, step->resume_at);
	put_texts(&inner, step->path, step->path_len);
	put_int(&inner, step->attempt);
}

static void put_tool_calls(struct cursor *at, const struct history_entry *entry)
{
	avro_value_t array = next_value(at);

	for (size_t i = 0; i < entry->tool_calls_len && !at->walk->failed; i++) {
		struct cursor call = append_record(at->walk, &array);
		put_text(&call, entry->tool_calls[i].id);
		put_text(&call, entry->tool_calls[i].name);
		put_text(&call, entry->tool_calls[i].arguments);
	}
}

static void put_history(struct cursor *at, const struct suspend_event *event)
{
	avro_value_t array = next_value(at);

	for (size_t i = 0; i < event->history_len && !at->walk->failed; i++) {
		const struct history_entry *entry = &event->history[i];
		struct cursor inner = append_record(at->walk, &array);
		put_enum(&inner, (int)entry->role);
		put_text(&inner, entry->content);
		put_text_or_null(&inner, entry->name);
		put_text_or_null(&inner, entry->tool_call_id);
		put_tool_calls(&inner, entry);
		put_time_or_none(&inner, entry->at);
	}
}

static void put_permissions(struct cursor *at, const struct suspend_event *event)
{
	avro_value_t map = next_value(at);

	for (size_t i = 0; i < event->tool_permissions_len && !at->walk->failed; i++) {
		struct cursor pair = append_record(at->walk, &map);
		put_text(&pair, event->tool_permissions[i].tool);
		put_enum(&pair, (int)event->tool_permissions[i].permission);
	}
}

static void put_state(struct cursor *at, const struct app_state *state)
{
	avro_value_t branch = put_branch(at, state->present);

	if (!state->present)
		return;
	struct cursor inner = cursor_of(at->walk, &branch);
	put_text(&inner, state->schema);
	put_enum(&inner, (int)state->encoding);
	put_bytes_or_null(&inner, state->fingerprint);
	put_bytes(&inner, state->body);
}

static void put_labels(struct cursor *at, const struct gate *gate)
{
	avro_value_t map = next_value(at);

	for (size_t i = 0; i < gate->labels_len && !at->walk->failed; i++) {
		struct cursor pair = append_record(at->walk, &map);
		put_text(&pair, gate->labels[i].key);
		put_text(&pair, gate->labels[i].value);
	}
}

static void put_gate(struct cursor *at, const struct gate *gate)
{
	struct cursor inner = next_record(at);

	put_text(&inner, gate->gate_id);
	put_text(&inner, gate->title);
	put_action(&inner, &gate->action);
	put_text(&inner, gate->requested_by);
	put_int(&inner, gate->required_approvals);
	put_texts(&inner, gate->approvers, gate->approvers_len);
	put_time_or_none(&inner, gate->expires_at);
	put_enum(&inner, (int)gate->on_expiry);
	put_labels(&inner, gate);
}

static void put_suspend(struct cursor *at, const struct suspend_event *event,
                        char text_room[UUID_TEXT_LEN + 1])
{
	put_uuid(at, event->checkpoint_id_text, &event->checkpoint_id, text_room);
	put_text(at, event->session_id);
	put_long(at, event->suspend_seq);
	put_text(at, event->tenant);
	put_text(at, event->agent);
	put_text(at, event->agent_version);
	put_long(at, event->suspended_at);
	put_step(at, &event->step);
	put_history(at, event);
	put_config(at, event->config, event->config_len);
	put_permissions(at, event);
	put_state(at, &event->state);
	put_gate(at, &event->gate);
	put_fixed(at, event->salt, SALT_LEN);
}

static enum fate encode(struct codec *codec, const struct suspend_event *event, struct buffer *out,
                        struct error *error)
{
	avro_value_t value;
	enum fate fate = value_start(codec, PART_SUSPEND, &value, error);
	if (fate != FATE_OK)
		return fate;
	char text_room[UUID_TEXT_LEN + 1];
	struct walk walk = { 0 };
	struct cursor at = cursor_of(&walk, &value);
	put_suspend(&at, event, text_room);
	return value_write(codec, PART_SUSPEND, &walk, out, error);
}

enum fate codec_put_suspend(struct codec *codec, const struct suspend_event *event, struct buffer *out,
                            struct error *error)
{
	size_t start = put_begin(codec, PART_SUSPEND, out);
	enum fate fate = validate_id_to_put(event->checkpoint_id_text, "checkpoint_id", error);

	if (fate == FATE_OK)
		fate = validate_suspend(event, codec->settings.strict_boundary, codec->scratch, error);
	if (fate == FATE_OK)
		fate = encode(codec, event, out, error);
	return put_end(codec, PART_SUSPEND, out, start, fate, error);
}
