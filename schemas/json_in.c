/* One SuspendEvent out of a line of JSON. */
#include "schemas/json.h"
#include "schemas/json_fault.h"
#include "schemas/json_read.h"
#include "schemas/validate.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

static const char *role_at(int position)
{
	return role_name((enum role)position);
}

static const char *permission_at(int position)
{
	return permission_name((enum permission)position);
}

static const char *encoding_at(int position)
{
	return encoding_name((enum encoding)position);
}

static const char *risk_at(int position)
{
	return risk_name((enum risk)position);
}

static const char *on_expiry_at(int position)
{
	return on_expiry_name((enum on_expiry)position);
}

static void read_step(const struct json_place *top, struct step *step)
{
	static const char *const names[] = { "graph", "node", "resume_at", "path", "attempt", NULL };
	const json_t *value = json_need(top, "step");
	if (!value)
		return;
	struct json_place at = json_enter(top->reader, value, json_step(top, "step"), names);

	step->graph = json_need_text(&at, "graph");
	step->node = json_need_text(&at, "node");
	step->resume_at = json_need_text(&at, "resume_at");
	step->path = json_need_texts(&at, "path", false, &step->path_len);
	step->attempt = (int32_t)json_need_integer(&at, "attempt", INT32_MIN, INT32_MAX);
}

static void read_tool_calls(const struct json_place *at, struct history_entry *entry)
{
	static const char *const names[] = { "id", "name", "arguments", NULL };
	const json_t *array = json_need_array(at, "tool_calls");
	struct path_step step = json_step(at, "tool_calls");
	size_t len = json_array_size(array);

	entry->tool_calls = json_room(at->reader, len, sizeof(*entry->tool_calls));
	for (size_t i = 0; i < len && !at->reader->failed; i++) {
		struct path_step item = { .up = &step, .item = (int64_t)i };
		struct json_place call = json_enter(at->reader, json_array_get(array, i), item, names);
		entry->tool_calls[i].id = json_need_text(&call, "id");
		entry->tool_calls[i].name = json_need_text(&call, "name");
		entry->tool_calls[i].arguments = json_need_json(&call, "arguments");
		entry->tool_calls_len = i + 1;
	}
}

static void read_history(const struct json_place *top, struct suspend_event *event)
{
	static const char *const names[] = {
		"role", "content", "name", "tool_call_id", "tool_calls", "at", NULL
	};
	const json_t *array = json_need_array(top, "history");
	struct path_step step = json_step(top, "history");
	size_t len = json_array_size(array);

	event->history = json_room(top->reader, len, sizeof(*event->history));
	for (size_t i = 0; i < len && !top->reader->failed; i++) {
		struct path_step item = { .up = &step, .item = (int64_t)i };
		struct json_place at = json_enter(top->reader, json_array_get(array, i), item, names);
		struct history_entry *entry = &event->history[i];
		entry->role = (enum role)json_need_symbol(&at, "role", role_at, ROLE_TOOL + 1);
		entry->content = json_need_text(&at, "content");
		entry->name = json_text_or_null(&at, "name");
		entry->tool_call_id = json_text_or_null(&at, "tool_call_id");
		read_tool_calls(&at, entry);
		entry->at = json_time_or_none(&at, "at");
		event->history_len = i + 1;
	}
}

/* A map must be there and be an object. */
static json_t *need_map(const struct json_place *place, const char *name)
{
	const json_t *value = json_need(place, name);
	struct path_step step = json_step(place, name);

	if (!json_is_object(value))
		json_wrong(place->reader, &step, "must be an object");
	return (json_t *)(uintptr_t)value; /* the iterator takes no const, and changes nothing */
}

static struct view copy_key(struct json_reader *reader, const char *key)
{
	struct view copy = arena_copy(reader->arena, view_of(key));

	if (view_is_null(copy))
		json_room(reader, SIZE_MAX, 1); /* fails, and says so */
	return copy;
}

static void read_config(const struct json_place *top, struct suspend_event *event)
{
	json_t *map = need_map(top, "config");
	struct path_step step = json_step(top, "config");
	const char *key;
	json_t *value;

	event->config = json_room(top->reader, json_object_size(map), sizeof(*event->config));
	json_object_foreach(map, key, value)
	{
		if (top->reader->failed)
			return;
		struct path_step item = { .up = &step, .item = (int64_t)event->config_len };
		struct config_entry *entry = &event->config[event->config_len++];
		entry->key = copy_key(top->reader, key);
		json_config_value(top->reader, value, &item, entry);
	}
}

