#include "producer/agent_inner.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* ---- memory ---- */

static void fail(struct suspension *suspension, enum error_code code, const char *what)
{
	if (suspension->fault.fate == FATE_OK)
		error_set(&suspension->fault, code == ERR_MEMORY ? FATE_RETRY : FATE_REJECT, code,
		          "could not put together the suspension: %s", what);
}

static struct view copy(struct suspension *suspension, const char *text)
{
	struct view kept = text ? arena_copy(suspension->arena, view_of(text)) : VIEW_NULL;

	if (text && !kept.data)
		fail(suspension, ERR_MEMORY, "out of memory");
	return kept;
}

static struct view copy_required(struct suspension *suspension, const char *text, const char *name)
{
	if (!text)
		fail(suspension, ERR_INVALID, name);
	return copy(suspension, text ? text : "");
}

/*
 * Room for one more item behind len of them: a new array of twice the size whenever len is a power of two, so
 * that an array needs no capacity of its own. What comes from a resume may have any len and no room behind it:
 * such arrays are copied once by suspension_next. NULL, and the fault, when there is no memory.
 */
static void *grow(struct suspension *suspension, void *items, size_t len, size_t size)
{
	void *grown;

	if (len & (len - 1))
		return items;
	grown = arena_array(suspension->arena, len ? 2 * len : 1, size);
	if (!grown)
		fail(suspension, ERR_MEMORY, "out of memory");
	else if (len)
		memcpy(grown, items, len * size);
	return grown;
}

/* A copy with room for more items, as grow expects it. */
static void *copy_array(struct suspension *suspension, const void *items, size_t len, size_t more,
                        size_t size)
{
	size_t room = 1;
	void *copied;

	while (room < len + more)
		room *= 2;
	copied = arena_array(suspension->arena, room, size);
	if (!copied)
		fail(suspension, ERR_MEMORY, "out of memory");
	else if (len)
		memcpy(copied, items, len * size);
	return copied;
}

/* ---- beginning and end ---- */

static bool make_ids(struct suspension *suspension)
{
	struct suspend_event *event = &suspension->event;
	struct error error;

	event->suspended_at = clock_real_us();
	if (uuid_make_v7(&event->checkpoint_id, &error) != FATE_OK ||
	    getrandom(event->salt, sizeof(event->salt), 0) != (ssize_t)sizeof(event->salt))
		return false;
	uuid_format(&event->checkpoint_id, suspension->id);
	event->checkpoint_id_text = view_of(suspension->id);
	return true;
}

static struct suspension *bare_new(void)
{
	struct suspension *suspension = calloc(1, sizeof(*suspension));

	if (!suspension)
		return NULL;
	suspension->arena = arena_new(SUSPENSION_BYTES_MAX);
	buffer_init(&suspension->value, VALUE_BYTES_MAX);
	if (suspension->arena && make_ids(suspension))
		return suspension;
	suspension_free(suspension);
	return NULL;
}

static void no_gate(struct suspension *suspension)
{
	suspension->event.gate = (struct gate){ .gate_id = VIEW_LITERAL(""),
		                                    .title = VIEW_LITERAL(""),
		                                    .requested_by = VIEW_LITERAL(""),
		                                    .required_approvals = 1,
		                                    .expires_at = TIME_NONE,
		                                    .on_expiry = ON_EXPIRY_REJECT };
}

struct suspension *suspension_new(const char *session_id, const char *agent, const char *agent_version)
{
	struct suspension *suspension = bare_new();
	struct suspend_event *event;

	if (!suspension)
		return NULL;
	event = &suspension->event;
	event->suspend_seq = event->suspended_at;
	event->tenant = VIEW_LITERAL("default");
	event->step = (struct step){ VIEW_LITERAL(""), VIEW_LITERAL(""), VIEW_LITERAL(""), NULL, 0, 1 };
	event->session_id = copy_required(suspension, session_id, "session_id is NULL");
	event->agent = copy_required(suspension, agent, "agent is NULL");
	event->agent_version = copy_required(suspension, agent_version, "agent_version is NULL");
	no_gate(suspension);
	return suspension;
}

struct suspension *suspension_next(const struct resume_event *resumed)
{
	const struct suspend_event *before = &resumed->suspend;
	struct suspension *suspension = bare_new();
	struct suspend_event made;
	struct suspend_event *event;

	if (!suspension)
		return NULL;
	made = suspension->event;
	event = &suspension->event;
	*event = *before;
	event->checkpoint_id = made.checkpoint_id;
	event->checkpoint_id_text = made.checkpoint_id_text;
	event->suspended_at = made.suspended_at;
	memcpy(event->salt, made.salt, sizeof(event->salt));
	event->suspend_seq = before->suspend_seq + 1;
	event->step.path =
		copy_array(suspension, before->step.path, before->step.path_len, 0, sizeof(struct view));
	event->history = copy_array(suspension, before->history, before->history_len, 0, sizeof(*event->history));
	event->config = copy_array(suspension, before->config, before->config_len, 0, sizeof(*event->config));
	event->tool_permissions = copy_array(suspension, before->tool_permissions, before->tool_permissions_len,
	                                     0, sizeof(*event->tool_permissions));
	no_gate(suspension);
	return suspension;
}

void suspension_free(struct suspension *suspension)
{
	if (!suspension)
		return;
	buffer_done(&suspension->value);
	arena_free(suspension->arena);
	free(suspension);
}

const char *suspension_checkpoint_id(const struct suspension *suspension)
{
	return suspension ? suspension->id : "";
}

/* May a part still be set? What was sent once stays as it is. */
static bool is_open(struct suspension *suspension)
{
	if (!suspension || suspension->fault.fate != FATE_OK)
		return false;
	if (suspension->value.len) {
		fail(suspension, ERR_BUG, "it has been sent already");
		return false;
	}
	return true;
}

/* ---- parts ---- */

void suspension_seq(struct suspension *suspension, int64_t suspend_seq)
{
	if (is_open(suspension))
		suspension->event.suspend_seq = suspend_seq;
}

void suspension_tenant(struct suspension *suspension, const char *tenant)
{
	if (is_open(suspension))
		suspension->event.tenant = copy_required(suspension, tenant, "tenant is NULL");
}

void suspension_version(struct suspension *suspension, const char *version)
{
	if (is_open(suspension))
		suspension->event.agent_version = copy_required(suspension, version, "agent_version is NULL");
}

void suspension_step(struct suspension *suspension, const char *graph, const char *node,
                     const char *resume_at)
{
	struct step *step;

	if (!is_open(suspension))
		return;
	step = &suspension->event.step;
	step->graph = copy_required(suspension, graph, "step.graph is NULL");
	step->node = copy_required(suspension, node, "step.node is NULL");
	step->resume_at = copy_required(suspension, resume_at, "step.resume_at is NULL");
	step->path = NULL;
	step->path_len = 0;
	step->attempt = 1;
}

void suspension_step_path(struct suspension *suspension, const char *element)
{
	struct step *step;
	struct view *path;

	if (!is_open(suspension))
		return;
	step = &suspension->event.step;
	path = grow(suspension, step->path, step->path_len, sizeof(*path));
	if (!path)
		return;
	step->path = path;
	step->path[step->path_len++] = copy_required(suspension, element, "an element of step.path is NULL");
}

void suspension_attempt(struct suspension *suspension, int32_t attempt)
{
	if (is_open(suspension))
		suspension->event.step.attempt = attempt;
}

static struct history_entry *add_entry(struct suspension *suspension, enum role role, const char *name,
                                       const char *content)
{
	struct suspend_event *event = &suspension->event;
	struct history_entry *history = grow(suspension, event->history, event->history_len, sizeof(*history));
	struct history_entry *entry;

	if (!history)
		return NULL;
	event->history = history;
	entry = &history[event->history_len++];
	*entry = (struct history_entry){ .role = role, .at = clock_real_us() };
	entry->content = copy_required(suspension, content, "the content of a history entry is NULL");
	entry->name = copy(suspension, name);
	return entry;
}

void suspension_say(struct suspension *suspension, enum role role, const char *content)
{
	suspension_say_as(suspension, role, NULL, content);
}

void suspension_say_as(struct suspension *suspension, enum role role, const char *name, const char *content)
{
	if (is_open(suspension))
		(void)add_entry(suspension, role, name, content);
}