static void read_permissions(const struct json_place *top, struct suspend_event *event)
{
	json_t *map = need_map(top, "tool_permissions");
	struct path_step step = json_step(top, "tool_permissions");
	struct json_reader *reader = top->reader;
	const char *key;
	json_t *value;

	event->tool_permissions = json_room(reader, json_object_size(map), sizeof(*event->tool_permissions));
	json_object_foreach(map, key, value)
	{
		if (reader->failed)
			return;
		struct path_step item = { .up = &step, .item = (int64_t)event->tool_permissions_len };
		struct tool_permission *entry = &event->tool_permissions[event->tool_permissions_len++];
		entry->tool = copy_key(reader, key);
		entry->permission =
			(enum permission)json_symbol(reader, value, &item, permission_at, PERMISSION_ASK + 1);
	}
}

static void read_labels(const struct json_place *place, struct gate *gate)
{
	json_t *map = need_map(place, "labels");
	struct path_step step = json_step(place, "labels");
	const char *key;
	json_t *value;

	gate->labels = json_room(place->reader, json_object_size(map), sizeof(*gate->labels));
	json_object_foreach(map, key, value)
	{
		if (place->reader->failed)
			return;
		struct path_step item = { .up = &step, .item = (int64_t)gate->labels_len };
		struct label *label = &gate->labels[gate->labels_len++];
		label->key = copy_key(place->reader, key);
		label->value = json_string_copy(place->reader, value, &item);
	}
}

static void read_state(const struct json_place *top, struct app_state *state)
{
	static const char *const names[] = { "schema", "encoding", "fingerprint", "body", NULL };
	const json_t *value = json_find(top, "state");

	state->present = value != NULL;
	if (!value)
		return;
	value = json_unwrap(json_unwrap(value, "fermata.v1.AppState"), "AppState");
	struct json_place at = json_enter(top->reader, value, json_step(top, "state"), names);
	state->schema = json_need_text(&at, "schema");
	state->encoding = (enum encoding)json_need_symbol(&at, "encoding", encoding_at, ENCODING_JSON + 1);
	const json_t *fingerprint = json_find(&at, "fingerprint");
	struct path_step step = json_step(&at, "fingerprint");
	if (fingerprint)
		state->fingerprint = json_bytes_copy(top->reader, json_unwrap(fingerprint, "bytes"), &step);
	step.field = "body";
	const json_t *body = json_need(&at, "body");
	state->body = json_bytes_copy(top->reader, body, &step);
}

static void read_action(const struct json_place *gate, struct action *action)
{
	static const char *const names[] = { "tool", "arguments", "risk", "summary", NULL };
	const json_t *value = json_find(gate, "action");

	action->present = value != NULL;
	if (!value)
		return;
	value = json_unwrap(json_unwrap(value, "fermata.v1.Action"), "Action");
	struct json_place at = json_enter(gate->reader, value, json_step(gate, "action"), names);
	action->tool = json_need_text(&at, "tool");
	action->arguments = json_need_json(&at, "arguments");
	action->risk = (enum risk)json_need_symbol(&at, "risk", risk_at, RISK_CRITICAL + 1);
	action->summary = json_need_text(&at, "summary");
}

static void read_gate(const struct json_place *top, struct gate *gate)
{
	static const char *const names[] = {
		"gate_id",   "title",      "action",    "requested_by", "required_approvals",
		"approvers", "expires_at", "on_expiry", "labels",       NULL
	};
	const json_t *value = json_need(top, "gate");

	gate->expires_at = TIME_NONE;
	if (!value)
		return;
	struct json_place at = json_enter(top->reader, value, json_step(top, "gate"), names);
	gate->gate_id = json_need_text(&at, "gate_id");
	gate->title = json_need_text(&at, "title");
	read_action(&at, &gate->action);
	gate->requested_by = json_need_text(&at, "requested_by");
	gate->required_approvals = (int32_t)json_integer_or(&at, "required_approvals", INT32_MIN, INT32_MAX, 1);
	gate->approvers = json_need_texts(&at, "approvers", true, &gate->approvers_len);
	gate->expires_at = json_time_or_none(&at, "expires_at");
	gate->on_expiry =
		(enum on_expiry)json_symbol_or(&at, "on_expiry", on_expiry_at, ON_EXPIRY_HOLD + 1, ON_EXPIRY_REJECT);
	read_labels(&at, gate);
}