void suspension_tool_call(struct suspension *suspension, const char *id, const char *name,
                          const char *arguments)
{
	struct suspend_event *event;
	struct history_entry *entry;
	struct tool_call *calls;

	if (!is_open(suspension))
		return;
	event = &suspension->event;
	entry = event->history_len ? &event->history[event->history_len - 1] : NULL;
	if (!entry || entry->role != ROLE_AGENT) {
		fail(suspension, ERR_INVALID, "a tool call belongs to an entry of the AGENT");
		return;
	}
	/* an entry that came with a resume is as full as it is */
	calls = copy_array(suspension, entry->tool_calls, entry->tool_calls_len, 1, sizeof(*calls));
	if (!calls)
		return;
	calls[entry->tool_calls_len].id = copy_required(suspension, id, "the id of a tool call is NULL");
	calls[entry->tool_calls_len].name = copy_required(suspension, name, "the name of a tool call is NULL");
	calls[entry->tool_calls_len].arguments =
		copy_required(suspension, arguments, "the arguments of a tool call are NULL");
	entry->tool_calls = calls;
	entry->tool_calls_len++;
}

void suspension_tool_answer(struct suspension *suspension, const char *id, const char *name,
                            const char *content)
{
	struct history_entry *entry;

	if (!is_open(suspension))
		return;
	entry = add_entry(suspension, ROLE_TOOL, name, content);
	if (entry)
		entry->tool_call_id = copy(suspension, id);
}

/* The entry of that key, a new one if need be. NULL when it cannot be had. */
static struct config_entry *config_at(struct suspension *suspension, const char *key, enum config_kind kind)
{
	struct suspend_event *event;
	struct config_entry *config;
	size_t i = 0;

	if (!is_open(suspension))
		return NULL;
	event = &suspension->event;
	while (i < event->config_len && !view_equal_text(event->config[i].key, key ? key : ""))
		i++;
	if (i == event->config_len) {
		config = grow(suspension, event->config, event->config_len, sizeof(*config));
		if (!config)
			return NULL;
		event->config = config;
		config[i].key = copy_required(suspension, key, "a key of config is NULL");
		event->config_len++;
	}
	event->config[i].kind = kind;
	return &event->config[i];
}

void suspension_put_null(struct suspension *suspension, const char *key)
{
	(void)config_at(suspension, key, CONFIG_NULL);
}

void suspension_put_boolean(struct suspension *suspension, const char *key, bool value)
{
	struct config_entry *entry = config_at(suspension, key, CONFIG_BOOLEAN);

	if (entry)
		entry->value.boolean = value;
}

void suspension_put_long(struct suspension *suspension, const char *key, int64_t value)
{
	struct config_entry *entry = config_at(suspension, key, CONFIG_LONG);

	if (entry)
		entry->value.number = value;
}

void suspension_put_double(struct suspension *suspension, const char *key, double value)
{
	struct config_entry *entry = config_at(suspension, key, CONFIG_DOUBLE);

	if (entry)
		entry->value.real = value;
}

void suspension_put_text(struct suspension *suspension, const char *key, const char *value)
{
	struct config_entry *entry = config_at(suspension, key, CONFIG_STRING);

	if (entry)
		entry->value.string = copy_required(suspension, value, "a text in config is NULL");
}

void suspension_put_texts(struct suspension *suspension, const char *key, const char *const *values,
                          size_t len)
{
	struct config_entry *entry = config_at(suspension, key, CONFIG_STRINGS);

	if (!entry)
		return;
	entry->value.strings.items = arena_array(suspension->arena, len, sizeof(struct view));
	entry->value.strings.len = entry->value.strings.items ? len : 0;
	if (len && !entry->value.strings.items)
		fail(suspension, ERR_MEMORY, "out of memory");
	for (size_t i = 0; i < entry->value.strings.len; i++)
		entry->value.strings.items[i] = copy_required(suspension, values[i], "a text in config is NULL");
}

void suspension_permit(struct suspension *suspension, const char *tool, enum permission permission)
{
	struct suspend_event *event;
	struct tool_permission *permissions;
	size_t i = 0;

	if (!is_open(suspension))
		return;
	event = &suspension->event;
	while (i < event->tool_permissions_len &&
	       !view_equal_text(event->tool_permissions[i].tool, tool ? tool : ""))
		i++;
	if (i == event->tool_permissions_len) {
		permissions = grow(suspension, event->tool_permissions, i, sizeof(*permissions));
		if (!permissions)
			return;
		event->tool_permissions = permissions;
		permissions[i].tool = copy_required(suspension, tool, "the name of a tool is NULL");
		event->tool_permissions_len++;
	}
	event->tool_permissions[i].permission = permission;
}

void suspension_state_json(struct suspension *suspension, const char *schema, const char *json)
{
	if (!is_open(suspension))
		return;
	suspension->event.state =
		(struct app_state){ .present = true,
		                    .schema = copy_required(suspension, schema, "state.schema is NULL"),
		                    .encoding = ENCODING_JSON,
		                    .body = copy_required(suspension, json, "state.body is NULL") };
}

void suspension_state_avro(struct suspension *suspension, const char *schema, const uint8_t fingerprint[8],
                           const void *body, size_t len)
{
	struct app_state *state;

	if (!is_open(suspension))
		return;
	state = &suspension->event.state;
	state->present = true;
	state->schema = copy_required(suspension, schema, "state.schema is NULL");
	state->encoding = ENCODING_AVRO;
	state->fingerprint = arena_copy(suspension->arena, (struct view){ fingerprint, 8 });
	state->body = arena_copy(suspension->arena, (struct view){ len ? body : (const uint8_t *)"", len });
	if (!state->fingerprint.data || !state->body.data)
		fail(suspension, ERR_MEMORY, "out of memory");
}

/* ---- the gate ---- */

void suspension_gate(struct suspension *suspension, const char *gate_id, const char *title,
                     const char *requested_by)
{
	struct gate *gate;

	if (!is_open(suspension))
		return;
	gate = &suspension->event.gate;
	gate->gate_id = copy_required(suspension, gate_id, "gate.gate_id is NULL");
	gate->title = copy_required(suspension, title, "gate.title is NULL");
	gate->requested_by = copy_required(suspension, requested_by, "gate.requested_by is NULL");
}

void suspension_action(struct suspension *suspension, const char *tool, const char *arguments, enum risk risk,
                       const char *summary)
{
	struct action *action;

	if (!is_open(suspension))
		return;
	action = &suspension->event.gate.action;
	action->present = true;
	action->tool = copy_required(suspension, tool, "gate.action.tool is NULL");
	action->arguments = copy_required(suspension, arguments, "gate.action.arguments is NULL");
	action->risk = risk;
	action->summary = copy_required(suspension, summary, "gate.action.summary is NULL");
}

void suspension_quorum(struct suspension *suspension, int32_t required_approvals)
{
	if (is_open(suspension))
		suspension->event.gate.required_approvals = required_approvals;
}

void suspension_approver(struct suspension *suspension, const char *approver)
{
	struct gate *gate;
	struct view *approvers;

	if (!is_open(suspension))
		return;
	gate = &suspension->event.gate;
	approvers = grow(suspension, gate->approvers, gate->approvers_len, sizeof(*approvers));
	if (!approvers)
		return;
	gate->approvers = approvers;
	approvers[gate->approvers_len++] = copy_required(suspension, approver, "an approver is NULL");
}

void suspension_expiry(struct suspension *suspension, int64_t at_us, enum on_expiry on_expiry)
{
	if (!is_open(suspension))
		return;
	suspension->event.gate.expires_at = at_us;
	suspension->event.gate.on_expiry = on_expiry;
}

void suspension_label(struct suspension *suspension, const char *key, const char *value)
{
	struct gate *gate;
	struct label *labels;
	size_t i = 0;

	if (!is_open(suspension))
		return;
	gate = &suspension->event.gate;
	while (i < gate->labels_len && !view_equal_text(gate->labels[i].key, key ? key : ""))
		i++;
	if (i == gate->labels_len) {
		labels = grow(suspension, gate->labels, i, sizeof(*labels));
		if (!labels)
			return;
		gate->labels = labels;
		labels[i].key = copy_required(suspension, key, "the key of a label is NULL");
		gate->labels_len++;
	}
	gate->labels[i].value = copy_required(suspension, value, "the value of a label is NULL");
}

void suspension_trace(struct suspension *suspension, const char *traceparent, const char *tracestate)
{
	if (!is_open(suspension))
		return;
	suspension->traceparent = (const char *)copy(suspension, traceparent).data;
	suspension->tracestate = (const char *)copy(suspension, tracestate).data;
}