/* What may be missing is made: the id (in fill), the time, and a suspend_seq that grows with the time. */
static void read_identity(const struct json_place *top, struct suspend_event *event,
                          struct suspend_filled *filled)
{
	filled->checkpoint_id = !json_find(top, "checkpoint_id");
	if (!filled->checkpoint_id)
		event->checkpoint_id_text = json_need_text(top, "checkpoint_id");
	event->session_id = json_need_text(top, "session_id");
	event->tenant = json_text_or(top, "tenant", "default");
	event->agent = json_need_text(top, "agent");
	event->agent_version = json_need_text(top, "agent_version");
	filled->suspended_at = !json_find(top, "suspended_at");
	event->suspended_at =
		filled->suspended_at ? clock_real_us() : json_need_integer(top, "suspended_at", INT64_MIN, INT64_MAX);
	filled->suspend_seq = !json_find(top, "suspend_seq");
	event->suspend_seq = filled->suspend_seq ? event->suspended_at
	                                         : json_need_integer(top, "suspend_seq", INT64_MIN, INT64_MAX);
}

static void read_salt(const struct json_place *top, struct suspend_event *event,
                      struct suspend_filled *filled)
{
	const json_t *value = json_find(top, "salt");
	struct path_step step = json_step(top, "salt");

	filled->salt = !value;
	if (!value)
		return;
	struct view salt = json_bytes_copy(top->reader, value, &step);
	if (salt.len == SALT_LEN)
		memcpy(event->salt, salt.data, SALT_LEN);
	else
		json_wrong(top->reader, &step, "must have 16 bytes, a code point each");
}

static void read_record(struct json_reader *reader, const json_t *json, struct suspend_event *event,
                        struct suspend_filled *filled)
{
	static const char *const names[] = {
		"checkpoint_id",    "session_id",   "suspend_seq", "tenant",  "agent",
		"agent_version",    "suspended_at", "step",        "history", "config",
		"tool_permissions", "state",        "gate",        "salt",    NULL
	};
	struct json_place top = json_enter(reader, json, (struct path_step){ 0 }, names);

	if (reader->failed)
		return;
	read_identity(&top, event, filled);
	read_step(&top, &event->step);
	read_history(&top, event);
	read_config(&top, event);
	read_permissions(&top, event);
	read_state(&top, &event->state);
	read_gate(&top, &event->gate);
	read_salt(&top, event, filled);
}

/* What was missing and cannot be a constant. */
static enum fate fill(struct suspend_event *event, const struct suspend_filled *filled, struct arena *arena,
                      struct error *error)
{
	char text[UUID_TEXT_LEN + 1];

	if (filled->salt && getrandom(event->salt, SALT_LEN, 0) != SALT_LEN)
		return error_set_errno(error, FATE_FATAL, errno, "cannot make a salt");
	if (!filled->checkpoint_id)
		return validate_uuid(event->checkpoint_id_text, "checkpoint_id", &event->checkpoint_id, error);
	enum fate fate = uuid_make_v7(&event->checkpoint_id, error);
	if (fate != FATE_OK)
		return fate;
	uuid_format(&event->checkpoint_id, text);
	event->checkpoint_id_text = arena_copy(arena, view_of(text));
	return event->checkpoint_id_text.data
	           ? FATE_OK
	           : error_set(error, FATE_RETRY, ERR_MEMORY, "no room in the arena for a record");
}

enum fate suspend_from_json(struct view line, struct arena *arena, struct suspend_event *ret_event,
                            struct suspend_filled *ret_filled, struct error *error)
{
	struct error ignored = { 0 };
	json_error_t detail;
	bool starved = false;

	*ret_event = (struct suspend_event){ 0 };
	*ret_filled = (struct suspend_filled){ 0 };
	json_t *json = view_is_null(line)
	                   ? NULL
	                   : json_take(line, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &detail, &starved);
	if (starved)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a line");
	if (!json)
		return error_set(error, FATE_REJECT, ERR_INVALID, "the line is not a JSON object: %s (column %d)",
		                 view_is_null(line) ? "it is empty" : json_fault(&detail),
		                 view_is_null(line) ? 0 : detail.column);
	struct json_reader reader = { .arena = arena, .error = error ? error : &ignored };
	read_record(&reader, json, ret_event, ret_filled);
	json_decref(json);
	return reader.failed ? reader.error->fate : fill(ret_event, ret_filled, arena, error);
}
